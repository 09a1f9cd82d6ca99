import { useSignal } from "@preact/signals";
import { Confirm } from "../parts/confirm.tsx";
import { sayDone, sayError } from "../parts/notice.tsx";
import { useLoaded } from "./load.ts";
import { endSession, loadSessions, type SignedIn } from "./records.ts";

const MOST = 1_000;
const when = (text: string): string => new Date(text).toLocaleString("en-GB");
const opened = ({ grant }: SignedIn): string => (grant === "impersonation" ? "View as" : grant.replaceAll("_", " "));

/** The sessions: the user and the application of each. */
export function Sessions() {
  const { value: sessions, problem, reload } = useLoaded(loadSessions);
  const search = useSignal("");
  const ending = useSignal<SignedIn | null>(null);
  const wanted = search.value.toLowerCase();
  const found = (sessions ?? []).filter(({ user, client_id, grant }) => `${user} ${client_id} ${grant}`.toLowerCase().includes(wanted));
  const end = async ({ id, user }: SignedIn) => {
    ending.value = null;
    try {
      await endSession(id);
      sayDone(`A session of ${user} was ended.`);
      await reload();
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <>
      <div class="sheet-head">
        <h1>Sessions</h1>
        <input type="search" aria-label="Find in the sessions" placeholder="Find" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
        <button type="button" onClick={() => void reload()}>Reload</button>
      </div>
      <p class="hint">Applications and devices that are signed in. Sessions of anonymous visitors are not listed.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!sessions && !problem && <p class="hint">Reading the sessions…</p>}
      {sessions && found.length === 0 && <p class="hint">No session matches.</p>}
      {sessions?.length === MOST && <p class="hint">The {MOST.toLocaleString("en")} sessions that were used last are shown.</p>}
      {found.length > 0 && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="List of sessions">
          <table>
            <thead><tr><th scope="col">User</th><th scope="col">Client</th><th scope="col">Opened by</th><th scope="col">Since</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {found.map((session) => (
                <tr key={session.id}>
                  <th scope="row">{session.user}</th>
                  <td>{session.client_id}</td>
                  <td>{opened(session)}</td>
                  <td class="when">{when(session.created_at)}</td>
                  <td class="when">{when(session.refreshed_at)}</td>
                  <td class="when">{when(session.expires_at)}</td>
                  <td class="actions">
                    {session.current ? "this one" : <button type="button" aria-label={`End the session of ${session.user} since ${when(session.created_at)}`} onClick={() => (ending.value = session)}>End</button>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {ending.value && (
        <Confirm
          title={`End this session of ${ending.value.user}?`} action="End session" text="The application must sign the user in again. Other sessions of the user go on."
          onConfirm={() => void end(ending.value!)} onClose={() => (ending.value = null)}
        />
      )}
    </>
  );
}
