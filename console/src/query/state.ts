// The state of the Query area: texts, the running request and its result. It outlives the page, so that
// going to a table and back loses nothing.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, isAbort, sentence } from "../api/errors.ts";
import { loadTables } from "../catalog/tables.ts";
import { draft, type Mode, remember, saveDraft } from "./store.ts";
import { type Explained, explain, explainPrefix, type GraphqlAnswer, listOf, type Result, runGraphql, runMethod, runSql, sqlBody } from "./run.ts";
import type { Call } from "./snippets.ts";

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
/** The values of placeholders, by name; null is NULL. A value stays if the statement no longer has its placeholder. */
export const values = signal<Record<string, string | null>>({});
export const graphqlSchema = signal("public");
export const method = signal<string | null>(null);
export const running = signal<Running | null>(null);
export const outcomes = { sql: signal<Outcome | null>(null), graphql: signal<Outcome | null>(null), methods: signal<Outcome | null>(null) };
export const outcome = computed(() => outcomes[mode.value].value);

/** Counts texts that did not come from the editor but, for example, from the history. */
export const replaced = signal(0);

/** Puts another text into the editor. */
export function replace(of: Mode, text: string): void {
  write(of, text);
  replaced.value += 1;
}

// `draft` reads the signed-in user, so another user gets other drafts.
effect(() => {
  texts.sql.value = draft("sql");
  texts.graphql.value = draft("graphql");
  texts.methods.value = "";
  replaced.value = replaced.peek() + 1;
});

/** Stores the text that was typed in the editor. */
export function write(of: Mode, text: string): void {
  texts[of].value = text;
  // The text of a method is stored on the server.
  if (of !== "methods") saveDraft(of, text);
}

/** The text without the blanks and the semicolon at its end. */
const statementText = (): string => texts[mode.value].value.replace(/[\s;]+$/, "");

/** The values of the statement, or the variables of the document. Fails if the variables are not a JSON object. */
export function readParameters(): Record<string, unknown> {
  if (mode.value !== "graphql") {
    const names = placeholders(texts[mode.value].value);
    return Object.fromEntries(names.map((name) => [name, valueOf(values.value[name] ?? null)]));
  }
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

/** The value to send: lists and objects as JSON, any other text as text, which PostgreSQL parses. */
function valueOf(text: string | null): unknown {
  if (text === null || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Finds the placeholders of a statement by a rough scan that skips strings, comments and casts. */
export function placeholders(text: string): string[] {
  const bare = text.replace(/--.*$|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$/gm, " ");
  return [...new Set([...bare.matchAll(/(?<![:\w\])]):([A-Za-z_]\w*)/g)].map((found) => found[1]!))];
}

async function during(work: (abort: AbortController) => Promise<Outcome>, prefix = 0): Promise<void> {
  const of = mode.value;
  running.value?.abort.abort();
  const abort = new AbortController();
  running.value = { abort, started: performance.now(), rows: 0 };
  try {
    outcomes[of].value = await work(abort);
  } catch (error) {
    outcomes[of].value = { kind: "failure", failure: failureOf(error, prefix) };
  } finally {
    if (running.value?.abort === abort) running.value = null;
  }
}

function failureOf(error: unknown, prefix: number): Failure {
  if (isAbort(error)) return { text: "Cancelled. The statement was stopped in the database.", at: null, cancelled: true };
  const position = error instanceof ApiError ? error.details.position : undefined;
  return { text: sentence(error), at: position === undefined ? null : Math.max(0, Number(position) - 1 - prefix) };
}

/** Runs the text in the chosen mode. */
export function run(): Promise<void> {
  const text = statementText();
  const of = mode.value;
  if (text === "" || running.value) return Promise.resolve();
  if (of !== "methods") remember(of, text);
  return during(async (abort) => {
    if (of === "graphql") return graphqlOutcome(text, abort);
    if (of === "methods") return { kind: "rows", result: await runMethod(method.value!, readParameters(), abort) };
    const progress = (rows: number) => {
      if (running.value?.abort === abort) running.value = { ...running.value, rows };
    };
    const result = await runSql({ q: text, params: readParameters() }, abort, progress);
    if (DEFINITION.test(text)) void loadTables().catch(() => undefined);
    return { kind: "rows", result };
  });
}

async function graphqlOutcome(text: string, abort: AbortController): Promise<Outcome> {
  const started = performance.now();
  const answer = await runGraphql(graphqlSchema.value, text, readParameters(), abort);
  const milliseconds = performance.now() - started;
  const found = listOf(answer);
  return { kind: "graphql", answer, list: found && { ...found, milliseconds }, milliseconds };
}

export const runExplain = (measure: boolean): Promise<void> =>
  during(async (abort) => ({ kind: "plan", explained: await explain({ q: statementText(), params: readParameters() }, measure, abort) }), explainPrefix(measure));

export const cancel = (): void => running.value?.abort.abort();

/** The request that `run` would send. */
export function currentCall(): Call {
  const params = readParameters();
  if (mode.value === "graphql") {
    return { path: `/api/graphql/schema/${encodeURIComponent(graphqlSchema.value)}`, body: { query: statementText(), variables: params } };
  }
  if (mode.value === "methods") return { path: "/api/v4/call", body: { jsonrpc: "2.0", method: method.value, params, id: 1 } };
  return { path: "/api/v4/sql", body: sqlBody({ q: statementText(), params }) };
}

