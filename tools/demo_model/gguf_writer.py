# Writes a GGUF v3 file: metadata, then tensors. Nothing but struct.
# SPDX-License-Identifier: Apache-2.0
import struct

ALIGNMENT = 32
F32, BF16 = 0, 30
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
_FORMATS = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _scalar(kind, value):
    return _string(value) if kind == STRING else struct.pack(_FORMATS[kind], value)


def write(path, metadata, tensors):
    """metadata: [(key, kind, value)], where kind is a scalar's or (ARRAY, kind of the elements).
    tensors: [(name, shape with the contiguous dimension first, F32 or BF16, bytes)]."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, kind, value in metadata:
        head.append(_string(key))
        if isinstance(kind, tuple):
            head.append(struct.pack("<IIQ", ARRAY, kind[1], len(value)))
            head += [_scalar(kind[1], v) for v in value]
        else:
            head.append(struct.pack("<I", kind) + _scalar(kind, value))
    offset = 0
    for name, shape, kind, data in tensors:
        n_values = 1
        for n in shape:
            n_values *= n
        if len(data) != n_values * (4 if kind == F32 else 2):
            raise ValueError(f"{name}: {len(data)} bytes for the shape {shape}")
        head.append(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as f:
        f.write(b"".join(head))
        f.write(bytes(-f.tell() % ALIGNMENT))
        for _, _, _, data in tensors:
            f.write(data)
            f.write(bytes(-len(data) % ALIGNMENT))
