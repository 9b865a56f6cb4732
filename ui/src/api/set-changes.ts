// Tells of every change of one ApplicationSet, and of its end.

import type { AppName } from "./client";
import type { Open } from "./live";
import { LISTENS } from "./set-follower";
import { sets } from "./sets";

/** Changes that come together are looked at together. */
export const GATHER = 200;

export interface Tell {
  /** A watch begins: what happened before is not known. */
  begins: () => void;
  changed: () => void;
  /** It is deleted. Whoever asked for it again would get a 404. */
  gone: () => void;
}

export function setChanges(id: AppName, { begins, changed, gone }: Tell): Open {
  return async (signal, opened) => {
    let timer: ReturnType<typeof setTimeout> | undefined = setTimeout(changed, LISTENS);
    let isGone = false;
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(changed, GATHER);
    };
    const message = ({ type }: { type?: string }) => {
      if (isGone || signal.aborted) return;
      if (type !== "DELETED") return later();
      isGone = true;
      clearTimeout(timer);
      gone();
    };
    try {
      await sets.watchOne(id, signal, { open: () => (opened(), begins(), later()), message });
    } finally {
      clearTimeout(timer);
    }
  };
}
