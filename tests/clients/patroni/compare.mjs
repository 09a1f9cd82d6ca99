// Compares what clients were told with the rows of the table.

import assert from "node:assert/strict";

// The ids of the table's rows, in order. Every row that was confirmed up to `until` is there, and none
// twice.
export async function rowsOf(leader, writer, until) {
  const rows = (await leader.sql("SELECT id FROM ticks ORDER BY id", "demo")).map(Number);
  const present = new Set(rows);
  assert.equal(present.size, rows.length, "a row is there twice");
  const lost = writer.confirmed.filter((id) => id <= until && !present.has(id));
  assert.deepEqual(lost, [], "a confirmed row is lost");
  return rows;
}

// A subscriber that was there before the first row has each row up to `until` once and in order, apart from what it was told by `resync`;
// before a `resync` it may have rows that the new leader never had. Returns how many these are.
export function compare(subscriber, rows, until) {
  const { name } = subscriber;
  const present = new Set(rows);
  const ends = [...subscriber.resyncs.map((it) => it.after), subscriber.ids.length];
  let [from, phantoms, last] = [0, 0, 0];
  for (const [index, end] of ends.entries()) {
    const part = subscriber.ids.slice(from, end);
    const isLast = index === ends.length - 1;
    // The writer's ids grow.
    const swapped = part.find((id, place) => id <= part[place - 1]);
    assert.equal(swapped, undefined, `${name}: ${swapped} comes late or again`);
    const known = part.filter((id) => present.has(id) || (isLast && id > until));
    // Those that the new leader never had are the last before a resync.
    if (known.length < part.length) {
      const problem = `${name}: events of no rows: ${part.filter((id) => !present.has(id))}`;
      assert(!isLast, problem);
      assert.deepEqual(part.slice(0, known.length), known, problem);
      phantoms += part.length - known.length;
    }
    const shown = known.filter((id) => id <= until);
    if (shown.length > 0) {
      assert(shown[0] > last, `${name}: ${shown[0]} comes after ${last}`);
      const first = rows.indexOf(shown[0]);
      assert.deepEqual(shown, rows.slice(first, first + shown.length), name);
      if (index === 0) assert.equal(first, 0, `${name}: the first rows are missing`);
      last = shown.at(-1);
    }
    from = end;
  }
  const newest = rows.findLast((id) => id <= until);
  const begins = subscriber.ids[ends.at(-2) ?? 0];
  assert(last === newest || begins > newest, `${name}: the last rows are missing: ${last}, ${newest}`);
  return phantoms;
}

// Fails if subscribers were told of a gap that is none. `phantoms` is how many events they got of rows that
// the new primary never had, and `hasLog` is whether it has the WAL with which the retention slot begins.
export function checkGaps(reasons, { phantoms, hasLog = true }) {
  const needed = [...(phantoms > 0 ? ["other_log"] : []), ...(hasLog ? [] : ["interrupted", "expired"])];
  const needless = reasons.filter((it) => !needed.includes(it));
  assert.deepEqual(needless, [], `gaps that are none, with ${phantoms} events of lost commits`);
}
