// Asks before something is done, waits for it, and stays with the reason when it fails.

import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";

interface Props {
  title: string;
  confirm: string;
  danger?: boolean;
  disabled?: boolean;
  /** It has much to enter. */
  wide?: boolean;
  children?: ReactNode;
  act: () => Promise<unknown>;
  onClose: () => void;
}

export function Ask({ title, confirm, danger, disabled, wide, children, act, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      await act();
      dialog.current?.close();
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} className={wide ? "middle" : undefined} onClose={onClose} aria-labelledby={id}>
      <form onSubmit={(e) => void submit(e)}>
        <h2 id={id}>{title}</h2>
        {children}
        {error && (
          <div className="notice tone-bad" role="alert">
            {error}
          </div>
        )}
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className={danger ? "danger" : "primary"} disabled={busy || disabled}>
            {confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
