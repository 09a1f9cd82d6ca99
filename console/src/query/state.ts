// The Query area: what is written, what runs and what came of it. It outlives the page, so that
// going to a table and back loses nothing.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, isAbort, sentence } from "../api/errors.ts";
import { loadTables } from "../catalog/tables.ts";
import { draft, type Mode, remember, saveDraft } from "./store.ts";
import { type Explained, explain, explainPrefix, type GraphqlAnswer, listOf, type Request, type Result, runAll, runGraphql, runMethod, runSql, sqlBody } from "./run.ts";
import type { Call } from "./snippets.ts";
import { bare, type Statement, statementsOf, toSend } from "./statements.ts";

export type Failure = { text: string; at: number | null; cancelled?: boolean };
export type Outcome =
  | { kind: "rows"; result: Result }
  | { kind: "graphql"; answer: GraphqlAnswer; list: Result | null; milliseconds: number }
  | { kind: "plan"; explained: Explained }
  | { kind: "failure"; failure: Failure };
export type Running = { abort: AbortController; started: number; rows: number };

/** A statement that may change the list of tables. */
const DEFINITION = /^\s*(create|drop|alter|comment|grant|revoke|do|call|import)\b/i;

export const mode = signal<Mode>("sql");
export const texts = { sql: signal(""), graphql: signal(""), methods: signal("") };
/** The variables of a GraphQL document, as JSON. */
export const variables = signal("");
/** The values of placeholders, by name; null is NULL. They stay when a statement no longer names them. */
export const values = signal<Record<string, string | null>>({});
export const graphqlSchema = signal("public");
export const method = signal<string | null>(null);
export const running = signal<Running | null>(null);
export const outcomes = { sql: signal<Outcome | null>(null), graphql: signal<Outcome | null>(null), methods: signal<Outcome | null>(null) };
export const outcome = computed(() => outcomes[mode.value].value);

/** What is selected in the editor. */
export const selection = signal<{ from: number; to: number } | null>(null);

/** Counts texts that came from elsewhere than the editor, such as the history. */
export const replaced = signal(0);

/** Puts another text into the editor. */
export function replace(of: Mode, text: string): void {
  write(of, text);
  replaced.value += 1;
}

// `draft` reads who is signed in: another user gets their own drafts.
effect(() => {
  texts.sql.value = draft("sql");
  texts.graphql.value = draft("graphql");
  texts.methods.value = "";
  replaced.value = replaced.peek() + 1;
});

/** What the editor says was written. */
export function write(of: Mode, text: string): void {
  texts[of].value = text;
  // A method has its text on the server.
  if (of !== "methods") saveDraft(of, text);
}

/** The statements that are selected, else all that are written. */
function chosen(): Statement[] {
  const text = texts.sql.value;
  const { from, to } = selection.value ?? { from: 0, to: text.length };
  const found = toSend(statementsOf(text.slice(from, to)));
  return found.map(({ q, at }) => ({ q, at: at + from }));
}

/** The one statement that is written or selected; fails when there are several. */
export function chosenOne(): Request & { at: number } {
  const [first, second] = chosen();
  if (second) throw new Error("This takes one statement. Select the one that you mean.");
  if (!first) throw new Error("Nothing is selected but blanks or a comment.");
  return { ...first, params: parametersOf(first.q) };
}

/** The values of a statement. */
const parametersOf = (q: string): Record<string, unknown> =>
  Object.fromEntries(placeholders(q).map((name) => [name, valueOf(values.value[name] ?? null)]));

/** The variables of the document; fails when these are no JSON object. */
function readVariables(): Record<string, unknown> {
  const text = variables.value.trim();
  if (text === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`The variables are no JSON: ${(error as Error).message}.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error('The variables must be a JSON object, such as {"id": 1}.');
  return value as Record<string, unknown>;
}

/** Lists and objects in JSON are sent as such; any other text is read by PostgreSQL. */
function valueOf(text: string | null): unknown {
  if (text === null || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Placeholders of a statement, roughly: strings, comments and casts are skipped. */
export const placeholders = (text: string): string[] =>
  [...new Set([...bare(text).matchAll(/(?<![:\w\])]):([A-Za-z_]\w*)/g)].map((found) => found[1]!))];

/** Runs; `startOf` says where in the editor the statement with a number began. */
async function during(work: (abort: AbortController) => Promise<Outcome>, startOf = (_: number): number => 0): Promise<void> {
  const of = mode.value;
  running.value?.abort.abort();
  const abort = new AbortController();
  running.value = { abort, started: performance.now(), rows: 0 };
  try {
    outcomes[of].value = await work(abort);
  } catch (error) {
    outcomes[of].value = { kind: "failure", failure: failureOf(error, startOf) };
  } finally {
    if (running.value?.abort === abort) running.value = null;
  }
}

/** What an error says of the statement in a list that failed. */
const NUMBERED = /^\[(\d+)\]: /;

function failureOf(error: unknown, startOf: (index: number) => number): Failure {
  if (isAbort(error)) return { text: "Cancelled. The statement was stopped in the database.", at: null, cancelled: true };
  if (!(error instanceof ApiError)) return { text: sentence(error), at: null };
  const numbered = NUMBERED.exec(error.message);
  const index = Number(numbered?.[1] ?? 0);
  const { position } = error.details;
  const at = position === undefined ? (numbered ? startOf(index) : null) : Math.max(0, startOf(index) + Number(position) - 1);
  if (!numbered) return { text: sentence(error), at };
  const said = new ApiError(error.status, error.code, error.message.replace(NUMBERED, ""), error.details);
  return { text: `Statement ${index + 1}: ${sentence(said)} Nothing was changed by the others either.`, at };
}

/** Runs what is written, in the mode that is chosen. */
export function run(): Promise<void> {
  const of = mode.value;
  const text = texts[of].value.trim();
  if (text === "" || running.value) return Promise.resolve();
  if (of === "sql") return runStatements();
  if (of === "graphql") {
    remember(of, text);
    return during((abort) => graphqlOutcome(text, abort));
  }
  return during(async (abort) => ({ kind: "rows", result: await runMethod(method.value!, parametersOf(text), abort) }));
}

/** Several statements are one transaction, so that all of them take effect or none. */
function runStatements(): Promise<void> {
  const { from, to } = selection.value ?? { from: 0, to: undefined };
  remember("sql", texts.sql.value.slice(from, to).trim());
  let all: Statement[] = [];
  return during(async (abort) => {
    all = chosen();
    if (all.length === 0) throw new Error("There is no statement here to run.");
    const asked = all.map(({ q }) => ({ q, params: parametersOf(q) }));
    const progress = (rows: number) => {
      if (running.value?.abort === abort) running.value = { ...running.value, rows };
    };
    const result = await (asked.length === 1 ? runSql(asked[0]!, abort, progress) : runAll(asked, abort));
    if (all.some(({ q }) => DEFINITION.test(bare(q)))) void loadTables().catch(() => undefined);
    return { kind: "rows", result };
  }, (index) => all[index]?.at ?? 0);
}

async function graphqlOutcome(text: string, abort: AbortController): Promise<Outcome> {
  const started = performance.now();
  const answer = await runGraphql(graphqlSchema.value, text, readVariables(), abort);
  const milliseconds = performance.now() - started;
  const found = listOf(answer);
  return { kind: "graphql", answer, list: found && { ...found, milliseconds }, milliseconds };
}

export const runExplain = (measure: boolean): Promise<void> =>
  during(
    async (abort) => ({ kind: "plan", explained: await explain(chosenOne(), measure, abort) }),
    () => (chosen()[0]?.at ?? 0) - explainPrefix(measure),
  );

export const cancel = (): void => running.value?.abort.abort();

/** The request that `run` would send. */
export function currentCall(): Call {
  if (mode.value === "graphql") {
    return { path: `/api/graphql/schema/${encodeURIComponent(graphqlSchema.value)}`, body: { query: texts.graphql.value.trim(), variables: readVariables() } };
  }
  if (mode.value === "methods") return { path: "/api/v4/call", body: { jsonrpc: "2.0", method: method.value, params: parametersOf(texts.methods.value), id: 1 } };
  const bodies = chosen().map(({ q }) => sqlBody({ q, params: parametersOf(q) }));
  return { path: "/api/v4/sql", body: bodies.length === 1 ? bodies[0] : bodies };
}

