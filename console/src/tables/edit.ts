// Changes single rows. A change contains the value that the person saw. If the row has another value
// now, nothing is written, and the person decides.
import { ident, type Params, sql, statement } from "../api/sql.ts";
import type { Column, Table } from "../catalog/table.ts";
import { castTo } from "./condition.ts";

/** Thrown when the row has changed since it was read. */
export class Conflict extends Error {
  /** `theirs` is the value that the row has now; undefined when the row is gone. */
  constructor(readonly theirs: string | null | undefined) {
    super(theirs === undefined ? "Somebody has deleted this row." : "Somebody has changed this value.");
  }
}

const byKey = (table: Table, key: string[], params: Params): string =>
  table.key
    .map((column, index) => {
      params[`k${index}`] = key[index] ?? null;
      return `${ident(column.name)} = ${castTo(`k${index}`, column)}`;
    })
    .join(" and ");

/** Reads one value in full. */
export async function readValue(table: Table, key: string[], column: Column): Promise<string | null | undefined> {
  const params: Params = {};
  const q = `select ${ident(column.name)}::text as v from ${table.sqlName} where ${byKey(table, key, params)}`;
  const { data } = await sql(statement(q, params));
  return data.length === 0 ? undefined : (data[0]?.v as string | null);
}

/**
 * Writes one value. With `was`, the text that the person saw, writes only if the row still has that text.
 * Otherwise, or if the row no longer exists, fails with `Conflict`.
 */
export async function writeValue(
  table: Table, key: string[], column: Column, change: { value: string | null; was?: string | null },
): Promise<void> {
  const params: Params = { v: change.value };
  let condition = byKey(table, key, params);
  if (change.was !== undefined) {
    params.was = change.was;
    condition += ` and ${ident(column.name)}::text is not distinct from :was`;
  }
  const q = `update ${table.sqlName} set ${ident(column.name)} = ${castTo("v", column)} where ${condition}`;
  const { affected_rows: affected } = await sql(statement(q, params));
  if (affected === 0) throw new Conflict(await readValue(table, key, column));
}

/** Inserts a row; columns that are left out get their defaults. */
export async function insertRow(table: Table, values: Map<Column, string | null>): Promise<void> {
  const params: Params = {};
  const columns = [...values.keys()];
  columns.forEach((column, index) => (params[`v${index}`] = values.get(column) ?? null));
  const list = columns.map(({ name }) => ident(name)).join(", ");
  const places = columns.map((column, index) => castTo(`v${index}`, column)).join(", ");
  const what = columns.length === 0 ? "default values" : `(${list}) values (${places})`;
  await sql(statement(`insert into ${table.sqlName} ${what}`, params));
}

/** Deletes a row. Fails with `Conflict` if it no longer exists. */
export async function deleteRow(table: Table, key: string[]): Promise<void> {
  const params: Params = {};
  const { affected_rows: affected } = await sql(statement(`delete from ${table.sqlName} where ${byKey(table, key, params)}`, params));
  if (affected === 0) throw new Conflict(undefined);
}
