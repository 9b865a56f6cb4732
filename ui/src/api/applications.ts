// All Applications, as a list and the events after it.

import { type Applications, withEvents, withList } from "../model/applications";
import { api } from "./client";
import type { ApplicationEvent } from "./types";

/** Events that come together are drawn together. */
const GATHER = 60;

/** Tells of the Applications until the stream of events ends or fails. */
export async function follow(signal: AbortSignal, opened: () => void, tell: (change: (now: Applications) => Applications) => void) {
  let waiting: ApplicationEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const events = waiting;
    waiting = [];
    tell((now) => withEvents(now, events));
  };
  const message = (event: ApplicationEvent) => {
    waiting.push(event);
    timer ??= setTimeout(flush, GATHER);
  };
  const listed = async (isWanted: () => boolean) => {
    const list = await api.list(signal);
    if (isWanted()) tell((now) => withList(now, list));
  };
  let listing: Promise<void> | undefined;
  // Without any Application the stream opens only with its first heartbeat. What fails here is told of by the stream.
  const early = listed(() => !listing && !signal.aborted).catch(() => undefined);
  // Once more when the stream is open, so that nothing falls between it and the list.
  const open = () => (opened(), (listing = listed(() => !signal.aborted).catch(() => undefined)), undefined);
  try {
    await api.watchAll(signal, { open, message });
  } finally {
    clearTimeout(timer);
    await Promise.all([early, listing]);
  }
}
