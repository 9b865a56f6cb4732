import { StrictMode, useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { api, ApiError, setSignedOutHandler } from "./api/client";
import { CatalogPage } from "./catalog/catalog";
import { ChartPage } from "./catalog/chart";
import { load as loadExtensions } from "./extensions/load";
import { usePage } from "./extensions/parts";
import { address as ours } from "./model/links";
import { ApplicationPage } from "./pages/application";
import { ListPage } from "./pages/list";
import { LoginPage } from "./pages/login";
import { SetPage, SetsPage } from "./pages/sets";
import { Later, later } from "./parts/later";
import { Empty, Failure, Shell, Toasts } from "./parts/shell";
import { inside, ROOT } from "./root";
import { Link, parseRoute, useAddress } from "./router";
import { CHANGED } from "./kept";
import { addStyleSheet } from "./style-sheet";
import { applyTheme } from "./theme";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/list.css";
import "./styles/tree.css";
import "./styles/panel.css";
import "./styles/application.css";
import "./styles/forms.css";
import "./catalog/catalog.css";

// Most people never open them.
const SettingsPage = later(() => import("./pages/settings"));

type Session = { state: "asking" } | { state: "out"; notice: string } | { state: "in"; user: string } | { state: "failed"; error: ApiError };

function App() {
  const [session, setSession] = useState<Session>({ state: "asking" });
  const address = useAddress();
  const ask = useCallback(async () => {
    try {
      const user = await api.user();
      setSession(user.loggedIn ? { state: "in", user: user.username ?? "" } : { state: "out", notice: "" });
    } catch (e) {
      const error = e instanceof ApiError ? e : new ApiError(0, String(e));
      setSession(error.status === 401 ? { state: "out", notice: "" } : { state: "failed", error });
    }
  }, []);
  useEffect(() => {
    setSignedOutHandler(() =>
      setSession((now) => (now.state === "in" ? { state: "out", notice: "The session has ended. Please log in again." } : now)),
    );
    void ask();
  }, [ask]);

  const url = new URL(address, location.origin);
  const route = parseRoute(url.pathname, url.search);
  const extension = usePage(url.pathname);
  const logout = async () => {
    await api.logout().catch(() => undefined);
    setSession({ state: "out", notice: "You are logged out." });
  };
  if (session.state === "asking") return null;
  if (session.state === "failed")
    return (
      <main className="login">
        <Failure error={session.error} what="The API cannot be reached." />
        <button type="button" onClick={() => void ask()}>
          Try again
        </button>
      </main>
    );
  if (session.state === "out") return <LoginPage onLogin={() => void ask()} notice={session.notice} />;
  return (
    <Shell user={session.user} onLogout={() => void logout()}>
      {route.page === "application" ? (
        <ApplicationPage key={`${route.id.namespace}/${route.id.name}`} id={route.id} />
      ) : route.page === "catalog" ? (
        <CatalogPage />
      ) : route.page === "chart" ? (
        <ChartPage key={`${route.chart.namespace}/${route.chart.repository}/${route.chart.path}`} name={route.chart} />
      ) : route.page === "sets" ? (
        <SetsPage />
      ) : route.page === "set" ? (
        <SetPage key={`${route.id.namespace}/${route.id.name}`} id={route.id} />
      ) : route.page === "settings" ? (
        <Later fallback={<div className="page" aria-busy="true" />}>
          <SettingsPage />
        </Later>
      ) : route.page === "unknown" ? (
        (extension ?? (
          <Empty title="There is no such page">
            <Link to="/applications">All Applications</Link>
          </Empty>
        ))
      ) : (
        <ListPage />
      )}
    </Shell>
  );
}

applyTheme();
for (const event of [CHANGED, "storage"]) window.addEventListener(event, applyTheme);

// An address of Argo CD's page is one of this page before anything of it is drawn.
const asked = inside(location.pathname) + location.search;
if (ours(inside(location.pathname), location.search) !== asked) history.replaceState(null, "", ROOT + ours(inside(location.pathname), location.search));
// The root and the login address have no content of their own.
if (["/", "/login"].includes(inside(location.pathname))) history.replaceState(null, "", `${ROOT}/applications`);

// Also before anybody has signed in. Without an answer the page looks as usual.
void api.settings().then(({ uiCssURL }) => addStyleSheet(uiCssURL), () => undefined);

void loadExtensions(window as unknown as Record<string, unknown>);

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Toasts>
        <App />
      </Toasts>
    </StrictMode>,
  );
