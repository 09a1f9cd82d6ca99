// A subscriber of one node that can leave and come back with its cursor.

import { Subscriber } from "../cluster/subscriber.mjs";

export class Follower extends Subscriber {
  constructor(name, node, bearer) {
    const at = [node];
    super(name, () => at, node, bearer);
    this.nodesToUse = at;
  }

  leave() {
    this.nodesToUse.length = 0;
    this.socket.close();
  }

  // Comes back at a node, its own if none is given.
  comeBack(node = this.own) {
    this.own = node;
    this.nodesToUse.push(node);
  }

  get isAway() {
    return this.nodesToUse.length === 0;
  }

  // When the first event after `time` came, in milliseconds.
  firstAfter(time) {
    const own = time - performance.timeOrigin;
    return performance.timeOrigin + this.times.find((it) => it > own);
  }
}
