// How long subscribers get no event after a fault.

import assert from "node:assert/strict";

import { PATRONI } from "./machines.mjs";

// How long after its death a primary is replaced: its key in etcd expires, a standby looks, and asks the others.
const REPLACEMENT = 1000 * (PATRONI.ttl + PATRONI.loop_wait + PATRONI.retry_timeout);
// The limits for the median of the longest times without an event after each kind of fault, in
// milliseconds. They are for loaded machines and builds that are not optimised.
const LIMITS = {
  node: 2000,
  "NATS server": 2000,
  // No event needs one of three.
  etcd: 2000,
  // Two of three: the primary steps down, and is primary again when they are back.
  "two etcds": REPLACEMENT + 5000,
  HAProxy: 2000,
  // Writes wait until another is the synchronous standby.
  standby: 1000 * PATRONI.ttl + 2000,
  // After the promotion nodes find the primary, and one opens the slot.
  primary: REPLACEMENT + 5000,
  switchover: REPLACEMENT + 5000,
  // With a standby's machine the leader of etcd may die too, and with the primary's machine the node that
  // reads.
  "standby's machine": 1000 * PATRONI.ttl + 5000,
  "primary's machine": REPLACEMENT + 5000,
};
// How much longer a single time may be, because the machine is busy with something else.
const MORE = 3000;
// The longest times without an event, for each kind of fault.
const silences = {};

export function record(kind, silence) {
  assert.equal(typeof LIMITS[kind], "number", kind);
  (silences[kind] ??= []).push(silence);
}

// The longest time between two events since `began`, in milliseconds.
export function longestSilence(subscriber, began) {
  const from = began - performance.timeOrigin;
  const times = [from, ...subscriber.times.filter((it) => it > from)];
  return Math.round(Math.max(...times.slice(1).map((it, index) => it - times[index])));
}

export function checkSilences() {
  const late = [];
  for (const [kind, all] of Object.entries(silences)) {
    const limit = LIMITS[kind];
    all.sort((one, other) => one - other);
    const [median, longest] = [all[(all.length - 1) >> 1], all.at(-1)];
    console.log(`${kind}: ${median} ms without an event (median, of ${limit}), at most ${longest} ms`);
    if (!(median <= limit && longest <= limit + MORE)) late.push(kind);
  }
  assert.deepEqual(late, [], "events came late");
}
