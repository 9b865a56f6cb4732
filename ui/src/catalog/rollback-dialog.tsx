// Asks to which earlier version of its chart an Application goes back, and shows what of its source changes.

import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import type { Application } from "../api/types";
import { diffLines } from "../model/diff";
import { toYaml } from "../model/yaml";
import { write } from "../model/write";
import { useToast } from "../parts/shell";
import { catalog } from "./api";
import { useAsked } from "../asked";
import { Unified } from "./parts";
import { rolledBack, versionsBefore } from "./rollback";

/** A button, where the Application is a chart. */
export function Rollback({ app }: { app: Application }) {
  const [asking, setAsking] = useState(false);
  if (!app.spec.source?.chart) return null;
  return (
    <>
      <button type="button" onClick={() => setAsking(true)}>
        Roll back…
      </button>
      {asking && <Dialog name={app.metadata.name} namespace={app.metadata.namespace ?? ""} onClose={() => setAsking(false)} />}
    </>
  );
}

const SIGNS = { same: " ", added: "+", removed: "-" };

function Dialog({ name, namespace, onClose }: { name: string; namespace: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const toast = useToast();
  // The whole of it as it is now.
  const asked = useAsked(useCallback((signal: AbortSignal) => catalog.application(name, namespace, signal), [name, namespace]));
  const app = asked.value;
  const versions = app ? versionsBefore(app) : [];
  const [wanted, setWanted] = useState("");
  const [writing, setWriting] = useState(false);
  const chosen = versions.find((one) => one.version === wanted) ?? versions[0];
  useEffect(() => dialog.current?.showModal(), []);
  const difference = app && chosen ? diffLines(toYaml(app.spec.source), toYaml(chosen.source)) : [];
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    if (!app || !chosen) return;
    setWriting(true);
    try {
      await write(app, rolledBack(app, chosen), () => catalog.application(name, namespace));
      toast(`${name} goes back to ${chosen.version}`);
      dialog.current?.close();
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
      asked.again();
      setWriting(false);
    }
  };
  return (
    <dialog ref={dialog} className="wide" onClose={onClose} aria-labelledby="rollback-title">
      <form onSubmit={(e) => void submit(e)}>
        <h2 id="rollback-title">Roll {name} back</h2>
        {asked.error && (
          <div className="notice tone-bad" role="alert">
            {asked.error.message}
          </div>
        )}
        {app && versions.length === 0 && <p>It had no other version of this chart.</p>}
        <label>
          To
          <select name="version" value={chosen?.version ?? ""} onChange={(e) => setWanted(e.target.value)}>
            {versions.map((one) => (
              <option key={one.version} value={one.version}>
                {one.version} {one.deployedAt && `(${one.deployedAt.slice(0, 10)})`}
              </option>
            ))}
          </select>
        </label>
        <h3>What changes</h3>
        <Unified text={difference.map((line) => `${SIGNS[line.kind]} ${line.text}`).join("\n")} />
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={!chosen || writing}>
            Roll back
          </button>
        </div>
      </form>
    </dialog>
  );
}
