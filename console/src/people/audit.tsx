import { useSignal } from "@preact/signals";
import { useLoaded } from "./load.ts";
import { loadAudit } from "./records.ts";

const PERIODS: [number, string][] = [[1, "last hour"], [24, "last day"], [24 * 7, "last week"], [24 * 30, "last month"]];
const MOST_SHOWN = 500;

/** What happened to accounts, sessions, clients and rights. */
export function Audit() {
  const hours = useSignal(24);
  const search = useSignal("");
  const { value: events, problem } = useLoaded(() => loadAudit(new Date(Date.now() - hours.value * 3_600_000)), [hours.value]);
  const wanted = search.value.toLowerCase();
  const found = (events ?? []).filter((event) => Object.values(event).join(" ").toLowerCase().includes(wanted));
  return (
    <>
      <div class="sheet-head">
        <h1>Audit log</h1>
        <input type="search" aria-label="Find in the log" placeholder="Find" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
        <select aria-label="Period" value={hours.value} onChange={(event) => (hours.value = Number(event.currentTarget.value))}>
          {PERIODS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </select>
      </div>
      <p class="hint">What happened to accounts, sessions, clients and rights. What the operator did on the server has no address.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!events && !problem && <p class="hint">Reading the log…</p>}
      {events && found.length === 0 && <p class="hint">Nothing happened in this time.</p>}
      {found.length > MOST_SHOWN && <p class="hint">The newest {MOST_SHOWN} of {found.length.toLocaleString("en")} events are shown.</p>}
      {found.length > 0 && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="Events, newest first">
          <table>
            <thead><tr><th scope="col">When</th><th scope="col">Event</th><th scope="col">Detail</th><th scope="col">User</th><th scope="col">Client</th><th scope="col">By</th><th scope="col">From</th></tr></thead>
            <tbody>
              {found.slice(0, MOST_SHOWN).map((event) => (
                <tr key={event.id}>
                  <td class="when">{new Date(event.at).toLocaleString("en-GB")}</td>
                  <th scope="row">{event.event.replaceAll("_", " ")}</th>
                  <td>{event.detail ?? ""}</td>
                  <td>{event.user ?? ""}</td>
                  <td>{event.client_id ?? ""}</td>
                  <td>{event.actor ?? ""}</td>
                  <td>{event.address ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
