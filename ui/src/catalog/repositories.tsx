// The chart repositories of the catalogue: their state, adding one, removing one.

import { type FormEvent, useEffect, useRef, useState } from "react";
import { useToast } from "../parts/shell";
import { catalog, type ChartProblem, type ChartRepository, type NewRepository } from "./api";

const messageOf = (e: unknown) => (e instanceof Error ? e.message : String(e));

export function Repositories({ repositories, onChanged }: { repositories: ChartRepository[]; onChanged: () => void }) {
  const toast = useToast();
  const [removing, setRemoving] = useState<ChartRepository>();
  const sync = (r: ChartRepository) => void catalog.sync(r).then(() => toast(`${r.name} is being read`), (e: unknown) => toast(messageOf(e), true));
  if (repositories.length === 0) return null;
  return (
    <div className="facets">
      <h2>Repositories</h2>
      {repositories.map((r) => (
        <div key={`${r.namespace}/${r.name}`} className={r.error ? "tone-bad" : "tone-good"} data-repository={r.name}>
          <span className="clip" title={r.error || r.url}>
            {r.namespace}/{r.name} <span className="dim">{r.error ? "failed" : `${r.charts ?? 0} charts`}</span>
          </span>
          {!!r.problems?.length && (
            <span className="dim" title={r.problems.map(line).join("\n")}>
              {r.skipped ? `${r.skipped} skipped` : "problems"}
            </span>
          )}
          <button type="button" className="quiet" aria-label={`Read ${r.name} now`} onClick={() => sync(r)}>
            Sync
          </button>
          <button type="button" className="quiet" aria-label={`Remove ${r.name}`} onClick={() => setRemoving(r)}>
            Remove
          </button>
        </div>
      ))}
      {removing && <RemoveRepository repository={removing} onRemoved={onChanged} onClose={() => setRemoving(undefined)} />}
    </div>
  );
}

const line = (p: ChartProblem) => `${p.chart} ${p.version ?? ""}: ${p.reason}`;

function RemoveRepository({ repository, onRemoved, onClose }: { repository: ChartRepository; onRemoved: () => void; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const toast = useToast();
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    try {
      await catalog.removeRepository(repository);
      toast(`${repository.name} is being removed`);
      onRemoved();
    } catch (e) {
      toast(messageOf(e), true);
    }
    dialog.current?.close();
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="remove-title">
      <form onSubmit={(e) => void submit(e)}>
        <h2 id="remove-title">Remove {repository.name}?</h2>
        <p>Its charts leave the catalogue. Applications that were made of them stay as they are.</p>
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Remove
          </button>
        </div>
      </form>
    </dialog>
  );
}

const NAME = "[a-z0-9]([a-z0-9\\-]{0,61}[a-z0-9])?";
const NOTHING: NewRepository = { name: "", url: "", type: "helm", ociRepositories: [], username: "", password: "", interval: "" };

export function AddRepository({ onAdded, onClose }: { onAdded: () => void; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const toast = useToast();
  const [wanted, setWanted] = useState(NOTHING);
  const [charts, setCharts] = useState("");
  const [error, setError] = useState("");
  const [writing, setWriting] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const set = (part: Partial<NewRepository>) => setWanted({ ...wanted, ...part });
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setWriting(true);
    try {
      const ociRepositories = wanted.type === "oci" ? charts.split(/[\s,]+/).filter(Boolean) : [];
      await catalog.addRepository({ ...wanted, ociRepositories });
      toast(`${wanted.name} is being read`);
      onAdded();
      dialog.current?.close();
    } catch (e) {
      setError(messageOf(e));
      setWriting(false);
    }
  };
  const field = (title: string, key: "name" | "url" | "username" | "password" | "interval", more: object = {}) => (
    <label>
      {title}
      <input name={key} value={wanted[key]} autoComplete="off" spellCheck={false} onChange={(e) => set({ [key]: e.target.value })} {...more} />
    </label>
  );
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="add-title">
      <form onSubmit={(e) => void submit(e)}>
        <h2 id="add-title">Add a chart repository</h2>
        {error && (
          <div className="notice tone-bad" role="alert">
            {error}
          </div>
        )}
        {field("Name", "name", { required: true, pattern: NAME, title: "Lower-case letters, digits and dashes inside" })}
        <label>
          Kind
          <select name="type" value={wanted.type} onChange={(e) => set({ type: e.target.value })}>
            <option value="helm">Helm repository (with an index)</option>
            <option value="oci">OCI registry</option>
          </select>
        </label>
        {field("URL", "url", { required: true, placeholder: wanted.type === "oci" ? "oci://ghcr.io/organisation" : "https://argoproj.github.io/argo-helm" })}
        {wanted.type === "oci" && (
          <label>
            Charts
            <textarea name="charts" rows={3} value={charts} spellCheck={false} placeholder="One path below the URL a line" onChange={(e) => setCharts(e.target.value)} />
          </label>
        )}
        {field("User name", "username")}
        {field("Password", "password", { type: "password", autoComplete: "new-password" })}
        {field("Read it every", "interval", { placeholder: "10m" })}
        <div className="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={writing}>
            Add
          </button>
        </div>
      </form>
    </dialog>
  );
}
