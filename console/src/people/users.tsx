import { useSignal } from "@preact/signals";
import { claims } from "../api/session.ts";
import { ApiError } from "../api/errors.ts";
import { Confirm } from "../parts/confirm.tsx";
import { sayDone, sayError } from "../parts/notice.tsx";
import { FormDialog, listOf, orNull, textOf } from "./form.tsx";
import { become, loadUsersToView, offered } from "../view_as.tsx";
import { useLoaded } from "./load.ts";
import { changeUser, createUser, dropUser, groupsOf, loadUsers, type Members, type User } from "./records.ts";

/** The users of the database. */
export function Users() {
  const after = useSignal("");
  const from = useSignal("");
  const { value: page, problem, reload } = useLoaded(() => loadUsers(after.value), [after.value]);
  const users = page?.users;
  const paged = after.value !== "" || page?.more;
  const editing = useSignal<User | "new" | null>(null);
  const dropping = useSignal<{ user: User; reassign: boolean } | null>(null);
  const changed = async () => {
    loadUsersToView().catch(sayError);
    await reload();
  };
  const drop = async ({ user, reassign }: { user: User; reassign: boolean }) => {
    dropping.value = null;
    try {
      await dropUser(user.name, reassign);
      sayDone(`The user ${user.name} was deleted.`);
    } catch (error) {
      // The user owns objects: they can go to the owner.
      if (error instanceof ApiError && error.code === "CONFLICT" && !reassign) dropping.value = { user, reassign: true };
      else sayError(error);
    }
    await changed();
  };
  return (
    <>
      <div class="sheet-head">
        <h1>Users</h1>
        {paged && <input type="search" aria-label="Names from" placeholder="Names from" spellcheck={false} autocapitalize="none" value={from.value} onInput={(event) => (from.value = event.currentTarget.value)} onChange={() => (after.value = before(from.value.trim()))} />}
        <button type="button" class="primary" onClick={() => (editing.value = "new")}>New user</button>
      </div>
      <p class="hint">Every user is a role of PostgreSQL: what is granted to it is what it may do, over SQL, GraphQL, methods and live changes. Members have no role; they share that of their group.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!users && !problem && <p class="hint">Reading the users…</p>}
      {users && users.length > 0 && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="List of users">
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Email</th><th scope="col">Groups</th><th scope="col">Properties</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {users.map((user) => (
                <tr key={user.name}>
                  <th scope="row">{user.name}{user.default_user && <small> default user</small>}{user.kind === "member" && <small> member</small>}{isOwner(user) && <small> owner</small>}{user.disabled && <> <span class="pill failed">disabled</span></>}</th>
                  <td>{user.email ?? ""}</td>
                  <td>{groupsOf(user).join(", ")}</td>
                  <td>{user.properties && <code>{JSON.stringify(user.properties)}</code>}</td>
                  <td class="actions">
                    {offered.value && !isOwner(user) && !user.disabled && <button type="button" class="view-as-user" aria-label={`View as ${user.name}`} onClick={() => void become(user.name)}>View as</button>}
                    <button type="button" aria-label={`Edit ${user.name}`} onClick={() => (editing.value = user)}>Edit</button>
                    {!isOwner(user) && <button type="button" aria-label={`Delete ${user.name}`} onClick={() => (dropping.value = { user, reassign: false })}>Delete</button>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {users?.length === 0 && <p class="hint">No name comes after that.</p>}
      {paged && (
        <p>
          <button type="button" disabled={after.value === ""} onClick={() => (after.value = from.value = "")}>First page</button>{" "}
          <button type="button" disabled={!page?.more} onClick={() => (after.value = users!.at(-1)!.name)}>Next page</button>
        </p>
      )}
      {editing.value && <UserForm user={editing.value === "new" ? null : editing.value} onDone={changed} onClose={() => (editing.value = null)} />}
      {dropping.value && (
        <Confirm
          title={`Delete ${dropping.value.user.name}?`} action={dropping.value.reassign ? "Give its objects to the owner and delete" : "Delete"}
          text={dropping.value.reassign ? "The user owns tables or other objects. They can be given to the owner of the database." : "Its sessions end at once. This cannot be undone."}
          onConfirm={() => void drop(dropping.value!)} onClose={() => (dropping.value = null)}
        />
      )}
    </>
  );
}

function UserForm({ user, onDone, onClose }: { user: User | null; onDone: () => Promise<void>; onClose: () => void }) {
  const save = async (fields: FormData) => {
    const members = membersOf(fields, user);
    await (user ? changeUser(user.name, members) : createUser(members));
    sayDone(user ? `The user ${user.name} was changed.` : `The user ${String(members.name)} was created.`);
    await onDone();
  };
  return (
    <FormDialog title={user ? `User ${user.name}` : "New user"} action={user ? "Save" : "Create user"} onSave={save} onClose={onClose}>
      {!user && <label>Name<input name="name" required maxLength={32} pattern="[A-Za-z0-9_.@+\-]+" autocomplete="off" spellcheck={false} /></label>}
      <label>{user ? "New password" : "Password"}<input name="password" type="password" autocomplete="new-password" minLength={8} maxLength={256} placeholder={user ? "stays as it is" : "at least 8 characters"} /></label>
      <label>Email<input name="email" type="email" autocomplete="off" defaultValue={user?.email ?? ""} /></label>
      <label>Groups, separated by commas<input name="groups" autocomplete="off" spellcheck={false} defaultValue={user ? groupsOf(user).join(", ") : ""} /></label>
      <label>Properties, a JSON object that stands in the user's tokens<textarea name="properties" rows={3} spellcheck={false}>{user?.properties ? JSON.stringify(user.properties, null, 2) : ""}</textarea></label>
      {!user && <label class="check"><input name="member" type="checkbox" /> Member: a user without a role, in exactly one group</label>}
      <label class="check"><input name="default_user" type="checkbox" defaultChecked={user?.default_user} /> Default user: requests without a token run as this user</label>
      {user && mayBeDisabled(user) && <label class="check"><input name="disabled" type="checkbox" defaultChecked={user.disabled} /> Disabled: neither signs in nor sends requests; the sessions end</label>}
    </FormDialog>
  );
}

/** A text just before a name: the list begins after it, so with the name itself. No name has a tilde. */
const before = (name: string): string =>
  name === "" ? "" : `${name.slice(0, -1)}${String.fromCharCode(name.charCodeAt(name.length - 1) - 1)}~`;

const isOwner = ({ name }: User): boolean => name === claims.value?.database;
const mayBeDisabled = (user: User): boolean => !isOwner(user) && !user.default_user;

function propertiesOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The properties are no JSON object, such as {"desk": 7}: ${(error as Error).message}.`);
  }
}

/** The members to send; of a user that exists only what has changed. */
function membersOf(fields: FormData, user: User | null): Members {
  const groups = listOf(textOf(fields, "groups"));
  const properties = textOf(fields, "properties");
  const all: Members = {
    email: orNull(textOf(fields, "email")),
    user_group: groups.length === 0 ? null : groups.length === 1 ? groups[0] : groups,
    properties: properties === "" ? null : propertiesOf(properties),
    default_user: fields.get("default_user") !== null,
  };
  if (user && mayBeDisabled(user)) all.disabled = fields.get("disabled") !== null;
  const password = String(fields.get("password") ?? "");
  const changed = Object.entries(all).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(user ? user[name as keyof User] : name === "default_user" ? false : null));
  const members: Members = Object.fromEntries(changed);
  if (!user) members.name = textOf(fields, "name");
  if (fields.get("member") !== null) members.kind = "member";
  if (password !== "") members.password = password;
  return members;
}
