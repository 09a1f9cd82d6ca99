// Builds the page into the folder that the setting `graphiql_dir` names: `npm run build [folder]`.
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? join(here, "dist"));
const source = (name) => join(here, "src", name);

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });

const inputs = new Set();

/** Monaco's styles stand in GraphiQL's own sheet; those that its chunks import, nothing would load. */
const withoutMonacoStyles = {
  name: "without-monaco-styles",
  setup: ({ onLoad }) =>
    onLoad({ filter: /monaco-editor.*\.css$/ }, () => ({ contents: "", loader: "empty" })),
};

/** Bundles entry points; gives the names of what was made by the names of the entries. */
async function bundle(entryPoints, more = {}) {
  const { metafile } = await build({
    absWorkingDir: here,
    entryPoints,
    outdir: folder,
    entryNames: "[name]-[hash]",
    chunkNames: "chunk-[hash]",
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
    metafile: true,
    plugins: [withoutMonacoStyles],
    ...more,
  });
  for (const input of Object.keys(metafile.inputs)) inputs.add(input);
  const made = Object.entries(metafile.outputs).filter(([, output]) => output.entryPoint);
  return Object.fromEntries(
    made.map(([path, output]) => [
      output.entryPoint,
      { script: basename(path), style: output.cssBundle && basename(output.cssBundle) },
    ]),
  );
}

const WORKERS = {
  __EDITOR_WORKER__: "node_modules/monaco-editor/esm/vs/editor/editor.worker.js",
  __JSON_WORKER__: "node_modules/monaco-editor/esm/vs/language/json/json.worker.js",
  __GRAPHQL_WORKER__: "node_modules/monaco-graphql/esm/graphql.worker.js",
};
const workers = await bundle(Object.values(WORKERS));
const names = Object.entries(WORKERS).map(([name, path]) => [name, JSON.stringify(workers[path].script)]);
const pages = await bundle(["src/main.jsx", "src/signed-in.js"], {
  splitting: true,
  define: { "process.env.NODE_ENV": '"production"', ...Object.fromEntries(names) },
});

/** Writes a page with the names of its parts; what the server fills in stays. */
async function page(name, { script, style }) {
  const text = await readFile(source(name), "utf8");
  await writeFile(
    join(folder, name),
    text.replace("{{script}}", script).replace("{{style}}", style ?? ""),
  );
}
await page("page.html", pages["src/main.jsx"]);
await page("signed-in.html", pages["src/signed-in.js"]);

/** The package that a bundled file belongs to, if any. */
function packageOf(input) {
  const parts = input.split("node_modules/");
  if (parts.length === 1) return undefined;
  const [scope, name] = parts.at(-1).split("/");
  parts[parts.length - 1] = scope.startsWith("@") ? `${scope}/${name}` : scope;
  return parts.join("node_modules/");
}

// The licences must be distributed together with the page.
const licences = [];
for (const path of [...new Set([...inputs].map(packageOf).filter(Boolean))].sort()) {
  const { name, version, license } = JSON.parse(await readFile(join(here, path, "package.json"), "utf8"));
  const files = await readdir(join(here, path));
  const texts = files.filter((file) => /^(licen[cs]e|notice|thirdpartynotices)/i.test(file)).sort();
  const read = texts.map((file) => readFile(join(here, path, file), "utf8"));
  licences.push(`${name} ${version}: ${license}\n\n${(await Promise.all(read)).join("\n\n")}`.trim());
}
await writeFile(join(folder, "LICENSES.txt"), `${licences.join(`\n\n${"-".repeat(72)}\n\n`)}\n`);
