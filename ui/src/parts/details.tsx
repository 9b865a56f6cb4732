// What is below the tree: the last operation, the parameters, the history, the events and the Application itself.

import { useState } from "react";
import { api, type AppName } from "../api/client";
import type { Application } from "../api/types";
import { manifestOf } from "../model/form";
import { specText, withSpec } from "../model/spec";
import { write } from "../model/write";
import { toYaml } from "../model/yaml";
import { setQuery, useQuery } from "../router";
import { Ask } from "./ask";
import { Copy } from "./copy";
import { Events } from "./events";
import { History } from "./history";
import { Operation } from "./operation";
import { Parameters } from "./parameters";
import { useToast } from "./shell";
import { Tabs } from "./tabs";

const TABS = { operation: "Last operation", parameters: "Parameters", history: "History", events: "Events", manifest: "Manifest" };
type Tab = keyof typeof TABS;

export function Details({ app, id, now }: { app: Application; id: AppName; now: number }) {
  const wanted = useQuery("view");
  const tabs = Object.entries(TABS) as [Tab, string][];
  const shown = tabs.find(([tab]) => tab === wanted)?.[0] ?? "operation";
  return (
    <section className="operation" aria-label="Details">
      <Tabs label="Details" className="details-body" tabs={tabs} chosen={shown} choose={(view) => setQuery({ view: view === "operation" ? "" : view })}>
        {shown === "operation" && <Operation app={app} now={now} />}
        {shown === "parameters" && <Parameters app={app} />}
        {shown === "history" && <History app={app} id={id} now={now} />}
        {shown === "events" && <Events app={id} now={now} changed={app.status?.operationState?.startedAt ?? ""} />}
        {shown === "manifest" && <Manifest app={app} />}
      </Tabs>
    </section>
  );
}

/** What people enter of it, as it is kept in Git. */
function Manifest({ app }: { app: Application }) {
  const [editing, setEditing] = useState<Application>();
  const text = toYaml(manifestOf(app));
  return (
    <>
      <div className="tools">
        <button type="button" className="small" onClick={() => setEditing(app)}>
          Edit the spec…
        </button>
        <span className="grow" />
        <Copy text={text} />
      </div>
      <pre className="code" tabIndex={0} aria-label="Manifest of the Application">
        {text}
      </pre>
      {editing && <EditSpec before={editing} onClose={() => setEditing(undefined)} />}
    </>
  );
}

/** `before` is as it was when the dialog was opened: a change meanwhile is found out when it is written. */
function EditSpec({ before, onClose }: { before: Application; onClose: () => void }) {
  const toast = useToast();
  const [text, setText] = useState(() => specText(before));
  const { name, namespace } = before.metadata;
  const act = async () => {
    await write(before, await withSpec(before, text), () => api.application({ name, namespace: namespace ?? "" }));
    toast(`${name} is changed`);
  };
  return (
    <Ask title={`Edit the spec of ${name}`} confirm="Save" wide act={act} onClose={onClose}>
      <textarea className="yaml" name="spec" aria-label="Spec in YAML" rows={22} spellCheck={false} autoFocus value={text} onChange={(e) => setText(e.target.value)} />
    </Ask>
  );
}
