// Loads the script with the extensions, if the server has some. It finds React and the calls to register as Argo CD's page has them.

import * as React from "react";
import * as ReactDOM from "react-dom";
import * as ReactJSXRuntime from "react/jsx-runtime";
import { ROOT } from "../root";
import { extensionsAPI, type ResourceExtension } from "./registry";

const SCRIPT = `${ROOT}/extensions.js`;

function runScript(): Promise<void> {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = SCRIPT;
    script.addEventListener("load", () => done());
    script.addEventListener("error", () => failed(new Error("The script with the extensions cannot be loaded.")));
    document.head.append(script);
  });
}

/** Without extensions, or when they cannot be read, the page is as usual. */
export async function load(scope: Record<string, unknown>, ask: () => Promise<Response> = () => fetch(SCRIPT), run: () => Promise<void> = runScript): Promise<void> {
  try {
    const answer = await ask();
    if (!answer.ok || !(await answer.text()).trim()) return;
    // An old way to register a tab: `group/kind`.
    const old: { resources: Record<string, { component?: ResourceExtension["component"] }> } = { resources: {} };
    Object.assign(scope, { React, ReactDOM, ReactJSXRuntime, extensionsAPI, extensions: old });
    await run();
    for (const [key, { component }] of Object.entries(old.resources)) {
      const [group = "", kind = ""] = key.split("/");
      if (component) extensionsAPI.registerResourceExtension(component, group, kind, "More");
    }
  } catch (e) {
    console.error("The extensions of the page:", e);
  }
}
