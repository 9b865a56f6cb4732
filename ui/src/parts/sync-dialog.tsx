// Asks how to sync. Nothing is decided here: the server accepts or refuses.

import { type FormEvent, useEffect, useRef } from "react";
import type { SyncOptions } from "../api/client";

interface Props {
  name: string;
  revision: string;
  onSync: (options: SyncOptions) => void;
  onClose: () => void;
}

const OPTIONS: [keyof SyncOptions, string, string][] = [
  ["prune", "Prune", "Delete what Git no longer has"],
  ["dryRun", "Dry run", "Try it without changing anything"],
  ["applyOnly", "Apply only", "Skip hooks"],
  ["force", "Force", "Delete and create again what cannot be changed"],
];

export function SyncDialog({ name, revision, onSync, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget);
    const on = (key: string) => form.get(key) !== null;
    onSync({
      revision: String(form.get("revision") ?? "").trim(),
      prune: on("prune"),
      dryRun: on("dryRun"),
      applyOnly: on("applyOnly"),
      force: on("force"),
    });
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="sync-title">
      <form onSubmit={submit}>
        <h2 id="sync-title">Sync {name}</h2>
        <label>
          Revision
          <input name="revision" placeholder={revision} autoComplete="off" spellCheck={false} />
        </label>
        {OPTIONS.map(([key, title, text]) => (
          <label key={key} className="check">
            <input type="checkbox" name={key} />
            <span>
              {title}
              <small>{text}</small>
            </span>
          </label>
        ))}
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Sync
          </button>
        </div>
      </form>
    </dialog>
  );
}
