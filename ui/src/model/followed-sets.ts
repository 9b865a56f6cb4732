// The ApplicationSets of a page: what a look at all of them and the events of a watch make of them.

import type { ApplicationSet, SetEvent } from "../api/sets";

const keyOf = ({ metadata }: ApplicationSet) => `${metadata.namespace ?? ""}/${metadata.name}`;
const versionOf = ({ metadata }: ApplicationSet) => Number(metadata.resourceVersion ?? 0);
/** As the server lists them. */
const byName = (a: ApplicationSet, b: ApplicationSet) => {
  const isFirst = a.metadata.name === b.metadata.name ? keyOf(a) < keyOf(b) : a.metadata.name < b.metadata.name;
  return isFirst ? -1 : 1;
};

function apply(sets: Map<string, ApplicationSet>, { type, applicationSet }: SetEvent) {
  const key = keyOf(applicationSet);
  const known = sets.get(key);
  // A look may have seen what came after this event.
  if (known && versionOf(known) > versionOf(applicationSet)) return;
  if (type === "DELETED") sets.delete(key);
  else sets.set(key, applicationSet);
}

export class FollowedSets {
  private sets: Map<string, ApplicationSet> | undefined;
  /** The events since the look began that has not ended. */
  private since: SetEvent[] | undefined;

  /** Undefined until the first look has ended. */
  get all(): ApplicationSet[] | undefined {
    return this.sets && [...this.sets.values()].sort(byName);
  }

  /** A look begins. */
  begin() {
    this.since = [];
  }

  /** The look has found these; it may be older than the events since it began. */
  found(all: readonly ApplicationSet[]) {
    const sets = new Map(all.map((set) => [keyOf(set), set]));
    for (const event of this.since ?? []) apply(sets, event);
    this.sets = sets;
    this.since = undefined;
  }

  take(event: SetEvent) {
    this.since?.push(event);
    if (this.sets) apply(this.sets, event);
  }
}
