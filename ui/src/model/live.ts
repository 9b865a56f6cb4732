// A live object as it is edited: the merge patch (RFC 7396) that makes of it what was entered.

import { ApiError } from "../api/client";
import { readYaml } from "./set-form";
import { toYaml } from "./yaml";

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const same = (a: unknown, b: unknown) => JSON.stringify(ordered(a)) === JSON.stringify(ordered(b));

/** The order of fields says nothing. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, ordered(value[key])]));
}

/** Undefined when nothing differs. What is gone is null. */
export function mergePatch(before: unknown, after: unknown): unknown {
  if (!isFields(before) || !isFields(after)) return same(before, after) ? undefined : after;
  const patch: Fields = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!Object.hasOwn(after, key)) patch[key] = null;
    else {
      const part = mergePatch(Object.hasOwn(before, key) ? before[key] : undefined, after[key]);
      if (part !== undefined) patch[key] = part;
    }
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** The fields of the patch that somebody else changed meanwhile. */
export function overlaps(patch: unknown, before: unknown, now: unknown, path = ""): string[] {
  if (!isFields(patch) || !isFields(before) || !isFields(now)) return same(before, now) ? [] : [path];
  const of = (value: Fields, key: string) => (Object.hasOwn(value, key) ? value[key] : undefined);
  return Object.keys(patch).flatMap((key) => overlaps(patch[key], of(before, key), of(now, key), path ? `${path}.${key}` : key));
}

/** What people edit of it, from JSON. What the cluster writes itself is left out. */
export function liveText(manifest: string): string {
  return `${toYaml(entered(manifest))}\n`;
}

function parsed(manifest: string): Fields {
  // The server has no text for what is not there.
  const value: unknown = manifest ? JSON.parse(manifest) : null;
  return isFields(value) ? value : {};
}

function entered(manifest: string): Fields {
  const { status: _status, ...object } = parsed(manifest);
  if (!isFields(object["metadata"])) return object;
  const { managedFields: _fields, resourceVersion: _version, uid: _uid, ...metadata } = object["metadata"];
  return { ...object, metadata };
}

const at = (object: unknown, path: string) => path.split(".").reduce<unknown>((value, key) => (isFields(value) && Object.hasOwn(value, key) ? value[key] : undefined), object);
const isSecret = (object: Fields) => object["apiVersion"] === "v1" && object["kind"] === "Secret";

/** With it the object would be another one. */
const FIXED = ["apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid"];

/** The first text or number in the value that is like that. */
function first(value: unknown, is: (value: unknown) => boolean, path = ""): string | undefined {
  if (Array.isArray(value)) return firstOf(value.map((item, i) => [`${path}[${i}]`, item]), is);
  if (isFields(value)) return firstOf(Object.entries(value).map(([key, item]) => [path ? `${path}.${key}` : key, item]), is);
  return is(value) ? path : undefined;
}

function firstOf(items: [string, unknown][], is: (value: unknown) => boolean): string | undefined {
  for (const [path, item] of items) {
    const found = first(item, is, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the server shows in place of the values of Secrets, also in a JSON text, and of passwords in URLs of what is Argo CD's. */
const isMask = (value: unknown) => typeof value === "string" && (/^\+{8,}$/.test(value.trim()) || value.includes('"++++++++'));
const hasHidden = (value: unknown) => typeof value === "string" && /[:/]\*{6}@|[?&][^=&?]+=\*{6}/.test(value);
/** It was rounded when it was read, or would be. */
const isRounded = (value: unknown) => typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);

/** A list is sent as a whole, so it may have what nobody entered. */
function refuseMasks(object: Fields, patch: unknown) {
  const isOurs = String(object["apiVersion"]).startsWith("argoproj.io/");
  const masked = isSecret(object) ? first(patch, isMask) : isOurs ? first(patch, hasHidden) : undefined;
  if (masked !== undefined) throw new Error(`${masked}: this stands for a value that is shown to nobody. Enter the value itself.`);
  const rounded = first(patch, isRounded);
  if (rounded !== undefined) throw new Error(`${rounded}: a browser rounds numbers as large as that. Change it with kubectl.`);
}

/** The patch for what was entered. Undefined when nothing was changed. */
export async function patchFor(before: string, text: string): Promise<Fields | undefined> {
  const [old, after] = [await readYaml(before), await readYaml(text)];
  if (!isFields(after)) throw new Error("This is no manifest.");
  const fixed = FIXED.filter((path) => at(old, path) !== at(after, path));
  if (fixed.length > 0) throw new Error(`${fixed.join(", ")}: cannot be changed.`);
  const patch = mergePatch(old, after) as Fields | undefined;
  refuseMasks(after, patch);
  return patch;
}

const TRIES = 5;
const MEANWHILE = "It was changed meanwhile";

/**
 * Changes what was entered, if nobody changed the same meanwhile. `look` gives the object as it is now, and the patch is for that version of
 * it: its status changes all the time, and is no reason to refuse. Only of a Secret nobody sees what changed: it must be the version that was
 * shown.
 */
export async function changeLive(manifest: string, text: string, look: () => Promise<string>, send: (patch: string) => Promise<unknown>): Promise<void> {
  const patch = await patchFor(liveText(manifest), text);
  if (!patch) throw new Error("Nothing was changed.");
  const sendFor = (version: unknown) => send(JSON.stringify({ ...patch, metadata: { ...(patch["metadata"] as Fields | undefined), resourceVersion: version } }));
  const before = parsed(manifest);
  const isConflict = (e: unknown) => e instanceof ApiError && e.status === 409;
  if (isSecret(before)) {
    await sendFor(at(before, "metadata.resourceVersion")).catch((e: unknown) => {
      throw isConflict(e) ? new Error(`${MEANWHILE}: look again.`) : e;
    });
    return;
  }
  for (let tries = 1; ; tries++) {
    const found = await look();
    const now = parsed(found);
    if (!isFields(now["metadata"])) throw new Error("It is gone.");
    if (at(now, "metadata.uid") !== at(before, "metadata.uid")) throw new Error("It was deleted, and there is another one of that name: look again.");
    const others = overlaps(patch, entered(manifest), entered(found));
    if (others.length > 0) throw new Error(`${MEANWHILE} (${others.join(", ")}): look again.`);
    try {
      await sendFor(at(now, "metadata.resourceVersion"));
      return;
    } catch (e) {
      if (!isConflict(e) || tries >= TRIES) throw e;
    }
  }
}
