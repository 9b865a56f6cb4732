// The menu of one node of the tree, and what it asks before something is done.

import { memo } from "react";
import { api, type AppName, type SyncOptions } from "../api/client";
import type { Application, ResourceAction } from "../api/types";
import { hasLogs } from "../model/logs";
import type { TreeNode } from "../model/tree";
import { Item, MenuButton } from "./menu";
import { DeleteResource, RunAction, titleOf, useActions } from "./resource-actions";
import { useToast } from "./shell";
import { SyncDialog } from "./sync-dialog";

export interface NodeDeed {
  node: TreeNode;
  what: "sync" | "delete" | ResourceAction;
}

interface Props {
  app: AppName;
  node: TreeNode;
  open: (key: string, tab: string) => void;
  ask: (deed: NodeDeed) => void;
}

export const NodeMenu = memo(function NodeMenu(p: Props) {
  const { kind, name } = p.node.ref;
  return (
    <MenuButton className="node-menu" label={`Menu of ${kind} ${name}`}>
      {() => <Items {...p} />}
    </MenuButton>
  );
});

function Items({ app, node, open, ask }: Props) {
  const toast = useToast();
  const isLive = Boolean(node.live?.uid);
  const refresh = () =>
    void api.refresh(app).then(
      () => toast("Refreshed"),
      (e: unknown) => toast(e instanceof Error ? e.message : String(e), true),
    );
  return (
    <>
      <Item name="details" act={() => open(node.key, "")}>
        Details
      </Item>
      {isLive && hasLogs(node.ref.kind) && (
        <Item name="logs" act={() => open(node.key, "logs")}>
          Logs
        </Item>
      )}
      {node.sync !== undefined && !node.hook && (
        <Item name="sync" act={() => ask({ node, what: "sync" })}>
          Sync only this…
        </Item>
      )}
      <Item name="refresh" act={refresh}>
        Refresh the Application
      </Item>
      {isLive && <Actions app={app} node={node} ask={ask} />}
      {isLive && (
        <Item name="delete" danger act={() => ask({ node, what: "delete" })}>
          Delete…
        </Item>
      )}
    </>
  );
}

/** Asked for when the menu is opened: a tree has many nodes. */
function Actions({ app, node, ask }: Omit<Props, "open">) {
  const { actions, error } = useActions(app, node);
  return (
    <>
      {actions.map((action) => (
        <Item key={action.name} name={action.name} act={() => ask({ node, what: action })}>
          {titleOf(action)}…
        </Item>
      ))}
      {error && <p className="wrong">Actions cannot be read: {error.message}</p>}
    </>
  );
}

export function NodeDeedDialog({ app, id, deed, onClose }: { app: Application; id: AppName; deed: NodeDeed; onClose: () => void }) {
  const toast = useToast();
  const { node, what } = deed;
  if (what === "delete") return <DeleteResource app={id} node={node} onClose={onClose} />;
  if (what !== "sync") return <RunAction app={id} node={node} action={what} onClose={onClose} />;
  const sync = (options: SyncOptions) => {
    onClose();
    api.sync(id, options).then(
      () => toast(options.dryRun ? "Dry run started" : "Sync started"),
      (e: unknown) => toast(e instanceof Error ? e.message : String(e), true),
    );
  };
  return <SyncDialog app={app} id={id} only={node.key} onSync={sync} onClose={onClose} />;
}
