import { useEffect, useRef } from "preact/hooks";
import type { Editor, Language, Options } from "./editor.ts";
import { columnNames, introspect } from "../catalog/names.ts";
import { firstDocument } from "./first_document.ts";
import { type Failure, replaced } from "./state.ts";

type Props = {
  language: Language;
  label: string;
  hint: string;
  text: string;
  onChange: (text: string) => void;
  onSelect: Options["onSelect"];
  onRun: () => void;
  failure: Failure | null;
  /** The schema whose GraphQL names are completed. */
  graphqlSchema?: string;
};

// The name is that of the built file, which the bundler leaves alone.
const EDITOR = "./editor.js";
const load = (): Promise<{ createEditor: (options: Options) => Editor }> => import(EDITOR);

/** The code editor; it is loaded on first use. */
export function EditorBox(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    let gone = false;
    void load().then(({ createEditor }) => {
      if (gone || !host.current) return;
      editor.current = createEditor({
        parent: host.current, text: latest.current.text, label: props.label, language: props.language, hint: props.hint,
        onChange: (text) => latest.current.onChange(text), onSelect: (part) => latest.current.onSelect(part), onRun: () => latest.current.onRun(),
      });
      latest.current.onSelect(null);
      void fillNames(editor.current, props);
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [props.language, props.label, props.graphqlSchema]);

  useEffect(() => {
    if (editor.current && editor.current.text() !== props.text) editor.current.setText(props.text);
  }, [replaced.value]);
  useEffect(() => {
    editor.current?.mark(props.failure?.at == null ? null : props.failure.text, props.failure?.at ?? 0);
  }, [props.failure]);

  return <div class="editor" ref={host} />;
}

/** Completion is a help, not a need: without it the editor works. */
async function fillNames(editor: Editor, { language, graphqlSchema }: Props): Promise<void> {
  try {
    if (language === "sql") editor.setTables(await columnNames());
    if (language === "graphql" && graphqlSchema) {
      const introspection = await introspect(graphqlSchema);
      editor.setSchema(introspection);
      if (editor.text() === "") editor.setText(firstDocument(introspection) ?? "");
    }
  } catch {
    // The statement itself will say what is wrong.
  }
}
