import { useEffect } from "preact/hooks";
import { ActivityPage } from "./activity/page.tsx";
import { sentence } from "./api/errors.ts";
import { online } from "./api/http.ts";
import { claims, isMember, session, sessionEnded, signInAgain } from "./api/session.ts";
import { loadTables, refreshTables, tables } from "./catalog/tables.ts";
import { Header } from "./header.tsx";
import { Dialog } from "./parts/dialog.tsx";
import { Notices, sayError } from "./parts/notice.tsx";
import { PeoplePage } from "./people/page.tsx";
import { QueryPage } from "./query/page.tsx";
import { type Route, route } from "./route.ts";
import { SignIn } from "./sign_in.tsx";
import { TablesPage } from "./tables/page.tsx";
import "./theme.ts";
import { ActingBar } from "./view_as.tsx";

export function App({ problem }: { problem: string | null }) {
  if (!session.value) return <SignIn problem={problem} />;
  return <Console />;
}

function Console() {
  const subject = claims.value?.sub;
  useEffect(() => {
    const abort = new AbortController();
    tables.value = isMember.peek() ? [] : null;
    if (isMember.peek()) return;
    loadTables(abort.signal).catch((error) => {
      tables.value = [];
      sayError(error);
    });
    return () => abort.abort();
  }, [subject]);
  // Others may have made tables while the person looked elsewhere.
  const looksAtList = route.value.area === "tables" && !route.value.table;
  useEffect(() => {
    const refresh = () => void (tables.peek() && !isMember.peek() && refreshTables().catch(() => undefined));
    if (looksAtList) refresh();
    addEventListener("focus", refresh);
    return () => removeEventListener("focus", refresh);
  }, [looksAtList]);
  const title = [nameOf(route.value), claims.value?.database, "Tidegate"].join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>Skip to content</a>
      <Header />
      <ActingBar />
      {!online.value && <p class="offline" role="alert">The server cannot be reached. What you do next tries again.</p>}
      <Area />
      <Notices />
      {sessionEnded.value && <SessionEnded />}
    </>
  );
}

/** What the browser's tab is called by. */
const nameOf = (at: Route): string => (at.area === "tables" && at.table) || at.area[0]!.toUpperCase() + at.area.slice(1);

function Area() {
  if (route.value.area === "query") return <QueryPage />;
  if (route.value.area === "people") return <PeoplePage />;
  if (route.value.area === "activity") return <ActivityPage />;
  return <TablesPage key={claims.value?.sub} />;
}

function SessionEnded() {
  const again = () => signInAgain().catch((error) => sayError(new Error(sentence(error))));
  return (
    <Dialog title="Your session has ended" onClose={() => (sessionEnded.value = false)}>
      <p>Sign in again to go on. Nothing on this page is lost.</p>
      <footer><button type="button" class="primary" onClick={() => void again()}>Sign in</button></footer>
    </Dialog>
  );
}
