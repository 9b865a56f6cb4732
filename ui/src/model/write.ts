// Writes an Application only if it still is what was shown.

import { api, ApiError } from "../api/client";
import type { Application } from "../api/types";

/** What users enter of an Application, part by part. */
const entered = ({ metadata, spec }: Application): Record<string, unknown> => {
  // The control plane asks for refreshes with an annotation.
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !key.startsWith("argocd.argoproj.io/refresh"));
  return { source: spec.source, sources: spec.sources, spec, labels: metadata.labels ?? {}, annotations: annotations.sort() };
};

/** What users changed; the status changes all the time. */
export const changedParts = (before: Application, now: Application) => {
  const [old, current] = [entered(before), entered(now)];
  return Object.keys(old).filter((key) => JSON.stringify(old[key]) !== JSON.stringify(current[key]));
};

const TRIES = 10;

/**
 * Writes an Application as it was shown, if nobody changed what it was made of. `look` shows that again, and what it shows is the version that
 * is written: a change after it is never overwritten.
 */
export async function write(before: Application, wanted: Application, look: () => Promise<Application>, update = api.update) {
  for (let tries = 1; ; tries++) {
    const now = await look();
    const changed = changedParts(before, now);
    if (changed.length > 0) throw new Error(`${before.metadata.name} was changed meanwhile (${changed.join(", ")}): look again`);
    try {
      return await update(wanted, now.metadata.resourceVersion);
    } catch (e) {
      // Mostly its status: the next look says.
      if (!(e instanceof ApiError && e.status === 409) || tries >= TRIES) throw e;
    }
  }
}
