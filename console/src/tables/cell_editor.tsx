import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Column } from "../catalog/table.ts";

type Props = {
  column: Column;
  value: string | null;
  /** The letter that began the edit replaces the value. */
  typed?: string;
  onSave: (value: string | null, then: "down" | "right" | "stay") => void;
  onCancel: () => void;
};

/** The editor inside a cell: Enter saves, Escape leaves the value, Ctrl+0 sets NULL. */
export function CellEditor({ column, value, typed, onSave, onCancel }: Props) {
  const field = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const [text, setText] = useState(typed ?? value ?? "");
  const done = useRef(false);
  // Before the next key, which would go to the grid.
  useLayoutEffect(() => {
    field.current?.focus();
    if (typed === undefined) field.current?.select?.();
  }, []);
  const finish = (action: () => void) => {
    if (done.current) return;
    done.current = true;
    action();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Enter") finish(() => onSave(text, "down"));
    else if (event.key === "Tab") finish(() => onSave(text, "right"));
    else if (event.key === "Escape") finish(onCancel);
    else if (event.key === "0" && event.ctrlKey && !column.not_null) finish(() => onSave(null, "stay"));
    else return;
    event.preventDefault();
  };
  // Leaving an unchanged cell writes nothing; leaving a changed one keeps what was typed.
  const onBlur = () => finish(() => (text === (value ?? "") ? onCancel() : onSave(text, "stay")));
  const choices = column.typname === "bool" ? ["true", "false"] : column.labels;
  const shared = { ref: field, class: "cell-editor", "aria-label": column.name, onKeyDown, onBlur };
  if (choices) {
    return (
      <select {...shared} value={text} onChange={(event) => setText(event.currentTarget.value)}>
        {value === null && <option value="">NULL</option>}
        {choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
      </select>
    );
  }
  return (
    <>
      <input {...shared} value={text} spellcheck={false} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
      {!column.not_null && value !== null && (
        <button
          type="button" class="set-null" tabIndex={-1} title="Ctrl+0"
          // Before the field loses the focus, which would save its text.
          onPointerDown={(event) => {
            event.preventDefault();
            finish(() => onSave(null, "stay"));
          }}
        >NULL</button>
      )}
    </>
  );
}
