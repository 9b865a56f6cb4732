// Settings: projects, repositories, credentials, clusters, whom the server trusts, accounts, how the page looks, and what the server is. What one may not change, the server refuses.

import { useTitle } from "../hooks";
import { Tabs } from "../parts/tabs";
import { setQuery, useQuery } from "../router";
import { About } from "../settings/about";
import { Accounts } from "../settings/accounts";
import { Appearance } from "../settings/appearance";
import { Clusters } from "../settings/clusters";
import { OneProject, Projects } from "../settings/projects";
import { Repositories, Templates } from "../settings/repositories";
import { Trust } from "../settings/trust";

const TABS = { projects: "Projects", repositories: "Repositories", templates: "Credential templates", clusters: "Clusters", trust: "Certificates and keys", accounts: "Accounts", appearance: "Appearance", about: "About" };
type Tab = keyof typeof TABS;

export default function SettingsPage() {
  useTitle("Settings");
  const wanted = useQuery("view");
  const project = useQuery("project");
  const tabs = Object.entries(TABS) as [Tab, string][];
  const shown = tabs.find(([tab]) => tab === wanted)?.[0] ?? "projects";
  return (
    <div className="page">
      <div className="page-head">
        <h1>Settings</h1>
      </div>
      <Tabs label="Settings" className="settings-body" tabs={tabs} chosen={shown} choose={(view) => setQuery({ view: view === "projects" ? "" : view, project: "" })}>
        {shown === "projects" && (project ? <OneProject key={project} name={project} /> : <Projects />)}
        {shown === "repositories" && <Repositories />}
        {shown === "templates" && <Templates />}
        {shown === "clusters" && <Clusters />}
        {shown === "trust" && <Trust />}
        {shown === "accounts" && <Accounts />}
        {shown === "appearance" && <Appearance />}
        {shown === "about" && <About />}
      </Tabs>
    </div>
  );
}
