import { useSignal } from "@preact/signals";
import { home } from "../api/home.ts";
import { sentence } from "../api/errors.ts";
import { copyText } from "../parts/copy.ts";
import { Dialog } from "../parts/dialog.tsx";
import { sayDone } from "../parts/notice.tsx";
import { createMethod } from "./methods.ts";
import { SNIPPETS, type Call } from "./snippets.ts";
import { mode, replace } from "./state.ts";
import { forget, past } from "./store.ts";

type Closing = { onClose: () => void };

/** Stores a statement as a method. */
export function SaveMethod({ q, onSaved, onClose }: Closing & { q: string; onSaved: (name: string) => void }) {
  const name = useSignal("");
  const problem = useSignal<string | null>(null);
  const save = async (event: Event) => {
    event.preventDefault();
    try {
      await createMethod(name.value.trim(), q);
      sayDone(`The method ${name.value.trim()} was saved.`);
      onSaved(name.value.trim());
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  return (
    <Dialog title="Save as method" onClose={onClose}>
      <form class="form" onSubmit={save}>
        <p>A method is a statement under a name, which applications call over JSON-RPC with values for its placeholders.</p>
        {problem.value && <p class="problem" role="alert">{problem.value}</p>}
        <label>Name
          <input required pattern="[A-Za-z_][A-Za-z0-9_.\-]*" maxLength={128} spellcheck={false} autocomplete="off" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
        <footer>
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="primary">Save method</button>
        </footer>
      </form>
    </Dialog>
  );
}

/** The request in other languages. */
export function CopyAs({ call, onClose }: Closing & { call: Call }) {
  const chosen = useSignal(0);
  const text = SNIPPETS[chosen.value]![1](call);
  return (
    <Dialog title="Copy as" onClose={onClose} wide>
      <div class="tabs" role="group" aria-label="Language">
        {SNIPPETS.map(([name], index) => <button key={name} type="button" aria-pressed={chosen.value === index} onClick={() => (chosen.value = index)}>{name}</button>)}
      </div>
      <textarea readOnly rows={14} aria-label="Snippet" value={text} spellcheck={false} />
      <p class="hint">The access token is not part of it: <a href={`${home}/docs/how-to/curl#a-token`} target="_blank" rel="noopener">how to get one</a>.</p>
      <footer><button type="button" class="primary" onClick={() => void copyText(text)}>Copy</button></footer>
    </Dialog>
  );
}

/** Statements that were run in this browser. */
export function History({ onClose }: Closing) {
  const choose = (text: string, of: typeof mode.value) => {
    mode.value = of;
    replace(of, text);
    onClose();
  };
  return (
    <Dialog title="History" onClose={onClose} wide>
      <p class="hint">Statements that were run in this browser, without values and answers. They stay here until you clear them or sign out.</p>
      {past.value.length === 0 && <p>Nothing was run yet.</p>}
      <ul class="history" tabIndex={0} aria-label="Statements, newest first">
        {past.value.map((entry) => (
          <li key={entry.at}>
            <button type="button" onClick={() => choose(entry.text, entry.mode)}>
              <small>{entry.mode === "sql" ? "SQL" : "GraphQL"} · {new Date(entry.at).toLocaleString("en-GB")}</small>
              <code>{entry.text.slice(0, 300)}</code>
            </button>
          </li>
        ))}
      </ul>
      <footer>
        {past.value.length > 0 && <button type="button" onClick={forget}>Clear history</button>}
        <button type="button" onClick={onClose}>Close</button>
      </footer>
    </Dialog>
  );
}
