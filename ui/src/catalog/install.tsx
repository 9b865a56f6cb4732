// Asks how to install a chart, and shows what that would apply before anything is written.

import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import type { Application } from "../api/types";
import { toYaml } from "../model/yaml";
import { useToast } from "../parts/shell";
import { applicationPath, type ChartName, navigate } from "../router";
import { catalog, type ChartDetails, type InstallRequest } from "./api";
import { useAsked } from "./hooks";
import { ValuesInput } from "./values";

/** The preview is asked for when nobody has typed for so long. */
const PAUSE = 500;

/** The Application as it is kept in Git, for those who do not write to the cluster. */
function ForGit({ application }: { application: Application }) {
  const toast = useToast();
  const { metadata, spec } = application;
  const { name, annotations } = metadata;
  const text = toYaml({ apiVersion: "argoproj.io/v1alpha1", kind: "Application", metadata: { name, annotations }, spec });
  const copy = () => void navigator.clipboard.writeText(text).then(() => toast("Copied"), (e: Error) => toast(e.message, true));
  return (
    <details data-for-git>
      <summary>As a file for Git</summary>
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={copy}>
        Copy
      </button>
    </details>
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
    useCallback(() => catalog.previewInstall(request), [request]),
    PAUSE,
  );
  const set = (part: Partial<InstallRequest>) => setRequest({ ...request, ...part });
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setWriting(true);
    try {
      // What is written is what was asked for, also when the preview is older.
      const { application } = await catalog.previewInstall(request);
      const made = await catalog.create(application);
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
            <h3>What it applies</h3>
            {(preview.value?.notes ?? []).map((note) => (
              <p className="notice tone-warn" key={note}>
                {note}
              </p>
            ))}
            {preview.error ? (
              <div className="notice tone-bad" role="alert">
                {preview.error.message}
              </div>
            ) : (
              <pre tabIndex={0}>{preview.value?.manifests ?? "…"}</pre>
            )}
            {preview.value && <ForGit application={preview.value.application} />}
          </div>
        </div>
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={writing || Boolean(preview.error)}>
            Install
          </button>
        </div>
      </form>
    </dialog>
  );
}
