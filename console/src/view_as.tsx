// View as: the owner looks at the database as one of its users, by a short-lived token.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { requestJson } from "./api/http.ts";
import { claimsOf } from "./api/pkce.ts";
import { actor, isMember, session, userName } from "./api/session.ts";
import { sayError } from "./parts/notice.tsx";
import { goTo, OF_OWNERS, route } from "./route.ts";
import { loadFirstMembers, loadRoles } from "./people/records.ts";

const users = signal<string[]>([]);
const members = signal<string[]>([]);
/** Whether the server gives such tokens; a server that does not has no such path in its description. */
export const offered = signal(false);

async function prepare(): Promise<void> {
  const { paths } = await requestJson<{ paths: Record<string, unknown> }>("/api/v4/openapi.json");
  offered.value = Object.keys(paths).some((path) => /^\/api\/v4\/users\/\{\w+\}\/token$/.test(path));
  await loadUsersToView();
}

/** Reads as whom the database can be viewed; also when users were made or deleted. */
export async function loadUsersToView(): Promise<void> {
  if (!offered.value) return;
  const [roles, first] = await Promise.all([loadRoles(), loadFirstMembers()]);
  users.value = roles.map(({ name }) => name);
  members.value = first.map(({ name }) => name);
}

/** Views as a user; as oneself again without a name. */
export async function become(name: string): Promise<void> {
  // The request needs the owner's own token, even while the owner views as a user.
  actor.value = null;
  if (name === "") return;
  try {
    const { access_token: access } = await requestJson<{ access_token: string }>(`/api/v4/users/${encodeURIComponent(name)}/token`, { method: "POST" });
    actor.value = { name, access, claims: claimsOf(access) };
    if (isMember.value) goTo({ area: "query" });
    else if (OF_OWNERS.includes(route.value.area)) goTo({ area: "tables" });
  } catch (error) {
    sayError(error);
  }
}

/** The switch in the header, for owners. */
export function ViewAs() {
  const own = session.value?.claims;
  useEffect(() => {
    if (own?.superUser) prepare().catch(() => (offered.value = false));
  }, [own?.sub]);
  if (!own?.superUser || !offered.value) return null;
  const others = users.value.filter((name) => name !== userName(own));
  const acting = actor.value?.name ?? "";
  // One who was chosen in the list of users may be none of the first members.
  const shown = acting === "" || others.includes(acting) || members.value.includes(acting) ? members.value : [acting, ...members.value];
  return (
    <label class="view-as"><span>View as</span>
      <select aria-label="View as" value={acting} onChange={(event) => void become(event.currentTarget.value)}>
        <option value="">{userName(own)} (owner)</option>
        {others.map((name) => <option key={name} value={name}>{name}</option>)}
        {shown.length > 0 && <optgroup label="Members">{shown.map((name) => <option key={name} value={name}>{name}</option>)}</optgroup>}
      </select>
    </label>
  );
}

/** A bar that shows as which user the owner views the database. */
export function ActingBar() {
  if (!actor.value) return null;
  return (
    <p class="acting" role="status">
      You see and do everything as {actor.value.name}. It is recorded in the audit log and ends after 15 minutes.
      <button type="button" onClick={() => void become("")}>Be yourself again</button>
    </p>
  );
}
