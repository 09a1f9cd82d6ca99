// Builds the page from `src` into crates/tidegate-console/dist, or into the folder given:
// `npm run build [folder]`.
// The output is not minified and has no hashes in its names, so that a change can be reviewed;
// one version of esbuild writes the same bytes on every machine.
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? join(here, "../crates/tidegate-console/dist"));

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });

const inputs = new Set();

/** Bundles one entry point into one file. */
async function bundle(entryPoint, outfile) {
  const { metafile } = await build({
    absWorkingDir: here,
    entryPoints: [entryPoint],
    outfile: join(folder, outfile),
    bundle: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    // The page loads these parts when it needs them.
    external: ["./editor.js", "./chart.js"],
    logLevel: "warning",
    metafile: true,
  });
  for (const input of Object.keys(metafile.inputs)) inputs.add(input);
}

await bundle("src/main.tsx", "console.js");
await bundle("src/query/editor.ts", "editor.js");
await bundle("src/query/chart.ts", "chart.js");
await bundle("src/styles/console.css", "console.css");
await cp(join(here, "src/index.html"), join(folder, "index.html"));

/** The folder of the package that a bundled file belongs to, if any. */
function packageOf(input) {
  const parts = input.split("node_modules/");
  if (parts.length === 1) return undefined;
  const [scope, name] = parts.at(-1).split("/");
  parts[parts.length - 1] = scope.startsWith("@") ? `${scope}/${name}` : scope;
  return parts.join("node_modules/");
}

// The licences of what is inside must be passed on with it.
const licences = [];
for (const path of [...new Set([...inputs].map(packageOf).filter(Boolean))].sort()) {
  const { name, version, license } = JSON.parse(await readFile(join(here, path, "package.json"), "utf8"));
  const files = await readdir(join(here, path));
  const texts = files.filter((file) => /^(licen[cs]e|notice)/i.test(file)).sort();
  const read = texts.map(async (file) => (await readFile(join(here, path, file), "utf8")).replaceAll("\r\n", "\n"));
  licences.push(`${name} ${version}: ${license}\n\n${(await Promise.all(read)).join("\n\n")}`.trim());
}
await writeFile(join(folder, "LICENSES.txt"), `${licences.join(`\n\n${"-".repeat(72)}\n\n`)}\n`);

// The crate tidegate-console compares these hashes with the files, without Node.
const listed = await readdir(join(here, "src"), { recursive: true, withFileTypes: true });
const sources = listed.filter((entry) => entry.isFile())
  .map((entry) => relative(here, join(entry.parentPath, entry.name)).split(sep).join("/"));
sources.push("build.mjs", "package-lock.json", "package.json", "tsconfig.json");
const hashes = await Promise.all(sources.sort().map(async (path) =>
  `${createHash("sha256").update(await readFile(join(here, path))).digest("hex")}  ${path}\n`));
await writeFile(join(folder, "SOURCE.txt"), hashes.join(""));
