import { home } from "../api/home.ts";
import { claims } from "../api/session.ts";
import { hrefOf, type Route, route } from "../route.ts";
import { Audit } from "./audit.tsx";
import { Clients } from "./clients.tsx";
import { Groups } from "./groups.tsx";
import { Issuers } from "./issuers.tsx";
import { Rights } from "./rights.tsx";
import { Sessions } from "./sessions.tsx";
import { Users } from "./users.tsx";

const PARTS: [string, string, () => preact.JSX.Element][] = [
  ["users", "Users", Users],
  ["groups", "Groups", Groups],
  ["clients", "Clients", Clients],
  ["rights", "Rights", Rights],
  ["issuers", "Issuers", Issuers],
  ["sessions", "Sessions", Sessions],
  ["audit", "Audit log", Audit],
];

/** The People area, for the owner of the database. */
export function PeoplePage() {
  const { part } = route.value as Extract<Route, { area: "people" }>;
  const [name, title, Part] = PARTS.find(([name]) => name === part) ?? PARTS[0]!;
  if (!claims.value?.superUser) {
    return <main class="workspace" id="content" tabIndex={-1}><p class="empty">Users, clients and rights are managed by the owner of the database. Your own sessions and password are on <a href={`${home}/account`}>your account</a>.</p></main>;
  }
  return (
    <div class="area people-area">
      <nav class="tables parts" aria-label="People">
        <ul>
          {PARTS.map(([to, text]) => (
            <li key={to}><a href={hrefOf({ area: "people", part: to })} aria-current={to === name ? "page" : undefined}>{text}</a></li>
          ))}
        </ul>
        <p class="hint">Your own sessions, password and two-step sign-in are on <a href={`${home}/account`} target="_blank" rel="noopener">your account</a>.</p>
      </nav>
      <main class="workspace" id="content" tabIndex={-1}>
        <div class="sheet" role="region" tabIndex={0} aria-label={title}><Part key={name} /></div>
      </main>
    </div>
  );
}
