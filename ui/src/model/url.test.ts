import { expect, it } from "vitest";
import { safeUrl, shortRepo } from "./url";

it.each([
  ["https://example.org/a?b=c#d", "https://example.org/a?b=c#d"],
  ["http://example.org", "http://example.org/"],
  ["https://user:word@example.org/x", "https://example.org/x"],
  ["javascript:alert(1)", undefined],
  [" javascript:alert(1)", undefined],
  ["java\nscript:alert(1)", undefined],
  ["data:text/html,x", undefined],
  ["file:///etc/passwd", undefined],
  ["//example.org", undefined],
  ["git@example.org:team/shop.git", undefined],
  ["", undefined],
  [undefined, undefined],
])("safeUrl(%j)", (text, want) => expect(safeUrl(text)).toBe(want));

it.each([
  ["https://git.example.org/team/shop.git", "git.example.org/team/shop"],
  ["https://user:word@git.example.org/shop", "git.example.org/shop"],
  ["git@git.example.org:team/shop.git", "git.example.org:team/shop"],
  ["ssh://git@git.example.org/team/shop.git", "git.example.org/team/shop"],
  ["file:///srv/git/examples.git", "…/examples"],
])("shortRepo(%j)", (text, want) => expect(shortRepo(text)).toBe(want));
