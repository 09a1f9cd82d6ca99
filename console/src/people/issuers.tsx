import { useSignal } from "@preact/signals";
import { home } from "../api/home.ts";
import { Confirm } from "../parts/confirm.tsx";
import { sayDone, sayError } from "../parts/notice.tsx";
import { FormDialog, listOf, orNull, textOf } from "./form.tsx";
import { useLoaded } from "./load.ts";
import { changeIssuer, createIssuer, dropIssuer, type Issuer, loadIssuers, type Members } from "./records.ts";

/** The services outside of Tidegate whose tokens the database accepts. */
export function Issuers() {
  const { value: issuers, problem, reload } = useLoaded(loadIssuers);
  const editing = useSignal<Issuer | "new" | null>(null);
  const dropping = useSignal<Issuer | null>(null);
  const drop = async ({ name }: Issuer) => {
    dropping.value = null;
    try {
      await dropIssuer(name);
      sayDone(`The issuer ${name} was removed.`);
    } catch (error) {
      sayError(error);
    }
    await reload();
  };
  return (
    <>
      <div class="sheet-head"><h1>Issuers</h1><button type="button" class="primary" onClick={() => (editing.value = "new")}>New issuer</button></div>
      <p class="hint">A service such as Keycloak or Auth0 that signs people in already. Its tokens are accepted here, and policies read their claims. <a href={`${home}/docs/how-to/external-issuers`} target="_blank" rel="noopener">How to set one up</a></p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!issuers && !problem && <p class="hint">Reading the issuers…</p>}
      {issuers?.length === 0 && <p class="hint">No issuer yet: only the tokens of Tidegate itself are accepted.</p>}
      {issuers && issuers.length > 0 && (
        <div class="scroll-x panel" tabIndex={0} role="region" aria-label="List of issuers">
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Issuer</th><th scope="col">Audience</th><th scope="col">Group or user</th><th scope="col">People</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {issuers.map((issuer) => (
                <tr key={issuer.name}>
                  <th scope="row">{issuer.name}</th>
                  <td><code>{issuer.issuer}</code></td>
                  <td>{audienceOf(issuer).map((one) => <code key={one} class="line">{one}</code>)}</td>
                  <td>{[issuer.user_claim, issuer.role_claim].filter(Boolean).map((claim) => <span key={claim} class="line">claim <code>{claim}</code></span>)}{issuer.default_role && <span class="line">else {issuer.default_role}</span>}</td>
                  <td>{issuer.create_members ? "recorded as members" : "not recorded"}</td>
                  <td class="actions">
                    <button type="button" aria-label={`Edit ${issuer.name}`} onClick={() => (editing.value = issuer)}>Edit</button>
                    <button type="button" aria-label={`Remove ${issuer.name}`} onClick={() => (dropping.value = issuer)}>Remove</button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {editing.value && <IssuerForm issuer={editing.value === "new" ? null : editing.value} onDone={reload} onClose={() => (editing.value = null)} />}
      {dropping.value && (
        <Confirm
          title={`Remove ${dropping.value.name}?`} action="Remove" text="Its tokens are refused at once. Members that were recorded stay."
          onConfirm={() => void drop(dropping.value!)} onClose={() => (dropping.value = null)}
        />
      )}
    </>
  );
}

type FormProps = { issuer: Issuer | null; onDone: () => Promise<void>; onClose: () => void };

function IssuerForm({ issuer, onDone, onClose }: FormProps) {
  const save = async (fields: FormData) => {
    const members = membersOf(fields);
    const name = issuer?.name ?? textOf(fields, "name");
    await (issuer ? changeIssuer(name, members) : createIssuer({ name, ...members }));
    sayDone(issuer ? `The issuer ${name} was changed.` : `The issuer ${name} was added.`);
    await onDone();
  };
  const text = (name: keyof Issuer, label: string, placeholder: string, required = false) => (
    <label>{label}<input name={name} required={required} placeholder={placeholder} autocomplete="off" spellcheck={false} defaultValue={String(issuer?.[name] ?? "")} /></label>
  );
  return (
    <FormDialog title={issuer ? `Issuer ${issuer.name}` : "New issuer"} action={issuer ? "Save" : "Add issuer"} onSave={save} onClose={onClose}>
      {!issuer && text("name", "Name, which you choose", "keycloak", true)}
      {text("issuer", "Issuer, exactly as in the claim iss", "https://id.example.com/realms/shop", true)}
      <label>Audiences, one a line; a token must name one<textarea name="audience" required rows={2} spellcheck={false}>{issuer ? audienceOf(issuer).join("\n") : ""}</textarea></label>
      {text("jwks_url", "Address of its keys", "found by discovery")}
      {text("user_claim", "Claim that names a user", "none")}
      {text("role_claim", "Claim that names groups", "none, such as realm_access.roles")}
      {text("default_role", "Group or user of tokens that name none", "none")}
      <label>Claims that policies read, one a line; none for all<textarea name="claims" rows={2} spellcheck={false} placeholder="all, if they are short enough">{issuer?.claims?.join("\n") ?? ""}</textarea></label>
      <label class="check"><input name="create_members" type="checkbox" defaultChecked={issuer?.create_members} /> Record people of groups as members, so that they can be listed and disabled</label>
    </FormDialog>
  );
}

const audienceOf = ({ audience }: Issuer): string[] => (Array.isArray(audience) ? audience : [audience]);

const claimsOf = (fields: FormData): string[] | null => {
  const claims = listOf(textOf(fields, "claims"));
  return claims.length > 0 ? claims : null;
};

const membersOf = (fields: FormData): Members => ({
  issuer: textOf(fields, "issuer"),
  audience: listOf(textOf(fields, "audience")),
  jwks_url: orNull(textOf(fields, "jwks_url")),
  user_claim: orNull(textOf(fields, "user_claim")),
  role_claim: orNull(textOf(fields, "role_claim")),
  default_role: orNull(textOf(fields, "default_role")),
  claims: claimsOf(fields),
  create_members: fields.get("create_members") !== null,
});
