import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { sentence } from "../api/errors.ts";

/** Calls `read` when a page opens; `reload` calls it again. */
export function useLoaded<T>(read: () => Promise<T>, again: unknown[] = []) {
  const value = useSignal<T | null>(null);
  const problem = useSignal<string | null>(null);
  const reload = async () => {
    try {
      value.value = await read();
      problem.value = null;
    } catch (error) {
      problem.value = sentence(error);
    }
  };
  useEffect(() => void reload(), again);
  return { value: value.value, problem: problem.value, reload };
}
