// One node reads the changes of a database for all, over NATS: what subscribers see while processes
// are killed. An argument is a part of the names of the steps to run, `nats` for all steps in which
// NATS fails, or `soak` and a number of faults.

import { cluster, nats, start, stop } from "./cluster.mjs";
import { diskSteps } from "./disk.mjs";
import { soak } from "./faults.mjs";
import { natsSteps } from "./nats.mjs";
import { networkSteps } from "./network.mjs";
import { nodesSteps } from "./nodes.mjs";
import { postgresqlSteps } from "./postgresql.mjs";
import { upgradeSteps } from "./upgrade.mjs";

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

function fail(error) {
  for (const node of cluster.nodes) console.log(`-- ${node.name}\n${node.log.slice(-12).join("\n")}`);
  for (const it of cluster.subscribers) console.log(`-- ${it.name}: ${it.errors.slice(-3)}`);
  console.log(error);
  process.exit(1);
}

const [, , only, count] = process.argv;
const ofNats = { ...natsSteps, ...diskSteps };
const steps = { ...nodesSteps, ...ofNats, ...postgresqlSteps, ...networkSteps, ...upgradeSteps };
const faults = only === "soak" ? count : 20;
steps[`soak of ${faults} faults`] = () => soak(Number(faults));
const isChosen = (name) => (only === "nats" ? name in ofNats : name.includes(only ?? ""));
const chosen = Object.entries(steps).filter(([name]) => isChosen(name));
if (chosen.length === 0) fail(`no step has a name with ${only}`);
await start().catch(fail);
console.log(`nats-server ${nats.servers[0].version}`);
for (const [name, step] of chosen) {
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`);
    fail(error);
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}
await stop();
console.log(`${chosen.length} steps, ${cluster.written} events`);
process.exit(0);
