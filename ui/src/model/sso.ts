// Signing in with an identity provider.

import type { AuthSettings } from "../api/client";
import { ROOT } from "../root";

/** The provider's name, or undefined if there is none. */
export function provider(settings: AuthSettings): string | undefined {
  if (settings.oidcConfig?.issuer) return settings.oidcConfig.name || "SSO";
  const connectors = settings.dexConfig?.connectors ?? [];
  if (connectors.length === 0) return undefined;
  return (connectors.length === 1 && connectors[0]?.name) || "SSO";
}

/** Whether the server sent the browser back because the sign-in did not work. */
export function hasFailed(search: string): boolean {
  return new URLSearchParams(search).get("has_sso_error") === "true";
}

/** The address that leads to the provider and back to the list of Applications. */
export function signInAddress(origin: string, root: string = ROOT): string {
  return `${root}/auth/login?return_url=${encodeURIComponent(`${origin}${root}/applications`)}`;
}
