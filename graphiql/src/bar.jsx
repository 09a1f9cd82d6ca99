// Who asks, above GraphiQL.
import { useState } from "react";

const CLIENT = "tidegate:graphiql:client";

/** The bar; `onChange` is told whenever another caller asks from now on. */
export function Bar({ schema, session, onChange }) {
  const [problem, setProblem] = useState("");
  const [client, setClient] = useState(localStorage.getItem(CLIENT) ?? "");
  const act = (work) => async () => {
    setProblem("");
    try {
      await work();
      onChange();
    } catch (error) {
      setProblem(error.message);
    }
  };
  const signIn = act(async () => {
    localStorage.setItem(CLIENT, client);
    await session.signIn(client);
  });
  return (
    <header className="tidegate-bar">
      <strong>{schema}</strong>
      <span role="alert">{problem}</span>
      {session.signedIn ? (
        <button onClick={act(() => session.signOut())}>Sign out</button>
      ) : (
        <>
          <Field label="Access token" type="password" value={session.token}
            onCommit={(text) => act(() => session.paste(text))()} />
          <Field label="Database" value={session.database}
            onCommit={(text) => act(() => session.choose(text))()} />
          <input aria-label="Client" placeholder="Client" spellCheck="false" value={client}
            onChange={(event) => setClient(event.target.value.trim())} />
          <button disabled={!client} onClick={signIn}>Sign in</button>
        </>
      )}
    </header>
  );
}

/** A text that counts when its field is left or Enter is pressed. */
function Field({ label, value, type = "text", onCommit }) {
  const commit = (event) => event.target.value !== value && onCommit(event.target.value);
  return (
    <input type={type} aria-label={label} placeholder={label} defaultValue={value} autoComplete="off"
      spellCheck="false" onBlur={commit} onKeyDown={(event) => event.key === "Enter" && commit(event)} />
  );
}
