import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, isAbort, sentence } from "../api/errors.ts";
import { type Activity, loadActivity } from "./records.ts";

const PERIOD = 2_000;

export type Poll = { activity: Activity | null; problem: string | null; paused: Signal<boolean> };

/**
 * Reads the activity every two seconds while the page is visible. After a failure the last numbers
 * stay. If the server refuses the request, polling pauses.
 */
export function usePoll(): Poll {
  const activity = useSignal<Activity | null>(null);
  const problem = useSignal<string | null>(null);
  const paused = useSignal(false);
  useEffect(() => {
    if (paused.value) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      if (!document.hidden) {
        try {
          activity.value = await loadActivity(abort.signal);
          problem.value = null;
        } catch (error) {
          if (isAbort(error)) return;
          problem.value = sentence(error);
          if (error instanceof ApiError && (error.status === 401 || error.status === 403)) paused.value = true;
        }
      }
      if (!abort.signal.aborted) timer = setTimeout(() => void read(), PERIOD);
    };
    void read();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [paused.value]);
  return { activity: activity.value, problem: problem.value, paused };
}
