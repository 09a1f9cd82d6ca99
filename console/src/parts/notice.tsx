// Sentences about what happened, read out by screen readers.
import { signal } from "@preact/signals";
import { isAbort, sentence } from "../api/errors.ts";
import { claims } from "../api/session.ts";
import { route } from "../route.ts";

type Action = { label: string; run: () => void };
type Notice = { id: number; kind: "good" | "bad"; text: string; action?: Action; place: string };
const notices = signal<Notice[]>([]);
let counter = 0;

/** The area, and the user who acts in it. */
const here = (): string => `${route.value.area} ${claims.value?.sub}`;

function say(kind: Notice["kind"], text: string, seconds: number, action?: Action): void {
  const id = (counter += 1);
  notices.value = [...notices.value.filter((notice) => notice.text !== text), { id, kind, text, action, place: here() }].slice(-2);
  if (seconds > 0) setTimeout(() => dismiss(id), seconds * 1000);
}

const dismiss = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id);
};

export const sayDone = (text: string): void => say("good", text, 5);

/** Failures stay in their area until they are dismissed. `action` is what the person can do about it. */
export function sayError(error: unknown, action?: Action): void {
  if (!isAbort(error)) say("bad", sentence(error), 0, action);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.filter(({ kind, place }) => kind === "good" || place === here()).map(({ id, kind, text, action }) => (
        <div key={id} class={`notice ${kind}`}>
          <span>{text}</span>
          {action && (
            <button
              type="button"
              onClick={() => {
                dismiss(id);
                action.run();
              }}
            >{action.label}</button>
          )}
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>✕</button>
        </div>
      ))}
    </div>
  );
}
