// Who may do what with which table, as PostgreSQL says.
import { request } from "../api/http.ts";
import { ident, type Row, sql, statement } from "../api/sql.ts";
import { usersOfGroup } from "./records.ts";

export type Word = "none" | "read" | "write" | "other";
/** A user or a group, with its role. */
export type Holder = { role: string; name: string; group: boolean };
export type Rights = { tables: string[]; holders: Holder[]; words: Map<string, Word> };

export const cellKey = (table: string, role: string): string => `${table}\u0000${role}`;

/** A matrix of more columns could not be read. */
export const MOST_HOLDERS = 60;
// Roles with `/$` in their names are internal, such as `database/$users`.
const HOLDERS = `
select rolname as role from pg_roles
where starts_with(rolname::text, current_database()::text || cast(:under as text))
  and strpos(rolname::text, '/$') = 0 order by 1 limit ${MOST_HOLDERS}`;

async function loadHolders(under: string): Promise<Holder[]> {
  const { data } = await sql(statement(HOLDERS, { under }));
  return data.map(({ role }) => holderOf(String(role)));
}

const WORDS = `
select c.relname as "table", r.rolname as role,
  case
    when not has_any_column_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE') and not has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE') then 'none'
    when not has_table_privilege(r.oid, c.oid, 'SELECT') then 'other'
    when has_table_privilege(r.oid, c.oid, 'INSERT') and has_table_privilege(r.oid, c.oid, 'UPDATE') and has_table_privilege(r.oid, c.oid, 'DELETE') then 'write'
    when has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE') or has_table_privilege(r.oid, c.oid, 'DELETE') then 'other'
    else 'read'
  end as word
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_roles r on r.rolname = any (cast(:roles as text[]))
where n.nspname = :schema and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
order by 1, 2`;

/** The rights on the tables of a schema. */
export async function loadRights(schema: string): Promise<Rights> {
  const holders = await loadHolders("/");
  const roles = holders.map(({ role }) => role);
  const list = `{${roles.map((role) => `"${role.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
  const { data } = await sql(statement(WORDS, { roles: list, schema }));
  const words = new Map(data.map((row) => [cellKey(String(row.table), String(row.role)), row.word as Word]));
  return { tables: [...new Set(data.map(({ table }) => String(table)))], holders, words };
}

function holderOf(role: string): Holder {
  const rest = role.slice(role.indexOf("/") + 1);
  const group = rest.startsWith("group/");
  return { role, group, name: group ? rest.slice("group/".length) : rest };
}

/** A group with the names of its first users; one more than `FIRST_USERS` says that others follow. */
export type Group = { name: string; role: string; users: string[] };
export const FIRST_USERS = 12;

export async function loadGroups(): Promise<Group[]> {
  const groups = await loadHolders("/group/");
  return Promise.all(groups.map(async ({ name, role }) => ({ name, role, users: await usersOfGroup(name, FIRST_USERS + 1) })));
}

// The sequences from which columns of the table get their defaults, such as those of serial columns.
const SEQUENCES = `
select quote_ident(n.nspname) || '.' || quote_ident(s.relname) as name
from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S' join pg_namespace n on n.oid = s.relnamespace
where d.refobjid = to_regclass(:table) and d.refobjsubid > 0 and d.deptype in ('a', 'i')
  and d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass`;

/** Sets what a user or a group may do with a table. */
export async function setRight(schema: string, table: string, holder: Holder, word: Exclude<Word, "other">): Promise<void> {
  if (!holder.group) {
    const path = `/api/v4/schemas/${encodeURIComponent(schema)}/tables/${encodeURIComponent(table)}/privileges`;
    await request(path, { method: "PATCH", body: { subuser: holder.name, privilege: word } });
    return;
  }
  // The endpoint knows users only; for a group the owner grants as anybody would.
  const [on, role] = [`${ident(schema)}.${ident(table)}`, ident(holder.role)];
  const sequences = (await sql(statement(SEQUENCES, { table: on }))).data.map(({ name }) => String(name));
  const statements = [`revoke all on ${on} from ${role}`, ...sequences.map((name) => `revoke all on sequence ${name} from ${role}`)];
  if (word === "read") statements.push(`grant select on ${on} to ${role}`);
  if (word === "write") {
    statements.push(`grant select, insert, update, delete on ${on} to ${role}`, ...sequences.map((name) => `grant usage, select on sequence ${name} to ${role}`));
  }
  if (word !== "none") statements.push(`grant usage on schema ${ident(schema)} to ${role}`);
  await request("/api/v4/sql", { body: statements.map((q) => ({ q })) });
}

export type ColumnRights = { name: string; SELECT: boolean; INSERT: boolean; UPDATE: boolean };
export const COLUMN_RIGHTS = ["SELECT", "INSERT", "UPDATE"] as const;

const COLUMNS = `
select a.attname as name,
  has_column_privilege(r.oid, a.attrelid, a.attnum, 'SELECT') as "SELECT",
  has_column_privilege(r.oid, a.attrelid, a.attnum, 'INSERT') as "INSERT",
  has_column_privilege(r.oid, a.attrelid, a.attnum, 'UPDATE') as "UPDATE"
from pg_attribute a, pg_roles r
where a.attrelid = to_regclass(:name) and a.attnum > 0 and not a.attisdropped and r.rolname = :role order by a.attnum`;

/** What a user or a group may do with each column. */
export async function loadColumnRights(schema: string, table: string, holder: Holder): Promise<ColumnRights[]> {
  const name = `${ident(schema)}.${ident(table)}`;
  const { data } = await sql(statement(COLUMNS, { name, role: holder.role }));
  return data as (Row & ColumnRights)[];
}

/** Grants or revokes rights on columns. A revoked one may stay through a right on the whole table. */
export async function setColumnRight(schema: string, table: string, holder: Holder, change: { column: string; right: string; granted: boolean }): Promise<void> {
  const on = `(${ident(change.column)}) on ${ident(schema)}.${ident(table)}`;
  const q = change.granted
    ? `grant ${change.right} ${on} to ${ident(holder.role)}`
    : `revoke ${change.right} ${on} from ${ident(holder.role)}`;
  await sql({ q });
}
