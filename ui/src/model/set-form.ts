// An ApplicationSet as it is edited: a manifest in YAML.

import type { ApplicationSet } from "../api/sets";
import { isRefresh } from "./write";
import { toYaml } from "./yaml";

export const EXAMPLE = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: teams
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - list:
        elements:
          - team: red
          - team: blue
  template:
    metadata:
      name: "{{.team}}-shop"
    spec:
      project: default
      source:
        repoURL: https://git.example.org/team/shop.git
        path: "deploy/{{.team}}"
        targetRevision: HEAD
      destination:
        server: https://kubernetes.default.svc
        namespace: "{{.team}}"
`;

/** What people enter of it. */
export function setText({ metadata, spec }: ApplicationSet): string {
  const { name, namespace, labels, annotations, finalizers } = metadata;
  const others = Object.entries(annotations ?? {}).filter(([key]) => key !== "kubectl.kubernetes.io/last-applied-configuration" && !isRefresh(key));
  const parts = { name, namespace, labels, annotations: others.length > 0 ? Object.fromEntries(others) : undefined, finalizers };
  const kept = Object.fromEntries(Object.entries(parts).filter(([, value]) => value));
  return `${toYaml({ apiVersion: "argoproj.io/v1alpha1", kind: "ApplicationSet", metadata: kept, spec })}\n`;
}

/** To them `.` and `e1` are texts: a number has a digit at its beginning. */
const NUMBER = /^[-+]?\.?\d/;

/** Reads YAML as Kubernetes' tools do. It is loaded when somebody edits. */
export async function readYaml(text: string): Promise<unknown> {
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, {
    version: "1.1",
    customTags: (tags) =>
      tags.flatMap((tag) => {
        if (typeof tag === "string" || !tag.test) return tag;
        // Times are texts in manifests.
        if (tag.tag.endsWith(":timestamp")) return [];
        const isNumber = tag.tag.endsWith(":float") && !tag.test.test(".nan");
        return isNumber ? { ...tag, test: new RegExp(`(?=${NUMBER.source})${tag.test.source}`) } : tag;
      }),
  });
  const [error] = document.errors;
  if (error) throw new Error(error.message);
  return document.toJS({ maxAliasCount: 100 });
}

/** `before` is the set that is edited; it stays the same one. */
export async function readSet(text: string, before?: ApplicationSet): Promise<ApplicationSet> {
  const value = (await readYaml(text)) as Partial<ApplicationSet & { kind: string }> | null;
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("This is no manifest of an ApplicationSet.");
  if (value.kind !== "ApplicationSet") throw new Error(`kind: ${JSON.stringify(value.kind)} is not ApplicationSet.`);
  const { metadata, spec } = value;
  if (!metadata?.name) throw new Error("metadata.name: an ApplicationSet needs a name.");
  if (!spec) throw new Error("spec: is missing.");
  if (!before) {
    // Of a manifest that was copied from a cluster: what belongs to the object there.
    const { status: _, ...rest } = value;
    const { resourceVersion, uid, managedFields, ...kept } = metadata as ApplicationSet["metadata"] & Record<string, unknown>;
    return { ...rest, metadata: kept, spec };
  }
  const { name, namespace } = before.metadata;
  if (metadata.name !== name) throw new Error(`metadata.name: the set is called ${name}, and stays so.`);
  if (metadata.namespace !== undefined && metadata.namespace !== namespace) throw new Error(`metadata.namespace: the set is in ${namespace}, and stays there.`);
  return { ...value, metadata: { ...metadata, ...(namespace && { namespace }) }, spec };
}
