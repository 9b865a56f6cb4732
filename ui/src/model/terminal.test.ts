import { expect, it } from "vitest";
import { messageOf, resized, runningContainers, terminalQuery, typed } from "./terminal";

it("says what is typed, and how large the terminal is, in the words of Argo CD's page", () => {
  expect(JSON.parse(typed("ls\r", 24, 80))).toEqual({ operation: "stdin", data: "ls\r", rows: 24, cols: 80 });
  expect(JSON.parse(resized(24, 80))).toEqual({ operation: "resize", rows: 24, cols: 80 });
});

it("understands what the server says", () => {
  const heard = ['{"operation":"stdout","data":"$ ","rows":0,"cols":0}', '{"Code":1}', '{"operation":"else"}', "null", "no JSON", new ArrayBuffer(1)].map(messageOf);
  expect(heard).toEqual([{ print: "$ " }, "reconnect", undefined, undefined, undefined, undefined]);
});

it("asks for a container of an Application", () => {
  const of = { app: { name: "shop", namespace: "argocd" }, project: "default", namespace: "n", pod: "web-1", container: "web" };
  expect(terminalQuery(of)).toBe("pod=web-1&container=web&appName=shop&appNamespace=argocd&projectName=default&namespace=n");
});

it("offers containers that run", () => {
  const running = { state: { running: {} } };
  const pod = { status: { containerStatuses: [{ name: "web", ...running }, { name: "done", state: { terminated: {} } }], initContainerStatuses: [{ name: "proxy", ...running }] } };
  expect([runningContainers(JSON.stringify(pod)), runningContainers(""), runningContainers("{}")]).toEqual([["web", "proxy"], [], []]);
});
