// The same request in other languages. The token is left out: it belongs into a variable.
import { home } from "../api/home.ts";

export type Call = { path: string; body: unknown };

const shell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export function curl({ path, body }: Call): string {
  return [
    `curl -s ${home}${path}`,
    `  -H "Authorization: Bearer $TOKEN"`,
    `  --json ${shell(JSON.stringify(body))}`,
  ].join(" \\\n");
}

export function typescript({ path, body }: Call): string {
  return `const token = "…"; // an access token
const answer = await fetch(${JSON.stringify(home + path)}, {
  method: "POST",
  headers: { "Authorization": \`Bearer \${token}\`, "Content-Type": "application/json" },
  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),
});
if (!answer.ok) throw new Error((await answer.json()).message);
console.dir(await answer.json(), { depth: null });
`;
}

export function python({ path, body }: Call): string {
  return `import json, os, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(home + path)},
    data=json.dumps(${literal(body)}).encode(),
    headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer))
`;
}

/** A value as Python writes it. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, of]) => `${JSON.stringify(name)}: ${literal(of)}`).join(", ")}}`;
}

export const SNIPPETS: [string, (call: Call) => string][] = [["curl", curl], ["TypeScript", typescript], ["Python", python]];
