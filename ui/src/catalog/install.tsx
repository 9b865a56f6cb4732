// Asks how to install a chart, and shows what that would change in the cluster before anything is written.

import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import type { Application } from "../api/types";
import { useAsked } from "../asked";
import { manifestOf } from "../model/form";
import { toYaml } from "../model/yaml";
import { Copy } from "../parts/copy";
import { useToast } from "../parts/shell";
import { applicationPath, type ChartName, navigate } from "../router";
import { type ChartDetails, type InstallPreview, type InstallRequest, previewInstall } from "./api";
import { Manifests, Unified } from "./parts";
import { ValuesInput } from "./values";

/** The preview is asked for when nobody has typed for so long. */
const PAUSE = 500;

/** The Application as it is kept in Git, for those who do not write to the cluster. */
function ForGit({ application }: { application: Application }) {
  const text = toYaml(manifestOf(application));
  return (
    <details data-for-git>
      <summary>As a file for Git</summary>
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} />
    </details>
  );
}

/** What it would change, what it applies, and the Application itself. */
function Preview({ preview }: { preview: InstallPreview | undefined }) {
  if (!preview) return <p className="dim">Rendering and comparing…</p>;
  const { compared, difference, manifests } = preview;
  return (
    <>
      <h3>What changes in the cluster</h3>
      {(preview.notes ?? []).map((note) => (
        <p className="notice tone-warn" key={note}>
          {note}
        </p>
      ))}
      {compared ? difference ? <Unified text={difference} /> : <p>Nothing: all of it is there as it would be.</p> : <p>It could not be compared.</p>}
      <Manifests text={manifests} open={!compared} />
      <ForGit application={preview.application} />
    </>
  );
}

export function InstallDialog({ chart, details, onClose }: { chart: ChartName; details: ChartDetails; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const toast = useToast();
  const [writing, setWriting] = useState(false);
  const [request, setRequest] = useState<InstallRequest>({
    chart: { ...chart, version: details.shown.version },
    name: details.chart.name,
    project: "default",
    destServer: "",
    destNamespace: details.chart.name,
    values: "",
    autoSync: true,
  });
  useEffect(() => dialog.current?.showModal(), []);
  const preview = useAsked(
    useCallback(() => previewInstall(request), [request]),
    PAUSE,
  );
  const set = (part: Partial<InstallRequest>) => setRequest({ ...request, ...part });
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    if (!preview.value) return;
    setWriting(true);
    try {
      // Exactly what is shown.
      const made = await api.create(preview.value.application);
      toast(`${made.metadata.name} is created`);
      navigate(applicationPath({ name: made.metadata.name, namespace: made.metadata.namespace ?? "" }));
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
      setWriting(false);
    }
  };
  const field = (title: string, key: "name" | "project" | "destServer" | "destNamespace", more: object = {}) => (
    <label>
      {title}
      <input name={key} value={request[key]} required autoComplete="off" spellCheck={false} onChange={(e) => set({ [key]: e.target.value })} {...more} />
    </label>
  );
  return (
    <dialog ref={dialog} className="wide" onClose={onClose} aria-labelledby="install-title">
      <form onSubmit={(e) => void submit(e)}>
        <h2 id="install-title">
          Install {details.chart.name} {request.chart.version}
        </h2>
        <div className="columns">
          <div>
            {field("Application", "name")}
            {field("Namespace", "destNamespace")}
            {field("Cluster", "destServer", { required: false, placeholder: "https://kubernetes.default.svc" })}
            {field("Project", "project")}
            <ValuesInput schema={details.schema} values={request.values} onChange={(values) => set({ values })} />
            <label className="check">
              <input type="checkbox" checked={request.autoSync} onChange={(e) => set({ autoSync: e.target.checked })} />
              <span>
                Sync automatically<small>Otherwise it is synced by hand</small>
              </span>
            </label>
          </div>
          <div className="preview" aria-live="polite" aria-busy={preview.busy}>
            {preview.error ? (
              <div className="notice tone-bad" role="alert">
                {preview.error.message}
              </div>
            ) : (
              <Preview preview={preview.value} />
            )}
          </div>
        </div>
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={writing || preview.busy || Boolean(preview.error)}>
            Install
          </button>
        </div>
      </form>
    </dialog>
  );
}
