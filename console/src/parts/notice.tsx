// Sentences about what happened, read out by screen readers.
import { signal } from "@preact/signals";
import { isAbort, sentence } from "../api/errors.ts";

type Notice = { id: number; kind: "good" | "bad"; text: string };
const notices = signal<Notice[]>([]);
let counter = 0;

function say(kind: Notice["kind"], text: string, seconds: number): void {
  const id = (counter += 1);
  notices.value = [...notices.value.filter((notice) => notice.text !== text), { id, kind, text }].slice(-2);
  if (seconds > 0) setTimeout(() => dismiss(id), seconds * 1000);
}

const dismiss = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id);
};

export const sayDone = (text: string): void => say("good", text, 5);

/** Failures stay until they are dismissed. */
export function sayError(error: unknown): void {
  if (!isAbort(error)) say("bad", sentence(error), 0);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, kind, text }) => (
        <div key={id} class={`notice ${kind}`}>
          <span>{text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>✕</button>
        </div>
      ))}
    </div>
  );
}
