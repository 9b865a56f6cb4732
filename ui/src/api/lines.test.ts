import { describe, expect, it } from "vitest";
import { EventParser } from "./lines";

describe("EventParser", () => {
  it("gives the same events however the text is cut", () => {
    const text = 'data: {"result":1}\n\n:\n\ndata: {"result":\ndata: 2}\n\nevent: x\ndata:3\r\n\r\n';
    const want = ['{"result":1}', '{"result":\n2}', "3"];
    for (const size of [1, 2, 3, 5, 7, text.length]) {
      const parser = new EventParser();
      const got: string[] = [];
      for (let at = 0; at < text.length; at += size) got.push(...parser.push(text.slice(at, at + size)));
      expect(got, `pieces of ${size}`).toEqual(want);
    }
  });

  it("keeps an incomplete event", () => {
    const parser = new EventParser();
    expect(parser.push("data: a\n")).toEqual([]);
    expect(parser.push("\n")).toEqual(["a"]);
  });

  it("ignores heartbeats", () => {
    const parser = new EventParser();
    expect(parser.push(":\n\n:\n\n")).toEqual([]);
  });
});
