// The tables that the current user may see, from PostgreSQL's catalog as that user.
import { signal } from "@preact/signals";
import { ident, sql, statement } from "../api/sql.ts";

export type TableEntry = {
  schema: string;
  name: string;
  /** The name as a person writes it in SQL, quoted only where it must be. */
  written: string;
  /** The letter of pg_class.relkind. */
  kind: "r" | "p" | "v" | "m" | "f";
  /** PostgreSQL's estimate of its rows; not above 0 before the table was analyzed, and where policies hide rows. */
  estimate: number;
  comment: string | null;
};

export const tables = signal<TableEntry[] | null>(null);

/** Schemas that are no user's, for SQL. */
export const HIDDEN_SCHEMAS = ["information_schema", "tidegate", "tidegate_private", "tidegate_outbox", "tidegate_catalog"]
  .map((name) => `'${name}'`).join(", ");

/** Bytes up to which the rows of a table are counted that PostgreSQL has no estimate of. */
const COUNTED = 4_000_000;
const MOST_COUNTED = 200;

const QUERY = `
select n.nspname as schema, c.relname as name, quote_ident(n.nspname) || '.' || quote_ident(c.relname) as written, c.relkind::text as kind,
       case when row_security_active(c.oid) then -1 when c.relkind = 'p' then (
         select coalesce(sum(greatest(p.reltuples, 0)), 0)
         from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid
       ) else c.reltuples end::float8 as estimate,
       c.relkind = 'r' and (c.reltuples <= 0 or row_security_active(c.oid)) and has_any_column_privilege(c.oid, 'SELECT')
         and pg_relation_size(c.oid) < ${COUNTED} as counted,
       obj_description(c.oid, 'pg_class') as comment
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname !~ '^pg_' and n.nspname not in (${HIDDEN_SCHEMAS})
  and has_schema_privilege(n.oid, 'USAGE')
  and has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE')
  and not exists (select 1 from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by n.nspname, c.relname`;

type Entry = TableEntry & { counted: boolean };

const read = async (signal?: AbortSignal): Promise<Entry[]> => (await sql(statement(QUERY), signal)).data as unknown as Entry[];

/** Takes up tables that others have made or dropped. One that is open stays as it is. */
export async function refreshTables(): Promise<void> {
  const shown = tables.peek();
  const before = new Map(shown?.map((entry) => [`${entry.kind} ${entry.written}`, entry]));
  const entries = await read();
  // Another list was read meanwhile, perhaps as another user.
  if (tables.peek() !== shown) return;
  if (entries.length === before.size && entries.every(({ kind, written }) => before.has(`${kind} ${written}`))) return;
  tables.value = entries.map((entry) => before.get(`${entry.kind} ${entry.written}`) ?? entry);
}

/** Reads the list of tables. */
export async function loadTables(signal?: AbortSignal): Promise<void> {
  const entries = await read(signal);
  tables.value = entries;
  await count(entries.filter(({ counted }) => counted).slice(0, MOST_COUNTED), signal);
}

const counts = signal(new Map<TableEntry, number>());

/** The number of rows as far as it is known, at least by PostgreSQL's estimate. */
export function rowsOf(entry: TableEntry): number | null {
  const counted = counts.value.get(entry);
  return counted ?? (entry.estimate > 0 ? entry.estimate : null);
}

/** Counts the rows. Where one of the tables cannot be read just now, no number is shown. */
async function count(entries: TableEntry[], signal?: AbortSignal): Promise<void> {
  if (entries.length === 0) return;
  const numbers = entries.map(({ schema, name }) => `(select count(*) from ${ident(schema)}.${ident(name)})`);
  try {
    const { data } = await sql(statement(`select array[${numbers.join(", ")}]::float8[] as counts`), signal);
    counts.value = new Map((data[0]!.counts as unknown[]).map((number, at) => [entries[at]!, Number(number)]));
  } catch {
    counts.value = new Map();
  }
}

export const KINDS: Record<TableEntry["kind"], string> = {
  r: "table",
  p: "partitioned table",
  v: "view",
  m: "materialized view",
  f: "foreign table",
};
