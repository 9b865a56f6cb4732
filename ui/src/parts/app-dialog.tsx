// Creates an Application, or changes what most people change of one. What the form does not show stays as it is.

import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import { api, type AppName } from "../api/client";
import { settings } from "../api/settings";
import type { Application } from "../api/types";
import { useAsked } from "../asked";
import { type AppForm, EMPTY, formOf, IN_CLUSTER, manifestOf, takesValues, withForm } from "../model/form";
import { toolOf } from "../model/parameters";
import { write } from "../model/write";
import { toYaml } from "../model/yaml";
import { applicationPath, navigate } from "../router";
import { Copy } from "./copy";
import { useToast } from "./shell";

interface Props {
  /** Undefined: a new one. */
  app?: Application;
  onClose: () => void;
}

export function AppDialog({ app, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const toast = useToast();
  // As it was when the dialog was opened: a change meanwhile is found out when it is written.
  const [before] = useState(app);
  const [form, setForm] = useState<AppForm>(() => (app ? formOf(app) : EMPTY));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const wanted = withForm(before, form);
  const set = (part: Partial<AppForm>) => setForm({ ...form, ...part });
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      if (before) {
        const id: AppName = { name: before.metadata.name, namespace: before.metadata.namespace ?? "" };
        await write(before, wanted, () => api.application(id));
        toast(`${id.name} is changed`);
      } else {
        const made = await api.create(wanted);
        toast(`${made.metadata.name} is created`);
        navigate(applicationPath({ name: made.metadata.name, namespace: made.metadata.namespace ?? "" }));
      }
      dialog.current?.close();
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} className="middle" onClose={onClose} aria-labelledby="app-title">
      <form onSubmit={(e) => void submit(e)}>
        <h2 id="app-title">{before ? `Edit ${before.metadata.name}` : "New Application"}</h2>
        <Fields form={form} set={set} isNew={!before} />
        <ParameterFields before={before} form={form} set={set} />
        {takesValues(before, form) && (
          <label>
            Values that differ from the chart's
            <textarea name="values" rows={6} spellCheck={false} value={form.values} onChange={(e) => set({ values: e.target.value })} />
          </label>
        )}
        <details>
          <summary>As a file for Git</summary>
          <pre className="code" tabIndex={0}>
            {toYaml(manifestOf(wanted))}
          </pre>
          <Copy text={`${toYaml(manifestOf(wanted))}\n`} />
        </details>
        {error && (
          <div className="notice tone-bad" role="alert">
            {error}
          </div>
        )}
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={busy}>
            {before ? "Save" : "Create"}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** What a chart or Kustomize gets. Nothing is asked about a source that is not there yet. */
function ParameterFields({ before, form, set }: { before: Application | undefined; form: AppForm; set: (part: Partial<AppForm>) => void }) {
  const details = useAsked(
    useCallback(async (signal: AbortSignal) => (before?.spec.source ? settings.details(before, before.spec.source, 0, signal) : undefined), [before]),
  ).value;
  const tool = form.isChart ? "helm" : toolOf(before?.spec.source, details);
  const area = (title: string, key: "valueFiles" | "parameters" | "images" | "commonLabels", placeholder: string, offered: string[] = []) => (
    <label>
      {title}
      <textarea name={key} rows={2} spellCheck={false} placeholder={placeholder} value={form[key]} onChange={(e) => set({ [key]: e.target.value })} />
      {offered.length > 0 && <small>There are: {offered.join(", ")}</small>}
    </label>
  );
  const text = (title: string, key: "namePrefix" | "nameSuffix") => (
    <label>
      {title}
      <input name={key} autoComplete="off" spellCheck={false} value={form[key]} onChange={(e) => set({ [key]: e.target.value })} />
    </label>
  );
  if (tool === "helm")
    return (
      <div className="two">
        {area("Value files, one a line", "valueFiles", "values-prod.yaml", details?.helm?.valueFiles)}
        {area("Parameters, one a line", "parameters", "image.tag=v2")}
      </div>
    );
  if (tool !== "kustomize") return null;
  return (
    <div className="two">
      {area("Images, one a line", "images", "name=other:tag", details?.kustomize?.images)}
      {area("Labels, one a line", "commonLabels", "team=shop")}
      {text("Name prefix", "namePrefix")}
      {text("Name suffix", "nameSuffix")}
    </div>
  );
}

function Fields({ form, set, isNew }: { form: AppForm; set: (part: Partial<AppForm>) => void; isNew: boolean }) {
  // What is known is proposed; anything may be entered.
  const projects = useAsked(settings.projects).value ?? [];
  const repositories = useAsked(settings.repositories).value ?? [];
  const clusters = useAsked(settings.clusters).value ?? [];
  const known: Record<string, string[]> = {
    project: projects.map((project) => project.metadata.name),
    repoURL: repositories.map((repository) => repository.repo),
    cluster: clusters.map((cluster) => cluster.server),
  };
  const field = (title: string, key: "name" | "project" | "repoURL" | "path" | "revision" | "cluster" | "namespace", more: object = {}) => (
    <label>
      {title}
      <input name={key} value={form[key]} autoComplete="off" spellCheck={false} list={known[key] && `known-${key}`} onChange={(e) => set({ [key]: e.target.value })} {...more} />
      {known[key] && (
        <datalist id={`known-${key}`}>
          {known[key].map((value) => (
            <option key={value}>{value}</option>
          ))}
        </datalist>
      )}
    </label>
  );
  const check = (key: "isChart" | "automated" | "prune" | "selfHeal" | "createNamespace", title: string, text: string, disabled = false) => (
    <label className="check">
      <input type="checkbox" name={key} checked={form[key]} disabled={disabled} onChange={(e) => set({ [key]: e.target.checked })} />
      <span>
        {title}
        <small>{text}</small>
      </span>
    </label>
  );
  return (
    <>
      <div className="two">
        {isNew && field("Name", "name", { required: true, pattern: "[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?", title: "Small letters, digits, - and .", autoFocus: true })}
        {field("Project", "project", { required: true })}
      </div>
      {field("Repository", "repoURL", { required: true, placeholder: "https://git.example.org/team/shop.git" })}
      <div className="two">
        {field(form.isChart ? "Chart" : "Path", "path", { required: form.isChart, placeholder: form.isChart ? "" : "." })}
        {field(form.isChart ? "Version" : "Revision", "revision", { placeholder: form.isChart ? "*" : "HEAD" })}
      </div>
      {check("isChart", "It is a chart repository", "Of Helm, with an index or in a registry")}
      <div className="two">
        {field("Cluster", "cluster", { required: true, placeholder: IN_CLUSTER })}
        {field("Namespace", "namespace")}
      </div>
      <div className="two">
        {check("automated", "Sync automatically", "As soon as Git changes")}
        {check("createNamespace", "Create the namespace", "If it is missing")}
        {check("prune", "Prune", "Automated sync deletes what Git no longer has", !form.automated)}
        {check("selfHeal", "Heal", "Automated sync undoes changes in the cluster", !form.automated)}
      </div>
    </>
  );
}
