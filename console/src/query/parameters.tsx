import { mode, placeholders, texts, values, variables } from "./state.ts";

/** Fields for the values of a statement's placeholders, or for the variables of a document. */
export function Parameters() {
  const of = mode.value;
  if (of === "graphql") return <Variables />;
  const names = placeholders(texts[of].value);
  if (names.length === 0) return null;
  return (
    <div class="parameters" role="group" aria-label="Values">
      {names.map((name) => <Value key={name} name={name} />)}
    </div>
  );
}

function Value({ name }: { name: string }) {
  const value = values.value[name] ?? null;
  const set = (text: string | null) => (values.value = { ...values.value, [name]: text });
  return (
    <div class="filter">
      <label>:{name}
        <input spellcheck={false} autocomplete="off" placeholder="NULL" value={value ?? ""} onInput={(event) => set(event.currentTarget.value)} />
      </label>
      {value !== null && <button type="button" class="quiet" aria-label={`Set ${name} to NULL`} onClick={() => set(null)}>NULL</button>}
    </div>
  );
}

function Variables() {
  if (!/\$\w+\s*:/.test(texts.graphql.value) && variables.value === "") return null;
  return (
    <div class="parameters">
      <label><span>Variables</span>
        <textarea rows={2} spellcheck={false} placeholder='{"name": "value"}' value={variables.value} onInput={(event) => (variables.value = event.currentTarget.value)} />
      </label>
    </div>
  );
}
