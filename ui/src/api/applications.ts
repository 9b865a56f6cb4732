// All Applications: first what there is, then what changes of it. A watch that was cut goes on where it ended.

import { type Applications } from "../model/applications";
import { Followed } from "../model/deltas";
import { api, ApiError } from "./client";
import type { Open } from "./live";
import type { ApplicationDelta } from "./types";

/** Events that come together are drawn together. */
const GATHER = 60;

/** Follows the Applications from one watch to the next, and tells of them when all of them are known. */
export function follower(tell: (apps: Applications) => void, annotations = false): Open {
  const followed = new Followed();
  return async (signal, opened) => {
    // What came in only in part is of no use to a watch that begins anew.
    if (!followed.resume) followed.forget();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const { all } = followed;
      if (all) tell(all);
    };
    const message = (event: ApplicationDelta) => {
      if (signal.aborted) return;
      followed.take(event);
      timer ??= setTimeout(flush, GATHER);
    };
    try {
      await api.watchAll(followed.resume, annotations, signal, { open: opened, message });
    } catch (e) {
      // The token is none for this server.
      if (e instanceof ApiError && e.status === 400) followed.forget();
      throw e;
    } finally {
      clearTimeout(timer);
      if (timer !== undefined && !signal.aborted) flush();
    }
  };
}
