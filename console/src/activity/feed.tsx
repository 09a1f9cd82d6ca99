import type { ComponentChildren } from "preact";
import { bytes, type Feed } from "./records.ts";

/** The subscriptions, and the lag of the change feed behind the database. */
export function FeedStatus({ feed }: { feed: Feed | null }) {
  return (
    <section class="card" aria-labelledby="feed-status">
      <h2 id="feed-status">Live changes {feed && <span class={`pill ${feed.live ? "live" : "lost"}`}>{feed.live ? "running" : "not running"}</span>}</h2>
      {!feed && <p class="hint">No subscription was opened yet. The feed starts with the first one, such as that of a <a href="#/tables">table</a> that is open in this console.</p>}
      {feed && (
        <dl class="facts">
          <Fact name="Subscriptions">{Number(feed.subscriptions).toLocaleString("en")}</Fact>
          <Fact name="Lag behind the database">{`${Number(feed.lag_seconds).toLocaleString("en", { maximumFractionDigits: 1 })} s, ${bytes(Number(feed.lag_bytes))}`}</Fact>
          <Fact name="Events waiting to be sent">{Number(feed.queued_events).toLocaleString("en")}</Fact>
          <Fact name="Gaps reported to subscribers">{Number(feed.resyncs).toLocaleString("en")}</Fact>
          <Fact name="Slow subscribers">{Number(feed.slow_consumers).toLocaleString("en")}</Fact>
        </dl>
      )}
    </section>
  );
}

const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => <div><dt>{name}</dt><dd>{children}</dd></div>;
