import { home } from "./api/home.ts";
import type { Claims } from "./api/pkce.ts";
import { claims, session, signOut, userName } from "./api/session.ts";
import { Mark } from "./parts/mark.tsx";
import { forget } from "./query/store.ts";
import { type Route, hrefOf, route } from "./route.ts";
import { ViewAs } from "./view_as.tsx";
import { type Theme, theme } from "./theme.ts";

/** The areas that only the owner sees. */
const OF_OWNERS = ["people", "activity"];
const AREAS: [string, Route][] = [
  ["Tables", { area: "tables" }],
  ["Query", { area: "query" }],
  ["People", { area: "people", part: "users" }],
  ["Activity", { area: "activity" }],
];

/** The user's name as the header shows it. The owner has the name of the database. */
const whoIs = (own: Claims): string => (userName(own) === own.database ? own.database : `${userName(own)} in ${own.database}`);

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
        {AREAS.filter(([, { area }]) => !OF_OWNERS.includes(area) || claims.value?.superUser).map(([text, to]) => (
          <a key={text} href={hrefOf(to)} aria-current={route.value.area === to.area ? "page" : undefined}>{text}</a>
        ))}
      </nav>
      <span class="spread" />
      <ViewAs />
      <span class="who" title="User and database">{own && whoIs(own)}</span>
      <a class="docs" href={`${home}/docs/`} target="_blank" rel="noopener">Docs</a>
      <label class="theme"><span class="sr">Colours</span>
        <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
          <option value="auto">System</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <button type="button" class="quiet" onClick={leave}>Sign out</button>
    </header>
  );
}
