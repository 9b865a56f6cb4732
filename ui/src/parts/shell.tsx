// What surrounds every page: the bar at the top, the state of the connection, and notices.

import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from "react";
import { api, type ApiError } from "../api/client";
import type { Connection } from "../api/live";
import { useAsked } from "../asked";
import { useExtensions } from "../extensions/registry";
import { Link, useAddress } from "../router";
import { Banner } from "./banner";

export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="16" r="7" />
      <path d="M16 4.5v23M4.5 16h23M7.9 7.9l16.2 16.2M24.1 7.9L7.9 24.1" />
      <circle className="hub" cx="16" cy="16" r="2.6" />
    </svg>
  );
}

export function Shell({ user, onLogout, children }: { user: string; onLogout: () => void; children: ReactNode }) {
  const address = useAddress();
  const settings = useAsked(api.settings).value;
  const { pages } = useExtensions();
  const to = (path: string, title: string) => (
    <Link key={path} to={path} current={address.split(/[?/]/)[1] === path.slice(1)}>
      {title}
    </Link>
  );
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      {settings && <Banner settings={settings} />}
      <header className="bar">
        <Link to="/applications" className="brand" label="Tiphys: all Applications">
          <Logo />
          <span>Tiphys</span>
        </Link>
        <nav aria-label="Main">
          {to("/applications", "Applications")}
          {to("/applicationsets", "ApplicationSets")}
          {to("/catalog", "Catalogue")}
          {to("/settings", "Settings")}
          {pages.map(({ path, title }) => to(path, title))}
        </nav>
        <span className="grow" />
        <Link to="/settings?view=about" className="user">
          {user}
        </Link>
        <button type="button" className="quiet on-bar" onClick={onLogout}>
          Log out
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

/** A dot that says whether what is shown is live. */
export function LiveDot({ connection, error }: { connection: Connection; error: ApiError | undefined }) {
  const words = { connecting: "Connecting", live: "Live", lost: "Reconnecting" }[connection];
  return (
    <span className={`live live-${connection}`} role="status" title={error?.message}>
      <i aria-hidden="true" />
      {words}
    </span>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Logo />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failure({ error, what }: { error: ApiError; what: string }) {
  return (
    <div className="notice tone-bad" role="alert">
      <strong>{what}</strong>
      <span>{error.message}</span>
    </div>
  );
}

interface Toast {
  text: string;
  bad: boolean;
}

const ToastContext = createContext<(text: string, bad?: boolean) => void>(() => {});

/** Shows a notice for some seconds. */
export const useToast = () => useContext(ToastContext);

export function Toasts({ children }: { children: ReactNode }) {
  const [toast, setToast] = useState<Toast>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const show = useCallback((text: string, bad = false) => {
    clearTimeout(timer.current);
    setToast({ text, bad });
    timer.current = setTimeout(() => setToast(undefined), bad ? 10_000 : 4000);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <ToastContext value={show}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toast && (
          <div className={`toast ${toast.bad ? "tone-bad" : "tone-good"}`}>
            <span>{toast.text}</span>
            <button type="button" className="quiet" aria-label="Close the notice" onClick={() => setToast(undefined)}>
              ✕
            </button>
          </div>
        )}
      </div>
    </ToastContext>
  );
}
