// The same request as code in other languages. The code reads the token from a variable.
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
  return `const answer = await fetch(${JSON.stringify(home + path)}, {
  method: "POST",
  headers: { "Authorization": \`Bearer \${token}\`, "Content-Type": "application/json" },
  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),
});
if (!answer.ok) throw new Error((await answer.json()).message);
const result = await answer.json();
`;
}

export function python({ path, body }: Call): string {
  return `import json, os, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(home + path)},
    data=json.dumps(json.loads(${JSON.stringify(JSON.stringify(body))})).encode(),
    headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as answer:
    result = json.load(answer)
`;
}

export const SNIPPETS: [string, (call: Call) => string][] = [["curl", curl], ["TypeScript", typescript], ["Python", python]];
