import { claims, session, signOut, userName } from "./api/session.ts";
import { Mark } from "./parts/mark.tsx";
import { type Route, hrefOf, route } from "./route.ts";
import { type Theme, theme } from "./theme.ts";

const AREAS: [string, Route][] = [
  ["Tables", { area: "tables" }],
  ["Query", { area: "query" }],
];

export function Header() {
  const own = session.value?.claims;
  return (
    <header class="top">
      <a class="brand" href="#/tables"><Mark /><span>Tidegate</span></a>
      <nav aria-label="Areas" class="areas">
        {AREAS.map(([text, to]) => (
          <a key={text} href={hrefOf(to)} aria-current={route.value.area === to.area ? "page" : undefined}>{text}</a>
        ))}
      </nav>
      <span class="spread" />
      <span class="who" title="Database and user">{claims.value?.database}{own && ` · ${userName(own)}`}</span>
      <label class="theme"><span class="sr">Colours</span>
        <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
          <option value="auto">Auto</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <button type="button" class="quiet" onClick={() => void signOut()}>Sign out</button>
    </header>
  );
}
