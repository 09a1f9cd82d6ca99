import { Component } from "preact";
import { feedState } from "../api/feed.ts";
import { showValue } from "../api/json.ts";
import type { FeedEntry, TableView } from "./view.ts";

const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** The live feed of the open table. */
export function FeedPanel({ view }: { view: TableView }) {
  const entries = view.feed.value;
  const note = view.feedNote.value;
  const lost = feedState.value === "lost";
  const state = lost ? "lost" : note ? "waiting" : "live";
  return (
    <aside class="feed" aria-label="Live changes">
      <h2>
        Live changes
        <span class={`pill ${state}`}>{lost ? "reconnecting" : note ? "not live" : "live"}</span>
      </h2>
      {lost && <p class="hint">The connection is lost. It is tried again, and what changed in the meantime is read then.</p>}
      {!lost && note && <p class="hint">{note}</p>}
      {!lost && view.feedEnded.value && <p><button type="button" onClick={() => (view.outdated.value = true)}>Open the table again</button></p>}
      {!lost && !note && entries.length === 0 && (
        <p class="hint">Changes by anybody appear here as they are committed.{view.table.canUpdate && view.table.key.length > 0 && (view.rows.value.total.value?.count ?? 0) > 0 && " Edit a cell to see one."}</p>
      )}
      <ol class="events" aria-live="polite" aria-relevant="additions" tabIndex={0} aria-label="Changes, newest first">
        {entries.map((entry) => <Entry key={entry.id} entry={entry} />)}
      </ol>
    </aside>
  );
}

/** An entry stays as it was drawn, while others come by the hundred. */
class Entry extends Component<{ entry: FeedEntry }> {
  override shouldComponentUpdate({ entry }: { entry: FeedEntry }): boolean {
    return entry !== this.props.entry;
  }

  override render() {
    return <Event entry={this.props.entry} />;
  }
}

function Event({ entry }: { entry: FeedEntry }) {
  const { change } = entry;
  if (!change) return <li class="event"><p>{entry.text}</p></li>;
  const op = change.op.toLowerCase();
  const members = Object.entries(change.row);
  return (
    <li class={`event ${op}`}>
      <p>
        <strong class={`op ${op}`}>{op}</strong> <span class="event-key">{entry.text}</span>
        <time>{TIME.format(entry.at)}</time>
      </p>
      {entry.differences.map(({ name, was }) => (
        <p key={name} class="difference"><span>{name}</span> <del>{short(was)}</del> <span class="sr">became</span> <ins>{short(change.row[name])}</ins></p>
      ))}
      {entry.latency !== null && <p class="latency">{Math.round(entry.latency)} ms after you saved</p>}
      <details>
        <summary>{members.slice(0, 3).map(([name, value]) => `${name}: ${short(value)}`).join(" · ")}</summary>
        <dl>
          {members.slice(0, 100).map(([name, value]) => <><dt>{name}</dt><dd>{short(value, 500)}</dd></>)}
        </dl>
      </details>
    </li>
  );
}

function short(value: unknown, length = 40): string {
  const text = value == null ? "NULL" : showValue(value);
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
