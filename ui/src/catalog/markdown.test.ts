import { describe, expect, it } from "vitest";
import { blocks, spans } from "./markdown";

describe("spans", () => {
  it.each([
    ["plain <script>alert(1)</script>", [{ kind: "text", text: "plain <script>alert(1)</script>" }]],
    ["`a*b*`", [{ kind: "code", text: "a*b*" }]],
    ["**b**", [{ kind: "strong", text: "b" }]],
    ["[x](https://example.org/a)", [{ kind: "link", text: "x", url: "https://example.org/a" }]],
    ["[x](javascript:alert(1))", [{ kind: "text", text: "x" }, { kind: "text", text: ")" }]],
    ["[x](data:text/html,y)", [{ kind: "text", text: "x" }]],
    ["[x](#values)", [{ kind: "text", text: "x" }]],
    ["![logo](https://tracker.example/x.png)", [{ kind: "text", text: "logo" }]],
    ["<https://example.org/>", [{ kind: "link", text: "https://example.org/", url: "https://example.org/" }]],
  ])("%s", (text, want) => expect(spans(text)).toEqual(want));
});

describe("blocks", () => {
  const kinds = (text: string) => blocks(text).map((block) => block.kind);

  it("reads what READMEs of charts have", () => {
    const text = "# Web\n\nA *chart*.\n\n```\nhelm # no heading\n```\n\n- a\n- b\n  more\n\n1. x\n\n| Key | Default |\n|---|---|\n| `a` | 1 |\n\n---\nend";
    expect(kinds(text)).toEqual(["heading", "paragraph", "code", "list", "list", "table", "rule", "paragraph"]);
    const list = blocks(text)[3];
    expect(list?.kind === "list" && list.items.length).toBe(2);
    const table = blocks(text)[5];
    expect(table?.kind === "table" && table.rows.length).toBe(2);
  });

  it("never makes HTML", () => {
    const text = '<img src=x onerror=alert(1)>\n<div onclick="x">words</div>\n\n<svg onload=alert(1)>';
    for (const block of blocks(text)) expect(block.kind).toBe("paragraph");
  });

  // Each of these kept a browser busy for seconds to minutes.
  it.each(["[](", "[", "![](", "<https:", "<!--", "<p ", "**a", "*a", "`", "[a](b ", "|"])("ends for many %j", (part) => {
    const text = part.repeat(100_000 / part.length);
    expect(blocks(text).length).toBeGreaterThan(0);
  });

  it.each(["```\nopen", "|", "#", "- ", "   indented", "\n\n"])("ends for %j", (text) => expect(Array.isArray(blocks(text))).toBe(true));
});
