import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { online } from "../api/http.ts";
import { claims, isMember } from "../api/session.ts";
import { sentence } from "../api/errors.ts";
import { KINDS, tables } from "../catalog/tables.ts";
import { sayDone, sayError } from "../parts/notice.tsx";
import { type Route, route } from "../route.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Conflict, deleteRow } from "./edit.ts";
import { exportCsv } from "./export.ts";
import { FeedPanel } from "./feed_panel.tsx";
import { FilterBar } from "./filter_bar.tsx";
import { ImportDialog } from "./import.tsx";
import { InsertDialog } from "./insert.tsx";
import { TableList } from "./list.tsx";
import { Overview } from "./overview.tsx";
import { RowGrid } from "./row_grid.tsx";
import { Structure, type StructurePart } from "./structure.tsx";
import { TableView } from "./view.ts";

/** Milliseconds after which a table is opened again that the server did not answer for. */
const AGAIN = 3_000;

/** The Tables area. */
export function TablesPage() {
  const at = route.value as Extract<Route, { area: "tables" }>;
  const entry = tables.value?.find(({ schema, name }) => schema === at.schema && name === at.table);
  const view = useSignal<TableView | null>(null);
  const problem = useSignal<string | null>(null);
  const tries = useSignal(0);
  const filters = JSON.stringify(at.filters ?? []);
  useEffect(() => {
    problem.value = null;
    if (!entry) return;
    const abort = new AbortController();
    let opened: TableView | null = null;
    TableView.open(entry, JSON.parse(filters), abort.signal).then((made) => {
      opened = made;
      if (abort.signal.aborted) made.close();
      else view.value = made;
    }).catch((error) => {
      if (!abort.signal.aborted) problem.value = sentence(error);
    });
    return () => {
      abort.abort();
      opened?.close();
      view.value = null;
    };
  }, [entry, filters, claims.value?.sub, tries.value]);
  // A table that could not be opened is opened when the server is back.
  useEffect(() => {
    if (!problem.value || online.value) return;
    const timer = setTimeout(() => (tries.value += 1), AGAIN);
    return () => clearTimeout(timer);
  }, [problem.value, online.value]);
  const missing = at.table && tables.value && !entry;
  return (
    <div class={`area tables-area ${at.table ? "with-table" : ""}`}>
      {!isMember.value && <TableList />}
      <main class="workspace" id="content" tabIndex={-1}>
        {!at.table && <Overview />}
        {missing && <p class="empty">There is no table {at.schema}.{at.table} that you may see. <a href="#/tables">All tables</a></p>}
        {problem.value && <p class="problem" role="alert">{problem.value} <button type="button" onClick={() => (tries.value += 1)}>Try again</button></p>}
        {at.table && !view.value && <h1 class="sr">{at.table}</h1>}
        {at.table && !missing && !view.value && !problem.value && <p class="empty">Opening {at.table}…</p>}
        {view.value && <OpenTable key={view.value.table.sqlName + filters} view={view.value} onOutdated={() => (tries.value += 1)} />}
      </main>
    </div>
  );
}

type Part = "rows" | StructurePart;
const PARTS: [Part, string][] = [["rows", "Rows"], ["structure", "Structure"], ["indexes", "Indexes"], ["policies", "Policies"]];

function OpenTable({ view, onOutdated }: { view: TableView; onOutdated: () => void }) {
  const { table } = view;
  const part = useSignal<Part>("rows");
  useEffect(() => {
    if (view.outdated.value) onOutdated();
  }, [view.outdated.value]);
  return (
    <>
      <header class="table-head">
        <a class="back" href="#/tables" aria-label="All tables">‹</a>
        <h1 dir="auto"><small>{table.entry.schema}.</small>{table.entry.name}</h1>
        <span class="hint">{KINDS[table.entry.kind]}{table.entry.comment && ` · ${table.entry.comment}`}</span>
        <div class="tabs" role="group" aria-label="What to show">
          {PARTS.map(([name, text]) => (
            <button key={name} type="button" aria-pressed={part.value === name} onClick={() => (part.value = name)}>{text}</button>
          ))}
        </div>
      </header>
      {part.value === "rows" ? <RowsPart view={view} /> : <Structure table={table} part={part.value} />}
    </>
  );
}

function RowsPart({ view }: { view: TableView }) {
  const filtering = useSignal(view.filters.value.length > 0);
  const inserting = useSignal(false);
  const importing = useSignal(false);
  const deleting = useSignal<string[] | null>(null);
  const { table } = view;
  const rows = view.rows.value;
  const activeRow = view.active.value && rows.row(view.active.value.row);
  const askDelete = () => {
    if (table.canDelete && table.key.length > 0 && activeRow) deleting.value = activeRow.key;
  };
  const remove = async (key: string[]) => {
    deleting.value = null;
    view.noteSent(key);
    try {
      await deleteRow(table, key);
      sayDone("The row was deleted.");
    } catch (error) {
      view.forgetSent(key);
      sayError(error instanceof Conflict ? new Error("The row was gone already, or you may not delete it.") : error);
    }
    view.refreshSoon();
  };
  return (
    <div class="table-rows">
      <div class="main-column">
        <div class="toolbar" role="toolbar" aria-label="Rows">
          {table.canInsert && <button type="button" class="primary" onClick={() => (inserting.value = true)}>New row</button>}
          <button type="button" aria-pressed={filtering.value} onClick={() => (filtering.value = !filtering.value)}>
            Filter{view.filters.value.length > 0 && ` (${view.filters.value.length})`}
          </button>
          {table.canDelete && table.key.length > 0 && <button type="button" disabled={!activeRow} onClick={askDelete}>Delete row</button>}
          {table.canInsert && <button type="button" onClick={() => (importing.value = true)}>Import CSV</button>}
          <button type="button" onClick={() => void exportCsv(view)}>Export CSV</button>
          <button type="button" onClick={() => void view.readAgain()}>Refresh</button>
          <span class="spread" />
          <Count view={view} />
        </div>
        {filtering.value && <FilterBar key={JSON.stringify([view.filters.value, view.order.value])} view={view} onClose={() => (filtering.value = false)} />}
        <ReadOnlyNote view={view} />
        {rows.problem.value !== null && (
          <p class="problem" role="alert">{sentence(rows.problem.value)} <button type="button" onClick={() => void view.readAgain()}>Try again</button></p>
        )}
        <EmptyNote view={view} />
        <RowGrid view={view} onDelete={askDelete} />
      </div>
      <FeedPanel view={view} />
      {inserting.value && <InsertDialog view={view} onClose={() => (inserting.value = false)} />}
      {importing.value && <ImportDialog view={view} onClose={() => (importing.value = false)} />}
      {deleting.value && (
        <Confirm
          title="Delete this row?" action="Delete" onClose={() => (deleting.value = null)}
          onConfirm={() => void remove(deleting.value!)}
          text={`${table.key.map(({ name }, index) => `${name} ${deleting.value![index]}`).join(", ")} of ${table.entry.name}. This cannot be undone.`}
        />
      )}
    </div>
  );
}

function Count({ view }: { view: TableView }) {
  const { total: counted, problem } = view.rows.value;
  const total = counted.value;
  if (!total) return problem.value === null ? <span class="hint">Counting…</span> : null;
  const count = total.count.toLocaleString("en");
  return <span class="hint" role="status">{total.exact ? `${count} row${total.count === 1 ? "" : "s"}` : `about ${count} rows`}</span>;
}

function EmptyNote({ view }: { view: TableView }) {
  const { total } = view.rows.value;
  if (total.value?.count !== 0 || !total.value.exact) return null;
  const text = view.filters.value.length > 0 ? "No row matches the filter." : `This ${KINDS[view.table.entry.kind]} has no rows${view.table.canInsert ? " yet: New row or Import CSV adds some" : " that you may see"}.`;
  return <p class="empty-rows">{text}</p>;
}

function ReadOnlyNote({ view }: { view: TableView }) {
  const { table } = view;
  const { kind } = table.entry;
  if (table.key.length === 0 && table.canUpdate) {
    const way = kind === "v" || kind === "f" ? "Edit them in the table behind it." : "Add one to edit rows.";
    return <p class="note">Rows cannot be edited here: this {KINDS[kind]} has no primary key, so a single row cannot be named. {way}</p>;
  }
  if (!table.canUpdate && !table.canInsert && !table.canDelete) {
    return <p class="note">Read-only: you may read this {KINDS[kind]} but not change it.</p>;
  }
  return null;
}
