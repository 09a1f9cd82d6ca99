import { useMemo } from "preact/hooks";
import { claims } from "../api/session.ts";
import { ChartBox } from "../query/chart_box.tsx";
import type { ChartData } from "../query/chart.ts";
import { FeedStatus } from "./feed.tsx";
import { usePoll } from "./poll.ts";
import { type Activity, duration } from "./records.ts";
import { Statements } from "./statements.tsx";

/** Seconds over which the present rate is the mean. */
const PRESENT = 10;

/** The Activity area, for the owner of the database. */
export function ActivityPage() {
  if (!claims.value?.superUser) {
    return <main class="workspace" id="content" tabIndex={-1}><p class="empty">What happens in the database is shown to its owner.</p></main>;
  }
  return (
    <div class="area">
      <main class="workspace" id="content" tabIndex={-1}>
        <div class="sheet" role="region" tabIndex={0} aria-label="Activity"><Watched /></div>
      </main>
    </div>
  );
}

function Watched() {
  const { activity, problem, paused } = usePoll();
  const state = paused.value ? "paused" : problem ? "lost" : "live";
  return (
    <>
      <div class="sheet-head">
        <h1>Activity <span class={`pill ${state}`}>{state === "lost" ? "trying again" : state}</span></h1>
        <button type="button" onClick={() => (paused.value = !paused.value)}>{paused.value ? "Resume" : "Pause"}</button>
      </div>
      <p class="hint">Requests to this database in the last five minutes, through the server that answers this page.</p>
      {problem && <p class="problem" role="alert">{problem}{activity && " The numbers below are the last that arrived."}</p>}
      {!activity && !problem && <p class="hint">Reading the activity…</p>}
      {activity && <Shown activity={activity} />}
    </>
  );
}

function Shown({ activity }: { activity: Activity }) {
  const chart = useMemo(() => chartOf(activity), [activity]);
  return (
    <>
      <Numbers activity={activity} />
      <div class="activity-parts">
        <section class="card rates" aria-labelledby="rates">
          <h2 id="rates">Requests a second</h2>
          <ChartBox data={chart} />
        </section>
        <FeedStatus feed={activity.feed} />
      </div>
      <Statements activity={activity} />
    </>
  );
}

const sum = (counts: number[]): number => counts.reduce((all, one) => all + one, 0);
const rate = (counts: number[]): string =>
  (sum(counts.slice(-PRESENT)) / PRESENT).toLocaleString("en", { maximumFractionDigits: 1 });
const shown = (count: number): string => count.toLocaleString("en");

function Numbers({ activity: { requests, errors, statements } }: { activity: Activity }) {
  const [all, failed] = [sum(requests), sum(errors)];
  const share = failed === 0 ? "" : ` · ${(failed / all).toLocaleString("en", { style: "percent", maximumFractionDigits: 1 })} of all`;
  const slowest = Math.max(0, ...statements.map(({ milliseconds }) => milliseconds));
  return (
    <dl class="tiles">
      <div><dt>Requests a second</dt><dd>{rate(requests)}</dd><dd class="hint">in the last {PRESENT} seconds</dd></div>
      <div class={sum(errors.slice(-PRESENT)) > 0 ? "bad" : ""}><dt>Errors a second</dt><dd>{rate(errors)}</dd><dd class="hint">in the last {PRESENT} seconds</dd></div>
      <div><dt>Requests</dt><dd>{shown(all)}</dd><dd class="hint">at most {shown(Math.max(...requests))} in a second</dd></div>
      <div class={failed > 0 ? "bad" : ""}><dt>Errors</dt><dd>{shown(failed)}</dd><dd class="hint">in five minutes{share}</dd></div>
      <div><dt>Slowest statement</dt><dd>{slowest >= 1000 ? duration(slowest) : "under 1 s"}</dd><dd class="hint">of those listed below</dd></div>
    </dl>
  );
}

/** One point for each second. */
function chartOf({ now, requests, errors }: Activity): ChartData {
  const last = Math.floor(Date.parse(now) / 1000);
  return {
    x: requests.map((_count, index) => last - requests.length + 1 + index),
    along: "time",
    time: true,
    present: true,
    series: [
      { name: "requests", values: requests },
      { name: "errors", values: errors, stroke: "--bad" },
    ],
  };
}
