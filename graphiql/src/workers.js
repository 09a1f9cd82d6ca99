// Monaco's workers, from the folder of this page. The build replaces the names.
const NAMES = {
  editor: __EDITOR_WORKER__,
  json: __JSON_WORKER__,
  graphql: __GRAPHQL_WORKER__,
};

globalThis.MonacoEnvironment = {
  getWorker(_id, label) {
    const name = NAMES[label] ?? NAMES.editor;
    return new Worker(new URL(`./${name}`, import.meta.url), { type: "module" });
  },
};
