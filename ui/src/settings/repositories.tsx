// Repositories and templates of credentials: connect, test, edit, disconnect.

import { useState } from "react";
import { type Credentials, manage, type Repository, settings, type Template } from "../api/settings";
import { useAsked } from "../asked";
import { Ask } from "../parts/ask";
import { Check, Field } from "../parts/fields";
import { Known } from "../parts/known";
import { useToast } from "../parts/shell";
import type { TableRow } from "../parts/table";
import { CredentialFields, sent } from "./credentials";
import { Connection, List, RowButton } from "./parts";

interface Chosen<T> {
  what: "edit" | "remove";
  /** Undefined: a new one. */
  item?: T;
}

const KINDS: [string, string][] = [
  ["git", "Git, by https or ssh"],
  ["helm", "Helm charts"],
  ["oci", "OCI registry"],
];

function Kind({ value, set }: { value: string | undefined; set: (type: string) => void }) {
  return (
    <label>
      Kind
      <select name="type" value={value || "git"} onChange={(e) => set(e.target.value)}>
        {KINDS.map(([kind, title]) => (
          <option key={kind} value={kind}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Repositories() {
  const asked = useAsked(settings.repositories);
  const toast = useToast();
  const [chosen, setChosen] = useState<Chosen<Repository>>();
  const [testing, setTesting] = useState("");
  const test = async (repository: Repository) => {
    setTesting(repository.repo);
    try {
      const state = await manage.test(repository);
      toast(state?.status === "Successful" ? `${repository.repo} can be reached` : (state?.message ?? "It cannot be reached"), state?.status !== "Successful");
      asked.again();
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
    }
    setTesting("");
  };
  const row = (item: Repository): TableRow => ({
    key: `${item.project ?? ""} ${item.repo}`,
    cells: [
      <>
        {item.repo}
        <div className="dim">{item.name}</div>
      </>,
      item.type || "git",
      item.project || "any",
      <>
        <Connection state={item.connectionState} />
        {item.inheritedCreds && <div className="dim">with the credentials of a template</div>}
      </>,
      <span className="tools">
        <RowButton title={testing === item.repo ? "Testing…" : "Test"} of={item.repo} onClick={() => void test(item)} />
        <RowButton title="Edit…" of={item.repo} onClick={() => setChosen({ what: "edit", item })} />
        <RowButton title="Disconnect…" of={item.repo} danger onClick={() => setChosen({ what: "remove", item })} />
      </span>,
    ],
  });
  const close = () => (setChosen(undefined), asked.again());
  return (
    <>
      <List title="Repositories" asked={asked} heads={["Address", "Kind", "Project", "Connection", "Change"]} row={row} none="There are none. Public ones need no entry; connect those that ask for credentials.">
        <button type="button" className="primary" onClick={() => setChosen({ what: "edit" })}>
          Connect a repository…
        </button>
      </List>
      {chosen?.what === "edit" && <RepositoryDialog before={chosen.item} onClose={close} />}
      {chosen?.what === "remove" && chosen.item && <Disconnect repository={chosen.item} onClose={close} />}
    </>
  );
}

function RepositoryDialog({ before, onClose }: { before: Repository | undefined; onClose: () => void }) {
  const toast = useToast();
  const projects = useAsked(settings.projects).value ?? [];
  const [form, setForm] = useState<Repository>(before ?? { repo: "", type: "git" });
  const set = (part: Partial<Repository>) => setForm({ ...form, ...part });
  const act = async () => {
    await (before ? manage.changeRepository(sent(form)) : manage.connect(sent(form)));
    toast(`${form.repo} is ${before ? "changed" : "connected"}`);
  };
  const isGit = !form.type || form.type === "git";
  return (
    <Ask title={before ? "Edit a repository" : "Connect a repository"} confirm={before ? "Save" : "Connect"} wide act={act} onClose={onClose}>
      {!before && <Kind value={form.type} set={(type) => set({ type })} />}
      <Field
        title="Address"
        name="repo"
        value={form.repo}
        required
        disabled={before !== undefined}
        placeholder={isGit ? "https://git.example.org/team/shop.git" : form.type === "oci" ? "oci://registry.example.org/charts" : "https://charts.example.org"}
        set={(repo) => set({ repo })}
      />
      <div className="two">
        <Field title="Name" name="name" value={form.name ?? ""} required={form.type === "helm"} set={(name) => set({ name })} />
        {before ? (
          <Field title="Project" value={form.project || "any"} disabled set={() => undefined} />
        ) : (
          <Known title="Project" name="project" placeholder="any" value={form.project ?? ""} known={projects.map(({ metadata }) => metadata.name)} change={(project) => set({ project })} />
        )}
      </div>
      <CredentialFields of={form} url={form.repo} replaces={before !== undefined} set={(part: Partial<Credentials>) => set(part)} />
      <Check title="Do not check the server's certificate or host key" name="insecure" hint="Anybody on the way could pretend to be it" on={form.insecure ?? false} set={(insecure) => set({ insecure })} />
      {isGit && <Check title="Git LFS" name="enableLfs" hint="Files that are stored beside the repository" on={form.enableLfs ?? false} set={(enableLfs) => set({ enableLfs })} />}
    </Ask>
  );
}

function Disconnect({ repository, onClose }: { repository: Repository; onClose: () => void }) {
  return (
    <Ask title="Disconnect a repository" confirm="Disconnect" danger act={() => manage.disconnect(repository)} onClose={onClose}>
      <p>
        <strong>{repository.repo}</strong>: its credentials are deleted. Applications that need them cannot be compared any more; nothing in clusters is deleted.
      </p>
    </Ask>
  );
}

export function Templates() {
  const asked = useAsked(settings.templates);
  const [chosen, setChosen] = useState<Chosen<Template>>();
  const row = (item: Template): TableRow => ({
    key: item.url,
    cells: [
      item.url,
      item.type || "git",
      item.username || "–",
      <span className="tools">
        <RowButton title="Edit…" of={item.url} onClick={() => setChosen({ what: "edit", item })} />
        <RowButton title="Remove…" of={item.url} danger onClick={() => setChosen({ what: "remove", item })} />
      </span>,
    ],
  });
  const close = () => (setChosen(undefined), asked.again());
  return (
    <>
      <List title="Credential templates" asked={asked} heads={["Addresses that begin with", "Kind", "User name", "Change"]} row={row} none="There are none. A template has the credentials of all repositories whose addresses begin alike.">
        <button type="button" className="primary" onClick={() => setChosen({ what: "edit" })}>
          New template…
        </button>
      </List>
      {chosen?.what === "edit" && <TemplateDialog before={chosen.item} onClose={close} />}
      {chosen?.what === "remove" && chosen.item && <RemoveTemplate template={chosen.item} onClose={close} />}
    </>
  );
}

function TemplateDialog({ before, onClose }: { before: Template | undefined; onClose: () => void }) {
  const toast = useToast();
  const [form, setForm] = useState<Template>(before ?? { url: "", type: "git" });
  const set = (part: Partial<Template>) => setForm({ ...form, ...part });
  const act = async () => {
    await (before ? manage.changeTemplate(sent(form)) : manage.createTemplate(sent(form)));
    toast(`The template of ${form.url} is saved`);
  };
  return (
    <Ask title={before ? "Edit a template" : "New template of credentials"} confirm="Save" wide act={act} onClose={onClose}>
      {!before && <Kind value={form.type} set={(type) => set({ type })} />}
      <Field title="Addresses that begin with" name="url" value={form.url} required disabled={before !== undefined} placeholder="https://git.example.org/team" set={(url) => set({ url })} />
      <CredentialFields of={form} url={form.url} replaces={before !== undefined} set={(part: Partial<Credentials>) => set(part)} />
    </Ask>
  );
}

function RemoveTemplate({ template, onClose }: { template: Template; onClose: () => void }) {
  return (
    <Ask title="Remove a template" confirm="Remove" danger act={() => manage.removeTemplate(template)} onClose={onClose}>
      <p>
        Repositories whose addresses begin with <strong>{template.url}</strong> have no credentials from it any more.
      </p>
    </Ask>
  );
}
