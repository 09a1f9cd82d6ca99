import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isCut } from "../catalog/shown.ts";
import type { Column, Table } from "../catalog/table.ts";
import { countOf } from "../parts/count.ts";
import { Dialog } from "../parts/dialog.tsx";
import { sayError } from "../parts/notice.tsx";
import { readValue } from "./edit.ts";

/** More than this many characters make a text field slow; the rest is downloaded. */
const EDITABLE = 2_000_000;

type Props = {
  table: Table;
  row: string[];
  column: Column;
  shown: string | null;
  editable: boolean;
  /** Gives whether it was written. */
  onSave: (value: string | null, was: string | null) => Promise<boolean>;
  onClose: () => void;
};

/** One value in full, read when it is opened. */
export function ValueDialog({ table, row, column, shown, editable, onSave, onClose }: Props) {
  const whole = useSignal<string | null | undefined>(shown !== null && isCut(column, shown) ? undefined : shown);
  const text = useSignal(whole.value ?? "");
  const saving = useSignal(false);
  useEffect(() => {
    if (whole.value !== undefined || table.key.length === 0) return;
    readValue(table, row, column).then((value) => {
      whole.value = value ?? null;
      text.value = value ?? "";
    }).catch((error) => {
      sayError(error);
      onClose();
    });
  }, []);
  const value = whole.value;
  const tooLong = (value?.length ?? 0) > EDITABLE;
  const mayWrite = editable && value !== undefined && !tooLong;
  const save = async (next: string | null) => {
    saving.value = true;
    if (await onSave(next, value ?? null)) onClose();
    saving.value = false;
  };
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([value ?? ""]));
    link.download = `${column.name}.txt`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <Dialog title={column.name} onClose={onClose} wide>
      <p class="hint">
        {column.type}
        {value !== undefined && `, ${value === null ? "NULL" : countOf(value.length, "character")}`}
        {!editable && (table.key.length === 0 ? " · read-only: the table has no key" : " · read-only")}
      </p>
      {value === undefined
        ? <p>{table.key.length === 0 ? "This table has no key, so the row cannot be read again. The beginning of the value is shown." : "Reading the value…"}</p>
        : (
          <textarea
            aria-label={column.name} rows={16} spellcheck={false} readOnly={!mayWrite}
            value={tooLong ? `${value?.slice(0, EDITABLE)}…` : text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
        )}
      {value === undefined && table.key.length === 0 && <pre tabIndex={0}>{shown}</pre>}
      {tooLong && <p class="hint">The value is too long to be edited here. Download it.</p>}
      <footer>
        {typeof value === "string" && <button type="button" onClick={download}>Download</button>}
        {mayWrite && !column.not_null && value !== null && <button type="button" disabled={saving.value} onClick={() => save(null)}>Set NULL</button>}
        {mayWrite && <button type="button" class="primary" disabled={saving.value} onClick={() => save(text.value)}>Save</button>}
      </footer>
    </Dialog>
  );
}
