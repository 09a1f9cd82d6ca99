// Defines methods in a demo, lets their types be inferred, and saves the text of /interfaces.

import { writeFile } from "node:fs/promises";

const url = process.env.TIDEGATE_URL;

async function post(path, body, token) {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const { access_token: token } = await post("/api/v4/oauth", {
  grant_type: "password",
  username: "demo",
  password: "demo1234",
  client_id: "demo-app",
});

const definitions = [
  {
    method: "albumsOf",
    q: "select id, title, released, price, tags from albums where artist_id = :artist order by id",
  },
  { method: "addNote", q: "insert into notes (body) values (:body) returning id, body" },
  {
    method: "every-form",
    q: `select :i::int4 as i, :n::numeric as n, :b::bool as b, :t::text as t, :a::int4[] as a,
      :j::jsonb as j, :d::date as d, :v::interval as v, :p::point as p, :r::int4range as r,
      '\\x00'::bytea as y, array[row(1, 'a')] as rows, '{(1,2)}'::nummultirange as m,
      box '(1,1),(0,0)' as x, circle '<(0,0),1>' as c, path '((0,0),(1,1))' as h, 1 as "a b"`,
  },
  { method: "as.csv", q: "select 1 as n", output_format: "csv" },
  { method: "never_dry_run", q: "select :x::int as x" },
  { method: "delete", q: "delete from notes where id = :id" },
];
await post("/api/v4/methods", definitions, token);
const described = await post(
  "/api/v4/call/dry",
  definitions
    .filter(({ method }) => method !== "never_dry_run")
    .map(({ method }) => ({ jsonrpc: "2.0", method, id: method })),
  token,
);
for (const { id, error } of described) {
  if (error) throw new Error(`${id}: ${JSON.stringify(error)}`);
}

const answer = await fetch(`${url}/api/v4/interfaces`, {
  headers: { Authorization: `Bearer ${token}` },
});
await writeFile(process.argv[2], await answer.text());
