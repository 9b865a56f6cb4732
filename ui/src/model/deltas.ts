// The Applications of a watch that sends only what changes: what its events make of them, and where another watch goes on.

import type { Application, ApplicationDelta } from "../api/types";
import { type Applications, keyOf } from "./applications";

type Fields = Record<string, unknown>;

/** Takes what `part` has at these paths, of one or two names, as it is; where it has nothing, what was there is removed. */
export function patched(app: Application, part: Application, paths: readonly string[]): Application {
  const next: Fields = { ...app };
  const from = part as unknown as Fields;
  const take = (to: Fields, name: string, fields: Fields | undefined) => {
    if (fields && Object.hasOwn(fields, name)) to[name] = fields[name];
    else delete to[name];
  };
  for (const path of paths) {
    const dot = path.indexOf(".");
    if (dot < 0) {
      take(next, path, from);
      continue;
    }
    const top = path.slice(0, dot);
    const below: Fields = { ...(next[top] as Fields | undefined) };
    take(below, path.slice(dot + 1), from[top] as Fields | undefined);
    next[top] = below;
  }
  return next as unknown as Application;
}

/** What a page knows of the Applications, from one watch to the next. */
export class Followed {
  private apps = new Map<string, Application>();
  private complete = false;
  private token = "";

  /** With this the next watch goes on; empty: it begins anew. */
  get resume(): string {
    return this.token;
  }

  /** Undefined until the first state has come in whole: what is missing of it was not deleted. */
  get all(): Applications | undefined {
    return this.complete ? new Map(this.apps) : undefined;
  }

  /** The next watch begins anew. */
  forget() {
    this.apps = new Map();
    this.complete = false;
    this.token = "";
  }

  take({ type, application, delta }: ApplicationDelta) {
    if (type === "EXPIRED") this.forget();
    else if (type === "BOOKMARK") this.complete = true;
    else if (type === "ADDED") this.apps.set(keyOf(application), application);
    else if (type === "DELETED") this.apps.delete(keyOf(application));
    else this.change(application, delta?.changed ?? []);
    // An event without one is part of a batch: what is here then belongs to no token, and a watch that is cut begins anew.
    this.token = delta?.resume ?? "";
  }

  private change(part: Application, paths: readonly string[]) {
    const known = this.apps.get(keyOf(part));
    if (known) return void this.apps.set(keyOf(part), patched(known, part, paths));
    this.forget();
    throw new Error(`the server changed ${part.metadata.name}, of which it had not told`);
  }
}
