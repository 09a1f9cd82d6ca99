import { render } from "preact";
import { App } from "./app.tsx";
import { resume } from "./api/session.ts";

const root = document.getElementById("app")!;
resume()
  .then((problem) => render(<App problem={problem} />, root))
  .catch((error) => render(<App problem={String(error)} />, root));
