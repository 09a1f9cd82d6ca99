import { useSignal } from "@preact/signals";
import { type Activity, CLIENT_LEFT, duration, type Group, groupsOf, interfaceOf, type Kind, since } from "./records.ts";

type Wanted = Kind | "all";
const WANTED: [Wanted, string][] = [["all", "All"], ["failed", "Failed"], ["refused", "Refused"], ["slow", "Slow"]];

/** The last statements that were slow or failed. Similar statements share a row. */
export function Statements({ activity: { statements, now } }: { activity: Activity }) {
  const wanted = useSignal<Wanted>("all");
  const search = useSignal("");
  const groups = groupsOf(statements);
  const part = search.value.toLowerCase();
  const found = groups.filter((group) => (wanted.value === "all" || group.kind === wanted.value) && textOf(group).includes(part));
  const count = (of: Wanted) => groups.reduce((all, group) => all + (of === "all" || group.kind === of ? group.count : 0), 0);
  return (
    <section class="card" aria-labelledby="statements">
      <div class="sheet-head">
        <h2 id="statements">Slow and failed statements</h2>
        <input type="search" aria-label="Find a statement" placeholder="Find" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
        <div class="tabs" role="group" aria-label="Which statements">
          {WANTED.map(([name, text]) => (
            <button key={name} type="button" aria-pressed={wanted.value === name} onClick={() => (wanted.value = name)}>{text} {count(name)}</button>
          ))}
        </div>
      </div>
      <p class="hint">The last 50 that failed or took a second or longer. Values are not kept: each is a question mark.</p>
      {statements.length === 0 && <p class="none">No statement was slow or failed since the server was started.</p>}
      {statements.length > 0 && found.length === 0 && <p class="none">No statement matches.</p>}
      {found.length > 0 && (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Statements, newest first">
          <table class="statements">
            <thead><tr><th scope="col">Result</th><th scope="col">Statement</th><th scope="col">User</th><th scope="col" class="number">Took</th><th scope="col">Last</th></tr></thead>
            <tbody>{found.map((group) => <Row key={keyOf(group)} group={group} now={now} />)}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ group: { last, kind, count, longest }, now }: { group: Group; now: string }) {
  const code = last.status === CLIENT_LEFT ? "client disconnected" : [last.error, last.sqlstate].filter(Boolean).join(" ");
  return (
    <tr>
      <td><span class={`pill ${kind}`}>{kind}</span>{count > 1 && <span class="times" title="How often"> × {count}</span>}{code && <small class="code">{code}</small>}</td>
      <th scope="row">{last.statement === null ? <span class="hint">The text is too long or cannot be parsed.</span> : <code class="statement">{last.statement}</code>}<small>{interfaceOf(last.route)}</small></th>
      <td>{last.role.slice(last.role.indexOf("/") + 1)}</td>
      <td class="number">{count > 1 && <small>up to </small>}{duration(longest)}</td>
      <td class="when"><time dateTime={last.at} title={new Date(last.at).toLocaleString("en-GB")}>{since(last.at, now)}</time></td>
    </tr>
  );
}

const keyOf = ({ last: { route, role, status, error, sqlstate, statement } }: Group): string =>
  JSON.stringify([route, role, status, error, sqlstate, statement]);

const textOf = ({ last: { statement, role, error, sqlstate, route } }: Group): string =>
  [statement, role, error, sqlstate, interfaceOf(route)].join(" ").toLowerCase();
