// Makes a tenant on servers that have none.

import { execFile } from "node:child_process";

// Runs a command of the program with this standard input. `place` has the administrator's URL and the
// file of the master key. Status 1 is no failure, because the doctor ends with it when it finds something.
export function tidegate({ adminUrl, key }, args, input = "") {
  const env = {
    PATH: process.env.PATH,
    TIDEGATE_ADMIN_URL: adminUrl,
    TIDEGATE_MASTER_KEY_FILE: key,
  };
  return new Promise((done, failed) => {
    const child = execFile(process.env.TIDEGATE_TEST_BINARY, args, { env }, (error, stdout) =>
      error && !(error.code === 1 && args[0] === "doctor") ? failed(error) : done(stdout),
    );
    child.stdin.end(input);
  });
}

// Makes the tenant `demo` with a client and a table, on the server that is the primary.
export async function createTenant(place, primary) {
  await tidegate(place, ["key", "init", place.key]);
  await tidegate(place, ["tenant", "create", "demo", "--password-file", "-"], "demo1234\n");
  await tidegate(place, ["client", "create", "demo", "App", "--id", "demo-app", "--public", "--redirect-uri",
    "http://127.0.0.1:5000/callback"]);
  await primary.sql("CREATE TABLE ticks (id bigint, note text); ALTER TABLE ticks OWNER TO demo", "demo");
}
