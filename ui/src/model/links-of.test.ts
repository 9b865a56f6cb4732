import { expect, it } from "vitest";
import { allLinks } from "./links-of";

it("are those of the settings and of the objects, each once, and never a script", () => {
  const settings = [{ title: "Logs", url: "https://logs.example.org/a", description: "All of it" }, { title: "Bad", url: "javascript:alert(1)" }, { url: "https://user:secret@c.example.org/" }];
  expect(allLinks(settings, ["https://logs.example.org/a", "Shop|https://shop.example.org", "|data:text/html,a", "https://b.example.org/x"])).toEqual([
    { title: "Logs", url: "https://logs.example.org/a", description: "All of it" },
    { title: "c.example.org", url: "https://c.example.org/", description: undefined },
    { title: "Shop", url: "https://shop.example.org/", description: undefined },
    { title: "b.example.org/x", url: "https://b.example.org/x", description: undefined },
  ]);
  expect(allLinks(undefined, undefined)).toEqual([]);
});
