import { useSignal } from "@preact/signals";
import { Confirm } from "../parts/confirm.tsx";
import { copyText } from "../parts/copy.ts";
import { Dialog } from "../parts/dialog.tsx";
import { sayDone, sayError } from "../parts/notice.tsx";
import { FormDialog, listOf, orNull, textOf } from "./form.tsx";
import { useLoaded } from "./load.ts";
import { changeClient, type Client, createClient, dropClient, loadClients, type Members, rotateSecret } from "./records.ts";

type Secret = { id: string; secret: string };

/** The applications that may ask for tokens. */
export function Clients() {
  const { value: clients, problem, reload } = useLoaded(loadClients);
  const editing = useSignal<Client | "new" | null>(null);
  const dropping = useSignal<Client | null>(null);
  const secret = useSignal<Secret | null>(null);
  const drop = async ({ id }: Client) => {
    dropping.value = null;
    try {
      await dropClient(id);
      sayDone(`The client ${id} was deleted.`);
      await reload();
    } catch (error) {
      sayError(error);
    }
  };
  const rotate = async ({ id }: Client) => {
    try {
      const made = await rotateSecret(id);
      if (made.secret) secret.value = { id, secret: made.secret };
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <>
      <div class="sheet-head"><h1>Clients</h1><button type="button" class="primary" onClick={() => (editing.value = "new")}>New client</button></div>
      <p class="hint">A client is an application that signs users in by OAuth.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!clients && !problem && <p class="hint">Reading the clients…</p>}
      {clients && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="List of clients">
          <table>
            <thead><tr><th scope="col">Id</th><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">Returns to</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {clients.map((client) => (
                <tr key={client.id}>
                  <th scope="row">{client.id}</th>
                  <td>{client.name}</td>
                  <td>{client.public ? "public" : "confidential"}</td>
                  <td>{client.redirect_uri.map((uri) => <code key={uri} class="line">{uri}</code>)}</td>
                  <td class="actions">
                    <button type="button" aria-label={`Edit ${client.id}`} onClick={() => (editing.value = client)}>Edit</button>
                    {!client.public && <button type="button" aria-label={`New secret for ${client.id}`} onClick={() => void rotate(client)}>New secret</button>}
                    <button type="button" aria-label={`Delete ${client.id}`} onClick={() => (dropping.value = client)}>Delete</button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {editing.value && (
        <ClientForm client={editing.value === "new" ? null : editing.value} onDone={reload} onSecret={(made) => (secret.value = made)} onClose={() => (editing.value = null)} />
      )}
      {dropping.value && (
        <Confirm
          title={`Delete ${dropping.value.id}?`} action="Delete" text="The application can sign nobody in any more, and its sessions end."
          onConfirm={() => void drop(dropping.value!)} onClose={() => (dropping.value = null)}
        />
      )}
      {secret.value && !editing.value && <SecretDialog made={secret.value} onClose={() => (secret.value = null)} />}
    </>
  );
}

function SecretDialog({ made, onClose }: { made: Secret; onClose: () => void }) {
  return (
    <Dialog title={`Secret of ${made.id}`} onClose={onClose}>
      <p>Copy the secret now: it is shown this once and stored only as a hash. A secret from before works for another 24 hours.</p>
      <pre class="secret" tabIndex={0} aria-label="Secret">{made.secret}</pre>
      <footer>
        <button type="button" onClick={() => void copyText(made.secret)}>Copy</button>
        <button type="button" class="primary" onClick={onClose}>I have it</button>
      </footer>
    </Dialog>
  );
}

type FormProps = { client: Client | null; onDone: () => Promise<void>; onSecret: (made: Secret) => void; onClose: () => void };

function ClientForm({ client, onDone, onSecret, onClose }: FormProps) {
  const save = async (fields: FormData) => {
    const members = membersOf(fields);
    if (client) {
      await changeClient(client.id, members);
      sayDone(`The client ${client.id} was changed.`);
    } else {
      const id = orNull(textOf(fields, "id"));
      const made = await createClient(id === null ? members : { id, ...members });
      if (made.secret) onSecret({ id: made.id, secret: made.secret });
      sayDone(`The client ${made.id} was created.`);
    }
    await onDone();
  };
  const check = (name: keyof Client, text: string, otherwise = false) => (
    <label class="check"><input name={name} type="checkbox" defaultChecked={client ? Boolean(client[name]) : otherwise} /> {text}</label>
  );
  return (
    <FormDialog title={client ? `Client ${client.id}` : "New client"} action={client ? "Save" : "Create client"} onSave={save} onClose={onClose}>
      {!client && <label>Id<input name="id" maxLength={64} pattern="[A-Za-z0-9_.\-]*" placeholder="made when left empty" autocomplete="off" spellcheck={false} /></label>}
      <label>Name<input name="name" required autocomplete="off" defaultValue={client?.name ?? ""} /></label>
      <label>Addresses that it returns to, one a line<textarea name="redirect_uri" required rows={3} spellcheck={false}>{client?.redirect_uri.join("\n") ?? ""}</textarea></label>
      {check("public", "Public: it runs in a browser or on a phone and cannot keep a secret")}
      {check("confirm", "Ask people to consent", true)}
      {check("two_factor", "Ask for a second factor")}
      {check("allow_signup", "People may sign up through it")}
    </FormDialog>
  );
}

const membersOf = (fields: FormData): Members => ({
  name: textOf(fields, "name"),
  redirect_uri: listOf(textOf(fields, "redirect_uri")),
  public: fields.get("public") !== null,
  confirm: fields.get("confirm") !== null,
  two_factor: fields.get("two_factor") !== null,
  allow_signup: fields.get("allow_signup") !== null,
});
