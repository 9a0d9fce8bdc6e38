// Constrained output against a validator: random schemas, texts that a random writer wrote under
// each of them, and ajv, which must find every text valid. (With models: constrained_test.mjs.)
//
//   ORACLE/node tests/parity/schema_test.mjs --generate PATH --oracle DIR
//       [--schemas N] [--texts N] [--first SEED]
//
// Exit code 1 on any failure.
import { parseArgs } from "node:util";
import { generate, SchemaJudge } from "./schema_judge.mjs";

const { values: options } = parseArgs({
  options: {
    generate: { type: "string" },
    oracle: { type: "string" },
    schemas: { type: "string", default: "500" },
    texts: { type: "string", default: "4" },
    first: { type: "string", default: "0" },
  },
});

const judge = new SchemaJudge(options.oracle);
for (const { seed, schema, output } of generate(
  options.generate,
  options.schemas,
  options.texts,
  options.first,
)) {
  judge.judge(`seed ${seed}`, seed, schema, output);
}
process.exit(judge.finish(Number(options.schemas)));
