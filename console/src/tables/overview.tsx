import { home } from "../api/home.ts";
import { claims, isMember, userName } from "../api/session.ts";
import { KINDS, rowsOf, type TableEntry, tables } from "../catalog/tables.ts";
import { replace } from "../query/state.ts";
import { goTo, hrefOf } from "../route.ts";
import { compact } from "./list.tsx";

const FIRST_TABLE = `create table messages (
  id bigint generated always as identity primary key,
  body text not null,
  sent_at timestamptz not null default now()
)`;

/** What is shown before a table is chosen: all tables, and how an application reaches them. */
export function Overview() {
  const all = tables.value;
  if (!all) return <div class="empty"><h1>Tables</h1><p>Reading the catalog…</p></div>;
  if (all.length === 0) return <NoTables />;
  const commented = all.some(({ comment }) => comment !== null);
  return (
    <div class="sheet overview" role="region" tabIndex={0} aria-label="Overview">
      <h1>{claims.value?.database}</h1>
      <p class="hint">{all.length === 1 ? "One table" : `${all.length} tables`} that you may use. Rows are edited in place, and every committed change appears beside them.</p>
      <div class="scroll-x panel" tabIndex={0} role="region" aria-label="All tables">
        <table>
          <thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col" class="number">Rows</th>{commented && <th scope="col">Comment</th>}</tr></thead>
          <tbody>{all.map((table) => <Row key={`${table.schema}.${table.name}`} table={table} commented={commented} />)}</tbody>
        </table>
      </div>
      <Addresses schemas={[...new Set(all.map(({ schema }) => schema))]} />
    </div>
  );
}

function Row({ table, commented }: { table: TableEntry; commented: boolean }) {
  const { schema, name, kind, comment } = table;
  const rows = rowsOf(table);
  return (
    <tr>
      <th scope="row" dir="auto"><a href={hrefOf({ area: "tables", schema, table: name })}>{schema === "public" ? name : `${schema}.${name}`}</a></th>
      <td>{KINDS[kind]}</td>
      <td class="number">{rows === null ? "–" : compact(rows)}</td>
      {commented && <td>{comment}</td>}
    </tr>
  );
}

const GUIDES: [string, string][] = [["React", "react"], ["Python", "python"], ["curl", "curl"], ["Row level security", "row-level-security"]];

function Addresses({ schemas }: { schemas: string[] }) {
  return (
    <section class="card addresses" aria-labelledby="addresses">
      <h2 id="addresses">Use it from an application</h2>
      <dl>
        {schemas.map((schema) => <Address key={schema} name={schemas.length > 1 ? `GraphQL of ${schema}` : "GraphQL"} path={`/api/graphql/schema/${encodeURIComponent(schema)}`} />)}
        <Address name="SQL" path="/api/v4/sql" />
        <Address name="Live changes" path="/api/v4/events" />
      </dl>
      <p class="hint">Guides: {GUIDES.map(([title, name], index) => <>{index > 0 && ", "}<a href={`${home}/docs/how-to/${name}`} target="_blank" rel="noopener">{title}</a></>)}</p>
    </section>
  );
}

const Address = ({ name, path }: { name: string; path: string }) => <><dt>{name}</dt><dd><code>{home}{path}</code></dd></>;

function NoTables() {
  const write = () => {
    replace("sql", FIRST_TABLE);
    goTo({ area: "query" });
  };
  if (isMember.value) {
    return (
      <div class="empty">
        <h1>{userName(claims.value!)} is a member</h1>
        <p>The service gives members GraphQL, methods and live changes, but no SQL, with which this page reads tables.</p>
        <p><button type="button" class="primary" onClick={() => goTo({ area: "query" })}>Ask with GraphQL</button></p>
      </div>
    );
  }
  if (!claims.value?.superUser) {
    return (
      <div class="empty">
        <h1>No table for you yet</h1>
        <p>You have no rights on a table of this database. Its owner, {claims.value?.database}, can grant them.</p>
      </div>
    );
  }
  return (
    <div class="empty">
      <h1>No table yet</h1>
      <p>Create the first one with SQL. It has an API and live changes at once.</p>
      <p><button type="button" class="primary" onClick={write}>Write CREATE TABLE</button></p>
    </div>
  );
}
