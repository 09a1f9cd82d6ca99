import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { sentence } from "../api/errors.ts";
import { ident, type Params, sql } from "../api/sql.ts";
import type { Column } from "../catalog/table.ts";
import { countOf } from "../parts/count.ts";
import { Dialog } from "../parts/dialog.tsx";
import { sayDone } from "../parts/notice.tsx";
import { castTo } from "./condition.ts";
import { parseCsv } from "./csv.ts";
import type { TableView } from "./view.ts";

type File = { name: string; columns: Column[]; rows: (string | null)[][] };

/** Rows and characters of one request; each request is one transaction. */
const BATCH_ROWS = 2_000;
const BATCH_LENGTH = 2_000_000;

/** Reads a CSV file whose first line names columns, and inserts its rows. */
export function ImportDialog({ view, onClose }: { view: TableView; onClose: () => void }) {
  const file = useSignal<File | null>(null);
  const problem = useSignal<string | null>(null);
  const done = useSignal<number | null>(null);
  const cancelled = useRef(false);
  // The batch that is being sent is waited for, so that it is known what was imported.
  const cancel = () => {
    if (done.value === null) onClose();
    else cancelled.current = true;
  };
  const choose = async (chosen: globalThis.File | undefined) => {
    problem.value = null;
    file.value = null;
    if (!chosen) return;
    try {
      file.value = { name: chosen.name, ...readFile(view, await chosen.text()) };
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  const run = async () => {
    const { columns, rows } = file.value!;
    done.value = 0;
    problem.value = null;
    cancelled.current = false;
    try {
      for (const batch of batches(rows)) {
        if (cancelled.current) throw new DOMException("", "AbortError");
        await insertBatch(view, columns, batch);
        done.value += batch.length;
      }
      sayDone(`${countOf(rows.length, "row")} ${rows.length === 1 ? "was" : "were"} imported.`);
      onClose();
    } catch (error) {
      const kept = done.value ?? 0;
      problem.value = `${sentence(error)} ${kept === 0 ? "Nothing was imported." : `The first ${kept.toLocaleString("en")} rows were imported; take them out of the file before the next try.`}`;
      file.value = { ...file.value!, rows: rows.slice(kept) };
      done.value = null;
    }
    view.refreshSoon();
  };
  return (
    <Dialog title={`Import into ${view.table.entry.name}`} onClose={cancel}>
      <p>A CSV file whose first line names columns of the table. Empty fields are NULL; columns that the file lacks get their defaults.</p>
      <input type="file" accept=".csv,text/csv" aria-label="CSV file" onChange={(event) => void choose(event.currentTarget.files?.[0])} />
      {problem.value && <p class="problem" role="alert">{problem.value}</p>}
      {file.value && <p role="status">{countOf(file.value.rows.length, "row")}, columns {file.value.columns.map(({ name }) => name).join(", ")}.</p>}
      {done.value !== null && file.value && <progress aria-label="Imported rows" max={file.value.rows.length} value={done.value} />}
      <footer>
        <button type="button" onClick={cancel}>Cancel</button>
        <button type="button" class="primary" disabled={!file.value || done.value !== null} onClick={() => void run()}>Import</button>
      </footer>
    </Dialog>
  );
}

function readFile(view: TableView, text: string): { columns: Column[]; rows: (string | null)[][] } {
  const [header, ...rows] = parseCsv(text);
  if (!header) throw new Error("The file is empty.");
  const columns = header.map((name) => {
    const column = view.table.columns.find((column) => column.name === name);
    if (!column) throw new Error(`The table has no column ${name ?? "(empty)"}; the first line must name columns.`);
    if (column.generated) throw new Error(`The database makes the values of ${column.name}; take this column out of the file.`);
    return column;
  });
  const wrong = rows.findIndex((row) => row.length !== columns.length);
  if (wrong >= 0) throw new Error(`Row ${wrong + 1} has ${rows[wrong]!.length} fields, the first line has ${columns.length}.`);
  return { columns, rows };
}

function* batches(rows: (string | null)[][]): Generator<(string | null)[][]> {
  let batch: (string | null)[][] = [];
  let length = 0;
  for (const row of rows) {
    const size = row.reduce((sum, field) => sum + (field?.length ?? 0) + 12, 0);
    if (batch.length > 0 && (batch.length >= BATCH_ROWS || length + size > BATCH_LENGTH)) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(row);
    length += size;
  }
  if (batch.length > 0) yield batch;
}

async function insertBatch(view: TableView, columns: Column[], rows: (string | null)[][]): Promise<void> {
  const names = columns.map((_column, index) => `v${index}`);
  const params: Params[] = rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? null])));
  const values = columns.map((column, index) => castTo(`v${index}`, column)).join(", ");
  await sql({
    q: `insert into ${view.table.sqlName} (${columns.map(({ name }) => ident(name)).join(", ")}) values (${values})`,
    params,
    type_hints: Object.fromEntries(names.map((name) => [name, "text"])),
  });
}
