// Schemas that answers must follow, and ajv, which says whether they do. Every text and list in them has a greatest
// length: the demo model likes to go on, and an answer that the context cuts off is no JSON.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { load } from "./sluice_server.mjs";

const { default: Ajv } = load("ajv/dist/2020.js");
const { default: addFormats } = load("ajv-formats");

const N_ANSWERS = 100; // of each client
const N_AT_ONCE = 5;

const object = (properties, more = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const text = (maxLength) => ({ type: "string", maxLength });
const whole = (minimum, maximum) => ({ type: "integer", minimum, maximum });
const list = (items, minItems, maxItems) => ({ type: "array", items, minItems, maxItems });
const byte = whole(0, 255);

/** By name: the schema, and a value that it refuses. */
export const SCHEMAS = {
  person: [object({ name: text(30), age: whole(0, 150), is_guest: { type: "boolean" } }), { name: "Ivo", age: 27.5 }],
  weather: [
    object({ city: { enum: ["Oslo", "Rome"] }, unit: { const: "celsius" } }),
    { city: "Paris", unit: "celsius" },
  ],
  order: [
    object({ id: whole(1, 9999), lines: list(object({ what: text(20), count: whole(1, 9) }), 1, 3) }),
    { id: 1, lines: [] },
  ],
  shape: [
    object({
      shape: {
        anyOf: [
          object({ kind: { const: "circle" }, radius: whole(1, 99) }),
          object({ kind: { const: "box" }, width: whole(1, 99), height: whole(1, 99) }),
        ],
      },
    }),
    { shape: { kind: "circle", width: 1, height: 1 } },
  ],
  line: [
    object(
      { from: { $ref: "#/$defs/point" }, to: { $ref: "#/$defs/point" } },
      { $defs: { point: object({ x: whole(-99, 99), y: whole(-99, 99) }) } },
    ),
    { from: { x: 1, y: 1 }, to: { x: 1 } },
  ],
  event: [
    object({ day: { type: "string", format: "date" }, id: { type: "string", format: "uuid" } }),
    { day: "2024-02-31", id: "7" },
  ],
  colour: [
    object({ rgb: { type: "array", prefixItems: [byte, byte, byte], items: false, minItems: 3 } }),
    { rgb: [1, 2] },
  ],
  note: [
    object({ note: { type: ["string", "null"], maxLength: 40 }, stars: { enum: [1, 2, 3, null] } }),
    { note: 1, stars: 4 },
  ],
  plate: [object({ plate: { type: "string", pattern: "^[A-Z]{2}-[0-9]{3}$" } }), { plate: "ab-123" }],
  optional: [
    object(
      { host: text(20), port: whole(1, 65535), tags: list({ type: "string", maxLength: 8 }, 0, 2) },
      { required: ["port"] },
    ),
    { host: "here" },
  ],
  nested: [
    object({ a: object({ b: object({ c: list(list({ type: "boolean" }, 1, 2), 1, 2) }) }) }),
    { a: { b: { c: [true] } } },
  ],
  measure: [object({ 'quoted "key"': { type: "number", minimum: 0, maximum: 1 }, ключ: text(10) }), { ключ: "" }],
};

/**
 * Has `ask(name, schema, seed)` answer 100 times, by turns for each schema and with a seed of its own each time; all
 * answers, values or their JSON, must be valid.
 */
export async function judgeAnswers(ask) {
  const ajv = new Ajv({ strict: true, strictTuples: false, strictTypes: false });
  addFormats(ajv);
  const validators = new Map();
  for (const [name, [schema, wrong]] of Object.entries(SCHEMAS)) {
    validators.set(name, ajv.compile(schema));
    assert.equal(validators.get(name)(wrong), false, `ajv takes ${JSON.stringify(wrong)} for a ${name}`);
  }
  const names = Object.keys(SCHEMAS);
  const seen = new Set();
  const judge = async (seed) => {
    const name = names[seed % names.length];
    const answer = await ask(name, SCHEMAS[name][0], seed);
    const value = typeof answer === "string" ? JSON.parse(answer) : answer;
    const validate = validators.get(name);
    assert.ok(validate(value), `${name}, seed ${seed}: ${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`);
    seen.add(JSON.stringify(value));
  };
  for (let first = 0; first < N_ANSWERS; first += N_AT_ONCE) {
    await Promise.all(Array.from({ length: N_AT_ONCE }, (_, i) => judge(first + i)));
  }
  assert.ok(seen.size > N_ANSWERS / 2, `there are ${seen.size} different answers; expected more than half`);
}
