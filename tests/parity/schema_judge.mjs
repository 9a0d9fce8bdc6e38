// Random schemas, and ajv as the judge of texts that claim to follow them. Before its yes is
// trusted, it must be seen to say no: every text is judged once more with some damage done to it.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

// Lines of {seed, schema, output} from generate_constrained; ends the program where that fails.
export function generate(program, n_schemas, n_texts, first_seed) {
  const args = [n_schemas, n_texts, first_seed].map(String);
  const run = spawnSync(resolve(program), args, { encoding: "utf8", maxBuffer: 1 << 30 });
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

export class SchemaJudge {
  constructor(oracle_dir) {
    const require = createRequire(join(resolve(oracle_dir), "package.json"));
    this.Ajv = require("ajv/dist/2020").default;
    this.add_formats = require("ajv-formats").default;
    this.validators = new Map(); // by seed
    this.n_texts = 0;
    this.n_damage_seen = 0;
    this.failures = [];
  }

  validator(seed, schema) {
    if (!this.validators.has(seed)) {
      // Unknown keywords and formats are errors. Not strict about style: types left to inference,
      // and tuples without a fixed length, are part of what is tested.
      const style = { strictTypes: false, strictTuples: false, strictRequired: false };
      const ajv = new this.Ajv({ strict: true, ...style });
      this.add_formats(ajv);
      this.validators.set(seed, ajv.compile(schema));
    }
    return this.validators.get(seed);
  }

  // `origin` goes into the text of a failure.
  judge(origin, seed, schema, output) {
    const what = `schema ${JSON.stringify(schema)}\n  output ${output}`;
    const fail = (why) => this.failures.push(`${origin}: ${why}\n  ${what}`);
    this.n_texts += 1;
    const validate = this.validator(seed, schema);
    let value;
    try {
      value = JSON.parse(output);
    } catch (error) {
      fail(error.message);
      return;
    }
    if (!validate(value)) fail(JSON.stringify(validate.errors));
    if (!validate(damaged(value))) this.n_damage_seen += 1;
  }

  // Prints the verdict; the exit code.
  finish(n_schemas) {
    for (const failure of this.failures.slice(0, 5)) console.error(`FAILED ${failure}`);
    const share = this.n_damage_seen / this.n_texts;
    console.log(
      `${this.validators.size} schemas, ${this.n_texts} texts: ${this.failures.length} invalid; ` +
        `${(100 * share).toFixed(0)}% of damaged texts are seen`,
    );
    const enough = this.validators.size === n_schemas && share > 0.4;
    if (!enough) console.error(`FAILED: expected ${n_schemas} schemas, and 40% of damage seen`);
    return this.failures.length === 0 && enough ? 0 : 1;
  }
}
