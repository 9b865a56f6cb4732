// The style sheet of whoever runs the control plane (`ui.cssurl`). It comes after those of the page, so it wins.

import { ROOT } from "./root";

/** Its address: elsewhere, or a path below that of the page. Undefined: there is none, or it is no place of a style sheet. */
export function styleSheetUrl(setting: string | undefined, page: string, root: string = ROOT): string | undefined {
  const text = setting?.trim() ?? "";
  if (!text) return undefined;
  if (/^https?:\/\//i.test(text)) return URL.canParse(text) ? new URL(text).href : undefined;
  // The server allows only what its setting names, so another host needs its scheme.
  if (/^[a-z][a-z0-9+.-]*:|^[/\\]{2}/i.test(text)) return undefined;
  const url = new URL(text.replace(/^\/+/, ""), `${page}${root}/`);
  return url.origin === page ? url.href : undefined;
}

export function addStyleSheet(setting: string | undefined) {
  const href = styleSheetUrl(setting, location.origin);
  if (!href || document.querySelector("link[data-own]")) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  link.dataset["own"] = "";
  document.head.append(link);
}
