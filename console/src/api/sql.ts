import { requestJson } from "./http.ts";

export type Cell = unknown;
export type Row = Record<string, Cell>;
export type SqlAnswer = {
  schema: Record<string, { type: string; array: boolean }>;
  data: Row[];
  affected_rows?: number;
};
export type Params = Record<string, string | number | boolean | null>;

/** A statement whose values are all texts; the statement casts them to the types that it needs. */
export type Statement = { q: string; params?: Params | Params[]; type_hints?: Record<string, string> };

/** A statement with text parameters. Its type hints declare each parameter as text. */
export function statement(q: string, params: Params = {}): Statement {
  const names = Object.keys(params);
  if (names.length === 0) return { q };
  return { q, params, type_hints: Object.fromEntries(names.map((name) => [name, "text"])) };
}

/** Runs one statement as the current user. */
export const sql = (body: Statement, signal?: AbortSignal): Promise<SqlAnswer> =>
  requestJson<SqlAnswer>("/api/v4/sql", { body, signal });

/** Runs several statements in one transaction. */
export const sqlAll = (body: Statement[], signal?: AbortSignal): Promise<SqlAnswer[]> =>
  requestJson<SqlAnswer[]>("/api/v4/sql", { body, signal });

/** An identifier as SQL text. */
export const ident = (name: string): string => `"${name.replaceAll('"', '""')}"`;
