// A cluster as it is added and edited.

import type { Cluster, ClusterConfig } from "../api/settings";
import { lines, mapLines, mapOf } from "./parameters";

/** As texts. */
export interface ClusterForm {
  name: string;
  namespaces: string;
  labels: string;
  annotations: string;
  project: string;
  clusterResources: boolean;
}

export type ClusterPart = Pick<Cluster, keyof ClusterForm>;

export const clusterForm = (cluster: Cluster): ClusterForm => ({
  name: cluster.name ?? "",
  namespaces: (cluster.namespaces ?? []).join("\n"),
  labels: mapLines(cluster.labels),
  annotations: mapLines(cluster.annotations),
  project: cluster.project ?? "",
  clusterResources: cluster.clusterResources ?? false,
});

/** Only what was changed in the form: what others change meanwhile stays. */
export function clusterChange(cluster: Cluster, form: ClusterForm): ClusterPart {
  const before = clusterForm(cluster);
  const wanted: Required<ClusterPart> = {
    name: form.name,
    namespaces: lines(form.namespaces),
    labels: mapOf(form.labels, cluster.labels),
    annotations: mapOf(form.annotations, cluster.annotations),
    project: form.project,
    clusterResources: form.clusterResources,
  };
  const differs = (key: string) => before[key as keyof ClusterForm] !== form[key as keyof ClusterForm];
  return Object.fromEntries(Object.entries(wanted).filter(([key]) => differs(key)));
}

/** How one signs in, as texts: certificates and keys are PEM. */
export interface AccessForm {
  bearerToken: string;
  username: string;
  password: string;
  ca: string;
  cert: string;
  key: string;
  serverName: string;
  insecure: boolean;
  proxyUrl: string;
}

/** What is stored of it and is no secret. */
export const accessForm = (config?: ClusterConfig): AccessForm => ({
  ...{ bearerToken: "", username: "", password: "", ca: "", cert: "", key: "" },
  serverName: config?.tlsClientConfig?.serverName ?? "",
  insecure: config?.tlsClientConfig?.insecure ?? false,
  proxyUrl: config?.proxyUrl ?? "",
});

/** In base64, as the API takes it; a text may have letters beyond Latin 1. */
const bytes = (text: string) => btoa(Array.from(new TextEncoder().encode(`${text.trim()}\n`), (byte) => String.fromCharCode(byte)).join(""));

const filled = <T extends object>(value: T) => Object.fromEntries(Object.entries(value).filter(([, part]) => part !== "" && part !== undefined)) as Partial<T>;

/** What is stored instead. The API replaces all of it; what it says of the rest, such as a sign-in at AWS, stays. */
export function accessOf(config: ClusterConfig | undefined, form: AccessForm): ClusterConfig {
  const { username: _username, password: _password, bearerToken: _token, tlsClientConfig: _tls, proxyUrl: _proxy, ...others } = config ?? {};
  // A sign-in at AWS would win over what was entered.
  if (form.bearerToken.trim() || form.username) delete others.awsAuthConfig;
  const pem = (text: string) => (text.trim() ? bytes(text) : undefined);
  const tlsClientConfig = { insecure: form.insecure, ...filled({ serverName: form.serverName.trim(), caData: pem(form.ca), certData: pem(form.cert), keyData: pem(form.key) }) };
  return { ...others, ...filled({ bearerToken: form.bearerToken.trim(), username: form.username, password: form.password, proxyUrl: form.proxyUrl.trim() }), tlsClientConfig };
}

/** What contradicts itself in it, with the way out; the server says it less plainly. */
export function accessProblem({ ca, cert, key, insecure, bearerToken, username }: AccessForm): string | undefined {
  const is = (text: string) => text.trim() !== "";
  if (insecure && is(ca)) return "A certificate authority counts only if the server's certificate is checked: remove it, or check the certificate.";
  if (is(cert) !== is(key)) return "A client certificate and its key belong together: enter both, or neither.";
  if (is(bearerToken) && is(username)) return "A token and a user name are two ways to sign in: enter one of them.";
  return undefined;
}
