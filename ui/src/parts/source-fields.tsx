// The sources in an Application's form: where each comes from, and what it gives to the tool that renders it.

import { useCallback, useRef, useState } from "react";
import { settings } from "../api/settings";
import type { Application, Source } from "../api/types";
import { useAsked } from "../asked";
import { type AppDetails, type Tool, toolOf } from "../model/parameters";
import { PLUGIN_KINDS } from "../model/plugin";
import { moved, type SourceForm, sourceForm, takesValues } from "../model/source";
import { type Column, Rows } from "./fields";
import { Known } from "./known";
import { HelmOptions, JsonnetOptions, KustomizeOptions } from "./tool-options";

interface Props {
  /** The Application that is edited; undefined: it is new. */
  before: Application | undefined;
  /** What the sources in the form were. */
  old: Source[];
  sources: SourceForm[];
  /** A hydrator renders it: there is one, in Git. */
  dry: boolean;
  change: (sources: SourceForm[]) => void;
}

export function Sources({ before, old, sources, dry, change }: Props) {
  const repositories = useAsked(settings.repositories).value ?? [];
  const box = useRef<HTMLDivElement>(null);
  const several = sources.length > 1;
  const of = (at: number) => (several ? ` of source ${at + 1}` : "");
  // The button that was pressed is gone, or at its end: the keyboard stays in the list.
  const focus = () => requestAnimationFrame(() => box.current?.querySelector<HTMLElement>("[data-add]")?.focus());
  const move = (at: number, by: 1 | -1, title: string) => (
    <button
      type="button"
      className="small"
      aria-label={`${title} source ${at + 1}`}
      disabled={at + by < 0 || at + by >= sources.length}
      onClick={() => change(moved(sources, at, by))}
    >
      {title}
    </button>
  );
  return (
    <div className="sources" ref={box}>
      {sources.map((source, at) => (
        <fieldset key={source.key} data-source={at}>
          {several && <legend>Source {at + 1}</legend>}
          {several && (
            <div className="tools">
              {move(at, -1, "Up")}
              {move(at, 1, "Down")}
              <button type="button" className="small" aria-label={`Remove source ${at + 1}`} onClick={() => (change(sources.toSpliced(at, 1)), focus())}>
                Remove
              </button>
            </div>
          )}
          <OneSource
            before={before}
            source={source.at === undefined ? undefined : old[source.at]}
            form={source}
            several={several}
            dry={dry}
            of={of(at)}
            known={repositories.map(({ repo }) => repo)}
            set={(part) => change(sources.with(at, { ...source, ...part }))}
          />
        </fieldset>
      ))}
      {!dry && (
        <button type="button" className="small" data-add onClick={() => change([...sources, sourceForm()])}>
          Add a source
        </button>
      )}
      {several && <p className="dim">A later source replaces what an earlier one has of the same name.</p>}
    </div>
  );
}

interface OneProps {
  before: Application | undefined;
  /** As it was; undefined: it is new. */
  source: Source | undefined;
  form: SourceForm;
  several: boolean;
  dry: boolean;
  of: string;
  known: string[];
  set: (part: Partial<SourceForm>) => void;
}

type Texts = "path" | "revision" | "ref" | "releaseName" | "namePrefix" | "nameSuffix" | "kustomizeNamespace" | "include" | "exclude";
type Areas = "valueFiles" | "parameters" | "images" | "commonLabels" | "replicas" | "components";
type Checks = "isChart" | "skipCrds" | "ignoreMissingValueFiles" | "recurse";

const TOOLS: [NonNullable<Tool>, string][] = [
  ["helm", "Helm"],
  ["kustomize", "Kustomize"],
  ["directory", "Plain manifests"],
  ["plugin", "A plugin"],
];

const PATCH: Column[] = [
  { key: "patch", title: "Patch", kind: "area", placeholder: "- op: replace\n  path: /spec/replicas\n  value: 3", hint: "In YAML: a list of JSON patches, or a part of the object" },
  { key: "path", title: "or the file that has it", placeholder: "patches/web.yaml" },
  { key: "target.kind", title: "Kind of what is patched", placeholder: "Deployment" },
  { key: "target.name", title: "Name of what is patched", placeholder: "web, or web-.*" },
  { key: "target.group", title: "Its group", placeholder: "apps" },
  { key: "target.version", title: "Its version", placeholder: "v1" },
  { key: "target.namespace", title: "Its namespace" },
  { key: "target.labelSelector", title: "Its labels", placeholder: "tier=web" },
  { key: "target.annotationSelector", title: "Its annotations" },
];

const PARAMETER: Column[] = [
  { key: "name", title: "Name", required: true },
  { key: "kind", title: "Kind", options: PLUGIN_KINDS },
  { key: "value", title: "Value", kind: "area", hint: "A list has an entry on each line, a map key=value" },
];

type PluginProps = { form: SourceForm; details: AppDetails | undefined; set: (part: Partial<SourceForm>) => void };

function PluginFields({ form, details, set }: PluginProps) {
  const plugins = useAsked(settings.plugins).value ?? [];
  const announced = (details?.plugin?.parametersAnnouncement ?? []).map(({ name }) => name).filter(Boolean);
  return (
    <>
      <div className="two">
        <Known title="Plugin" name="pluginName" placeholder="the first that fits" value={form.pluginName} known={plugins} change={(pluginName) => set({ pluginName })} />
        <label>
          Variables, one a line
          <textarea name="pluginEnv" rows={2} spellCheck={false} placeholder="STAGE=prod" value={form.pluginEnv} onChange={(e) => set({ pluginEnv: e.target.value })} />
        </label>
      </div>
      {announced.length > 0 && <p className="dim">It takes the parameters {announced.join(", ")}.</p>}
      <Rows title="Parameters of the plugin" one="parameter" columns={PARAMETER} rows={form.pluginParameters} change={(pluginParameters) => set({ pluginParameters })} fresh={{ name: "", kind: "text", value: "" }} />
    </>
  );
}

function OneSource({ before, source, form, several, dry, of, known, set }: OneProps) {
  const { at } = form;
  // Nothing is asked about a source that is not there yet.
  const details = useAsked(
    useCallback(async (signal: AbortSignal) => (before && source && at !== undefined ? settings.details(before, source, at, signal) : undefined), [before, source, at]),
  ).value;
  const [chosen, setChosen] = useState<Tool>();
  const tool = form.isChart ? "helm" : (chosen ?? toolOf(source, details));
  const text = (title: string, key: Texts, more: object = {}) => (
    <label>
      {title}
      <input name={key} autoComplete="off" spellCheck={false} value={form[key]} onChange={(e) => set({ [key]: e.target.value })} {...more} />
    </label>
  );
  const area = (title: string, key: Areas, placeholder: string, offered: string[] = []) => (
    <label>
      {title}
      <textarea name={key} rows={2} spellCheck={false} placeholder={placeholder} value={form[key]} onChange={(e) => set({ [key]: e.target.value })} />
      {offered.length > 0 && <small>There are: {offered.join(", ")}</small>}
    </label>
  );
  const check = (title: string, key: Checks, words: string) => (
    <label className="check">
      <input type="checkbox" name={key} checked={form[key]} onChange={(e) => set({ [key]: e.target.checked })} />
      <span>
        {title}
        <small>{words}</small>
      </span>
    </label>
  );
  const onlyFiles = several && form.ref !== "" && form.path === "" && !form.isChart;
  return (
    <>
      <Known title="Repository" name="repoURL" required placeholder="https://git.example.org/team/shop.git" value={form.repoURL} known={known} change={(repoURL) => set({ repoURL })} />
      <div className="two">
        {text(form.isChart ? "Chart" : "Path", "path", { required: form.isChart, placeholder: form.isChart || onlyFiles ? "" : "." })}
        {text(form.isChart ? "Version" : "Revision", "revision", { placeholder: form.isChart ? "*" : "HEAD" })}
      </div>
      {!dry && check("It is a chart repository", "isChart", "Of Helm, with an index or in a registry")}
      {!dry && (several || form.ref) && (
        <div className="two">
          {text("Name for value files of other sources (ref)", "ref", { pattern: "[A-Za-z0-9_\\-]+", title: "Letters, digits, - and _", placeholder: "values" })}
        </div>
      )}
      {onlyFiles ? (
        <p className="dim">Without a path, other sources only take files from it: ${form.ref}/…</p>
      ) : (
        <>
          {!form.isChart && (
            <label>
              Options for
              <select name="tool" aria-label={`Options for${of}`} value={tool ?? ""} onChange={(e) => setChosen((e.target.value || undefined) as Tool)}>
                <option value="">what the repository has</option>
                {TOOLS.map(([name, title]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
          )}
          {tool === "helm" && (
            <>
              <div className="two">
                {area("Value files, one a line", "valueFiles", several ? "$values/prod.yaml" : "values-prod.yaml", details?.helm?.valueFiles)}
                {area("Parameters, one a line", "parameters", "image.tag=v2")}
                {text("Release name", "releaseName")}
              </div>
              <div className="two">
                {check("Skip CRDs", "skipCrds", "Those in the chart's folder crds")}
                {check("Missing value files are no error", "ignoreMissingValueFiles", "They are left out")}
              </div>
            </>
          )}
          {takesValues(source, tool === "helm") && (
            <label>
              Values that differ from the chart's
              <textarea name="values" rows={6} spellCheck={false} value={form.values} onChange={(e) => set({ values: e.target.value })} />
            </label>
          )}
          {tool === "helm" && <HelmOptions form={form} of={of} set={set} />}
          {tool === "plugin" && <PluginFields form={form} details={details} set={set} />}
          {tool === "kustomize" && (
            <div className="two">
              {area("Images, one a line", "images", "name=other:tag", details?.kustomize?.images)}
              {area("Labels, one a line", "commonLabels", "team=shop")}
              {area("Replicas, one a line", "replicas", "web=3")}
              {area("Components, one a line", "components", "../components/tls")}
              {text("Name prefix", "namePrefix")}
              {text("Name suffix", "nameSuffix")}
              {text("Namespace of its resources", "kustomizeNamespace")}
            </div>
          )}
          {tool === "kustomize" && <Rows title={`Patches${of}`} one="patch" columns={PATCH} rows={form.patches} change={(patches) => set({ patches })} />}
          {tool === "kustomize" && <KustomizeOptions form={form} of={of} set={set} />}
          {tool === "directory" && (
            <>
              {check("Folders in it too", "recurse", "Manifests at any depth")}
              <div className="two">
                {text("Only files like", "include", { placeholder: "*.yaml" })}
                {text("No files like", "exclude", { placeholder: "{test,*.bak}" })}
              </div>
              <JsonnetOptions form={form} of={of} set={set} />
            </>
          )}
        </>
      )}
    </>
  );
}
