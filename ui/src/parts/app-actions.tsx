// What can be done with an Application as a whole.

import { useEffect, useState } from "react";
import { api, type AppName, type Cascade, type SyncOptions } from "../api/client";
import type { Application } from "../api/types";
import { Rollback } from "../catalog/rollback-dialog";
import { AppDialog } from "./app-dialog";
import { Ask } from "./ask";
import { setQuery } from "../router";
import { useToast } from "./shell";
import { SyncDialog } from "./sync-dialog";

export function Actions({ app, id, phase }: { app: Application; id: AppName; phase: string | undefined }) {
  const toast = useToast();
  const [asking, setAsking] = useState<"sync" | "delete" | "edit" | undefined>(() => (new URLSearchParams(location.search).get("ask") === "sync" ? "sync" : undefined));
  // A link asks once.
  useEffect(() => {
    if (asking) setQuery({ ask: "" });
  }, []);
  const [busy, setBusy] = useState(false);
  const run = async (done: string, call: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await call();
      toast(done);
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
    } finally {
      setBusy(false);
    }
  };
  const sync = (options: SyncOptions) => {
    setAsking(undefined);
    void run(options.dryRun ? "Dry run started" : "Sync started", () => api.sync(id, options));
  };
  return (
    <div className="actions">
      {phase === "Running" && (
        <button type="button" disabled={busy} onClick={() => void run("The operation is ending", () => api.terminate(id))}>
          Terminate
        </button>
      )}
      <Rollback app={app} />
      <button type="button" disabled={busy} onClick={() => setAsking("delete")}>
        Delete…
      </button>
      <button type="button" disabled={busy} onClick={() => setAsking("edit")}>
        Edit…
      </button>
      <button type="button" disabled={busy} title="Render all manifests again, also those of known revisions" onClick={() => void run("Rendered and compared again", () => api.refresh(id, "hard"))}>
        Hard refresh
      </button>
      <button type="button" disabled={busy} title="Look for changes in Git and in the cluster" onClick={() => void run("Refreshed", () => api.refresh(id))}>
        Refresh
      </button>
      <button type="button" className="primary" disabled={busy} onClick={() => setAsking("sync")}>
        Sync
      </button>
      {asking === "sync" && <SyncDialog app={app} id={id} onSync={sync} onClose={() => setAsking(undefined)} />}
      {asking === "edit" && <AppDialog app={app} onClose={() => setAsking(undefined)} />}
      {asking === "delete" && <Delete app={app} id={id} onClose={() => setAsking(undefined)} />}
    </div>
  );
}

const CASCADES: [Cascade, string, string][] = [
  ["foreground", "With its resources", "Each stays until what it owns is gone"],
  ["background", "With its resources, in the background", "What a resource owns goes after it"],
  ["none", "Alone", "The resources stay in the cluster and go on"],
];

function Delete({ app, id, onClose }: { app: Application; id: AppName; onClose: () => void }) {
  const toast = useToast();
  const [cascade, setCascade] = useState<Cascade>("foreground");
  const [typed, setTyped] = useState("");
  const { name } = app.metadata;
  const act = async () => {
    await api.remove(id, cascade);
    toast(`${name} is being deleted`);
  };
  return (
    <Ask title={`Delete ${name}`} confirm="Delete" danger disabled={typed !== name} act={act} onClose={onClose}>
      <Cascades cascade={cascade} set={setCascade} />
      <label>
        Its name, to confirm
        <input name="confirm" placeholder={name} autoComplete="off" spellCheck={false} value={typed} onChange={(e) => setTyped(e.target.value)} />
      </label>
    </Ask>
  );
}

export function Cascades({ cascade, set }: { cascade: Cascade; set: (cascade: Cascade) => void }) {
  return (
    <fieldset className="choices">
      <legend>What is deleted</legend>
      {CASCADES.map(([value, title, text]) => (
        <label key={value} className="check">
          <input type="radio" name="cascade" value={value} checked={cascade === value} onChange={() => set(value)} />
          <span>
            {title}
            <small>{text}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
