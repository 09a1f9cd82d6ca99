import { claims, session, signOut, userName } from "./api/session.ts";
import { Mark } from "./parts/mark.tsx";
import { forget } from "./query/store.ts";
import { type Route, hrefOf, route } from "./route.ts";
import { ViewAs } from "./view_as.tsx";
import { type Theme, theme } from "./theme.ts";

const AREAS: [string, Route][] = [
  ["Tables", { area: "tables" }],
  ["Query", { area: "query" }],
  ["People", { area: "people", part: "users" }],
];

/** Signs out and removes the statements that this browser has kept for the user. */
function leave(): void {
  forget();
  void signOut();
}

export function Header() {
  const own = session.value?.claims;
  return (
    <header class="top">
      <a class="brand" href="#/tables" aria-label="Tidegate"><Mark /><span>Tidegate</span></a>
      <nav aria-label="Areas" class="areas">
        {AREAS.filter(([, { area }]) => area !== "people" || claims.value?.superUser).map(([text, to]) => (
          <a key={text} href={hrefOf(to)} aria-current={route.value.area === to.area ? "page" : undefined}>{text}</a>
        ))}
      </nav>
      <span class="spread" />
      <ViewAs />
      <span class="who" title="Database and user">{claims.value?.database}{own && ` · ${userName(own)}`}</span>
      <label class="theme"><span class="sr">Colours</span>
        <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
          <option value="auto">Auto</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <button type="button" class="quiet" onClick={leave}>Sign out</button>
    </header>
  );
}
