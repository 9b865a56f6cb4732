// What the sources of an Application give to Helm and Kustomize, beside what their repositories offer.

import { useCallback, useState } from "react";
import { settings } from "../api/settings";
import type { Application, Source } from "../api/types";
import { useAsked } from "../asked";
import { sourcesOf } from "../model/applications";
import { imagesOf, type Parameter, parametersOf } from "../model/parameters";
import { shortRepo } from "../model/url";
import { toYaml } from "../model/yaml";
import { setQuery, useQuery } from "../router";
import { Facts } from "./facts";
import { Failure } from "./shell";
import { Table } from "./table";

/** More rows need a filter. */
const MOST = 100;

export function Parameters({ app }: { app: Application }) {
  const sources = sourcesOf(app);
  const wanted = Number(useQuery("source")) || 0;
  const at = wanted < sources.length ? wanted : 0;
  const source = sources[at];
  if (!source) return <p className="dim">It has no source.</p>;
  const title = ({ repoURL, chart, path, ref }: Source) => [shortRepo(repoURL), chart ?? path, ref && `as $${ref}`].filter(Boolean).join(" · ");
  return (
    <>
      {sources.length > 1 && (
        <div className="tools">
          <select aria-label="Source" value={at} onChange={(e) => setQuery({ source: e.target.value === "0" ? "" : e.target.value })}>
            {sources.map((source, i) => (
              <option key={i} value={i}>
                {i + 1}: {title(source)}
              </option>
            ))}
          </select>
        </div>
      )}
      {source.ref && !source.path && !source.chart ? <p className="dim">Other sources take files from it.</p> : <OfSource key={at} app={app} source={source} at={at} />}
    </>
  );
}

function OfSource({ app, source, at }: { app: Application; source: Source; at: number }) {
  const text = JSON.stringify(source);
  const asked = useAsked(
    useCallback(
      (signal: AbortSignal) => settings.details(app, source, at, signal),
      // The Application is a new object whenever its state changes.
      [app.metadata.name, app.spec.project, at, text],
    ),
  );
  const details = asked.value;
  const { helm, kustomize } = source;
  const parameters = parametersOf(source, details);
  const images = imagesOf(source, details);
  const values = helm?.valuesObject !== undefined ? toYaml(helm.valuesObject) : helm?.values;
  const { repoURL: _repo, path: _path, chart: _chart, targetRevision: _revision, ref: _ref, helm: _helm, kustomize: _kustomize, ...others } = source;
  return (
    <div aria-busy={asked.busy}>
      {asked.error && <Failure error={asked.error} what="What the repository offers cannot be read." />}
      {!details && !asked.error && <p className="dim">Loading…</p>}
      <dl className="facts">
        <Facts name="Rendered by" lines={[details?.type]} />
        <Facts name="Release name" lines={[helm?.releaseName]} />
        <Facts name="Value files" lines={helm?.valueFiles} />
        <Facts name="In the repository" lines={details?.helm?.valueFiles} />
        <Facts name="Files as parameters" lines={helm?.fileParameters?.map(({ name, path }) => `${name} from ${path}`)} />
        <Facts name="Name prefix" lines={[kustomize?.namePrefix]} />
        <Facts name="Name suffix" lines={[kustomize?.nameSuffix]} />
        <Facts name="Namespace" lines={[kustomize?.namespace]} />
        <Facts name="Labels" lines={pairs(kustomize?.commonLabels)} />
        <Facts name="Annotations" lines={pairs(kustomize?.commonAnnotations)} />
        <Facts name="Components" lines={kustomize?.components} />
        <Facts name="Replicas" lines={kustomize?.replicas?.map(({ name, count }) => `${name}: ${count}`)} />
      </dl>
      {parameters.length > 0 && <ParameterTable all={parameters} />}
      {images.length > 0 && (
        <Table title="Images" heads={["Image", "Here"]} rows={images.map(({ image, set }) => ({ key: image, cells: [image, here(set)] }))} />
      )}
      <Text title="Patches" text={kustomize?.patches?.length ? toYaml(kustomize.patches) : undefined} />
      <Text title="Values" text={values} />
      <Text title="Values of the chart" text={details?.helm?.values} />
      <Text title="Other settings" text={Object.keys(others).length > 0 ? toYaml(others) : undefined} />
    </div>
  );
}

const here = (set: string | undefined) => (set === undefined ? <span className="dim">as it is</span> : <b>{set}</b>);
const pairs = (of: Record<string, string> | undefined) => Object.entries(of ?? {}).map(([name, value]) => `${name}=${value}`);

function ParameterTable({ all }: { all: Parameter[] }) {
  const [text, setText] = useState("");
  const found = all.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  return (
    <>
      {all.length > 8 && (
        <div className="tools">
          <input type="search" aria-label="Filter parameters" placeholder="Filter parameters" value={text} onChange={(e) => setText(e.target.value)} />
          <span className="dim" role="status">
            {found.length > MOST ? `${MOST} of ${found.length}` : found.length}
          </span>
        </div>
      )}
      <Table
        title="Parameters"
        heads={["Parameter", "Of the chart", "Here"]}
        rows={found.slice(0, MOST).map(({ name, offered, set }) => ({ key: name, cells: [name, offered ?? <span className="dim">unknown</span>, here(set)] }))}
      />
    </>
  );
}

function Text({ title, text }: { title: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <details>
      <summary>{title}</summary>
      <pre className="code" tabIndex={0}>
        {text}
      </pre>
    </details>
  );
}
