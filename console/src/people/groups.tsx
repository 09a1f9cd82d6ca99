import { useSignal } from "@preact/signals";
import { sayDone } from "../parts/notice.tsx";
import { hrefOf } from "../route.ts";
import { FormDialog, listOf, textOf } from "./form.tsx";
import { useLoaded } from "./load.ts";
import { addToGroup } from "./records.ts";
import { FIRST_USERS, type Group, loadGroups } from "./rights_data.ts";

/** The groups of the database, with the first users of each. */
export function Groups() {
  const { value: groups, problem, reload } = useLoaded(loadGroups);
  const adding = useSignal<Group | "new" | null>(null);
  return (
    <>
      <div class="sheet-head"><h1>Groups</h1><button type="button" class="primary" onClick={() => (adding.value = "new")}>New group</button></div>
      <p class="hint">What is granted to a group, its users may do. Grant it under <a href={hrefOf({ area: "people", part: "rights" })}>Rights</a>; take a user out of it under <a href={hrefOf({ area: "people", part: "users" })}>Users</a>, Edit.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!groups && !problem && <p class="hint">Reading the groups…</p>}
      {groups?.length === 0 && <p class="hint">No group yet.</p>}
      {groups && groups.length > 0 && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="List of groups">
          <table>
            <thead><tr><th scope="col">Group</th><th scope="col">Role in PostgreSQL</th><th scope="col">Users</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {groups.map((group) => (
                <tr key={group.name}>
                  <th scope="row">{group.name}</th>
                  <td><code>{group.role}</code></td>
                  <td>{group.users.slice(0, FIRST_USERS).join(", ")}{group.users.length > FIRST_USERS && " and others"}</td>
                  <td class="actions"><button type="button" aria-label={`Add users to ${group.name}`} onClick={() => (adding.value = group)}>Add users</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {adding.value && <AddForm group={adding.value === "new" ? null : adding.value.name} onDone={reload} onClose={() => (adding.value = null)} />}
    </>
  );
}

type FormProps = { group: string | null; onDone: () => Promise<void>; onClose: () => void };

/** A group is made with its first user. */
function AddForm({ group, onDone, onClose }: FormProps) {
  const save = async (fields: FormData) => {
    const name = group ?? textOf(fields, "group");
    const users = listOf(textOf(fields, "users"));
    try {
      for (const user of users) await addToGroup(user, name);
    } finally {
      await onDone();
    }
    sayDone(`${users.join(", ")} ${users.length === 1 ? "is" : "are"} in the group ${name} now.`);
  };
  return (
    <FormDialog title={group ? `Add users to ${group}` : "New group"} action={group ? "Add" : "Create group"} onSave={save} onClose={onClose}>
      {!group && <label>Group<input name="group" required autocomplete="off" spellcheck={false} /></label>}
      <label>{group ? "Users" : "Its first users"}, separated by commas<input name="users" required autocomplete="off" spellcheck={false} /></label>
    </FormDialog>
  );
}
