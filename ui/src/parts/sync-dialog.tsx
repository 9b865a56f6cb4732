// Asks how to sync. Nothing is decided here: the server accepts or refuses.

import { type FormEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, type AppName, type SyncOptions } from "../api/client";
import type { Application, Source, SyncWindows } from "../api/types";
import { useAsked } from "../asked";
import { sourcesOf, syncedRevision } from "../model/applications";
import { entered, listedSources } from "../model/revisions";
import { chosenResources, OFFERED, offeredOf, optionsOf, PROPAGATION, syncable, withPropagation } from "../model/sync";
import { refKey } from "../model/tree";
import { shortRepo } from "../model/url";
import { Plan } from "./plan";

interface Props {
  app: Application;
  id: AppName;
  /** The key of the only resource that is chosen at first. */
  only?: string;
  onSync: (options: SyncOptions) => void;
  onClose: () => void;
}

const WAYS: ["prune" | "dryRun" | "applyOnly" | "force", string, string][] = [
  ["prune", "Prune", "Delete what Git no longer has"],
  ["dryRun", "Dry run", "Try it without changing anything"],
  ["applyOnly", "Apply only", "Skip hooks"],
  ["force", "Force", "Delete and create again what cannot be changed"],
];

export function SyncDialog({ app, id, only, onSync, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [policy] = useState(() => app.spec.syncPolicy?.syncOptions ?? []);
  // As they were when the dialog was opened: a list that moves cannot be ticked off.
  const [all] = useState(() => syncable(app));
  const [left, setLeft] = useState<ReadonlySet<string>>(() => new Set(only === undefined ? [] : all.map(refKey).filter((key) => key !== only)));
  const [options, setOptions] = useState<ReadonlySet<string>>(new Set(offeredOf(policy)));
  const { name, namespace } = id;
  const windows = useAsked(useCallback((signal: AbortSignal) => api.syncWindows({ name, namespace }, signal), [name, namespace]));
  const [ways, setWays] = useState<ReadonlySet<string>>(new Set());
  const [one, setOne] = useState("");
  const [each, setEach] = useState<readonly string[]>([]);
  const [retries, setRetries] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const wanted = useMemo(() => optionsOf(policy, options), [policy, options]);
  const choice = { prune: ways.has("prune"), hooks: !ways.has("applyOnly"), syncOptions: wanted ?? policy, left };
  const source = sourcesOf(app)[0];
  const listed = listedSources(app);
  const revision = entered(app, one, each);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    onSync({
      revision,
      prune: ways.has("prune"),
      dryRun: ways.has("dryRun"),
      applyOnly: ways.has("applyOnly"),
      force: ways.has("force"),
      syncOptions: wanted,
      resources: chosenResources(all, left, only !== undefined),
      retries: Number(retries) || 0,
    });
  };
  const toggle = (set: ReadonlySet<string>, key: string) => {
    const next = new Set(set);
    if (!next.delete(key)) next.add(key);
    return next;
  };
  const leave = (test: (status: string | undefined) => boolean) => setLeft(new Set(all.filter((r) => test(r.status)).map(refKey)));
  const count = all.length - left.size;
  return (
    <dialog ref={dialog} className="middle" onClose={onClose} aria-labelledby="sync-title">
      <form onSubmit={submit}>
        <h2 id="sync-title">Sync {app.metadata.name}</h2>
        <Windows windows={windows.value} />
        {listed ? (
          <Revisions sources={listed} revisions={each} change={setEach} />
        ) : (
          <label>
            {source?.chart ? "Version" : "Revision"}
            <input name="revision" placeholder={syncedRevision(app)} value={one} onChange={(e) => setOne(e.target.value)} autoComplete="off" spellCheck={false} />
          </label>
        )}
        <div className="two">
          {WAYS.map(([key, title, text]) => (
            <label key={key} className="check">
              <input type="checkbox" name={key} checked={ways.has(key)} onChange={() => setWays(toggle(ways, key))} />
              <span>
                {title}
                <small>{text}</small>
              </span>
            </label>
          ))}
        </div>
        <details>
          <summary>Sync options{options.size > 0 && ` (${options.size})`}</summary>
          <div className="two">
            {OFFERED.map(([option, text]) => (
              <label key={option} className="check">
                <input type="checkbox" data-option={option} checked={options.has(option)} onChange={() => setOptions(toggle(options, option))} />
                <span>
                  {option}
                  <small>{text}</small>
                </span>
              </label>
            ))}
          </div>
          <div className="two">
            <label>
              What becomes of what a pruned object owns
              <select name="propagation" value={PROPAGATION.find((option) => options.has(option)) ?? ""} onChange={(e) => setOptions(withPropagation(options, e.target.value))}>
                <option value="">as usual: foreground</option>
                {PROPAGATION.map((option) => (
                  <option key={option} value={option}>
                    {option.split("=")[1]}
                  </option>
                ))}
              </select>
            </label>
            <label>
              Tries after a failure
              <input name="retries" type="number" min={0} max={100} placeholder="as the Application says" value={retries} onChange={(e) => setRetries(e.target.value)} />
            </label>
          </div>
        </details>
        {all.length > 0 && (
          <details open={only !== undefined}>
            <summary>
              Resources ({count === all.length ? "all" : `${count} of ${all.length}`}){(only !== undefined || count < all.length) && ". Hooks do not run, and the sync is not kept in the history."}
            </summary>
            <div className="tools">
              <button type="button" className="small" onClick={() => leave(() => false)}>
                All
              </button>
              <button type="button" className="small" onClick={() => leave((status) => status === "Synced")}>
                Those out of sync
              </button>
              <button type="button" className="small" onClick={() => leave(() => true)}>
                None
              </button>
            </div>
            <div className="pick" role="group" aria-label="Resources to sync">
              {all.map((r) => (
                <label key={refKey(r)} className="check">
                  <input type="checkbox" checked={!left.has(refKey(r))} onChange={() => setLeft(toggle(left, refKey(r)))} />
                  <span>
                    {r.kind} {r.name}
                    <small>{[r.namespace, r.status].filter(Boolean).join(" · ")}</small>
                  </span>
                </label>
              ))}
            </div>
          </details>
        )}
        <Plan app={app} id={id} revision={revision} choice={choice} />
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={(only !== undefined || all.length > 0) && count === 0}>
            Sync
          </button>
        </div>
      </form>
    </dialog>
  );
}

interface RevisionsProps {
  sources: readonly Source[];
  revisions: readonly string[];
  change: (revisions: readonly string[]) => void;
}

/** One for each source of a list. What is left empty stays at its own. */
function Revisions({ sources, revisions, change }: RevisionsProps) {
  return (
    <fieldset className="sync-revisions">
      <legend>Revisions</legend>
      {sources.map((source, at) => (
        <label key={at}>
          {`${source.chart ? "Version" : "Revision"} of source ${at + 1}`}
          <input
            name={`revision-${at + 1}`}
            placeholder={source.targetRevision || (source.chart ? "*" : "HEAD")}
            value={revisions[at] ?? ""}
            onChange={(e) => change(sources.map((_, n) => (n === at ? e.target.value : (revisions[n] ?? ""))))}
            autoComplete="off"
            spellCheck={false}
          />
          <small>{[shortRepo(source.repoURL), source.chart ?? source.path, source.ref && `as $${source.ref}`].filter(Boolean).join(" · ")}</small>
        </label>
      ))}
    </fieldset>
  );
}

/** Says it when a window of the project is in the way. */
function Windows({ windows }: { windows: SyncWindows | undefined }) {
  if (!windows || windows.canSync) return null;
  const active = (windows.activeWindows ?? []).map((w) => `${w.kind} ${w.schedule} for ${w.duration}`).join("; ");
  return (
    <p className="notice tone-warn" role="status">
      <strong>The project's sync windows do not allow it now.</strong>
      <span>{active || "No window that allows it is open."}</span>
    </p>
  );
}
