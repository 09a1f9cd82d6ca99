import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isCut } from "../catalog/shown.ts";
import type { Column, ForeignKey } from "../catalog/table.ts";
import { Grid, type GridCell, type Place } from "../grid/grid.tsx";
import { copyText } from "../parts/copy.ts";
import { sayError, withdrawActions } from "../parts/notice.tsx";
import { goTo } from "../route.ts";
import { CellEditor } from "./cell_editor.tsx";
import { Conflict, writeValue } from "./edit.ts";
import { ConflictDialog } from "./conflict.tsx";
import { gridColumns } from "./grid_columns.tsx";
import { keyText } from "./rows.ts";
import { ValueDialog } from "./value.tsx";
import type { TableView } from "./view.ts";

/** A cell whose value is edited or shown. The row may have moved or changed since; its key has not. */
type OpenCell = { place: Place; key: string[]; value: string | null; typed?: string };
type Attempt = { key: string[]; column: Column; value: string | null; conflict: Conflict };

/** The rows of a table, with editing in place. */
export function RowGrid({ view, onDelete }: { view: TableView; onDelete: () => void }) {
  const { table } = view;
  const rows = view.rows.value;
  const editing = useSignal<OpenCell | null>(null);
  const opened = useSignal<OpenCell | null>(null);
  const conflict = useSignal<Attempt | null>(null);
  // A refused edit cannot be edited again once the grid is left.
  useEffect(() => withdrawActions, []);
  // Drawn again when rows arrive.
  void rows.version.value;
  const sampled = rows.row(0) !== undefined;
  const columns = useMemo(() => gridColumns(view), [table, view.order.value, sampled]);
  const links = useMemo(() => linkedColumns(table.foreignKeys), [table]);

  const cell = (at: number, index: number): GridCell | undefined => {
    const row = rows.row(at);
    const column = table.columns[index];
    if (!row || !column) return undefined;
    const text = row.cells[index] ?? null;
    if (text === null) return { text: "NULL", className: "null" };
    const link = links.get(column.name);
    const shown = isCut(column, text) ? `${text.slice(0, 200)}…` : text;
    return {
      text: link ? <LinkedValue text={shown} link={link} row={row.cells} view={view} /> : shown,
      tip: text.length > 20 ? shown : undefined,
    };
  };

  const open = (place: Place, typed?: string) => {
    const row = rows.row(place.row);
    const column = table.columns[place.column];
    if (!row || !column) return;
    view.active.value = place;
    const value = row.cells[place.column] ?? null;
    const text = value ?? "";
    const long = isCut(column, text) || /[\n\r]/.test(text) || column.category === "U" && text.length > 40;
    const kind = long || !mayEdit(view, column) ? opened : editing;
    kind.value = { place, key: row.key, value, typed };
  };

  const copy = (place: Place) => {
    const value = rows.row(place.row)?.cells[place.column];
    const column = table.columns[place.column];
    if (value == null || !column) return;
    if (isCut(column, value)) sayError(new Error("Only the beginning of this value is here. Open it with Enter to copy it."));
    else void copyText(value);
  };

  const save = async (key: string[], column: Column, value: string | null, was?: string | null, again?: { label: string; run: () => void }) => {
    view.noteSent(key, was === undefined ? undefined : { name: column.name, was, value });
    try {
      await writeValue(table, key, column, { value, was });
      view.refreshSoon();
      return true;
    } catch (error) {
      view.forgetSent(key);
      if (error instanceof Conflict) conflict.value = { key, column, value, conflict: error };
      else sayError(error, again);
      return false;
    }
  };

  const editAgain = (key: string[], column: number, typed: string) => {
    const at = view.rows.value.indexOf(keyText(key));
    if (at === undefined) return sayError(new Error(`The row is no longer there. You typed: ${typed}`));
    open({ row: at, column }, typed);
  };

  const onSave = (value: string | null, then: "down" | "right" | "stay") => {
    const edited = editing.value;
    const column = edited && table.columns[edited.place.column];
    editing.value = null;
    focusGrid();
    if (!edited || !column) return;
    const { key, place, value: was } = edited;
    const at = rows.indexOf(keyText(key));
    const row = at === undefined ? undefined : rows.row(at);
    const next = column.typname !== "text" && value === "" && was === null ? null : value;
    if (next !== was) {
      const shown = row?.cells[place.column] ?? null;
      // Shown at once; the answer, or the event, brings what the database made of it.
      if (row) row.cells[place.column] = next;
      // What was typed is not lost when it is refused.
      const again = next === null ? undefined : { label: "Edit again", run: () => editAgain(key, place.column, next) };
      void save(key, column, next, was, again).then((written) => {
        if (!written && row) {
          row.cells[place.column] = shown;
          rows.version.value += 1;
        }
      });
    }
    const active = at ?? place.row;
    if (then === "down") view.active.value = { row: Math.min(active + 1, (rows.total.value?.count ?? 1) - 1), column: place.column };
    if (then === "right") view.active.value = { row: active, column: Math.min(place.column + 1, table.columns.length - 1) };
  };

  const editor = editing.value && (
    <CellEditor
      column={table.columns[editing.value.place.column]!} value={editing.value.value}
      typed={editing.value.typed} onSave={onSave}
      onCancel={() => {
        editing.value = null;
        focusGrid();
      }}
    />
  );
  const shown = opened.value;
  const shownColumn = shown && table.columns[shown.place.column];

  return (
    <>
      <Grid
        label={`Rows of ${table.entry.name}`} columns={columns} rows={rows.total.value?.count ?? 0} cell={cell}
        rowClass={(at) => flashClass(view, rows.row(at)?.key)} onView={(from, to) => rows.need(from, to)}
        active={view.active.value} onActive={(place) => (view.active.value = place)} onOpen={open}
        onHeader={(column, add) => sortBy(view, column, add)} onCopy={copy} editor={editor}
        onKey={(event) => {
          if (event.key === "Delete") onDelete();
          if (event.key === "Enter" && event.ctrlKey) follow(view);
        }}
      />
      {shown && shownColumn && (
        <ValueDialog
          table={table} row={shown.key} column={shownColumn} shown={shown.value}
          editable={mayEdit(view, shownColumn)}
          onSave={(value, was) => save(shown.key, shownColumn, value, was)}
          onClose={() => (opened.value = null)}
        />
      )}
      {conflict.value && (
        <ConflictDialog
          mine={conflict.value.value} theirs={conflict.value.conflict.theirs} column={conflict.value.column.name}
          onOverwrite={() => {
            const { key, column, value } = conflict.value!;
            conflict.value = null;
            void save(key, column, value);
          }}
          onClose={() => {
            conflict.value = null;
            view.refreshSoon();
          }}
        />
      )}
    </>
  );
}

const focusGrid = (): void => document.querySelector<HTMLElement>(".table-rows .grid")?.focus();

const mayEdit = (view: TableView, column: Column): boolean =>
  view.table.key.length > 0 && view.table.canUpdate && column.updatable && !column.generated;

function linkedColumns(keys: ForeignKey[]): Map<string, ForeignKey> {
  return new Map(keys.flatMap((key) => key.columns.map((column) => [column, key] as const)));
}

function flashClass(view: TableView, key: string[] | undefined): string | undefined {
  const op = key && view.flashing.value.get(keyText(key));
  return op ? `flash-${op}` : undefined;
}

function sortBy(view: TableView, index: number, add: boolean): void {
  const name = view.table.columns[index]?.name;
  if (!name) return;
  const old = view.order.value.find(({ column }) => column === name);
  const others = add ? view.order.value.filter(({ column }) => column !== name) : [];
  const next = !old ? [{ column: name, descending: false }] : old.descending ? [] : [{ column: name, descending: true }];
  view.arrange(view.filters.value, [...others, ...next]);
}

/** Opens the row that a foreign key points to. */
function openReferenced(view: TableView, link: ForeignKey, cells: (string | null)[]): void {
  const filters = link.columns.map((name, index) => ({
    column: link.referenced[index]!,
    operator: "=" as const,
    value: cells[view.table.columns.findIndex((column) => column.name === name)] ?? "",
  }));
  goTo({ area: "tables", schema: link.schema, table: link.table, filters });
}

function follow(view: TableView): void {
  const place = view.active.value;
  const row = place && view.rows.value.row(place.row);
  const link = place && linkedColumns(view.table.foreignKeys).get(view.table.columns[place.column]?.name ?? "");
  if (row && link) openReferenced(view, link, row.cells);
}

function LinkedValue({ text, link, row, view }: { text: string; link: ForeignKey; row: (string | null)[]; view: TableView }) {
  return (
    <>
      {text}
      <button
        type="button" class="follow" tabIndex={-1} aria-label={`Open ${text} in ${link.table}`} title={`Open in ${link.table} (Ctrl+Enter)`}
        onClick={(event) => {
          event.stopPropagation();
          openReferenced(view, link, row);
        }}
      >↗</button>
    </>
  );
}
