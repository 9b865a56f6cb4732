import { expect, it } from "vitest";
import { containersOf, hasLogs, logsText, MOST_LINES, withLines } from "./logs";

it("keeps the newest lines, without the message that ends a stream", () => {
  const many = Array.from({ length: MOST_LINES }, (_, i) => ({ content: String(i) }));
  const kept = withLines(many, [{ content: "new" }, { content: "", last: true }]);
  expect(kept.length).toBe(MOST_LINES);
  expect(kept[0]?.content).toBe("1");
  expect(kept.at(-1)?.content).toBe("new");
});

it.each([
  ["a Pod", { spec: { containers: [{ name: "web" }], initContainers: [{ name: "init" }] } }, ["web", "init"]],
  ["a Deployment", { spec: { template: { spec: { containers: [{ name: "a" }, { name: "b" }] } } } }, ["a", "b"]],
  ["a CronJob", { spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: "job" }] } } } } } }, ["job"]],
  ["a Service", { spec: { ports: [] } }, []],
])("the containers of %s", (_, object, want) => expect(containersOf(JSON.stringify(object))).toEqual(want));

it("finds no containers in what is no object", () => expect(containersOf("")).toEqual([]));

it("names the Pods only where there are several", () => {
  expect(logsText([{ podName: "a", content: "x" }, { podName: "a" }])).toBe("x\n");
  expect(logsText([{ podName: "a", content: "x" }, { podName: "b", content: "y" }])).toBe("a x\nb y");
  const [one, two] = [{ podName: "a", content: "x", timeStampStr: "T1" }, { podName: "b", content: "y" }];
  expect([logsText([one], true), logsText([one, two], true)]).toEqual(["T1 x", "T1 a x\nb y"]);
});

it("knows what has Pods", () => expect([hasLogs("Pod"), hasLogs("Deployment"), hasLogs("Service")]).toEqual([true, true, false]));
