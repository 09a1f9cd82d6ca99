import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

type Props = { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean };

/** Where a person begins: the first field, else the first entry of a list or button below. */
const startOf = (dialog: HTMLElement): HTMLElement | null =>
  dialog.querySelector<HTMLElement>("input, textarea:not([readonly]), select") ?? dialog.querySelector<HTMLElement>("ul button, footer button:not(:disabled)");

/** A modal dialog; the browser keeps the focus in it and gives it back. */
export function Dialog({ title, onClose, children, wide }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    element?.showModal();
    if (element) startOf(element)?.focus();
    return () => {
      element?.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={dialog} class={wide ? "wide" : ""} aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>✕</button>
      </header>
      {children}
    </dialog>
  );
}
