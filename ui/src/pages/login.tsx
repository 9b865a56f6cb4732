// The login form.

import { type FormEvent, useEffect, useState } from "react";
import { type AuthSettings, api } from "../api/client";
import { hasFailed, provider, signInAddress } from "../model/sso";
import { useTitle } from "../hooks";
import { Logo } from "../parts/shell";

export function LoginPage({ onLogin, notice }: { onLogin: () => void; notice: string }) {
  useTitle("Log in");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [settings, setSettings] = useState<AuthSettings>({});
  useEffect(() => {
    // Without them there is still the form.
    api.settings().then(setSettings, () => {});
  }, []);
  const sso = provider(settings);
  const shown = error || (hasFailed(location.search) ? `The sign-in with ${sso ?? "SSO"} has failed.` : "");
  const submit = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget);
    setBusy(true);
    setError("");
    try {
      await api.login(String(form.get("username")), String(form.get("password")));
      onLogin();
    } catch (reason) {
      setError(reason instanceof Error ? reason.message : String(reason));
      setBusy(false);
    }
  };
  return (
    <main className="login">
      <form onSubmit={submit} aria-labelledby="login-title">
        <div className="login-head">
          <Logo />
          <h1 id="login-title">Tiphys</h1>
          <p>Git says what should run.</p>
        </div>
        {shown && (
          <p className="notice tone-bad" role="alert">
            {shown}
          </p>
        )}
        {!shown && notice && <p className="notice tone-off">{notice}</p>}
        {sso && (
          <button type="button" onClick={() => location.assign(signInAddress(location.origin))}>
            Log in with {sso}
          </button>
        )}
        <label>
          User name
          <input name="username" defaultValue="admin" autoComplete="username" autoCapitalize="none" spellCheck={false} required />
        </label>
        <label>
          Password
          <input name="password" type="password" autoComplete="current-password" required autoFocus />
        </label>
        <button type="submit" className="primary" disabled={busy}>
          {busy ? "Logging in" : "Log in"}
        </button>
        <p className="hint">
          <code>tiphys up</code> prints the password once when it starts.
        </p>
      </form>
    </main>
  );
}
