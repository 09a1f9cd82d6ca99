import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { request } from "../api/http.ts";
import { isMember } from "../api/session.ts";
import { tables } from "../catalog/tables.ts";
import { Confirm } from "../parts/confirm.tsx";
import { sayDone, sayError } from "../parts/notice.tsx";
import { saveFile } from "../tables/export.ts";
import { CopyAs, History, SaveMethod } from "./dialogs.tsx";
import { EditorBox } from "./editor_box.tsx";
import { changeMethod, dropMethod, loadMethods, methods } from "./methods.ts";
import { OutcomeBox } from "./outcome.tsx";
import { Parameters } from "./parameters.tsx";
import { sqlBody } from "./run.ts";
import { chosenOne, currentCall, graphqlSchema, method, mode, outcome, replace, run, runExplain, running, selection, texts, write } from "./state.ts";
import type { Call } from "./snippets.ts";
import type { Mode } from "./store.ts";

const MODES: [Mode, string][] = [["sql", "SQL"], ["graphql", "GraphQL"], ["methods", "Methods"]];
const HINTS: Record<Mode, string> = {
  sql: "Statements, separated by semicolons. A value is written as :name and given below. Ctrl+Space completes.",
  graphql: "A query or a mutation. Ctrl+Space completes the names of the schema.",
  methods: "",
};

/** The Query area. */
export function QueryPage() {
  const of = mode.value;
  const text = texts[of].value;
  const now = outcome.value;
  useEffect(() => {
    if (of === "methods" && !methods.value) loadMethods().catch(sayError);
  }, [of]);
  useEffect(() => suggest(), [tables.value]);
  useEffect(() => {
    if (isMember.value && mode.value === "sql") mode.value = "graphql";
  }, [isMember.value]);
  const nothingChosen = of === "methods" && !method.value;
  return (
    <div class="area query-area">
      {of === "methods" && methods.value?.length !== 0 && <MethodList />}
      <main class="workspace" id="content" tabIndex={-1}>
        <h1 class="sr">Query</h1>
        <Toolbar />
        {nothingChosen
          ? <NoMethod />
          : (
            <>
              <EditorBox
                key={of} language={of === "graphql" ? "graphql" : "sql"} label={of === "graphql" ? "GraphQL document" : of === "methods" ? `Statement of ${method.value}` : "SQL statement"}
                hint={HINTS[of]} text={text} onChange={(next) => write(of, next)} onSelect={(part) => (selection.value = part)} onRun={() => void run()}
                failure={now?.kind === "failure" ? now.failure : null} graphqlSchema={of === "graphql" ? graphqlSchema.value : undefined}
              />
              {of === "methods" && methodChanged() && <p class="note">Call runs the method as it is saved. Save changes to call what is written.</p>}
              <Parameters />
              <OutcomeBox />
            </>
          )}
      </main>
    </div>
  );
}

const methodChanged = (): boolean => methods.value?.find((one) => one.method === method.value)?.q !== texts.methods.value;

function NoMethod() {
  if (methods.value?.length !== 0) return <p class="empty">Choose a method to see, change or call it.</p>;
  return (
    <div class="empty">
      <p>There is no method yet. A method is a statement under a name, which applications call with values.</p>
      <p><button type="button" onClick={() => (mode.value = "sql")}>Write a statement</button> and save it as a method.</p>
    </div>
  );
}

/** A first statement, where nothing was written yet. */
function suggest(): void {
  const first = tables.value?.[0];
  if (first && texts.sql.value === "") replace("sql", `select * from ${first.written} limit 100`);
}

function Toolbar() {
  const of = mode.value;
  const saving = useSignal<string | null>(null);
  const copying = useSignal<Call | null>(null);
  const looking = useSignal(false);
  const text = texts[of].value.trim();
  const ready = text !== "" && !running.value && (of !== "methods" || method.value !== null);
  const attempt = (work: () => void) => () => {
    try {
      work();
    } catch (error) {
      sayError(error);
    }
  };
  const partly = of === "sql" && selection.value !== null;
  return (
    <div class="toolbar" role="toolbar" aria-label="Query">
      <div class="tabs" role="group" aria-label="Language">
        {MODES.filter(([name]) => name !== "sql" || !isMember.value).map(([name, label]) => <button key={name} type="button" aria-pressed={of === name} onClick={() => (mode.value = name)}>{label}</button>)}
      </div>
      <button type="button" class="primary" disabled={!ready} onClick={() => void run()} title="Ctrl+Enter">{of === "methods" ? "Call" : partly ? "Run selection" : "Run"}</button>
      {of === "graphql" && <SchemaChoice />}
      {of === "sql" && (
        <>
          <button type="button" disabled={!ready} onClick={() => void runExplain(false)}>Explain</button>
          <button type="button" disabled={!ready} onClick={() => void runExplain(true)} title="Runs the statement and measures each step">Run and measure</button>
          <button type="button" disabled={!ready} onClick={() => void exportResult()}>Export CSV</button>
          <button type="button" disabled={!ready} onClick={attempt(() => (saving.value = chosenOne().q))}>Save as method</button>
        </>
      )}
      {of === "methods" && method.value && <MethodButtons />}
      <button type="button" disabled={!ready} onClick={attempt(() => (copying.value = currentCall()))}>Copy as</button>
      <span class="spread" />
      <button type="button" onClick={() => (looking.value = true)}>History</button>
      {saving.value !== null && (
        <SaveMethod
          q={saving.value} onClose={() => (saving.value = null)}
          onSaved={(name) => {
            saving.value = null;
            openMethod(name);
          }}
        />
      )}
      {copying.value && <CopyAs call={copying.value} onClose={() => (copying.value = null)} />}
      {looking.value && <History onClose={() => (looking.value = false)} />}
    </div>
  );
}

function SchemaChoice() {
  const schemas = [...new Set((tables.value ?? []).map(({ schema }) => schema))];
  if (schemas.length < 2) return null;
  return (
    <label class="hint schema">Schema{" "}
      <select value={graphqlSchema.value} onChange={(event) => (graphqlSchema.value = event.currentTarget.value)}>
        {schemas.map((schema) => <option key={schema} value={schema}>{schema}</option>)}
      </select>
    </label>
  );
}

async function exportResult(): Promise<void> {
  try {
    const answer = await request("/api/v4/sql", { body: { ...sqlBody(chosenOne()), output_format: "csv" } });
    saveFile(await answer.blob(), "result.csv");
  } catch (error) {
    sayError(error);
  }
}

function openMethod(name: string): void {
  const found = methods.value?.find((one) => one.method === name);
  if (!found) return;
  mode.value = "methods";
  method.value = name;
  replace("methods", found.q);
}

function MethodList() {
  return (
    <nav class="tables" aria-label="Methods">
      {!methods.value && <p class="hint">Reading the methods…</p>}
      <ul>
        {methods.value?.map(({ method: name }) => (
          <li key={name}><button type="button" class="quiet entry" aria-pressed={method.value === name} onClick={() => openMethod(name)}>{name}</button></li>
        ))}
      </ul>
    </nav>
  );
}

function MethodButtons() {
  const asking = useSignal(false);
  const name = method.value!;
  const act = (work: () => Promise<void>, done: string) => work().then(() => sayDone(done)).catch(sayError);
  return (
    <>
      <button type="button" disabled={!methodChanged()} onClick={() => void act(() => changeMethod(name, texts.methods.value), `The method ${name} was changed.`)}>Save changes</button>
      <button type="button" onClick={() => (asking.value = true)}>Delete</button>
      {asking.value && (
        <Confirm
          title={`Delete ${name}?`} action="Delete" text="Applications that call it get an error from then on." onClose={() => (asking.value = false)}
          onConfirm={() => {
            asking.value = false;
            void act(async () => {
              await dropMethod(name);
              method.value = null;
            }, `The method ${name} was deleted.`);
          }}
        />
      )}
    </>
  );
}
