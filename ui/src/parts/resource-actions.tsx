// What can be done with one live object: the actions of its kind, and deletion.

import { useCallback, useState } from "react";
import type { ApiError, AppName } from "../api/client";
import { resources } from "../api/resources";
import type { ResourceAction } from "../api/types";
import { useAsked } from "../asked";
import type { TreeNode } from "../model/tree";
import { Ask } from "./ask";
import { useToast } from "./shell";

export const titleOf = (action: ResourceAction) => action.displayName || action.name.charAt(0).toUpperCase() + action.name.slice(1).replaceAll("-", " ");

/** Those that can be done now, or why they are not known. */
export function useActions({ name, namespace }: AppName, { ref, live, key }: TreeNode): { actions: ResourceAction[]; error: ApiError | undefined } {
  const asked = useAsked(useCallback((signal: AbortSignal) => resources.actions({ name, namespace }, ref, signal), [name, namespace, key, live?.resourceVersion]));
  return { actions: (asked.value ?? []).filter((action) => !action.disabled), error: asked.error };
}

export function ResourceActions({ app, node }: { app: AppName; node: TreeNode }) {
  const [asking, setAsking] = useState<ResourceAction | "delete">();
  const { actions, error } = useActions(app, node);
  const close = () => setAsking(undefined);
  return (
    <div className="tools panel-actions">
      {error && <span className="wrong">Actions cannot be read: {error.message}</span>}
      {actions.map((action) => (
        <button key={action.name} type="button" className="small" data-action={action.name} onClick={() => setAsking(action)}>
          {titleOf(action)}…
        </button>
      ))}
      <button type="button" className="small" onClick={() => setAsking("delete")}>
        Delete…
      </button>
      {asking === "delete" && <DeleteResource app={app} node={node} onClose={close} />}
      {asking && asking !== "delete" && <RunAction app={app} node={node} action={asking} onClose={close} />}
    </div>
  );
}

export function RunAction({ app, node, action, onClose }: { app: AppName; node: TreeNode; action: ResourceAction; onClose: () => void }) {
  const toast = useToast();
  const [values, setValues] = useState<Record<string, string>>({});
  const parameters = action.params ?? [];
  const act = async () => {
    await resources.run(app, node.ref, action.name, parameters.map(({ name }) => ({ name, value: values[name] ?? "" })));
    toast(`${titleOf(action)}: done`);
  };
  return (
    <Ask title={`${titleOf(action)} ${node.ref.kind} ${node.ref.name}`} confirm={titleOf(action)} act={act} onClose={onClose}>
      {parameters.map(({ name }) => (
        <label key={name}>
          {name}
          <input name={name} required autoComplete="off" value={values[name] ?? ""} onChange={(e) => setValues({ ...values, [name]: e.target.value })} />
        </label>
      ))}
    </Ask>
  );
}

const WAYS: [string, string, string][] = [
  ["foreground", "With what it owns", "It stays until what it owns is gone"],
  ["orphan", "Alone", "What it owns stays in the cluster"],
  ["force", "At once", "Without waiting for anything to end well"],
];

export function DeleteResource({ app, node, onClose }: { app: AppName; node: TreeNode; onClose: () => void }) {
  const toast = useToast();
  const [way, setWay] = useState("foreground");
  const act = async () => {
    await resources.remove(app, node.ref, { force: way === "force", orphan: way === "orphan" });
    toast(`${node.ref.name} is being deleted`);
  };
  return (
    <Ask title={`Delete ${node.ref.kind} ${node.ref.name}`} confirm="Delete" danger act={act} onClose={onClose}>
      {node.sync !== undefined && <p className="notice tone-warn">It is described in Git: a sync creates it again.</p>}
      <fieldset className="choices">
        <legend>How</legend>
        {WAYS.map(([value, title, text]) => (
          <label key={value} className="check">
            <input type="radio" name="way" checked={way === value} onChange={() => setWay(value)} />
            <span>
              {title}
              <small>{text}</small>
            </span>
          </label>
        ))}
      </fieldset>
    </Ask>
  );
}
