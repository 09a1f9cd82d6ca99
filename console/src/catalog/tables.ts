// The tables that the current user may see, from PostgreSQL's catalog as that user.
import { signal } from "@preact/signals";
import { sql, statement } from "../api/sql.ts";

export type TableEntry = {
  schema: string;
  name: string;
  /** The value of `pg_class.relkind`. */
  kind: "r" | "p" | "v" | "m" | "f";
  /** PostgreSQL's estimate of the number of rows; -1 before the table was analyzed. */
  estimate: number;
  comment: string | null;
};

export const tables = signal<TableEntry[] | null>(null);

const QUERY = `
select n.nspname as schema, c.relname as name, c.relkind::text as kind,
       case c.relkind when 'p' then (
         select coalesce(sum(greatest(p.reltuples, 0)), 0)
         from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid
       ) else c.reltuples end::float8 as estimate,
       obj_description(c.oid, 'pg_class') as comment
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'tidegate')
  and has_schema_privilege(n.oid, 'USAGE')
  and has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE')
  and not exists (select 1 from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by n.nspname, c.relname`;

/** Reads the list of tables. */
export async function loadTables(signal?: AbortSignal): Promise<void> {
  const { data } = await sql(statement(QUERY), signal);
  tables.value = data as unknown as TableEntry[];
}

export const KINDS: Record<TableEntry["kind"], string> = {
  r: "table",
  p: "partitioned table",
  v: "view",
  m: "materialized view",
  f: "foreign table",
};
