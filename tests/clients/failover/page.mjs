// The files of docs/how-to/cluster.md, with the addresses of this machine.

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

import { freePort } from "../cluster/processes.mjs";

const run = promisify(execFile);
const ROOT = new URL("../../../", import.meta.url);
const ADDRESS = /\b10\.0\.0\.1[0-9](:[0-9]+)\b/g;

export class Page {
  files = new Map();
  // The local address of each address of the page.
  addresses = new Map();

  // Reads the page. `folder` is where the files of each machine are.
  static async read(folder) {
    const page = new Page();
    page.folder = folder;
    page.text = await readFile(new URL("docs/how-to/cluster.md", ROOT), "utf8");
    for (const [, name, text] of page.text.matchAll(/^```\w+ file=(\S+)\n([^]*?)^```$/gm)) {
      page.files.set(name, text);
    }
    const machines = [...page.text.matchAll(/^\| \w+ \| `(\w+)` \| (10\.0\.0\.1[0-9]) \|$/gm)];
    page.machines = machines.map(([, name, address]) => ({ name, address }));
    for (const text of page.files.values()) await page.choosePorts(text);
    return page;
  }

  // Each machine has the ports of the first one.
  async choosePorts(text) {
    for (const [, port] of text.matchAll(ADDRESS)) {
      for (const { address } of this.machines) {
        const key = `${address}${port}`;
        if (!this.addresses.has(key)) this.addresses.set(key, `127.0.0.1:${await freePort()}`);
      }
    }
  }

  // The local port of a port of a machine.
  port(machine, port) {
    return Number(this.addresses.get(`${machine.address}:${port}`).split(":")[1]);
  }

  local(text) {
    return text
      .replaceAll(ADDRESS, (address) => this.addresses.get(address))
      .replaceAll(/\b10\.0\.0\.0\/24\b/g, "127.0.0.1/32")
      .replaceAll(/\b10\.0\.0\.1[0-9]\b/g, "127.0.0.1");
  }

  // A file as the page says that it is on a machine. Its folders are below the machine's own.
  file(name, machine) {
    const own = (line) => {
      if (!line.endsWith("this machine")) return line;
      const [first] = this.machines;
      const name = new RegExp(`\\b${first.name}\\b`);
      return line.replaceAll(first.address, machine.address).replace(name, machine.name);
    };
    const text = this.files.get(name).split("\n").map(own).join("\n");
    return this.local(text).replaceAll(/\/(etc|var\/lib)\//g, `${this.folder}/${machine.name}/$1/`);
  }

  // Makes the certificates with the commands of the page.
  async certificates(folder) {
    const [, commands] = /^```sh\n([^]*?)^```$/m.exec(this.text.split("## Certificates")[1]);
    await run("bash", ["-euc", this.local(commands)], { cwd: folder });
  }

  // A password of the page.
  secret(name) {
    if (!this.text.includes(`${name}-secret`)) throw new Error(`the page has no ${name}-secret`);
    return `${name}-secret`;
  }
}
