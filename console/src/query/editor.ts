// The code editor: CodeMirror, loaded when a page needs it. It lives in a shadow root, where its
// styles are constructed sheets; in the document they would be inline styles, which the policy refuses.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { PostgreSQL, type SQLNamespace, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { linter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { graphql, updateSchema } from "cm6-graphql";
import { buildClientSchema, type IntrospectionQuery } from "graphql";

export type Language = "sql" | "graphql" | "json";
export type Options = {
  parent: HTMLElement;
  text: string;
  label: string;
  language: Language;
  hint?: string;
  onChange: (text: string) => void;
  /** What is selected, if anything is. */
  onSelect: (part: { from: number; to: number } | null) => void;
  onRun: () => void;
};
export type Editor = {
  text: () => string;
  setText: (text: string) => void;
  /** Tables and their columns, for completion. */
  setTables: (tables: SQLNamespace) => void;
  /** The result of an introspection, for completion and checking. */
  setSchema: (introspection: unknown) => void;
  /** Marks a place, counted in characters from 0; none without one. */
  mark: (message: string | null, at?: number) => void;
  focus: () => void;
  destroy: () => void;
};

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.definitionKeyword], color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.typeName, tags.attributeName], color: "var(--code-name)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--panel)", color: "var(--text)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent-soft) 45%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-placeholder": { color: "var(--quiet)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line-strong)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important" },
});

function languageOf(language: Language, tables: SQLNamespace): Extension {
  if (language === "json") return json();
  // An empty document is not worth an error.
  const written = linter(null, { markerFilter: (found, state) => (state.doc.length > 0 ? [...found] : []) });
  if (language === "graphql") return [graphql(), written];
  return sql({ dialect: PostgreSQL, schema: tables, defaultSchema: "public" });
}

export function createEditor(options: Options): Editor {
  const root = options.parent.shadowRoot ?? options.parent.attachShadow({ mode: "open" });
  const language = new Compartment();
  const state = EditorState.create({
    doc: options.text,
    extensions: [
      lineNumbers(), highlightSpecialChars(), history(), drawSelection(), bracketMatching(), closeBrackets(),
      autocompletion(), highlightActiveLine(), syntaxHighlighting(colours), look,
      placeholder(options.hint ?? ""),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": options.label }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) options.onChange(update.state.doc.toString());
        const { from, to, empty } = update.state.selection.main;
        if (update.docChanged || update.selectionSet) options.onSelect(empty ? null : { from, to });
      }),
      keymap.of([
        { key: "Mod-Enter", preventDefault: true, run: () => (options.onRun(), true) },
        ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap,
      ]),
      language.of(languageOf(options.language, {})),
    ],
  });
  const view = new EditorView({ state, parent: root, root });
  return {
    text: () => view.state.doc.toString(),
    setText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    setTables: (tables) => view.dispatch({ effects: language.reconfigure(languageOf("sql", tables)) }),
    setSchema: (introspection) => updateSchema(view, buildClientSchema(introspection as IntrospectionQuery)),
    mark: (message, at = 0) => {
      const from = Math.max(0, Math.min(at, view.state.doc.length));
      const to = Math.min(view.state.doc.length, view.state.wordAt(from)?.to ?? from + 1);
      const found = message === null ? [] : [{ from: Math.min(from, to), to, severity: "error" as const, message }];
      view.dispatch(setDiagnostics(view.state, found));
      if (message !== null) view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
