import { useSignal } from "@preact/signals";
import { defaultClient, signIn } from "./api/session.ts";
import { home } from "./api/home.ts";
import { Mark } from "./parts/mark.tsx";

/** What a person sees who is not signed in. The password is asked by the service's own page. */
export function SignIn({ problem }: { problem: string | null }) {
  const database = useSignal(new URLSearchParams(location.search).get("database") ?? "");
  const client = useSignal(defaultClient());
  const failed = useSignal<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    failed.value = null;
    signIn(client.value.trim(), database.value.trim()).catch((error: Error) => (failed.value = error.message));
  };
  const text = failed.value ?? problem;
  return (
    <main class="sign-in">
      <Mark />
      <h1>Tidegate console</h1>
      <p>See and edit the tables of a database, watch changes live, run SQL and GraphQL, and manage users.</p>
      {text && <p class="problem" role="alert">{text}</p>}
      <form onSubmit={submit}>
        <label>Database
          <input name="database" autocomplete="organization" spellcheck={false} autocapitalize="none" value={database.value} onInput={(event) => (database.value = event.currentTarget.value)} placeholder="asked on the next page" />
        </label>
        <details>
          <summary>Another OAuth client</summary>
          <label>Client id
            <input name="client" required spellcheck={false} autocapitalize="none" value={client.value} onInput={(event) => (client.value = event.currentTarget.value)} />
          </label>
          <p class="hint">A client whose redirect address is {home}/console/.</p>
        </details>
        <button type="submit" class="primary">Sign in</button>
      </form>
      <p><a href={`${home}/docs/`}>Documentation</a></p>
    </main>
  );
}
