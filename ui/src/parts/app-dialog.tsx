// Creates an Application, or changes what most people change of one. What the form does not show stays as it is.

import { type FormEvent, useEffect, useRef, useState } from "react";
import { api, type AppName } from "../api/client";
import { settings } from "../api/settings";
import type { Application } from "../api/types";
import { useAsked } from "../asked";
import { type AppForm, empty, formOf, hydrating, IN_CLUSTER, manifestOf, oldSources, withForm } from "../model/form";
import { canBeDry, type HydratorForm } from "../model/hydrator";
import { write } from "../model/write";
import { toYaml } from "../model/yaml";
import { applicationPath, navigate } from "../router";
import { Copy } from "./copy";
import { Check, Field } from "./fields";
import { Known } from "./known";
import { useToast } from "./shell";
import { Sources } from "./source-fields";

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
  const [form, setForm] = useState<AppForm>(() => (app ? formOf(app) : empty()));
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
        <Sources old={oldSources(before, form)} before={before} sources={form.sources} dry={form.hydrator !== undefined} change={(sources) => set({ sources })} />
        <Hydrator before={before} form={form} set={set} change={setForm} />
        <Target form={form} set={set} />
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

interface PartProps {
  form: AppForm;
  set: (part: Partial<AppForm>) => void;
}

function Fields({ form, set, isNew }: PartProps & { isNew: boolean }) {
  const projects = useAsked(settings.projects).value ?? [];
  return (
    <div className="two">
      {isNew && (
        <label>
          Name
          <input
            name="name"
            value={form.name}
            autoComplete="off"
            spellCheck={false}
            required
            pattern="[a-z0-9]([a-z0-9.\-]*[a-z0-9])?"
            title="Small letters, digits, - and ."
            autoFocus
            onChange={(e) => set({ name: e.target.value })}
          />
        </label>
      )}
      <Known title="Project" name="project" required value={form.project} known={projects.map((project) => project.metadata.name)} change={(project) => set({ project })} />
    </div>
  );
}

/** Where it is rendered to, if it is not synced as it is. */
function Hydrator({ before, form, set, change }: PartProps & { before: Application | undefined; change: (form: AppForm) => void }) {
  const { hydrator, sources } = form;
  if (!hydrator && !form.unhidden && !canBeDry(sources)) return null;
  const field = (title: string, key: keyof HydratorForm, more: object = {}) => (
    <Field title={title} name={`hydrator-${key}`} value={hydrator?.[key] ?? ""} set={(value) => hydrator && set({ hydrator: { ...hydrator, [key]: value } })} {...more} />
  );
  return (
    <>
      <Check
        title="Render into a branch first"
        name="hydrate"
        hint="A hydrator commits what comes of the source, and the branch is synced"
        on={hydrator !== undefined}
        set={(on) => change(hydrating(before, form, on))}
      />
      {form.unhidden && <p className="notice tone-warn">These are the sources that the Application has beside its hydrator. They are what is synced without one.</p>}
      {hydrator && (
        <div className="two">
          {field("Branch that is synced", "branch", { required: true, placeholder: "env/dev" })}
          {field("Folder in it", "folder", { required: true, placeholder: "apps/shop", hint: "Of this Application alone" })}
          {field("Branch that is written to", "to", { placeholder: "the same", hint: "If somebody else is to move the one that is synced" })}
          {field("Repository of the branches", "repoURL", { placeholder: "the one above" })}
        </div>
      )}
    </>
  );
}

function Target({ form, set }: PartProps) {
  const clusters = useAsked(settings.clusters).value ?? [];
  const check = (key: "automated" | "prune" | "selfHeal" | "createNamespace", title: string, text: string, disabled = false) => (
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
        <Known title="Cluster" name="cluster" required placeholder={IN_CLUSTER} value={form.cluster} known={clusters.map(({ server }) => server)} change={(cluster) => set({ cluster })} />
        <Known title="Namespace" name="namespace" value={form.namespace} known={[]} change={(namespace) => set({ namespace })} />
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
