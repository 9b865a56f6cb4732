import { expect, it } from "vitest";
import type { ApplicationSet, SetEvent } from "../api/sets";
import { FollowedSets } from "./followed-sets";

const set = (name: string, resourceVersion: string): ApplicationSet => ({ metadata: { name, namespace: "n", resourceVersion }, spec: {} });
const event = (type: SetEvent["type"], name: string, resourceVersion: string): SetEvent => ({ type, applicationSet: set(name, resourceVersion) });
const known = (followed: FollowedSets) => followed.all?.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`);

it("knows nothing before the first look has ended", () => {
  const followed = new FollowedSets();
  followed.take(event("ADDED", "early", "1"));
  followed.begin();
  followed.take(event("MODIFIED", "b", "7"));
  expect(known(followed)).toBeUndefined();
  followed.found([set("b", "5"), set("a", "6")]);
  expect(known(followed)).toEqual(["a@6", "b@7"]);
});

it("takes each change by itself", () => {
  const followed = new FollowedSets();
  followed.begin();
  followed.found([set("a", "1"), set("c", "2")]);
  followed.take(event("ADDED", "b", "3"));
  followed.take(event("MODIFIED", "a", "10"));
  followed.take(event("DELETED", "c", "11"));
  expect(known(followed)).toEqual(["a@10", "b@3"]);
});

it("does not take back what came while it looked, nor what the look has seen later", () => {
  const followed = new FollowedSets();
  followed.begin();
  followed.found([set("gone", "1"), set("again", "2")]);
  followed.begin();
  for (const one of [event("DELETED", "gone", "3"), event("DELETED", "again", "4"), event("ADDED", "new", "5")]) followed.take(one);
  // The first and the last came after the answer was made, the other one before.
  followed.found([set("gone", "1"), set("again", "9")]);
  expect(known(followed)).toEqual(["again@9", "new@5"]);
  // What a look does not find is gone, though no event told of it.
  followed.begin();
  followed.found([set("new", "5")]);
  expect(known(followed)).toEqual(["new@5"]);
});
