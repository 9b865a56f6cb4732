import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openTerminal } from "./terminal";

/** What a test does with the connection. */
class Fake {
  static OPEN = 1;
  static made: Fake[] = [];
  readyState = 0;
  sent: string[] = [];
  onopen = () => {};
  onmessage = (_: { data: unknown }) => {};
  onclose = () => {};
  url: string;
  constructor(url: string) {
    this.url = url;
    Fake.made.push(this);
  }
  send(text: string) {
    this.sent.push(text);
  }
  close() {
    this.onclose();
  }
}

const of = { app: { name: "shop", namespace: "argocd" }, project: "default", namespace: "n", pod: "p", container: "c" };

function opened() {
  const told = { open: vi.fn(), print: vi.fn(), closed: vi.fn() };
  const terminal = openTerminal(of, told, Fake as unknown as typeof WebSocket);
  const socket = Fake.made.at(-1);
  if (!socket) throw new Error("there is no connection");
  return { told, terminal, socket };
}

beforeEach(() => vi.stubGlobal("location", { protocol: "https:", host: "cd.example.org" }));
afterEach(() => vi.unstubAllGlobals());

it("speaks only while it is open", () => {
  const { told, terminal, socket } = opened();
  expect(socket.url).toBe("wss://cd.example.org/terminal?pod=p&container=c&appName=shop&appNamespace=argocd&projectName=default&namespace=n");
  terminal.type("early", 1, 2);
  socket.readyState = 1;
  socket.onopen();
  terminal.type("ls\r", 24, 80);
  terminal.resize(30, 90);
  expect(socket.sent.map((text) => (JSON.parse(text) as { operation: string }).operation)).toEqual(["stdin", "resize"]);
  socket.onmessage({ data: '{"operation":"stdout","data":"$ "}' });
  socket.onclose();
  expect([told.open.mock.calls.length, told.print.mock.calls, told.closed.mock.calls]).toEqual([1, [["$ "]], [["", false]]]);
});

it("says when the server wants another connection", () => {
  const { told, socket } = opened();
  socket.onopen();
  socket.onmessage({ data: '{"Code":1}' });
  socket.onclose();
  expect(told.closed.mock.calls).toEqual([["", true]]);
});

it("says why it was refused, in the server's words", async () => {
  const words = "rpc error: code = PermissionDenied desc = permission denied: exec, create";
  vi.stubGlobal("fetch", vi.fn(async () => new Response(words, { status: 401 })));
  const { told, socket } = opened();
  socket.onclose();
  await vi.waitFor(() => expect(told.closed.mock.calls).toEqual([[words, false]]));
});

it("says that it needs WebSockets where only they failed", async () => {
  vi.stubGlobal("fetch", vi.fn(async () => new Response("Failed to start terminal session\n", { status: 400 })));
  const { told, socket } = opened();
  socket.onclose();
  const why = "Failed to start terminal session. If this is not about the Pod, the connection could not be upgraded: a proxy on the way must let WebSockets pass.";
  await vi.waitFor(() => expect(told.closed.mock.calls).toEqual([[why, false]]));
});

it("does not say why it was refused after it was closed here", async () => {
  let answer = (_: Response) => {};
  vi.stubGlobal("fetch", vi.fn(() => new Promise<Response>((resolve) => (answer = resolve))));
  const { told, terminal, socket } = opened();
  socket.onclose();
  terminal.close();
  const response = new Response("late", { status: 401 });
  const read = vi.spyOn(response, "text");
  answer(response);
  await vi.waitFor(() => expect(read).toHaveBeenCalled());
  // What follows the text has had its turn after this.
  await new Promise((resolve) => setTimeout(resolve));
  expect(told.closed).not.toHaveBeenCalled();
});

it("says nothing after it was closed here", () => {
  const { told, terminal } = opened();
  terminal.close();
  expect(told.closed).not.toHaveBeenCalled();
});
