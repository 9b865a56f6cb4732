// The Kubernetes Events of an object, the newest first.

import { useCallback } from "react";
import type { AppName } from "../api/client";
import { resources } from "../api/resources";
import type { Event, ResourceRef } from "../api/types";
import { useAsked } from "../asked";
import { newestFirst, timeOf } from "../model/events";
import { ago, exact } from "../model/time";
import { Failure } from "./shell";

/** `changed` says when to ask again. */
export function Events({ app, of, now, changed }: { app: AppName; of?: ResourceRef | undefined; now: number; changed: string }) {
  const { name, namespace } = app;
  const ask = useCallback(
    (signal: AbortSignal) => resources.events({ name, namespace }, of, signal),
    // The object is made anew on every draw.
    [name, namespace, of?.uid, of?.name, changed],
  );
  return <EventList ask={ask} now={now} />;
}

export function EventList({ ask, now }: { ask: (signal: AbortSignal) => Promise<Event[]>; now: number }) {
  const asked = useAsked(ask);
  if (asked.error) return <Failure error={asked.error} what="The events cannot be read." />;
  if (!asked.value) return <p className="dim">Loading…</p>;
  if (asked.value.length === 0) return <p className="dim">There are no events. Kubernetes forgets them after an hour or so.</p>;
  return (
    <ul className="events" aria-label="Events">
      {newestFirst(asked.value).map((event, i) => (
        <li key={event.metadata?.name ?? i} className={event.type === "Normal" ? "" : "tone-warn"}>
          <div>
            <b>{event.reason}</b>
            {event.type !== "Normal" && <span className="badge">{event.type}</span>}
            <span className="dim" title={exact(timeOf(event))}>
              {ago(timeOf(event), now)}
              {(event.count ?? 1) > 1 && `, ${event.count} times`}
            </span>
          </div>
          <p>{event.message}</p>
        </li>
      ))}
    </ul>
  );
}
