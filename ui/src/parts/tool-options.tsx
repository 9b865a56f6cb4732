// Options of a tool that few need: they are folded away unless some are set.

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import { useAsked } from "../asked";
import type { SourceForm } from "../model/source";
import { type OptionForm, optionForm } from "../model/tool-options";
import { Check, type Column, Field, Rows } from "./fields";
import { Known } from "./known";

interface Props {
  form: SourceForm;
  /** Of which source, where there are several. */
  of: string;
  set: (part: Partial<SourceForm>) => void;
}

type Texts = { [K in keyof OptionForm]: OptionForm[K] extends string ? K : never }[keyof OptionForm];
type Checks = { [K in keyof OptionForm]: OptionForm[K] extends boolean ? K : never }[keyof OptionForm];

const NOTHING = optionForm(undefined);

const HELM: (keyof OptionForm)[] = ["skipTests", "skipSchemaValidation", "passCredentials", "helmNamespace", "helmVersion", "helmKubeVersion", "helmApiVersions", "fileParameters"];
const KUSTOMIZE: (keyof OptionForm)[] = [
  ...(["commonAnnotations", "commonAnnotationsEnvsubst", "forceCommonLabels", "forceCommonAnnotations", "labelWithoutSelector", "labelIncludeTemplates"] as const),
  ...(["ignoreMissingComponents", "kustomizeVersion", "kustomizeKubeVersion", "kustomizeApiVersions"] as const),
];
const JSONNET: (keyof OptionForm)[] = ["extVars", "tlas", "libs"];

const VARIABLE: Column[] = [
  { key: "name", title: "Name", required: true },
  { key: "value", title: "Value", kind: "area" },
  { key: "code", title: "It is code of jsonnet", kind: "check" },
];

function More({ title, form, keys, children }: { title: string; form: SourceForm; keys: readonly (keyof OptionForm)[]; children: ReactNode }) {
  const count = keys.filter((key) => form[key].toString() !== NOTHING[key].toString()).length;
  // It does not close under somebody who takes the last one away.
  const [open] = useState(count > 0);
  return (
    <details className="more-options" open={open}>
      <summary>
        {title}
        {count > 0 && ` (${count})`}
      </summary>
      {children}
    </details>
  );
}

function useFields({ form, set }: Props) {
  return {
    text: (title: string, key: Texts, placeholder = "") => <Field title={title} name={key} placeholder={placeholder} value={form[key]} set={(value) => set({ [key]: value })} />,
    area: (title: string, key: Texts, placeholder: string, hint = "") => <Field title={`${title}, one a line`} name={key} rows={2} placeholder={placeholder} hint={hint} value={form[key]} set={(value) => set({ [key]: value })} />,
    check: (title: string, key: Checks, hint: string) => <Check title={title} name={key} hint={hint} on={form[key]} set={(on) => set({ [key]: on })} />,
  };
}

export function HelmOptions(props: Props) {
  const { form, of, set } = props;
  const { text, area, check } = useFields(props);
  return (
    <More title={`Further options of Helm${of}`} form={form} keys={HELM}>
      <div className="two">
        {area("Parameters from files", "fileParameters", "config=files/config.json")}
        {area("API versions", "helmApiVersions", "monitoring.coreos.com/v1", "Those that charts look for; otherwise those of the cluster")}
        {text("Kubernetes version", "helmKubeVersion", "that of the cluster")}
        {text("Namespace of the release", "helmNamespace", "that of the destination")}
        <Known title="Helm version" name="helmVersion" placeholder="v3" value={form.helmVersion} known={["v3"]} change={(helmVersion) => set({ helmVersion })} />
      </div>
      <div className="two">
        {check("Skip tests", "skipTests", "Leave out the chart's test hooks")}
        {check("Skip the schema", "skipSchemaValidation", "Values are not compared with the chart's schema")}
        {check("Pass credentials", "passCredentials", "Also to hosts other than that of the repository")}
      </div>
    </More>
  );
}

export function KustomizeOptions(props: Props) {
  const { form, of, set } = props;
  const { text, area, check } = useFields(props);
  const versions = useAsked(api.settings).value?.kustomizeVersions ?? [];
  return (
    <More title={`Further options of Kustomize${of}`} form={form} keys={KUSTOMIZE}>
      <div className="two">
        {area("Annotations", "commonAnnotations", "owner=shop")}
        {area("API versions", "kustomizeApiVersions", "monitoring.coreos.com/v1", "Those that charts in it look for; otherwise those of the cluster")}
        {text("Kubernetes version", "kustomizeKubeVersion", "that of the cluster")}
        <Known title="Kustomize version" name="kustomizeVersion" placeholder="the usual one" value={form.kustomizeVersion} known={versions} change={(kustomizeVersion) => set({ kustomizeVersion })} />
      </div>
      <div className="two">
        {check("Variables in annotations", "commonAnnotationsEnvsubst", "${ARGOCD_APP_NAME} and the like are replaced")}
        {check("Force labels", "forceCommonLabels", "Also where the kustomization has others")}
        {check("Force annotations", "forceCommonAnnotations", "Also where the kustomization has others")}
        {check("Labels without selectors", "labelWithoutSelector", "Selectors stay as they are")}
        {check("Labels in templates", "labelIncludeTemplates", "Of Pods, where selectors stay as they are")}
        {check("Missing components are no error", "ignoreMissingComponents", "They are left out")}
      </div>
    </More>
  );
}

export function JsonnetOptions(props: Props) {
  const { form, of, set } = props;
  const { area } = useFields(props);
  const fresh = { name: "", value: "" };
  return (
    <More title={`Options of jsonnet${of}`} form={form} keys={JSONNET}>
      <Rows title={`External variables${of}`} one="external variable" columns={VARIABLE} rows={form.extVars} change={(extVars) => set({ extVars })} fresh={fresh} />
      <Rows title={`Top-level arguments${of}`} one="top-level argument" columns={VARIABLE} rows={form.tlas} change={(tlas) => set({ tlas })} fresh={fresh} />
      {area("Folders of libraries", "libs", "vendor")}
    </More>
  );
}
