import { useSignal } from "@preact/signals";
import { tables } from "../catalog/tables.ts";
import { Dialog } from "../parts/dialog.tsx";
import { sayDone, sayError } from "../parts/notice.tsx";
import { useLoaded } from "./load.ts";
import { cellKey, COLUMN_RIGHTS, type Holder, loadColumnRights, loadRights, MOST_HOLDERS, setColumnRight, setRight, type Word } from "./rights_data.ts";

const WORDS: [Word, string][] = [["none", "none"], ["read", "read"], ["write", "read, write"]];

const SAID: Record<Word, string> = { none: "now has no right on", read: "may now read", write: "may now read and write", other: "has some rights on" };

/** Users and groups by tables. */
export function Rights() {
  const schemas = [...new Set((tables.value ?? []).map(({ schema }) => schema))];
  const chosen = useSignal<string | null>(null);
  const schema = chosen.value ?? (schemas.includes("public") ? "public" : (schemas[0] ?? "public"));
  const { value: rights, problem, reload } = useLoaded(() => loadRights(schema), [schema]);
  const columns = useSignal<{ table: string; holder: Holder } | null>(null);
  const set = async (table: string, holder: Holder, word: Word) => {
    try {
      await setRight(schema, table, holder, word as Exclude<Word, "other">);
      sayDone(`${holder.name} ${SAID[word]} ${table}.`);
    } catch (error) {
      sayError(error);
    }
    await reload();
  };
  return (
    <>
      <div class="sheet-head">
        <h1>Rights</h1>
        {schemas.length > 1 && (
          <select aria-label="Schema" value={schema} onChange={(event) => (chosen.value = event.currentTarget.value)}>
            {schemas.map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        )}
      </div>
      <p class="hint">What PostgreSQL lets each user and group do. A right that comes through a group or through PUBLIC is shown too.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {rights?.holders.length === MOST_HOLDERS && <p class="hint">The first {MOST_HOLDERS} users and groups are shown; GRANT in SQL reaches the others.</p>}
      {!rights && !problem && <p class="hint">Reading the rights…</p>}
      {rights && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="Rights by table">
          <table class="matrix">
            <thead>
              <tr>
                <th scope="col">Table</th>
                {rights.holders.map((holder) => <th key={holder.role} scope="col">{holder.group && <small>group </small>}{holder.name}</th>)}
              </tr>
            </thead>
            <tbody>
              {rights.tables.map((table) => (
                <tr key={table}>
                  <th scope="row">{table}</th>
                  {rights.holders.map((holder) => {
                    const word = rights.words.get(cellKey(table, holder.role)) ?? "none";
                    return (
                      <td key={holder.role} class={`right ${word}`}>
                        <select
                          aria-label={`${holder.name} on ${table}`} value={word}
                          onChange={(event) => void set(table, holder, event.currentTarget.value as Word)}
                        >
                          {word === "other" && <option value="other">some</option>}
                          {WORDS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
                        </select>
                        <button type="button" class="quiet" aria-label={`Columns of ${table} for ${holder.name}`} onClick={() => (columns.value = { table, holder })}>columns</button>
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {columns.value && (
        <ColumnDialog
          schema={schema} {...columns.value}
          onClose={() => {
            columns.value = null;
            void reload();
          }}
        />
      )}
    </>
  );
}

type ColumnProps = { schema: string; table: string; holder: Holder; onClose: () => void };

function ColumnDialog({ schema, table, holder, onClose }: ColumnProps) {
  const { value: columns, problem, reload } = useLoaded(() => loadColumnRights(schema, table, holder));
  const toggle = async (column: string, right: string, granted: boolean) => {
    try {
      await setColumnRight(schema, table, holder, { column, right, granted });
    } catch (error) {
      sayError(error);
    }
    await reload();
  };
  return (
    <Dialog title={`Columns of ${table} for ${holder.name}`} onClose={onClose} wide>
      <p class="hint">A right on the whole table counts for each of its columns; take it away first to leave single columns.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="columns" tabIndex={0} role="region" aria-label="Rights by column">
        <table>
          <thead><tr><th scope="col">Column</th><th scope="col">Read</th><th scope="col">Insert</th><th scope="col">Change</th></tr></thead>
          <tbody>
            {columns?.map((column) => (
              <tr key={column.name}>
                <th scope="row">{column.name}</th>
                {COLUMN_RIGHTS.map((right) => (
                  <td key={right}>
                    <input
                      type="checkbox" aria-label={`${right} ${column.name}`} checked={column[right]}
                      onChange={(event) => void toggle(column.name, right, event.currentTarget.checked)}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <footer><button type="button" class="primary" onClick={onClose}>Done</button></footer>
    </Dialog>
  );
}
