import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { sentence } from "../api/errors.ts";
import { Dialog } from "../parts/dialog.tsx";

type Props = {
  title: string;
  action: string;
  /** Called with the fields. The message of its error is shown above the fields. */
  onSave: (fields: FormData) => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
};

/** A dialog with a form. The form keeps what was typed if the server refuses the fields. */
export function FormDialog({ title, action, onSave, onClose, children }: Props) {
  const problem = useSignal<string | null>(null);
  const busy = useSignal(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    busy.value = true;
    try {
      await onSave(fields);
      onClose();
    } catch (error) {
      problem.value = sentence(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {problem.value && <p class="problem" role="alert">{problem.value}</p>}
        {children}
        <footer>
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="primary" disabled={busy.value}>{action}</button>
        </footer>
      </form>
    </Dialog>
  );
}

export const textOf = (fields: FormData, name: string): string => String(fields.get(name) ?? "").trim();
export const orNull = (text: string): string | null => (text === "" ? null : text);

/** The words of a field, separated by commas or line ends. */
export const listOf = (text: string): string[] => text.split(/[,\n]/).map((word) => word.trim()).filter(Boolean);
