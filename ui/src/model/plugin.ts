// What a source gives to a config management plugin, as it is entered: lines of variables, and rows of parameters.

import type { PluginParameter, PluginSource } from "../api/types";
import { lines, pair } from "./parameters";
import type { Row } from "./project";

export interface PluginForm {
  pluginName: string;
  /** As lines `NAME=value`. */
  pluginEnv: string;
  /** Each with a name, a kind, and a text with lines. */
  pluginParameters: Row[];
}

export const PLUGIN_KINDS = ["text", "list", "map"];

const isLine = (text: string) => !/[\n\r]|^\s|\s$/.test(text);
const isName = (text: string) => text !== "" && isLine(text) && !text.includes("=");

type Env = NonNullable<PluginSource["env"]>[number];
const fitsEnv = ({ name, value }: Env) => isName(name) && isLine(value ?? "");

/** One kind only, and lines that hold it. */
function rowOf({ name = "", string, map, array, ...others }: PluginParameter): Row | undefined {
  const given = [string, map, array].filter((value) => value !== undefined && value !== null);
  if (given.length > 1 || Object.keys(others).length > 0) return undefined;
  if (array) return array.every((item) => item !== "" && isLine(item)) ? { name, kind: "list", value: array.join("\n") } : undefined;
  if (!map) return { name, kind: "text", value: string ?? "", ...(string === undefined && { absent: true }) };
  const entries = Object.entries(map);
  return entries.every(([key, value]) => isName(key) && isLine(value)) ? { name, kind: "map", value: entries.map(([key, value]) => `${key}=${value}`).join("\n") } : undefined;
}

function parameterOf({ name, kind, value, absent }: Row): PluginParameter {
  const text = typeof value === "string" ? value : "";
  const named = { name: String(name) };
  if (kind === "list") return { ...named, array: lines(text) };
  if (kind === "map") return { ...named, map: Object.fromEntries(lines(text).map(pair)) };
  // Without any value it differs from an empty one.
  return absent && text === "" ? named : { ...named, string: text };
}

export const pluginForm = (plugin: PluginSource | undefined): PluginForm => ({
  pluginName: plugin?.name ?? "",
  pluginEnv: (plugin?.env ?? []).filter(fitsEnv).map(({ name, value }) => `${name}=${value ?? ""}`).join("\n"),
  pluginParameters: (plugin?.parameters ?? []).map(rowOf).filter((row) => row !== undefined),
});

/** Only what was changed in the form is changed. What it cannot show stays behind what it shows. */
export function withPlugin(plugin: PluginSource | undefined, form: PluginForm): PluginSource | undefined {
  const before = pluginForm(plugin);
  const wanted: Record<string, unknown> = { ...plugin };
  const set = (key: keyof PluginSource, value: string | unknown[]) => {
    if (value.length > 0) wanted[key] = value;
    else delete wanted[key];
  };
  if (before.pluginName !== form.pluginName) set("name", form.pluginName.trim());
  if (before.pluginEnv !== form.pluginEnv) {
    const entered = lines(form.pluginEnv).map(pair);
    const kept = (plugin?.env ?? []).filter((env) => !fitsEnv(env) && !entered.some(([name]) => name === env.name));
    set("env", [...entered.map(([name, value]) => ({ name, value })), ...kept]);
  }
  if (JSON.stringify(before.pluginParameters) !== JSON.stringify(form.pluginParameters)) {
    const entered = form.pluginParameters.filter(({ name }) => typeof name === "string" && name.trim() !== "").map(parameterOf);
    const kept = (plugin?.parameters ?? []).filter((parameter) => !rowOf(parameter) && !entered.some(({ name }) => name === parameter.name));
    set("parameters", [...entered, ...kept]);
  }
  // An empty one says that a plugin renders it, and stays; a new one must say something.
  return plugin || Object.keys(wanted).length > 0 ? (wanted as PluginSource) : undefined;
}
