import { home } from "./api/home.ts";
import { claims, session, signOut, userName } from "./api/session.ts";
import { Mark } from "./parts/mark.tsx";
import { forget } from "./query/store.ts";
import { type Route, hrefOf, OF_OWNERS, route } from "./route.ts";
import { offered, ViewAs } from "./view_as.tsx";
import { type Theme, theme } from "./theme.ts";

const AREAS: [string, Route][] = [
  ["Tables", { area: "tables" }],
  ["Query", { area: "query" }],
  ["People", { area: "people", part: "users" }],
  ["Activity", { area: "activity" }],
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
      <span class="database" title="Database">{own?.database}</span>
      <nav aria-label="Areas" class="areas">
        {AREAS.filter(([, { area }]) => !OF_OWNERS.includes(area) || claims.value?.superUser).map(([text, to]) => (
          <a key={text} href={hrefOf(to)} aria-current={route.value.area === to.area ? "page" : undefined}>{text}</a>
        ))}
      </nav>
      <span class="spread" />
      <ViewAs />
      {own && !(own.superUser && offered.value) && <span class="who" title="User">{userName(own)}</span>}
      <a class="docs" href={`${home}/docs/`} target="_blank" rel="noopener">Docs</a>
      <label class="theme"><span>Colours</span>
        <select aria-label="Colours" value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
          <option value="auto">system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
      <button type="button" class="quiet" onClick={leave}>Sign out</button>
    </header>
  );
}
