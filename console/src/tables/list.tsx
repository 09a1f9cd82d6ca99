import { useSignal } from "@preact/signals";
import { KINDS, rowsOf, tables, type TableEntry } from "../catalog/tables.ts";
import { hrefOf, route } from "../route.ts";

/** The tables that the user may see, by schema. */
export function TableList() {
  const search = useSignal("");
  const all = tables.value;
  const wanted = search.value.toLowerCase();
  const found = (all ?? []).filter(({ schema, name }) => `${schema}.${name}`.toLowerCase().includes(wanted));
  const schemas = [...new Set(found.map(({ schema }) => schema))];
  return (
    <nav class="tables" aria-label="Tables">
      <input type="search" placeholder="Find a table" aria-label="Find a table" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
      {!all && <p class="hint">Reading the catalog…</p>}
      {all && found.length === 0 && <p class="hint">{wanted ? "No table has this in its name." : "There is no table that you may use."}</p>}
      {schemas.map((schema) => (
        <section key={schema} aria-label={`Schema ${schema}`}>
          <h2>{schema}</h2>
          <ul>{found.filter((table) => table.schema === schema).map((table) => <Item key={table.name} table={table} />)}</ul>
        </section>
      ))}
    </nav>
  );
}

function Item({ table }: { table: TableEntry }) {
  const { schema, name, kind } = table;
  const rows = rowsOf(table);
  const current = route.value.area === "tables" && route.value.schema === schema && route.value.table === name;
  return (
    <li>
      <a href={hrefOf({ area: "tables", schema, table: name })} aria-current={current ? "page" : undefined} title={table.comment ?? KINDS[kind]}>
        <span class={`kind kind-${kind}`} aria-hidden="true" />
        <span class="name" dir="auto">{name}</span>
        {kind !== "r" && <small class="sr">{KINDS[kind]}</small>}
        {rows !== null && <small title="Rows, at least by PostgreSQL's estimate">{compact(rows)}</small>}
      </a>
    </li>
  );
}

/** A count in few characters. */
export const compact = (count: number): string => new Intl.NumberFormat("en", { notation: "compact" }).format(count);
