// The processes of the demo's PostgreSQL. The demo starts it again when it has ended.

import { readFile } from "node:fs/promises";

import { demo } from "./cluster.mjs";
import { eventually, psql, sleep } from "./processes.mjs";

let frozen = [];
process.on("exit", () => release("SIGCONT"));

// The process that starts all others of PostgreSQL.
async function firstProcess() {
  const [folder] = await psql(demo, "SHOW data_directory");
  const [pid] = (await readFile(`${folder}/postmaster.pid`, "utf8")).split("\n");
  return Number(pid);
}

// Sends a signal to a process. Returns whether there is such a process.
function send(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
    return false;
  }
}

// Freezes all processes, at first the one that starts the others.
async function freezeAll(first) {
  frozen = [first];
  send(first, "SIGSTOP");
  const others = await readFile(`/proc/${first}/task/${first}/children`, "utf8");
  // A process that is ending has none, and 0 would be the group of this program.
  frozen.push(...others.split(" ").map(Number).filter((it) => it > 0));
  for (const pid of frozen) send(pid, "SIGSTOP");
}

// Sends a signal to the frozen processes, which are frozen no longer.
function release(signal) {
  for (const pid of frozen) send(pid, signal);
  frozen = [];
}

// Freezes PostgreSQL for a time in milliseconds.
export async function freezePostgresql(ms) {
  await freezeAll(await firstProcess());
  await sleep(ms);
  release("SIGCONT");
}

// Shuts PostgreSQL down, or kills all its processes with SIGKILL. Returns how long it was down, in
// milliseconds.
export async function restartPostgresql(signal) {
  const first = await firstProcess();
  const began = Date.now();
  if (signal === "SIGKILL") {
    await freezeAll(first);
    release("SIGKILL");
  } else {
    send(first, signal);
  }
  await eventually("PostgreSQL ends", () => !send(first, 0));
  await eventually("PostgreSQL is back", () => psql(demo, "SELECT 1").then(() => true, () => false));
  return Date.now() - began;
}
