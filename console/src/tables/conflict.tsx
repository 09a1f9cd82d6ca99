import { Dialog } from "../parts/dialog.tsx";

type Props = {
  column: string;
  mine: string | null;
  theirs: string | null | undefined;
  onOverwrite: () => void;
  onClose: () => void;
};

/** The dialog for a value that two people have changed. The second person decides which value stays. */
export function ConflictDialog({ column, mine, theirs, onOverwrite, onClose }: Props) {
  const gone = theirs === undefined;
  return (
    <Dialog title={gone ? "This row was deleted" : "This value was changed by somebody else"} onClose={onClose}>
      <p>{gone ? "Somebody has deleted the row, or you may no longer see it. Nothing was written." : `While you edited ${column}, somebody else saved another value. Nothing was written yet.`}</p>
      <dl class="compare">
        <dt>Yours</dt>
        <dd><pre tabIndex={0} aria-label="Your value">{mine ?? "NULL"}</pre></dd>
        {!gone && <><dt>In the database</dt><dd><pre tabIndex={0} aria-label="Value in the database">{theirs ?? "NULL"}</pre></dd></>}
      </dl>
      <footer>
        <button type="button" onClick={onClose}>{gone ? "Close" : "Keep theirs"}</button>
        {!gone && <button type="button" class="primary" onClick={onOverwrite}>Write mine</button>}
      </footer>
    </Dialog>
  );
}
