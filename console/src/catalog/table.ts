// One table in full: columns, key, foreign keys and what the current user may do with it.
import { ident, sql, statement } from "../api/sql.ts";
import type { TableEntry } from "./tables.ts";

export type Column = {
  name: string;
  /** The type as a person writes it, with its length. */
  type: string;
  /** The type for a cast, without the length, which a cast would cut to in silence. */
  cast: string;
  /** The internal name, such as `int4`. */
  typname: string;
  category: string;
  not_null: boolean;
  default_value: string | null;
  generated: boolean;
  identity: boolean;
  readable: boolean;
  updatable: boolean;
  insertable: boolean;
  comment: string | null;
  labels: string[] | null;
};
export type ForeignKey = { name: string; columns: string[]; schema: string; table: string; referenced: string[] };
export type Constraint = { name: string; type: string; definition: string };
export type Table = {
  entry: TableEntry;
  /** The quoted name for SQL. */
  sqlName: string;
  columns: Column[];
  /** The columns that identify a row: those of the primary key, else of a unique constraint without nulls. */
  key: Column[];
  foreignKeys: ForeignKey[];
  constraints: Constraint[];
  canInsert: boolean;
  canUpdate: boolean;
  canDelete: boolean;
};

// A default refers to no column, so `pg_get_expr` gets no relation. With a relation it would look up
// the names of all columns for each default, which takes seconds for a thousand columns.
const COLUMNS = `
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, format_type(a.atttypid, -1) as "cast",
       t.typname as typname, t.typcategory::text as category, a.attnotnull as not_null,
       pg_get_expr(d.adbin, case a.attgenerated when '' then 0 else d.adrelid end) as default_value,
       a.attgenerated <> '' or a.attidentity = 'a' as generated, a.attidentity <> '' as identity,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT') as readable,
       has_column_privilege(a.attrelid, a.attnum, 'UPDATE') as updatable,
       has_column_privilege(a.attrelid, a.attnum, 'INSERT') as insertable,
       col_description(a.attrelid, a.attnum) as comment,
       (select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_enum e where e.enumtypid = a.atttypid) as labels
from pg_attribute a join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = to_regclass(:name) and a.attnum > 0 and not a.attisdropped
order by a.attnum`;

const CONSTRAINTS = `
select c.conname as name, c.contype::text as type, pg_get_constraintdef(c.oid) as definition,
       array(select a.attname::text from unnest(c.conkey) with ordinality k(n, i)
             join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by k.i) as columns,
       n.nspname as ref_schema, r.relname as ref_table,
       array(select a.attname::text from unnest(c.confkey) with ordinality k(n, i)
             join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n order by k.i) as ref_columns
from pg_constraint c
left join pg_class r on r.oid = c.confrelid left join pg_namespace n on n.oid = r.relnamespace
where c.conrelid = to_regclass(:name) and c.contype in ('p', 'u', 'f', 'c', 'x')
order by c.contype, c.conname`;

const RIGHTS = `
select has_any_column_privilege(c.oid, 'INSERT') and (pg_relation_is_updatable(c.oid, false) & 8) > 0 as can_insert,
       has_any_column_privilege(c.oid, 'UPDATE') and (pg_relation_is_updatable(c.oid, false) & 4) > 0 as can_update,
       has_table_privilege(c.oid, 'DELETE') and (pg_relation_is_updatable(c.oid, false) & 16) > 0 as can_delete
from pg_class c where c.oid = to_regclass(:name)`;

type ConstraintRow = Constraint & { columns: string[]; ref_schema: string; ref_table: string; ref_columns: string[] };

/** Reads a table; fails with a sentence when it is gone or out of the user's reach. */
export async function loadTable(entry: TableEntry, signal?: AbortSignal): Promise<Table> {
  const sqlName = `${ident(entry.schema)}.${ident(entry.name)}`;
  const name = { name: sqlName };
  const read = async <T>(query: string) => (await sql(statement(query, name), signal)).data as T[];
  const [columns, constraints, rights] = await Promise.all([
    read<Column>(COLUMNS),
    read<ConstraintRow>(CONSTRAINTS),
    read<{ can_insert: boolean; can_update: boolean; can_delete: boolean }>(RIGHTS),
  ]);
  if (columns.length === 0 && rights.length === 0) throw new Error(`There is no table ${sqlName} that you may read.`);
  return {
    entry,
    sqlName,
    columns: columns.filter((column) => column.readable),
    key: keyOf(columns, constraints),
    foreignKeys: constraints.filter(({ type }) => type === "f").map((row) => ({
      name: row.name, columns: row.columns, schema: row.ref_schema, table: row.ref_table, referenced: row.ref_columns,
    })),
    constraints,
    canInsert: rights[0]?.can_insert ?? false,
    canUpdate: rights[0]?.can_update ?? false,
    canDelete: rights[0]?.can_delete ?? false,
  };
}

function keyOf(columns: Column[], constraints: ConstraintRow[]): Column[] {
  const byName = (names: string[]) => names.map((name) => columns.find((column) => column.name === name));
  const usable = (found: (Column | undefined)[]): found is Column[] =>
    found.every((column) => column !== undefined && column.readable && column.not_null);
  const candidates = [...constraints].sort((a, b) => Number(b.type === "p") - Number(a.type === "p"));
  for (const { type, columns: names } of candidates) {
    const found = byName(names);
    if ((type === "p" || type === "u") && usable(found)) return found;
  }
  return [];
}
