// All ApplicationSets: first what there is, then what changes of it.

import { FollowedSets } from "../model/followed-sets";
import type { Open } from "./live";
import { type ApplicationSet, sets } from "./sets";

/** Events that come together are drawn together. */
const GATHER = 60;
/** By then the server listens: what has changed between the first look and that is seen by another one. */
export const LISTENS = 1000;

/** Follows the sets from one watch to the next. A watch only has what changes while it is open, so each begins with a look. */
export function setFollower(tell: (all: ApplicationSet[]) => void): Open {
  const followed = new FollowedSets();
  const flush = () => {
    const { all } = followed;
    if (all) tell(all);
  };
  return async (signal, opened) => {
    const control = new AbortController();
    let failure: unknown;
    const stop = () => control.abort();
    let isLooking = false;
    let isWanted = false;
    /** One at a time: what is asked for meanwhile is another look after it. */
    const look = async () => {
      isWanted = true;
      if (isLooking) return;
      isLooking = true;
      try {
        while (isWanted) {
          isWanted = false;
          followed.begin();
          const all = await sets.list(control.signal);
          // It may be older than what the next watch began with.
          control.signal.throwIfAborted();
          followed.found(all);
          flush();
        }
      } finally {
        isLooking = false;
      }
    };
    const lookAgain = () =>
      look().then(
        () => !control.signal.aborted && opened(),
        (e: unknown) => {
          failure ??= e;
          stop();
        },
      );
    let timer: ReturnType<typeof setTimeout> | undefined;
    let later: ReturnType<typeof setTimeout> | undefined;
    signal.addEventListener("abort", stop, { once: true });
    try {
      await look();
      // By then the watch has not failed, though it says nothing before something changes.
      later = setTimeout(() => void lookAgain(), LISTENS);
      await sets.watch(control.signal, {
        // Now it listens for sure; what has changed since the first look is seen by another one.
        open: () => (opened(), clearTimeout(later), void lookAgain()),
        message: (event) => {
          if (control.signal.aborted) return;
          followed.take(event);
          timer ??= setTimeout(() => ((timer = undefined), flush()), GATHER);
        },
      });
    } catch (e) {
      throw failure ?? e;
    } finally {
      signal.removeEventListener("abort", stop);
      // Else a look that goes on would tell of it when the next watch has told what came after.
      stop();
      clearTimeout(later);
      clearTimeout(timer);
      if (timer !== undefined && !signal.aborted) flush();
    }
  };
}
