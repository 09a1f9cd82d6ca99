import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { sentence } from "../api/errors.ts";
import { type Row, sql, statement } from "../api/sql.ts";
import { fullTypeName } from "../catalog/shown.ts";
import type { Table } from "../catalog/table.ts";
import { home } from "../api/home.ts";
import { claims } from "../api/session.ts";
import { mode, replace } from "../query/state.ts";
import { goTo, hrefOf } from "../route.ts";

export type StructurePart = "structure" | "indexes" | "policies";

const INDEXES = `
select c.relname as name, pg_get_indexdef(i.indexrelid) as definition, i.indisunique as "unique", i.indisvalid as valid,
       pg_size_pretty(pg_relation_size(i.indexrelid)) as size, coalesce(s.idx_scan, 0)::text as scans
from pg_index i join pg_class c on c.oid = i.indexrelid
left join pg_stat_all_indexes s on s.indexrelid = i.indexrelid
where i.indrelid = to_regclass(:name) order by i.indisprimary desc, c.relname`;

const POLICIES = `
select p.polname as name, case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE' else 'ALL' end as command,
       case when p.polpermissive then 'permissive' else 'restrictive' end as kind,
       array(select case r when 0 then 'PUBLIC' else pg_get_userbyid(r)::text end from unnest(p.polroles) r) as roles,
       pg_get_expr(p.polqual, p.polrelid) as "using", pg_get_expr(p.polwithcheck, p.polrelid) as "check"
from pg_policy p where p.polrelid = to_regclass(:name) order by 1`;

const SECURITY = `
select relrowsecurity as enabled, relforcerowsecurity as forced, pg_get_userbyid(relowner)::text as owner, pg_has_role(relowner, 'USAGE') as owned
from pg_class where oid = to_regclass(:name)`;

/** What the table is made of. */
export function Structure({ table, part }: { table: Table; part: StructurePart }) {
  return (
    <div class="sheet" role="region" tabIndex={0} aria-label="Definition">
      {part === "structure" && <Columns table={table} />}
      {part === "indexes" && <FromCatalog table={table} query={INDEXES} draw={(rows) => <Indexes rows={rows} />} />}
      {part === "policies" && <FromCatalog table={table} query={SECURITY} draw={(rows) => <Policies table={table} security={rows[0]} />} />}
    </div>
  );
}

function FromCatalog({ table, query, draw }: { table: Table; query: string; draw: (rows: Row[]) => preact.ComponentChild }) {
  const rows = useSignal<Row[] | null>(null);
  const problem = useSignal<string | null>(null);
  useEffect(() => {
    sql(statement(query, { name: table.sqlName }))
      .then(({ data }) => (rows.value = data))
      .catch((error) => (problem.value = sentence(error)));
  }, [query, table]);
  if (problem.value) return <p class="problem" role="alert">{problem.value}</p>;
  return rows.value ? draw(rows.value) : <p class="hint">Reading the catalog…</p>;
}

function Columns({ table }: { table: Table }) {
  const target = (name: string) => table.foreignKeys.find(({ columns }) => columns.includes(name));
  const commented = table.columns.some(({ comment }) => comment !== null);
  return (
    <>
      <h2>Columns</h2>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Columns">
        <table>
          <thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Null</th><th scope="col">Default</th><th scope="col">Refers to</th>{commented && <th scope="col">Comment</th>}</tr></thead>
          <tbody>
            {table.columns.map((column) => {
              const link = target(column.name);
              return (
                <tr key={column.name}>
                  <th scope="row">{column.name}{table.key.includes(column) && <small> key</small>}</th>
                  <td><code>{fullTypeName(column)}</code></td>
                  <td>{column.not_null ? "no" : "yes"}</td>
                  <td>{column.generated && !column.identity && "generated "}{column.default_value ? <code>{column.default_value}</code> : column.identity ? "identity" : ""}</td>
                  <td>{link && <a href={hrefOf({ area: "tables", schema: link.schema, table: link.table })}>{link.table}({link.referenced.join(", ")})</a>}</td>
                  {commented && <td>{column.comment ?? ""}</td>}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <h2>Constraints</h2>
      {table.constraints.length === 0 && <p class="hint">None.</p>}
      <ul class="definitions">{table.constraints.map(({ name, definition }) => <li key={name}><strong>{name}</strong> <code>{definition}</code></li>)}</ul>
    </>
  );
}

function Indexes({ rows }: { rows: Row[] }) {
  if (rows.length === 0) return <p class="hint">This table has no index.</p>;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Indexes">
      <table>
        <thead><tr><th scope="col">Name</th><th scope="col">Definition</th><th scope="col">Size</th><th scope="col">Scans</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={String(row.name)}>
              <th scope="row">{String(row.name)}{row.unique === true && <small> unique</small>}{row.valid === false && <small class="bad"> not valid</small>}</th>
              <td><code>{String(row.definition)}</code></td>
              <td>{String(row.size)}</td>
              <td>{String(row.scans)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Policies({ table, security }: { table: Table; security: Row | undefined }) {
  const enabled = security?.enabled === true;
  return (
    <>
      <p>
        {enabled
          ? `Row level security is on${security?.forced === true ? " and applies to the table's owner too" : ""}. A user sees and writes only the rows that a policy allows.`
          : "Row level security is off: everybody with a right on the table sees all of its rows."}
      </p>
      <FromCatalog
        table={table} query={POLICIES}
        draw={(rows) => rows.length === 0
          ? <p class="hint">{enabled ? "There is no policy, so only the table's owner sees rows." : "There is no policy."}</p>
          : (
            <ul class="policies">
              {rows.map((row) => (
                <li key={String(row.name)} class="card">
                  <h3>{String(row.name)} <small>{String(row.command)} · {String(row.kind)} · {(row.roles as string[]).join(", ")}</small></h3>
                  <dl>
                    {row.using != null && <div><dt>Rows that are seen</dt><dd><code>{String(row.using)}</code></dd></div>}
                    {row.check != null && <div><dt>Rows that may be written</dt><dd><code>{String(row.check)}</code></dd></div>}
                  </dl>
                </li>
              ))}
            </ul>
          )}
      />
      <NewPolicy table={table} owner={security?.owned === true ? null : String(security?.owner)} />
    </>
  );
}

/**
 * How the owner of the database gets to a policy: by a statement to complete, and by the recipes of the book. `owner` is
 * the role that the table belongs to, if it is another: an adopted database keeps its owners.
 */
function NewPolicy({ table, owner }: { table: Table; owner: string | null }) {
  const { written, kind } = table.entry;
  if (!claims.value?.superUser || !["r", "p"].includes(kind)) return null;
  const write = () => {
    mode.value = "sql";
    replace("sql", `-- Each user sees and writes the rows whose column owner has the user's role.\nalter table ${written} enable row level security;\ncreate policy own_rows on ${written} using (owner = current_user);\n`);
    goTo({ area: "query" });
  };
  return (
    <>
      <p class="next">
        <button type="button" onClick={write}>Write a policy</button>{" "}
        <a href={`${home}/docs/how-to/row-level-security`} target="_blank" rel="noopener">Recipes</a>
      </p>
      {owner !== null && <p class="hint">The table belongs to the role {owner}, which alone may change its policies: run the statement as that role, for example with psql.</p>}
    </>
  );
}
