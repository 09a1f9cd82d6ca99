// Calls methods through the interface that the server gave. The compiler must find each expected
// error and no other; what runs must be as it was typed.

import type { Api, Interval, Point, Range } from "./api.js";

declare const process: { env: Record<string, string | undefined> };
const url = process.env.TIDEGATE_URL!;

async function post(path: string, body: unknown, token?: string): Promise<any> {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
    },
    body: JSON.stringify(body),
  });
  return answer.json();
}

const { access_token: token } = await post("/api/v4/oauth", {
  grant_type: "password",
  username: "demo",
  password: "demo1234",
  client_id: "demo-app",
});

/** Every method of the interface as a call over HTTP. */
const api = new Proxy({} as Api, {
  get: (_, method) => async (params: unknown) => {
    const answer = await post("/api/v4/call", { jsonrpc: "2.0", method, params, id: 1 }, token);
    if (answer.error) throw new Error(JSON.stringify(answer.error));
    return answer.result.data;
  },
});

function same(found: unknown, expected: unknown): void {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${left} instead of ${right}`);
}

const [album] = await api.albumsOf({ artist: 1 });
const title: string = album!.title;
same(typeof title, "string");
// @ts-expect-error it may be null
const released: string = album!.released;
same(typeof released, "string");
// @ts-expect-error a parameter is missing
await api.albumsOf({}).catch((error: Error) => same(error.message.includes("-32602"), true));

const [note] = await api.addNote({ body: "from TypeScript" });
same(note!.body, "from TypeScript");
const gone: Record<string, never>[] = await api.delete({ id: note!.id });
same(gone, []);

const interval: Interval = { y: 0, m: 0, d: 1, h: 2, i: 0, s: 0.5 };
const point: Point = { x: 1, y: 2.5 };
const range: Range<number> = { lower: 1, upper: 5, lowerInclusive: true, upperInclusive: false };
const [all] = await api["every-form"]({
  i: 1, n: "1.50", b: true, t: "é", a: [1, 2], j: { deep: [null] }, d: "2024-02-29",
  v: interval, p: point, r: range,
});
same(all!.n, "1.50");
same([all!.a, all!.j, all!.v], [[1, 2], { deep: [null] }, interval]);
same([all!.p, all!.r, all!["a b"]], [point, range, 1]);

const csv: string = await api["as.csv"]({});
same(csv, "n\r\n1\r\n");
const [unknown] = await api.never_dry_run({ x: 7 });
same(unknown!.x, 7);
export {};
