// Asks to which version an Application goes, names what its user and the chart both changed, and shows the difference
// of the manifests before anything is written.

import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import { write } from "../model/write";
import { useToast } from "../parts/shell";
import { catalog, type Conflict, type Upgrade, type UpgradeRequest } from "./api";
import { useAsked } from "../asked";
import { Manifests, Unified } from "./parts";

const PAUSE = 500;

export function UpgradeDialog({ name, namespace, onDone, onClose }: { name: string; namespace: string; onDone: () => void; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const toast = useToast();
  const [writing, setWriting] = useState(false);
  const [request, setRequest] = useState<UpgradeRequest>({ name, appNamespace: namespace, version: "", prefer: "", values: "" });
  useEffect(() => dialog.current?.showModal(), []);
  const preview = useAsked(
    useCallback(() => catalog.previewUpgrade(request), [request]),
    PAUSE,
  );
  const set = (part: Partial<UpgradeRequest>) => setRequest({ ...request, ...part });
  const plan = preview.value;
  const open = !request.prefer && (plan?.conflicts ?? []).some((conflict) => !conflict.decided);
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    if (!plan) return;
    setWriting(true);
    try {
      // Exactly what is shown, if it still is what would come of it.
      await write(plan.application, plan.application, async () => (await catalog.previewUpgrade(request)).application);
      toast(`${name} goes to ${plan.to}`);
      onDone();
      dialog.current?.close();
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
      preview.again();
      setWriting(false);
    }
  };
  return (
    <dialog ref={dialog} className="wide" onClose={onClose} aria-labelledby="upgrade-title">
      <form onSubmit={(e) => void submit(e)}>
        <h2 id="upgrade-title">Upgrade {name}</h2>
        {preview.error && (
          <div className="notice tone-bad" role="alert">
            {preview.error.message}
          </div>
        )}
        {!plan && !preview.error && <p className="dim">Rendering and comparing…</p>}
        {plan && (
          <>
            <label>
              From {plan.from} to
              <select name="version" value={plan.to} onChange={(e) => set({ version: e.target.value })}>
                {(plan.versions ?? []).map((version) => (
                  <option key={version}>{version}</option>
                ))}
              </select>
            </label>
            {(plan.notes ?? []).map((note) => (
              <p key={note} className="notice tone-warn">
                {note}
              </p>
            ))}
            <Changes plan={plan} />
            <Conflicts conflicts={plan.conflicts ?? []} prefer={request.prefer} choose={(prefer) => set({ prefer })} />
            <label>
              Values that count in any case
              <textarea name="values" rows={3} spellCheck={false} value={request.values} onChange={(e) => set({ values: e.target.value })} />
            </label>
            <Preview plan={plan} busy={preview.busy} />
          </>
        )}
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={!plan || open || writing || preview.busy || Boolean(preview.error)}>
            {open ? "Decide the conflicts first" : "Upgrade"}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** What comes of it, before anything is written. */
function Preview({ plan, busy }: { plan: Upgrade; busy: boolean }) {
  const { compared, difference, manifests, values } = plan;
  return (
    <div className="preview" aria-live="polite" aria-busy={busy}>
      <h3>What changes</h3>
      {compared ? difference ? <Unified text={difference} /> : <p>The manifests do not change.</p> : <p>The manifests cannot be compared.</p>}
      {(compared || manifests) && <Manifests text={manifests} open={!compared} />}
      {values && (
        <details data-values>
          <summary>Its values</summary>
          <pre tabIndex={0} aria-label="Its values">
            {values}
          </pre>
        </details>
      )}
    </div>
  );
}

function Changes({ plan }: { plan: Upgrade }) {
  const lines: [string, string[] | undefined][] = [
    ["New defaults", plan.takenFromNew],
    ["Defaults that are gone", plan.gone],
    ["Yours, no longer in the chart", plan.removedInChart],
    ["Yours, unknown to the chart", plan.unknownToChart],
  ];
  return (
    <dl className="changes">
      {lines.map(
        ([title, paths]) =>
          paths &&
          paths.length > 0 && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{paths.join(", ")}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function Conflicts({ conflicts, prefer, choose }: { conflicts: Conflict[]; prefer: string; choose: (prefer: string) => void }) {
  if (conflicts.length === 0) return null;
  return (
    <fieldset className="conflicts">
      <legend>Changed by you and by the chart</legend>
      <table>
        <thead>
          <tr>
            <th scope="col">Value</th>
            <th scope="col">Old default</th>
            <th scope="col">Yours</th>
            <th scope="col">New default</th>
          </tr>
        </thead>
        <tbody>
          {conflicts.map((c) => (
            <tr key={c.path} data-conflict={c.path}>
              <th scope="row">{c.path}</th>
              <td>{c.old || "–"}</td>
              <td>{c.ours}</td>
              <td>{c.theirs || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {[
        ["ours", "Keep yours"],
        ["theirs", "Take the new defaults"],
      ].map(([value, title]) => (
        <label key={value} className="check">
          <input type="radio" name="prefer" checked={prefer === value} onChange={() => choose(value ?? "")} />
          <span>{title}</span>
        </label>
      ))}
    </fieldset>
  );
}
