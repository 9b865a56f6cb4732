// Writes an Application or an ApplicationSet only if it still is what was shown.

import { api, ApiError } from "../api/client";
import type { ApplicationSet } from "../api/sets";
import type { Application, ObjectMeta } from "../api/types";

/** Annotations with which the control plane is asked for a refresh. */
export const isRefresh = (key: string) => ["argocd.argoproj.io/refresh", "argocd.argoproj.io/application-set-refresh"].some((asked) => key.startsWith(asked));

/** The annotations that users enter. */
const notes = ({ annotations }: ObjectMeta) => Object.entries(annotations ?? {}).filter(([key]) => !isRefresh(key)).sort();

/** What users enter of an Application, part by part. */
const entered = ({ metadata, spec }: Application): Record<string, unknown> => {
  return { source: spec.source, sources: spec.sources, spec, labels: metadata.labels ?? {}, annotations: notes(metadata), finalizers: metadata.finalizers ?? [] };
};

/** What users changed; the status changes all the time. */
export const changedParts = (before: Application, now: Application) => {
  const [old, current] = [entered(before), entered(now)];
  return Object.keys(old).filter((key) => JSON.stringify(old[key]) !== JSON.stringify(current[key]));
};

const TRIES = 10;

/** `changed` says what others changed of what it shows now. */
async function overwrite<T extends { metadata: ObjectMeta }>(look: () => Promise<T>, changed: (now: T) => string[], update: (version: string | undefined) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const now = await look();
    const parts = changed(now);
    if (parts.length > 0) throw new Error(`${now.metadata.name} was changed meanwhile (${parts.join(", ")}): look again`);
    try {
      return await update(now.metadata.resourceVersion);
    } catch (e) {
      // Mostly its status: the next look says.
      if (!(e instanceof ApiError && e.status === 409) || tries >= TRIES) throw e;
    }
  }
}

/**
 * Writes an Application as it was shown, if nobody changed what it was made of. `look` shows that again, and what it shows is the version that
 * is written: a change after it is never overwritten.
 */
export const write = (before: Application, wanted: Application, look: () => Promise<Application>, update = api.update) =>
  overwrite(look, (now) => changedParts(before, now), (version) => update(wanted, version));

/** The same for an ApplicationSet. */
export const writeSet = (before: ApplicationSet, wanted: ApplicationSet, look: () => Promise<ApplicationSet>, save: (set: ApplicationSet, resourceVersion?: string) => Promise<ApplicationSet>) => {
  const { metadata: old } = before;
  const changed = ({ spec, metadata }: ApplicationSet) =>
    Object.entries({ spec: [before.spec, spec], labels: [old.labels, metadata.labels], annotations: [notes(old), notes(metadata)], finalizers: [old.finalizers, metadata.finalizers] })
      .filter(([, [was, is]]) => JSON.stringify(was) !== JSON.stringify(is))
      .map(([part]) => part);
  return overwrite(look, changed, (resourceVersion) => save(wanted, resourceVersion));
};
