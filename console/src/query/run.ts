// Runs what was written. Rows are streamed, so that a large answer can be stopped when enough is seen.
import { ApiError } from "../api/errors.ts";
import { request, requestJson } from "../api/http.ts";
import { parseExact, stringifyExact } from "../api/json.ts";
import type { SqlAnswer } from "../api/sql.ts";

export type Result = {
  columns: string[];
  rows: unknown[][];
  /** There were more rows than are kept. */
  cut: boolean;
  affected?: number;
  /** How many statements ran, if more than one. */
  statements?: number;
  milliseconds: number;
};

/** Rows that are kept; who needs all of them exports. */
export const ROW_LIMIT = 5_000;
/** Characters that are kept, so that few but large rows do not fill the memory. */
const TEXT_LIMIT = 30_000_000;

export type Request = { q: string; params: Record<string, unknown> };
export type Progress = (rows: number) => void;

/** Runs a statement and keeps its first rows; stopping early cancels it in the database. */
export async function runSql(asked: Request, abort: AbortController, progress: Progress): Promise<Result> {
  const started = performance.now();
  const body = { ...sqlBody(asked), output_format: "ndjson" };
  const answer = await request("/api/v4/sql", { body, signal: abort.signal });
  const timed = (result: Omit<Result, "milliseconds">): Result => ({ ...result, milliseconds: performance.now() - started });
  if (!answer.headers.get("Content-Type")?.includes("ndjson")) return timed(tableOf(parseExact(await answer.text()) as SqlAnswer));
  return timed(await readLines(answer, progress));
}

/** The members of a request to the SQL endpoint. */
export const sqlBody = ({ q, params }: Request): Record<string, unknown> =>
  Object.keys(params).length > 0 ? { q, params } : { q };

/** Runs statements in one transaction. The rows are those of the last one that gives any. */
export async function runAll(asked: Request[], abort: AbortController): Promise<Result> {
  const started = performance.now();
  const answer = await request("/api/v4/sql", { body: asked.map(sqlBody), signal: abort.signal });
  const answers = parseExact(await answer.text()) as SqlAnswer[];
  const shown = answers.findLast(({ schema }) => Object.keys(schema).length > 0) ?? answers.at(-1)!;
  const written = answers.flatMap(({ affected_rows: rows }) => (rows === undefined ? [] : [Number(rows)]));
  const affected = written.length > 0 ? written.reduce((sum, rows) => sum + rows) : undefined;
  return { ...tableOf(shown), affected, statements: asked.length, milliseconds: performance.now() - started };
}

async function readLines(answer: Response, progress: Progress): Promise<Omit<Result, "milliseconds">> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  const rows: Record<string, unknown>[] = [];
  let rest = "";
  let length = 0;
  let cut = false;
  const take = (line: string) => {
    if (line !== "") rows.push(parseExact(line) as Record<string, unknown>);
  };
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop() ?? "";
      length += part.value.length;
      lines.slice(0, ROW_LIMIT - rows.length + 1).forEach(take);
      progress(rows.length);
      cut = rows.length > ROW_LIMIT || length > TEXT_LIMIT;
      if (cut) {
        await reader.cancel();
        break;
      }
    }
  } catch (error) {
    if (error instanceof DOMException) throw error;
    throw new ApiError(0, "BROKEN", `The statement failed after ${rows.length} rows had arrived. They are not shown, because they are not the whole answer.`);
  }
  if (!cut) take(rest);
  return { ...table(rows.slice(0, ROW_LIMIT)), cut };
}

/** Rows as a table; the columns are those of the rows, in the order of the first. */
function table(rows: Record<string, unknown>[]): { columns: string[]; rows: unknown[][] } {
  const columns = Object.keys(rows[0] ?? {});
  return { columns, rows: rows.map((row) => columns.map((name) => row[name])) };
}

function tableOf({ schema, data, affected_rows: affected }: SqlAnswer): Omit<Result, "milliseconds"> {
  const columns = Object.keys(schema);
  const rows = data.slice(0, ROW_LIMIT).map((row) => columns.map((name) => row[name]));
  return { columns, rows, cut: data.length > ROW_LIMIT, affected };
}

type RpcAnswer = { result?: SqlAnswer; error?: { code: number; message: string; data?: Record<string, unknown> } };

/** Calls a stored method. */
export async function runMethod(method: string, params: Record<string, unknown>, abort: AbortController): Promise<Result> {
  const started = performance.now();
  const body = { jsonrpc: "2.0", method, params, id: 1 };
  const { result, error } = await requestJson<RpcAnswer>("/api/v4/call", { body, signal: abort.signal });
  if (error) {
    const { message, ...details } = (error.data ?? {}) as { message?: string };
    throw new ApiError(error.code, error.message, message ?? error.message, details);
  }
  return { ...tableOf(result!), milliseconds: performance.now() - started };
}

export type GraphqlAnswer = { data?: Record<string, unknown> | null; errors?: GraphqlError[]; extensions?: unknown };
export type GraphqlError = { message: string; path?: (string | number)[]; locations?: { line: number; column: number }[] };

/** Runs a GraphQL document; errors are part of the answer. */
export const runGraphql = (schema: string, query: string, variables: Record<string, unknown>, abort?: AbortController): Promise<GraphqlAnswer> =>
  requestJson<GraphqlAnswer>(`/api/graphql/schema/${encodeURIComponent(schema)}`, { body: { query, variables }, signal: abort?.signal });

/** The first list of objects of a GraphQL answer as a table. */
export function listOf(answer: GraphqlAnswer): Omit<Result, "milliseconds"> | null {
  const list = Object.values(answer.data ?? {}).find((value) => Array.isArray(value) && value.length > 0 && typeof value[0] === "object");
  return list ? { ...table(list as Record<string, unknown>[]), cut: false } : null;
}

export type Plan = {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Total Cost": number;
  "Plan Rows": number;
  "Actual Rows"?: number;
  "Actual Loops"?: number;
  "Actual Total Time"?: number;
  Plans?: Plan[];
} & Record<string, unknown>;
export type Explained = { Plan: Plan; "Planning Time"?: number; "Execution Time"?: number };

/** The plan of a statement; measured, the statement is run. */
export async function explain(asked: Request, measure: boolean, abort: AbortController): Promise<Explained> {
  const options = measure ? "format json, analyze, buffers" : "format json";
  const body = sqlBody({ ...asked, q: `explain (${options}) ${asked.q}` });
  const { data } = await requestJson<SqlAnswer>("/api/v4/sql", { body, signal: abort.signal });
  const plan = Object.values(data[0] ?? {})[0];
  // The answer is read with exact numbers, which cannot be added; a plan needs plain ones.
  return (JSON.parse(typeof plan === "string" ? plan : stringifyExact(plan)) as Explained[])[0]!;
}

/** The length of what `explain` puts in front of the statement, to correct positions. */
export const explainPrefix = (measure: boolean): number => (measure ? "explain (format json, analyze, buffers) " : "explain (format json) ").length;
