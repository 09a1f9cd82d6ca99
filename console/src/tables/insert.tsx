import { useSignal } from "@preact/signals";
import { fullTypeName } from "../catalog/shown.ts";
import type { Column } from "../catalog/table.ts";
import { Dialog } from "../parts/dialog.tsx";
import { sayDone } from "../parts/notice.tsx";
import { sentence } from "../api/errors.ts";
import { insertRow } from "./edit.ts";
import type { TableView } from "./view.ts";

type Given = { how: "default" | "null" | "value"; text: string };

/** A form for a new row. A column that is left alone gets its default. */
export function InsertDialog({ view, onClose }: { view: TableView; onClose: () => void }) {
  const { table } = view;
  const columns = table.columns.filter((column) => column.insertable && !column.generated);
  const given = useSignal(new Map<Column, Given>());
  const problem = useSignal<string | null>(null);
  const set = (column: Column, next: Given) => (given.value = new Map(given.value).set(column, next));
  const save = async (event: Event) => {
    event.preventDefault();
    const values = new Map([...given.value]
      .filter(([, { how }]) => how !== "default")
      .map(([column, { how, text }]) => [column, how === "null" ? null : text]));
    view.noteInsert();
    try {
      await insertRow(table, values);
      sayDone("The row was inserted.");
      view.refreshSoon();
      onClose();
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  return (
    <Dialog title={`New row in ${table.entry.name}`} onClose={onClose} wide>
      <form class="fields" onSubmit={save}>
        {problem.value && <p class="problem" role="alert">{problem.value}</p>}
        {columns.map((column) => (
          <Field key={column.name} column={column} given={given.value.get(column) ?? { how: "default", text: "" }} onChange={(next) => set(column, next)} />
        ))}
        <footer>
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="primary">Insert</button>
        </footer>
      </form>
    </Dialog>
  );
}

function Field({ column, given, onChange }: { column: Column; given: Given; onChange: (next: Given) => void }) {
  const rest = column.identity ? "by the database" : (column.default_value ?? (column.not_null ? "" : "NULL"));
  const choices = column.typname === "bool" ? ["true", "false"] : column.labels;
  const required = rest === "";
  const shared = { value: given.text, "aria-label": column.name };
  return (
    <div class="field">
      <span class="field-name">{column.name} <small>{fullTypeName(column)}{required && " · required"}</small></span>
      {choices
        ? (
          <select {...shared} onChange={({ currentTarget: { value } }) => onChange({ how: value ? "value" : "default", text: value })}>
            <option value="">{rest || "choose"}</option>
            {choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
          </select>
        )
        : (
          <input
            {...shared} placeholder={given.how === "null" ? "NULL" : rest} spellcheck={false} autocomplete="off"
            onInput={({ currentTarget: { value } }) => onChange({ how: value === "" ? "default" : "value", text: value })}
          />
        )}
      <select
        aria-label={`How ${column.name} is filled`} value={given.how}
        onChange={({ currentTarget: { value } }) => onChange({ how: value as Given["how"], text: value === "value" ? given.text : "" })}
      >
        <option value="default">{required ? "not given" : rest === "NULL" ? "NULL" : "default"}</option>
        <option value="value">value</option>
        {!column.not_null && rest !== "NULL" && <option value="null">NULL</option>}
      </select>
    </div>
  );
}
