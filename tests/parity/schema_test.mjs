// Constrained output against a validator: random schemas, texts that a random-weight model wrote
// under each of them, and ajv, which must find every text valid.
//
//   ORACLE/node tests/parity/schema_test.mjs --generate PATH --oracle DIR
//       [--schemas N] [--texts N] [--first SEED]
//
// Before it trusts ajv's yes, it checks that ajv says no to damaged texts. Exit code 1 on any failure.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    generate: { type: "string" },
    oracle: { type: "string" },
    schemas: { type: "string", default: "500" },
    texts: { type: "string", default: "4" },
    first: { type: "string", default: "0" },
  },
});

const require = createRequire(join(resolve(options.oracle), "package.json"));
const Ajv = require("ajv/dist/2020").default;
const add_formats = require("ajv-formats").default;

function make_validator(schema) {
  // Unknown keywords and formats are errors. Not strict about style: types left to inference, and
  // tuples without a fixed length, are part of what is tested.
  const ajv = new Ajv({ strict: true, strictTypes: false, strictTuples: false, strictRequired: false });
  add_formats(ajv);
  return ajv.compile(schema);
}

function generate() {
  const args = [options.schemas, options.texts, options.first];
  const run = spawnSync(resolve(options.generate), args, { encoding: "utf8", maxBuffer: 1 << 30 });
  if (run.status !== 0) {
    console.error(`FAILED generate_constrained ${args.join(" ")}: ${run.stderr || run.error}`);
    process.exit(1);
  }
  return run.stdout
    .split("\n")
    .filter((line) => line)
    .map((line) => JSON.parse(line));
}

// Changes that make most valid texts invalid; how many were seen shows that the check can fail.
function damaged(value) {
  if (Array.isArray(value)) return [...value, { surplus: 1 }, ["surplus"]];
  if (value === null || typeof value !== "object") return { instead: value };
  const keys = Object.keys(value);
  return keys.length ? Object.fromEntries(keys.slice(1).map((key) => [key, value[key]])) : 17;
}

const lines = generate();
const validators = new Map(); // by seed
let n_valid = 0;
let n_damage_seen = 0;
const failures = [];
for (const { seed, schema, output } of lines) {
  if (!validators.has(seed)) validators.set(seed, make_validator(schema));
  const validate = validators.get(seed);
  const value = JSON.parse(output);
  if (validate(value)) n_valid += 1;
  else
    failures.push(
      `seed ${seed}: ${JSON.stringify(validate.errors)}\n  schema ${JSON.stringify(schema)}\n  output ${output}`,
    );
  if (!validate(damaged(value))) n_damage_seen += 1;
}
for (const failure of failures.slice(0, 5)) console.error(`FAILED ${failure}`);
const share = n_damage_seen / lines.length;
console.log(
  `${validators.size} schemas, ${lines.length} texts: ${n_valid} valid, ${failures.length} invalid; ` +
    `${(100 * share).toFixed(0)}% of damaged texts are seen`,
);
const enough = validators.size === Number(options.schemas) && share > 0.4;
if (!enough) console.error(`FAILED: expected ${options.schemas} schemas, and 40% of damage seen`);
process.exit(failures.length === 0 && enough ? 0 : 1);
