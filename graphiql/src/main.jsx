// The page: GraphiQL for the schema in the address.
import "./nonce.js";
import "./workers.js";
import "graphiql/style.css";
import "./page.css";

import { GraphiQL } from "graphiql";
import { StrictMode, useMemo, useReducer, useState } from "react";
import { createRoot } from "react-dom/client";

import { Bar } from "./bar.jsx";
import { createFetcher } from "./fetcher.js";
import { Session } from "./session.js";

const path = location.pathname.replace(/\/$/, "");
const schema = decodeURIComponent(path.split("/").pop());
const linked = new URLSearchParams(location.search);
document.title = `GraphiQL ${schema}`;

/** What GraphiQL remembers: each schema has its own documents and tabs. */
const storage = {
  getItem: (key) => localStorage.getItem(`${path}:${key}`),
  setItem: (key, value) => localStorage.setItem(`${path}:${key}`, value),
  removeItem: (key) => localStorage.removeItem(`${path}:${key}`),
  get length() {
    return Object.keys(localStorage).filter((key) => key.startsWith(`${path}:`)).length;
  },
  clear() {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(`${path}:`)) localStorage.removeItem(key);
    }
  },
};

function Page() {
  const [session] = useState(() => new Session());
  // Another caller sees another schema: a new fetcher makes GraphiQL read it again.
  const [caller, callerChanged] = useReducer((count) => count + 1, 0);
  const fetcher = useMemo(() => createFetcher(path, session), [session, caller]);
  return (
    <>
      <Bar schema={schema} session={session} onChange={callerChanged} />
      <GraphiQL
        fetcher={fetcher}
        storage={storage}
        initialQuery={linked.get("query") ?? undefined}
        initialVariables={linked.get("variables") ?? undefined}
        schemaDescription
      />
    </>
  );
}

createRoot(document.getElementById("page")).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
