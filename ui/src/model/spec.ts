// The spec of an Application as it is edited: all of it, in YAML.

import type { Application } from "../api/types";
import { readYaml } from "./set-form";
import { toYaml } from "./yaml";

export const specText = ({ spec }: Application) => `${toYaml(spec)}\n`;

/** The Application with what was entered as its spec. */
export async function withSpec(app: Application, text: string): Promise<Application> {
  const spec = await readYaml(text);
  if (typeof spec !== "object" || spec === null || Array.isArray(spec)) throw new Error("This is no spec of an Application.");
  const wrong = ["apiVersion", "kind", "metadata", "spec", "status"].filter((key) => Object.hasOwn(spec, key));
  if (wrong.length > 0) throw new Error(`${wrong.join(", ")}: only what is below spec is edited here.`);
  return { ...app, spec };
}
