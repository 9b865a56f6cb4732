// Edits one object in the cluster, whatever Git says of it.

import { useState } from "react";
import { api, type AppName } from "../api/client";
import { resources } from "../api/resources";
import { changeLive, liveText } from "../model/live";
import type { TreeNode } from "../model/tree";
import { Ask } from "./ask";
import { useToast } from "./shell";

export function EditLive({ app, node, manifest, onClose }: { app: AppName; node: TreeNode; manifest: string; onClose: () => void }) {
  const toast = useToast();
  // As it was when the dialog was opened: a change meanwhile is found out when it is written.
  const [before] = useState(manifest);
  const [text, setText] = useState(() => liveText(manifest));
  const act = async () => {
    await changeLive(
      before,
      text,
      () => api.resource(app, node.ref),
      (patch) => resources.patch(app, node.ref, patch),
    );
    toast(`${node.ref.name} is changed`);
  };
  return (
    <Ask title={`Edit ${node.ref.kind} ${node.ref.name}`} confirm="Save" wide act={act} onClose={onClose}>
      {node.sync !== undefined && <p className="notice tone-warn">It is described in Git: a sync, and healing, undo what differs from that.</p>}
      <textarea className="yaml" name="live" aria-label="Live manifest in YAML" rows={22} spellCheck={false} autoFocus value={text} onChange={(e) => setText(e.target.value)} />
    </Ask>
  );
}
