import { expect, it } from "vitest";
import { styleSheetUrl } from "./style-sheet";

const page = "https://cd.example.org";

it.each<[string | undefined, string, string | undefined]>([
  [undefined, "", undefined],
  [" ", "", undefined],
  ["https://static.example.org/a.css", "", "https://static.example.org/a.css"],
  ["HTTP://static.example.org:8080/a.css", "", "http://static.example.org:8080/a.css"],
  ["./custom/a.css", "", "https://cd.example.org/custom/a.css"],
  ["custom/a.css", "/argocd", "https://cd.example.org/argocd/custom/a.css"],
  ["/custom/a.css", "/argocd", "https://cd.example.org/argocd/custom/a.css"],
  ["//elsewhere.example.org/a.css", "", undefined],
  ["\\\\elsewhere.example.org/a.css", "", undefined],
  ["javascript:alert(1)", "", undefined],
  ["data:text/css,*{}", "", undefined],
  ["https://", "", undefined],
])("the setting %j below %j is at %j", (setting, root, want) => expect(styleSheetUrl(setting, page, root)).toBe(want));
