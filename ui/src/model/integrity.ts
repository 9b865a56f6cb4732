// Which commits a project takes, as rows of a form: of which repositories, how they are checked, and whose signatures count.

import type { SourceIntegrity, SourcePolicy } from "../api/settings";
import type { Row } from "./project";

export const MODES = ["none", "head", "strict"];

/** One row for each policy. */
export const policyRows = (integrity: SourceIntegrity | undefined): Row[] =>
  (integrity?.git?.policies ?? []).map((policy) => ({ repos: (policy.repos ?? []).map(({ url }) => url ?? ""), mode: policy.gpg?.mode ?? "", keys: policy.gpg?.keys ?? [], policy }));

const texts = (value: unknown) => (Array.isArray(value) ? value.filter((text): text is string => typeof text === "string") : []);

/** What no column shows of a policy stays. */
function policyOf({ repos, mode, keys, policy }: Row): SourcePolicy {
  const old = policy as SourcePolicy | undefined;
  const known = old?.repos ?? [];
  const wanted: SourcePolicy = { ...old, repos: texts(repos).map((url) => known.find((repo) => repo.url === url) ?? { url }) };
  if (mode || old?.gpg || texts(keys).length > 0) wanted.gpg = { ...old?.gpg, mode: String(mode ?? ""), keys: texts(keys) };
  return wanted;
}

/** As it is while it is entered; undefined without any policy. */
export function withPolicyRows(integrity: SourceIntegrity | undefined, rows: readonly Row[]): SourceIntegrity | undefined {
  const { git, ...others } = integrity ?? {};
  const { policies: _policies, ...more } = git ?? {};
  const wanted = { ...others, ...((rows.length > 0 || Object.keys(more).length > 0) && { git: { ...more, policies: rows.map(policyOf) } }) };
  return Object.keys(wanted).length > 0 ? wanted : undefined;
}

/** As it is saved: without empty lines, and without policies for no repository. */
export function cleanedIntegrity(integrity: SourceIntegrity): SourceIntegrity | undefined {
  const rows = policyRows(integrity).map((row) => ({ ...row, repos: trimmed(row["repos"]), keys: trimmed(row["keys"]) }));
  return withPolicyRows(integrity, rows.filter(({ repos, keys }) => repos.length > 0 || keys.length > 0));
}

const trimmed = (value: unknown) => texts(value).map((text) => text.trim()).filter(Boolean);
