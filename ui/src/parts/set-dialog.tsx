// Creates an ApplicationSet, or changes one: its manifest, and what would come, change and go before it is saved.

import { useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import { type ApplicationSet, sets } from "../api/sets";
import { EXAMPLE, readSet, setText } from "../model/set-form";
import { type Difference, differences } from "../model/sets";
import { writeSet } from "../model/write";
import { navigate, setPath } from "../router";
import { Ask } from "./ask";
import { PlanList, summary } from "./set-plan";
import { useToast } from "./shell";

interface Planned {
  /** Of this text. */
  text: string;
  found?: Difference[];
  error?: string;
}

/** The generators may ask Git and others. */
async function plan(text: string, before: ApplicationSet | undefined): Promise<Difference[]> {
  const set = await readSet(text, before);
  const [generated, list, settings] = await Promise.all([sets.generate(set), api.list(), api.settings()]);
  // Where none is named, it is the control plane's.
  const namespace = set.metadata.namespace || settings.controllerNamespace || "";
  const existing = (list.items ?? []).filter((app) => !namespace || (app.metadata.namespace ?? "") === namespace);
  return differences({ ...set, metadata: { ...set.metadata, namespace } }, generated, existing);
}

async function save(text: string, before: ApplicationSet | undefined): Promise<ApplicationSet> {
  const set = await readSet(text, before);
  if (!before) return sets.create(set);
  const { name, namespace } = before.metadata;
  return writeSet(before, set, () => sets.one({ name, namespace: namespace ?? "" }), sets.replace);
}

const words = (e: unknown) => (e instanceof Error ? e.message : String(e));

export function SetDialog({ set, onClose }: { set?: ApplicationSet; onClose: () => void }) {
  const toast = useToast();
  // As it was when the dialog was opened: a change meanwhile is found out when it is written.
  const [before] = useState(set);
  const [text, setValue] = useState(() => (set ? setText(set) : EXAMPLE));
  const [planned, setPlanned] = useState<Planned>();
  const [busy, setBusy] = useState(false);
  const result = useRef<HTMLDivElement>(null);
  const look = async () => {
    setBusy(true);
    try {
      setPlanned({ text, found: await plan(text, before) });
    } catch (e) {
      setPlanned({ text, error: words(e) });
    }
    setBusy(false);
  };
  useEffect(() => {
    // In newer browsers it has an answer, which is no cleanup.
    void result.current?.scrollIntoView({ block: "nearest" });
  }, [planned]);
  const act = async () => {
    const { metadata } = await save(text, before);
    toast(`${metadata.name} is ${before ? "changed" : "created"}`);
    if (!before) navigate(setPath({ name: metadata.name, namespace: metadata.namespace ?? "" }));
  };
  // What is saved is what was looked at.
  const isPlanned = planned?.text === text;
  return (
    <Ask
      title={before ? `Edit ${before.metadata.name}` : "New ApplicationSet"}
      confirm={isPlanned && planned.error ? "Save anyway" : before ? "Save" : "Create"}
      wide
      disabled={!isPlanned || busy}
      act={act}
      onClose={onClose}
    >
      <label>
        Manifest (YAML)
        <textarea className="yaml" name="manifest" rows={18} spellCheck={false} autoComplete="off" autoFocus value={text} onChange={(e) => setValue(e.target.value)} />
      </label>
      {before && <small>Labels and annotations that are left out here stay: the server only adds them.</small>}
      <div className="tools">
        <button type="button" disabled={busy} onClick={() => void look()}>
          Show what would change
        </button>
        <span className="dim" role="status">
          {busy ? "Generating…" : isPlanned && planned.found ? summary(planned.found) : "It can be saved after a look at what would change."}
        </span>
      </div>
      <div ref={result}>
        {isPlanned && planned.error && (
          <div className="notice tone-bad" role="alert">
            <strong>It cannot generate.</strong>
            <span>{planned.error}</span>
          </div>
        )}
        {isPlanned && planned.found && <PlanList found={planned.found} label="What would change" />}
      </div>
    </Ask>
  );
}

export function DeleteSet({ set, owned, onClose }: { set: ApplicationSet; owned: number; onClose: () => void }) {
  const { name, namespace } = set.metadata;
  const toast = useToast();
  const [typed, setTyped] = useState("");
  const keeps = set.spec.syncPolicy?.preserveResourcesOnDeletion === true;
  const act = async () => {
    await sets.remove({ name, namespace: namespace ?? "" });
    toast(`${name} is being deleted`);
    navigate("/applicationsets");
  };
  return (
    <Ask title={`Delete ${name}`} confirm="Delete" danger disabled={typed !== name} act={act} onClose={onClose}>
      <p>
        Its {owned} Applications are deleted with it.{" "}
        {keeps ? "Their resources stay in the cluster: the set preserves them." : "Their resources are deleted, unless the Applications have no finalizer."}
      </p>
      <label>
        Its name, to confirm
        <input name="confirm" autoComplete="off" value={typed} onChange={(e) => setTyped(e.target.value)} />
      </label>
    </Ask>
  );
}
