// Builds the page into DIR/dist: app.js, app.css, index.html, fonts, licences, each text also gzipped. Packages go to DIR.
// Where npm cannot install them, dist holds a page that says so, and the build goes on: the server needs no page.
//
//   node web/build.mjs DIR
// SPDX-License-Identifier: Apache-2.0
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { npmInstall } from "./npm_install.mjs";

const web = dirname(fileURLToPath(import.meta.url));
const dir = resolve(process.argv[2] ?? join(web, "..", "build", "web"));
const dist = join(dir, "dist");
const LIMIT_BYTES = 300_000; // of all that a browser loads, compressed

function bundle() {
  const esbuild = createRequire(join(dir, "package.json"))("esbuild");
  // The sources lie beside the packages, so that both are found the usual way, also by the type checker.
  const sources = join(dir, "src");
  rmSync(sources, { recursive: true, force: true });
  symlinkSync(join(web, "src"), sources);
  cpSync(join(web, "tsconfig.json"), join(dir, "tsconfig.json"));
  esbuild.buildSync({
    absWorkingDir: dir,
    preserveSymlinks: true,
    entryPoints: { app: "src/main.tsx" },
    outdir: dist,
    bundle: true,
    minify: true,
    target: "es2022",
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    external: ["*.woff2"],
    legalComments: "none", // licenses.txt has them
    logLevel: "warning",
  });
}

function copyFiles() {
  for (const name of ["index.html", "icon.svg"]) cpSync(join(web, "src", name), join(dist, name));
  for (const font of ["inter", "jetbrains-mono"]) {
    const files = join(dir, "node_modules", "@fontsource-variable", font, "files");
    cpSync(join(files, `${font}-latin-wght-normal.woff2`), join(dist, `${font}.woff2`));
  }
}

/** The licences of what is in the bundle; they must travel with it. */
function licences() {
  const { packages } = JSON.parse(readFileSync(join(dir, "package-lock.json"), "utf8"));
  const texts = [];
  for (const [path, entry] of Object.entries(packages)) {
    const folder = join(dir, path);
    if (path === "" || entry.dev || !existsSync(folder)) continue;
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : `License: ${entry.license}`;
    texts.push(`${path.replace(/^.*node_modules\//, "")} ${entry.version}\n\n${text}\n`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

function compress() {
  let total = 0;
  for (const name of readdirSync(dist)) {
    const bytes = readFileSync(join(dist, name));
    const packed = gzipSync(bytes, { level: 9 });
    if (packed.length < 0.9 * bytes.length) writeFileSync(join(dist, `${name}.gz`), packed);
    if (name !== "licenses.txt") total += Math.min(packed.length, bytes.length);
  }
  if (total > LIMIT_BYTES) throw new Error(`the page has ${total} bytes compressed; ${LIMIT_BYTES} are allowed`);
  console.log(`page: ${(total / 1000).toFixed(0)} kB compressed`);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
const done = join(dir, "built");
try {
  npmInstall(web, dir);
} catch (error) {
  console.log(`page: left out. ${error.message}`);
  cpSync(join(web, "without_node"), dist, { recursive: true });
  writeFileSync(done, "");
  utimesSync(done, 0, 0); // older than any source: the next build tries again
  process.exit(0);
}
bundle();
copyFiles();
writeFileSync(join(dist, "licenses.txt"), licences());
compress();
writeFileSync(done, "");
