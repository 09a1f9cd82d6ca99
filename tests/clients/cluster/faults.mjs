// Random faults under load.

import {
  cluster,
  complete,
  goHome,
  nats,
  restartPostgresql,
  startNode,
  underLoad,
} from "./cluster.mjs";
import { sleep } from "./processes.mjs";

const faults = {
  async kill() {
    const victim = cluster.nodes[Math.floor(Math.random() * cluster.nodes.length)];
    cluster.nodes = cluster.nodes.filter((it) => it !== victim);
    await victim.stop("SIGKILL");
    const again = await startNode(victim.name);
    for (const it of cluster.subscribers) if (it.own === victim) it.own = again;
  },
  async freeze() {
    const victim = cluster.nodes[Math.floor(Math.random() * cluster.nodes.length)];
    victim.signal("SIGSTOP");
    await sleep(Math.random() * 6000);
    victim.signal("SIGCONT");
  },
  async nats() {
    await nats.stop();
    await sleep(Math.random() * 4000);
    await nats.start();
  },
  async natsServer() {
    const victim = nats.servers[Math.floor(Math.random() * nats.servers.length)];
    await victim.stop();
    await sleep(Math.random() * 4000);
    await victim.start();
  },
  async natsFreeze() {
    nats.signal("SIGSTOP");
    await sleep(Math.random() * 6000);
    nats.signal("SIGCONT");
  },
  async store() {
    await nats.stop();
    await nats.forget();
    await nats.start();
  },
  async postgresql() {
    await restartPostgresql(Math.random() < 0.5 ? "SIGINT" : "SIGQUIT");
  },
};

// Causes a number of random faults.
export async function soak(count) {
  const chosen = process.env.CLUSTER_FAULTS?.split(",");
  const names = Object.keys(faults).filter((it) => !chosen || chosen.includes(it));
  const done = {};
  for (let number = 0; number < count; number += 1) {
    const name = names[Math.floor(Math.random() * names.length)];
    done[name] = (done[name] ?? 0) + 1;
    await underLoad(async () => {
      await sleep(Math.random() * 1000);
      await faults[name]();
      await sleep(Math.random() * 2000);
    });
    const began = Date.now();
    await complete(60_000).catch((error) => {
      error.message = `after ${name}, fault ${number + 1}: ${error.message}`;
      throw error;
    });
    console.log(`${number + 1} ${name}: complete after ${Date.now() - began} ms`);
    await goHome();
  }
  console.log(JSON.stringify(done));
}
