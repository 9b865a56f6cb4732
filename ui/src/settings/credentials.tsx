// How one signs in to a repository: fields that a repository and a template of credentials share.

import type { Credentials } from "../api/settings";
import { Check, Field } from "../parts/fields";

/** Sent as numbers; a form has texts. */
const NUMBERS = ["githubAppID", "githubAppInstallationID"] as const;

/** Without what is empty, and without what only the server says. */
export function sent<T extends Credentials>(entered: T): T {
  const { connectionState: _state, inheritedCreds: _inherited, ...others } = entered as T & { connectionState?: unknown; inheritedCreds?: unknown };
  const isEmpty = (value: unknown) => value === undefined || value === "" || value === false;
  const wanted: Record<string, unknown> = Object.fromEntries(Object.entries(others).filter(([, value]) => !isEmpty(value)));
  for (const key of NUMBERS) if (typeof wanted[key] === "string") wanted[key] = Number(wanted[key]);
  return wanted as T;
}

export const isSsh = (url: string) => url !== "" && !/^(https?|oci):\/\//i.test(url) && (/^ssh:\/\//i.test(url) || /^[^/]+@[^/]+:/.test(url));

interface Props<T extends Credentials> {
  of: T;
  url: string;
  set: (part: Partial<Credentials>) => void;
  /** What is stored is replaced. */
  replaces: boolean;
}

export function CredentialFields<T extends Credentials>({ of, url, set, replaces }: Props<T>) {
  type Azure = "azureServicePrincipalClientId" | "azureServicePrincipalClientSecret" | "azureServicePrincipalTenantId" | "azureActiveDirectoryEndpoint";
  type Texts = "username" | "password" | "bearerToken" | "sshPrivateKey" | "tlsClientCertData" | "tlsClientCertKey" | "githubAppPrivateKey" | "githubAppEnterpriseBaseUrl" | "gcpServiceAccountKey" | "proxy" | "noProxy" | Azure;
  const field = (title: string, key: Texts | (typeof NUMBERS)[number], more: object = {}) => (
    <Field title={title} name={key} value={of[key] === undefined ? "" : String(of[key])} set={(value) => set({ [key]: value })} {...more} />
  );
  const check = (title: string, key: "forceHttpBasicAuth" | "useAzureWorkloadIdentity" | "enableOCI" | "insecureOCIForceHttp", hint: string) => (
    <Check title={title} name={key} hint={hint} on={of[key] ?? false} set={(on) => set({ [key]: on })} />
  );
  const isGit = !of.type || of.type === "git";
  return (
    <>
      {replaces && (
        <div className="notice tone-warn">
          <strong>Secrets are never shown.</strong>
          <span>Enter them again: saving replaces all that is stored, and what is empty is removed.</span>
        </div>
      )}
      {isGit && isSsh(url) ? (
        field("SSH private key", "sshPrivateKey", { rows: 5, placeholder: "-----BEGIN OPENSSH PRIVATE KEY-----" })
      ) : (
        <div className="two">
          {field("User name", "username")}
          {field("Password or token", "password", { secret: true })}
        </div>
      )}
      <details>
        <summary>More ways to sign in, TLS and proxy</summary>
        <div className="two">
          {isGit && field("Bearer token", "bearerToken", { secret: true, hint: "Instead of user name and password" })}
          {field("TLS client certificate", "tlsClientCertData", { rows: 3, placeholder: "-----BEGIN CERTIFICATE-----" })}
          {field("TLS client key", "tlsClientCertKey", { rows: 3, placeholder: "-----BEGIN PRIVATE KEY-----" })}
          {isGit && field("GitHub App: id", "githubAppID", { pattern: "[0-9]*", hint: "Digits" })}
          {isGit && field("GitHub App: installation", "githubAppInstallationID", { pattern: "[0-9]*", hint: "Digits" })}
          {isGit && field("GitHub App: private key", "githubAppPrivateKey", { rows: 3 })}
          {isGit && field("GitHub Enterprise: address of the API", "githubAppEnterpriseBaseUrl")}
          {isGit && field("Google Cloud: key of a service account", "gcpServiceAccountKey", { rows: 3 })}
          {isGit && field("Azure service principal: client id", "azureServicePrincipalClientId")}
          {isGit && field("Azure service principal: client secret", "azureServicePrincipalClientSecret", { secret: true })}
          {isGit && field("Azure service principal: tenant id", "azureServicePrincipalTenantId")}
          {isGit && field("Azure: address of the sign-in", "azureActiveDirectoryEndpoint", { placeholder: "https://login.microsoftonline.com" })}
          {field("Proxy", "proxy", { placeholder: "http://proxy.example.org:3128" })}
          {field("No proxy for", "noProxy")}
        </div>
        {isGit && check("Azure workload identity", "useAzureWorkloadIdentity", "Sign in with the identity of the server's Pod")}
        {isGit && check("Send the password without being asked", "forceHttpBasicAuth", "For servers that do not ask for one")}
        {of.type === "helm" && check("The charts are in an OCI registry", "enableOCI", "Its address has no scheme then")}
        {(of.type === "oci" || of.enableOCI) && check("Plain HTTP", "insecureOCIForceHttp", "The registry has no TLS")}
      </details>
    </>
  );
}
