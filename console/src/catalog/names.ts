// Names for completion in the editor.
import { sql, statement } from "../api/sql.ts";
import { requestJson } from "../api/http.ts";
import { HIDDEN_SCHEMAS } from "./tables.ts";

/** Columns beyond this many would slow the editor down. */
const MOST = 20_000;

const QUERY = `
select n.nspname as schema, c.relname as "table", array_agg(a.attname::text order by a.attnum) as columns
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition and a.attnum > 0 and not a.attisdropped
  and n.nspname !~ '^pg_' and n.nspname not in (${HIDDEN_SCHEMAS})
  and has_schema_privilege(n.oid, 'USAGE') and has_any_column_privilege(c.oid, 'SELECT')
group by 1, 2 order by 1, 2 limit ${MOST / 20}`;

/** Columns by schema and table. */
export async function columnNames(): Promise<Record<string, Record<string, string[]>>> {
  const names: Record<string, Record<string, string[]>> = {};
  for (const row of (await sql(statement(QUERY))).data) {
    (names[row.schema as string] ??= {})[row.table as string] = row.columns as string[];
  }
  return names;
}

const INTROSPECTION = `query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name }
  types { kind name description fields(includeDeprecated: true) { name description args { ...Value } type { ...Type } isDeprecated deprecationReason }
  inputFields { ...Value } interfaces { ...Type } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...Type } }
  directives { name description locations args { ...Value } } } }
fragment Value on __InputValue { name description type { ...Type } defaultValue }
fragment Type on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }`;

/** The GraphQL schema of a database schema, as introspection gives it. */
export async function introspect(schema: string): Promise<unknown> {
  const { data } = await requestJson<{ data: unknown }>(`/api/graphql/schema/${encodeURIComponent(schema)}`, { body: { query: INTROSPECTION } });
  return data;
}
