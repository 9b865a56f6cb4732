import type { Event } from "../api/types";

/** Which of its times an event has depends on who wrote it. */
export const timeOf = (event: Event) => event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata?.creationTimestamp;

const instant = (event: Event) => Date.parse(timeOf(event) ?? "") || 0;

export const newestFirst = (events: readonly Event[]) => [...events].sort((a, b) => instant(b) - instant(a));
