// Serves the built console beside a running Tidegate, at one origin, as the server itself will.
// `node server.mjs [port]` with TIDEGATE_URL, for work on the console.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const DIST = fileURLToPath(new URL("../../../console/dist/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8" };

/** The policy that the page must work under. */
export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
  + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

async function file(name, answer) {
  const content = await readFile(join(DIST, name)).catch(() => undefined);
  if (!content) {
    answer.writeHead(404).end();
    return;
  }
  answer.writeHead(200, {
    "Content-Type": TYPES[extname(name)] ?? "application/octet-stream",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
  });
  answer.end(content);
}

/**
 * Serves the console on a free port. `intercept(request, answer)` may answer instead of the service
 * and says so by `true`; it stands in for what the service does not have yet.
 */
export async function serve(home, { port = 0, intercept = async () => false } = {}) {
  const target = new URL(home);
  const server = createServer(async (asked, answer) => {
    const { pathname } = new URL(asked.url, home);
    const page = pathname === "/" || pathname === "/console" || pathname === "/console/";
    if (page) return file("index.html", answer);
    const part = /^\/console\/([\w.-]+)$/.exec(pathname);
    if (part) return file(part[1], answer);
    if (await intercept(asked, answer)) return undefined;
    const passed = request({ host: target.hostname, port: target.port, method: asked.method, path: asked.url, headers: asked.headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    // A page that goes away cancels what it asked for.
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
    return undefined;
  });
  const sockets = new Set();
  server.on("upgrade", (asked, socket, head) => {
    const behind = connect(Number(target.port), target.hostname, () => {
      const fields = Object.entries(asked.headers).map(([name, value]) => `${name}: ${value}`);
      behind.write(`GET ${asked.url} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`);
      behind.write(head);
      socket.pipe(behind).pipe(socket);
    });
    for (const end of [socket, behind]) {
      sockets.add(end);
      end.on("error", () => end.destroy());
      end.on("close", () => {
        socket.destroy();
        behind.destroy();
        sockets.delete(end);
      });
    }
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    url,
    /** Cuts every WebSocket, as a network would. */
    cut: () => sockets.forEach((socket) => socket.destroy()),
    stop: () => {
      sockets.forEach((socket) => socket.destroy());
      server.closeAllConnections();
      server.close();
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await serve(process.env.TIDEGATE_URL, { port: Number(process.argv[2] ?? 0) });
  console.log(url);
}
