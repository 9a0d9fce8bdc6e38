// Reads a GGUF file into its keys and tensors and writes it back, so that a test can hand sluice a
// file with a deliberate fault. Values stay raw bytes; nothing is dequantised. Not a validator: it
// trusts the files of `sluice synth`.
import { readFileSync, writeFileSync } from "node:fs";

const kAlignment = 32;

// ggml type id -> [elements per block, bytes per block].
const kBlocks = {
  0: [1, 4],
  1: [1, 2],
  30: [1, 2],
  2: [32, 18],
  3: [32, 20],
  6: [32, 22],
  7: [32, 24],
  8: [32, 34],
  10: [256, 84],
  11: [256, 110],
  12: [256, 144],
  13: [256, 176],
  14: [256, 210],
  20: [32, 18],
  23: [256, 136],
  39: [32, 17],
};

// Bytes of the fixed-size value types, by id; 8 is a string, 9 an array.
const kValueBytes = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const kString = 8;
const kArray = 9;

export function bytes_of(type, n_elements) {
  const [elements, bytes] = kBlocks[type];
  return (n_elements / elements) * bytes;
}

export function block_bytes(type) {
  return kBlocks[type][1];
}

class Reader {
  constructor(buffer) {
    this.buffer = buffer;
    this.at = 0;
  }
  u32() {
    this.at += 4;
    return this.buffer.readUInt32LE(this.at - 4);
  }
  u64() {
    this.at += 8;
    return Number(this.buffer.readBigUInt64LE(this.at - 8));
  }
  string() {
    const length = this.u64();
    this.at += length;
    return this.buffer.toString("utf8", this.at - length, this.at);
  }
  skip_value(type) {
    if (type === kString) {
      this.string();
    } else if (type === kArray) {
      const element = this.u32();
      const count = this.u64();
      if (element === kString) for (let i = 0; i < count; ++i) this.string();
      else this.at += count * kValueBytes[element];
    } else {
      this.at += kValueBytes[type];
    }
  }
}

// {keys: Map name -> {type, raw}, tensors: Map name -> {dims, type, bytes}}, both in file order;
// bytes are copies.
export function read_gguf(path) {
  const buffer = readFileSync(path);
  const reader = new Reader(buffer);
  if (buffer.toString("latin1", 0, 4) !== "GGUF") throw new Error(`${path} is not a GGUF file`);
  reader.at = 8;
  const n_tensors = reader.u64();
  const n_keys = reader.u64();
  const keys = new Map();
  for (let i = 0; i < n_keys; ++i) {
    const name = reader.string();
    const type = reader.u32();
    const start = reader.at;
    reader.skip_value(type);
    keys.set(name, { type, raw: Buffer.from(buffer.subarray(start, reader.at)) });
  }
  const directory = [];
  for (let i = 0; i < n_tensors; ++i) {
    const name = reader.string();
    const dims = Array.from({ length: reader.u32() }, () => reader.u64());
    directory.push({ name, dims, type: reader.u32(), offset: reader.u64() });
  }
  const alignment = keys.get("general.alignment")?.raw.readUInt32LE() ?? kAlignment;
  const data = Math.ceil(reader.at / alignment) * alignment;
  const tensors = new Map();
  for (const { name, dims, type, offset } of directory) {
    const size = bytes_of(
      type,
      dims.reduce((a, b) => a * b, 1),
    );
    tensors.set(name, {
      dims,
      type,
      bytes: Buffer.from(buffer.subarray(data + offset, data + offset + size)),
    });
  }
  return { keys, tensors };
}

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const string = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const padding = (length) => Buffer.alloc((kAlignment - (length % kAlignment)) % kAlignment);

export const value_u32 = (value) => ({ type: 4, raw: u32(value) });
export const value_string = (text) => ({ type: kString, raw: string(text) });

export function read_u32(gguf, key) {
  return gguf.keys.get(key).raw.readUInt32LE();
}

export function write_gguf(path, { keys, tensors }) {
  keys.delete("general.alignment"); // written with the default
  const head = [Buffer.from("GGUF"), u32(3), u64(tensors.size), u64(keys.size)];
  for (const [name, { type, raw }] of keys) head.push(string(name), u32(type), raw);
  let offset = 0;
  for (const [name, { dims, type, bytes }] of tensors) {
    head.push(string(name), u32(dims.length), ...dims.map(u64), u32(type), u64(offset));
    offset += bytes.length + padding(bytes.length).length;
  }
  const parts = [Buffer.concat(head)];
  parts.push(padding(parts[0].length));
  for (const { bytes } of tensors.values()) parts.push(bytes, padding(bytes.length));
  writeFileSync(path, Buffer.concat(parts));
}
