// A proxy in front of a running Tidegate, so that a test can break connections and replace answers.
// `node server.mjs [port]` with TIDEGATE_URL serves crates/tidegate-console/dist of this folder instead of the
// console inside the service, for work on the console.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const DIST = fileURLToPath(new URL("../../../crates/tidegate-console/dist/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
  + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Answers requests for the console from crates/tidegate-console/dist. */
async function fromFolder(asked, answer) {
  const { pathname } = new URL(asked.url, "http://localhost");
  const page = ["/", "/console", "/console/"].includes(pathname);
  const part = /^\/console\/([\w-]+\.\w+)$/.exec(pathname);
  if (!page && !part) return false;
  const name = page ? "index.html" : part[1];
  const content = await readFile(join(DIST, name)).catch(() => undefined);
  if (!content) return false;
  answer.writeHead(200, {
    "Content-Type": TYPES[extname(name)] ?? "application/octet-stream",
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",
  });
  answer.end(page ? content.toString().replaceAll("{{base}}", "") : content);
  return true;
}

/**
 * Passes requests to the service on a free port. `intercept(request, answer)` may answer instead of
 * the service and says so by `true`.
 */
export async function serve(home, { port = 0, intercept = async () => false } = {}) {
  const target = new URL(home);
  const server = createServer(async (asked, answer) => {
    if (await intercept(asked, answer)) return;
    const passed = request({ host: target.hostname, port: target.port, method: asked.method, path: asked.url, headers: asked.headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    // A page that goes away cancels what it asked for.
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
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
  const { url } = await serve(process.env.TIDEGATE_URL, { port: Number(process.argv[2] ?? 0), intercept: fromFolder });
  console.log(url);
}
