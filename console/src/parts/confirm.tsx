import { Dialog } from "./dialog.tsx";

type Props = { title: string; text: string; action: string; onConfirm: () => void; onClose: () => void };

/** Asks for confirmation of an action that cannot be undone. */
export function Confirm({ title, text, action, onConfirm, onClose }: Props) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <footer>
        <button type="button" onClick={onClose}>Cancel</button>
        <button type="button" class="danger" onClick={onConfirm}>{action}</button>
      </footer>
    </Dialog>
  );
}
