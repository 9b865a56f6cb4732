import { afterEach, expect, it, vi } from "vitest";
import { LISTENS, setFollower } from "./set-follower";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const set = (name: string, resourceVersion: string) => ({ metadata: { name, namespace: "n", resourceVersion }, spec: {} });
const event = (type: string, applicationSet: object) => ({ result: { type, applicationSet } });

type Answer = object[] | Response | Promise<object[]>;

/** A watch that is answered when it is opened, and goes on until it is ended. */
function watching() {
  let stream: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (stream = controller) });
  let answer: (response: Response) => void = () => undefined;
  const response = new Promise<Response>((done) => (answer = done));
  return {
    response,
    open: () => answer(new Response(body)),
    tell: (one: object) => stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(one)}\n\n`)),
    end: () => stream.close(),
    fail: (why: unknown) => stream.error(why),
  };
}

/** A server with these answers to lists and these watches, one after the other, and what was asked of it. */
function serve(lists: Answer[], watches: ReturnType<typeof watching>[]) {
  const asked: { url: URL; signal: AbortSignal | undefined }[] = [];
  const answer = async (path: string, init?: RequestInit) => {
    const url = new URL(path, "http://page");
    asked.push({ url, signal: init?.signal ?? undefined });
    if (url.pathname.includes("/stream/")) {
      const watch = watches.shift() ?? expect.unreachable();
      init?.signal?.addEventListener("abort", () => watch.fail(init.signal?.reason));
      return watch.response;
    }
    const next = (await lists.shift()) ?? expect.unreachable();
    return next instanceof Response ? next : Response.json({ items: next });
  };
  vi.stubGlobal("fetch", vi.fn(answer));
  return asked;
}

const looks = (asked: { url: URL }[]) => asked.filter(({ url }) => !url.pathname.includes("/stream/")).length;

/** A follower, and what it has told last. */
function follow() {
  const told: string[][] = [];
  const open = setFollower((all) => void told.push(all.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)));
  return { open, last: () => told.at(-1) };
}

/** A list that is answered later. */
function slow() {
  let answer: (all: object[]) => void = () => undefined;
  const list = new Promise<object[]>((done) => (answer = done));
  return { list, answer };
}

it("looks again when the watch is open, then draws the changes without another look", async () => {
  const watch = watching();
  // What has changed before the server listened is in no event.
  const asked = serve([[set("a", "1"), set("b", "2")], [set("a", "3"), set("b", "2")]], [watch]);
  const { open, last } = follow();
  const ended = open(new AbortController().signal, () => {});
  await vi.waitFor(() => expect(last()).toEqual(["a@1", "b@2"]));
  watch.open();
  await vi.waitFor(() => expect(last()).toEqual(["a@3", "b@2"]));
  for (const one of [event("MODIFIED", set("a", "4")), event("DELETED", set("b", "5")), event("ADDED", set("c", "6"))]) watch.tell(one);
  await vi.waitFor(() => expect(last()).toEqual(["a@4", "c@6"]));
  watch.end();
  await ended;
  expect(looks(asked)).toBe(2);
  const [list, stream] = asked.map(({ url }) => url.searchParams.get("fields")?.split(",") ?? []);
  expect(list).toContain("items.status.health");
  expect(stream).toContain("result.type");
  expect(stream).toContain("result.applicationSet.status.health");
  // The resources of all Applications are in no row.
  expect([...(list ?? []), ...(stream ?? [])].filter((field) => field.endsWith(".status") || field.endsWith("resources"))).toEqual([]);
});

it("a look that goes on when the watch ends tells nothing any more", async () => {
  const [first, second, late] = [watching(), watching(), slow()];
  const asked = serve([[set("a", "1")], late.list, [set("b", "3")], [set("b", "4")]], [first, second]);
  const { open, last } = follow();
  const control = new AbortController();
  const ended = open(control.signal, () => {});
  first.open();
  await vi.waitFor(() => expect(looks(asked)).toBe(2));
  first.end();
  await ended;
  expect(asked.at(-1)?.signal?.aborted).toBe(true);
  const next = open(control.signal, () => {});
  second.open();
  await vi.waitFor(() => expect(last()).toEqual(["b@4"]));
  late.answer([set("old", "2")]);
  second.tell(event("MODIFIED", set("b", "5")));
  await vi.waitFor(() => expect(last()).toEqual(["b@5"]));
  second.end();
  await next;
  expect(last()).toEqual(["b@5"]);
});

it("looks once at a time", async () => {
  vi.useFakeTimers();
  const [watch, late] = [watching(), slow()];
  const asked = serve([[set("a", "1")], late.list, [set("a", "3")]], [watch]);
  const { open, last } = follow();
  const opened = vi.fn();
  const ended = open(new AbortController().signal, opened);
  // The watch says nothing for long, then it opens while the second look is under way.
  await vi.advanceTimersByTimeAsync(LISTENS);
  expect(looks(asked)).toBe(2);
  watch.open();
  await vi.advanceTimersByTimeAsync(LISTENS);
  expect(opened).toHaveBeenCalled();
  expect(looks(asked)).toBe(2);
  late.answer([set("a", "2")]);
  await vi.advanceTimersByTimeAsync(LISTENS);
  expect([looks(asked), last()]).toEqual([3, ["a@3"]]);
  watch.end();
  await ended;
});

it("fails as a look does, and watches nothing then", async () => {
  const asked = serve([Response.json({ message: "no" }, { status: 403 })], []);
  const open = setFollower(() => expect.unreachable());
  await expect(open(new AbortController().signal, () => {})).rejects.toMatchObject({ status: 403 });
  expect(asked.length).toBe(1);
});

it("fails when a later look does", async () => {
  const watch = watching();
  serve([[set("a", "1")], Response.json({ message: "no" }, { status: 403 })], [watch]);
  const { open, last } = follow();
  const failed = expect(open(new AbortController().signal, () => {})).rejects.toMatchObject({ status: 403 });
  watch.open();
  await failed;
  expect(last()).toEqual(["a@1"]);
});
