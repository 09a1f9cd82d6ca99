import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { ExactNumber, showValue } from "../api/json.ts";
import { Grid, type GridColumn, type Place } from "../grid/grid.tsx";
import { copyText } from "../parts/copy.ts";
import { Dialog } from "../parts/dialog.tsx";
import type { Result } from "./run.ts";

const CUT = 200;
/** A number that PostgreSQL gives as text so that it keeps its digits; longer ones are codes. */
const NUMERIC = /^-?\d{1,18}\.\d+$/;

/** The rows of a result. */
export function ResultGrid({ result }: { result: Result }) {
  const active = useSignal<Place | null>(null);
  const opened = useSignal<Place | null>(null);
  const columns = useMemo(() => result.columns.map((name, index): GridColumn => column(name, result.rows, index)), [result]);
  const cell = (row: number, index: number) => {
    const value = result.rows[row]?.[index];
    if (value == null) return { text: "NULL", className: "null" };
    const text = showValue(value);
    return { text: text.length > CUT ? `${text.slice(0, CUT)}…` : text, tip: text.length > 24 ? text.slice(0, CUT) : undefined };
  };
  const value = opened.value && result.rows[opened.value.row]?.[opened.value.column];
  return (
    <>
      <Grid
        label="Result" columns={columns} rows={result.rows.length} cell={cell}
        active={active.value} onActive={(place) => (active.value = place)} onOpen={(place) => (opened.value = place)}
        onCopy={({ row, column }) => {
          const copied = result.rows[row]?.[column];
          if (copied != null) void copyText(showValue(copied));
        }}
      />
      {opened.value && (
        <Dialog title={result.columns[opened.value.column] ?? ""} onClose={() => (opened.value = null)} wide>
          <textarea readOnly rows={16} aria-label="Value" value={value == null ? "NULL" : showValue(value, 2)} />
          <footer><button type="button" onClick={() => (opened.value = null)}>Close</button></footer>
        </Dialog>
      )}
    </>
  );
}

function column(name: string, rows: unknown[][], index: number): GridColumn {
  const sample = rows.slice(0, 50).map((row) => row[index]);
  const numeric = sample.some((value) => value != null) && sample.every((value) => value == null || typeof value === "number" || value instanceof ExactNumber || (typeof value === "string" && NUMERIC.test(value)));
  const longest = sample.reduce<number>((most, value) => Math.max(most, value == null ? 4 : Math.min(44, showValue(value).length)), name.length);
  return { name, title: name, width: Math.max(70, longest * 8 + 24), numeric };
}
