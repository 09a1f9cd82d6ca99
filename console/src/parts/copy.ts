import { sayDone, sayError } from "./notice.tsx";

/** Puts a text on the clipboard, which browsers allow at secure addresses. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    sayDone("Copied.");
  } catch {
    sayError(new Error("The browser does not let this page copy. Select the text and copy it."));
  }
}
