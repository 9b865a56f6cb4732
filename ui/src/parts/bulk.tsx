// What is done with all the Applications that are chosen in the list: synced, refreshed, deleted.

import { type FormEvent, type SyntheticEvent, useEffect, useId, useRef, useState } from "react";
import { api, type Cascade } from "../api/client";
import type { Application } from "../api/types";
import { syncOf } from "../model/applications";
import { forEach, outcome, type Progress } from "../model/bulk";
import { Cascades } from "./app-actions";
import { idOf } from "./app-menu";
import { Check } from "./fields";
import { useToast } from "./shell";

export type Deed = "sync" | "refresh" | "hard" | "delete";

const TITLES: Record<Deed, string> = { sync: "Sync", refresh: "Refresh", hard: "Hard refresh", delete: "Delete" };
/** So many names are written out. */
const MOST = 100;

export function BulkTools({ apps, total, ask, clear, all }: { apps: readonly Application[]; total: number; ask: (deed: Deed) => void; clear: () => void; all: () => void }) {
  return (
    <div className="bulk tools" role="region" aria-label="The Applications that are chosen">
      <span role="status">
        <b>{apps.length}</b> chosen
      </span>
      {apps.length < total && (
        <button type="button" className="small" onClick={all}>
          Choose all {total}
        </button>
      )}
      <button type="button" className="small" onClick={clear}>
        Choose none
      </button>
      <span className="grow" />
      {(["delete", "hard", "refresh", "sync"] as const).map((deed) => (
        <button key={deed} type="button" className={deed === "sync" ? "small primary" : "small"} data-deed={deed} onClick={() => ask(deed)}>
          {TITLES[deed]}…
        </button>
      ))}
    </div>
  );
}

export function BulkDialog({ deed, apps, onClose }: { deed: Deed; apps: readonly Application[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  // As they were chosen: the list goes on moving.
  const [all] = useState(apps);
  const [ways, setWays] = useState({ prune: false, dryRun: false, applyOnly: false, force: false, onlyOff: false });
  const [cascade, setCascade] = useState<Cascade>("foreground");
  const [typed, setTyped] = useState("");
  const [stop, setStop] = useState<AbortController>();
  const [progress, setProgress] = useState<Progress<Application>>();
  const [ended, setEnded] = useState(false);
  const toast = useToast();
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    dialog.current?.showModal();
    return () => {
      isShown.current = false;
    };
  }, []);
  // Who goes elsewhere stops it.
  useEffect(() => () => stop?.abort(), [stop]);
  const running = progress !== undefined && !ended;
  /** A browser may close it whatever it is told: what has been done until then is still to be read. */
  const closed = () => {
    if (!running) return onClose();
    stop?.abort();
    dialog.current?.showModal();
  };
  const cancel = (e: SyntheticEvent) => {
    if (!running) return;
    e.preventDefault();
    stop?.abort();
  };
  // What is asked for before a deletion: how many, or which one.
  const sure = all.length === 1 ? (all[0]?.metadata.name ?? "") : String(all.length);
  const wanted = ways.onlyOff ? all.filter((app) => syncOf(app) !== "Synced") : all;
  const act = (app: Application) => {
    if (deed === "sync") return api.sync(idOf(app), { ...ways, revision: "", syncOptions: undefined, resources: undefined, retries: 0 });
    if (deed === "delete") return api.remove(idOf(app), cascade);
    return api.refresh(idOf(app), deed === "hard" ? "hard" : "normal");
  };
  const run = async (these: readonly Application[]) => {
    const control = new AbortController();
    setStop(control);
    setEnded(false);
    setProgress({ done: 0, failed: [] });
    const result = await forEach(these, act, control.signal, setProgress);
    setEnded(true);
    if (!isShown.current) toast(`${TITLES[deed]}: ${outcome(result, these.length, control.signal.aborted)}`, true);
  };
  const submit = (e: FormEvent) => {
    e.preventDefault();
    void run(wanted);
  };
  const check = (key: keyof typeof ways, title: string, hint: string) => <Check title={title} hint={hint} name={key} on={ways[key]} set={(on) => setWays({ ...ways, [key]: on })} />;
  return (
    <dialog ref={dialog} className="middle" onCancel={cancel} onClose={closed} aria-labelledby={title}>
      <form onSubmit={submit}>
        <h2 id={title}>
          {TITLES[deed]} {wanted.length === 1 ? wanted[0]?.metadata.name : `${wanted.length} Applications`}
        </h2>
        {!progress && (
          <>
            {deed === "sync" && (
              <div className="two">
                {check("prune", "Prune", "Delete what Git no longer has")}
                {check("dryRun", "Dry run", "Try it without changing anything")}
                {check("applyOnly", "Apply only", "Skip hooks")}
                {check("force", "Force", "Delete and create again what cannot be changed")}
                {all.length > 1 && check("onlyOff", "Only those out of sync", "Leave alone those that are in sync")}
              </div>
            )}
            {deed === "delete" && <Cascades cascade={cascade} set={setCascade} />}
            {all.length > 1 && (
              <details>
                <summary>Which</summary>
                <p className="names">{wanted.slice(0, MOST).map(({ metadata }) => metadata.name).join(", ")}</p>
                {wanted.length > MOST && <p className="dim">and {wanted.length - MOST} more</p>}
              </details>
            )}
            {deed === "delete" && (
              <label>
                {all.length === 1 ? "Its name, to confirm" : "How many, to confirm"}
                <input name="confirm" placeholder={sure} autoComplete="off" spellCheck={false} inputMode={all.length === 1 ? "text" : "numeric"} value={typed} onChange={(e) => setTyped(e.target.value)} />
              </label>
            )}
          </>
        )}
        {progress && <Result progress={progress} total={wanted.length} stopped={ended && (stop?.signal.aborted ?? false)} ended={ended} />}
        <div className="actions">
          {running && (
            <button type="button" onClick={() => stop?.abort()}>
              Stop
            </button>
          )}
          {(!progress || ended) && (
            <button type="button" className={progress ? "primary" : ""} autoFocus={Boolean(progress)} onClick={() => dialog.current?.close()}>
              {progress ? "Close" : "Cancel"}
            </button>
          )}
          {!progress && (
            <button type="submit" className={deed === "delete" ? "danger" : "primary"} disabled={wanted.length === 0 || (deed === "delete" && typed.trim() !== sure)}>
              {TITLES[deed]}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}

function Result({ progress, total, ended, stopped }: { progress: Progress<Application>; total: number; ended: boolean; stopped: boolean }) {
  const { done, failed } = progress;
  return (
    <>
      <progress max={total} value={done} aria-label="How many are done" />
      <p role="status" data-ended={ended || undefined}>
        {outcome(progress, total, stopped)}
      </p>
      {failed.length > 0 && (
        <ul className="results" aria-label="Those that were refused">
          {failed.slice(0, MOST).map(({ item, why }) => (
            <li key={`${item.metadata.namespace}/${item.metadata.name}`}>
              <b>{item.metadata.name}</b> <span className="dim">{why}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
