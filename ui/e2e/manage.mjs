// What is managed in the page: Applications with several sources, ApplicationSets, settings, terminals.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expecting } from "./expected.mjs";

export async function manageScenario({ page, base, api, cluster, kubeconfig, repository, spec, problems, step, until }) {
  const { repoURL } = spec.source;
  const dialog = "dialog[open]";
  const save = () => page.click(`${dialog} button[type=submit]`);
  const closed = () => page.waitForSelector("dialog", { state: "detached" });
  /** Opens a part of a form that is folded. */
  const unfold = (title) => page.click(`${dialog} summary:has-text("${title}")`);
  const configure = async (key, value) => {
    const path = "/api/v1/namespaces/argocd/configmaps/argocd-cm";
    const found = JSON.parse((await cluster(path)).text);
    const { status, text } = await cluster(path, "PUT", { ...found, data: { ...found.data, [key]: value } });
    assert.equal(status, 200, text);
  };
  const expected = expecting(problems, until);
  /** The dialog stays with the server's words; the browser itself reports the refused call. */
  const refused = async (words, status) => {
    await page.waitForSelector(`${dialog} [role=alert]:has-text("${words}")`);
    await expected("the refused call", new RegExp(`status of ${status}`));
  };

  await step("an Application is created, edited and deleted", async () => {
    await page.goto(`${base}/applications`);
    await page.click("text=New Application…");
    await page.fill("dialog [name=name]", "made");
    await page.fill("dialog [name=repoURL]", spec.source.repoURL);
    await page.fill("dialog [name=path]", "nowhere");
    await page.fill("dialog [name=namespace]", "made");
    // The server refuses it, and the dialog stays with the reason.
    await page.click("dialog button[type=submit]");
    await refused("nowhere", 400);
    await page.fill("dialog [name=path]", "guestbook");
    await page.click("dialog button[type=submit]");
    await page.waitForURL(/applications\/made/);
    await page.click("text=Edit…");
    await page.check("dialog [name=automated]");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.waitForSelector(".tiles .badge >> text=Healthy");
    await page.click(".page-head >> text=Delete…");
    assert.ok(await page.locator("dialog button[type=submit]").isDisabled());
    await page.fill("dialog [name=confirm]", "made");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector("text=made was deleted");
  });

  await step("an Application gets several sources, in another order", async () => {
    await page.goto(`${base}/applications`);
    await page.click("text=New Application…");
    await page.fill(`${dialog} [name=name]`, "many");
    await page.fill(`${dialog} [name=repoURL]`, repoURL);
    await page.fill(`${dialog} [name=path]`, "guestbook");
    await page.fill(`${dialog} [name=namespace]`, "many");
    await page.click(`${dialog} >> text=Add a source`);
    const second = `${dialog} [data-source='1']`;
    await page.fill(`${second} [name=repoURL]`, repoURL);
    await page.fill(`${second} [name=path]`, "chart");
    await page.selectOption(`${second} [name=tool]`, "helm");
    await page.fill(`${second} [name=releaseName]`, "second");
    await page.fill(`${second} [name=valueFiles]`, "$files/chart/values.yaml");
    await page.click(`${second} .more-options summary`);
    await page.fill(`${second} [name=helmKubeVersion]`, "1.31.0");
    await page.check(`${second} [name=skipTests]`);
    await page.click(`${dialog} >> text=Add a source`);
    const third = `${dialog} [data-source='2']`;
    await page.fill(`${third} [name=repoURL]`, repoURL);
    await page.fill(`${third} [name=ref]`, "files");
    await save();
    await page.waitForURL(/applications\/many/);
    const sources = async () => (await api("GET", "/api/v1/applications/many")).spec.sources;
    const chart = { repoURL, path: "chart", targetRevision: "HEAD", helm: { releaseName: "second", valueFiles: ["$files/chart/values.yaml"], kubeVersion: "1.31.0", skipTests: true } };
    const files = { repoURL, targetRevision: "HEAD", ref: "files" };
    const guestbook = { repoURL, path: "guestbook", targetRevision: "HEAD" };
    assert.deepEqual(await sources(), [guestbook, chart, files]);
    await page.click("text=Edit…");
    await page.click("[aria-label='Up source 2']");
    await page.click("[aria-label='Remove source 2']");
    await page.fill(`${dialog} [data-source='0'] [name=releaseName]`, "first");
    await save();
    await closed();
    assert.deepEqual(await sources(), [{ ...chart, helm: { ...chart.helm, releaseName: "first" } }, files]);
    // Each source has a revision of its own in a sync.
    const sha = (await api("GET", "/api/v1/applications/guestbook")).status.sync.revision;
    await page.click(".app-head .actions button.primary");
    await page.fill(`${dialog} [name=revision-2]`, sha);
    assert.equal(await page.locator(`${dialog} [name=revision-1]`).getAttribute("placeholder"), "HEAD");
    await page.check(`${dialog} [name=dryRun]`);
    const isSent = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/many/sync"));
    await page.click(`${dialog} button[type=submit]`);
    const { revision, revisions, sourcePositions } = (await isSent).postDataJSON();
    assert.deepEqual([revision, revisions, sourcePositions], [undefined, [sha], [2]]);
    await closed();
    await api("DELETE", "/api/v1/applications/many?cascade=false");
    await page.waitForSelector("text=many was deleted");
  });

  await step("an Application gets a patch of Kustomize, and is hydrated", async () => {
    await repository.change("Add a kustomization", async (folder) => {
      await mkdir(join(folder, "kustomized"));
      await writeFile(join(folder, "kustomized/kustomization.yaml"), "resources: [word.yaml]\n");
      await writeFile(join(folder, "kustomized/word.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: word\ndata:\n  word: old\n");
    });
    await page.goto(`${base}/applications`);
    await page.click("text=New Application…");
    await page.fill(`${dialog} [name=name]`, "dry");
    await page.fill(`${dialog} [name=repoURL]`, repoURL);
    await page.fill(`${dialog} [name=path]`, "kustomized");
    await page.fill(`${dialog} [name=namespace]`, "dry");
    await page.selectOption(`${dialog} [name=tool]`, "kustomize");
    await page.click(`${dialog} >> text=Add a patch`);
    const patch = "- op: replace\n  path: /data/word\n  value: new";
    await page.fill("[aria-label=Patches] [name=patch]", patch);
    await page.fill("[aria-label=Patches] [name='target.kind']", "ConfigMap");
    await save();
    await page.waitForURL(/applications\/dry/);
    const written = async () => (await api("GET", "/api/v1/applications/dry")).spec;
    const source = { repoURL, path: "kustomized", targetRevision: "HEAD", kustomize: { patches: [{ patch, target: { kind: "ConfigMap" } }] } };
    assert.deepEqual((await written()).source, source);
    await page.click("text=Edit…");
    await page.check(`${dialog} [name=hydrate]`);
    assert.equal(await page.locator(`${dialog} >> text=Add a source`).count(), 0);
    await page.fill(`${dialog} [name=hydrator-branch]`, "env/e2e");
    await page.fill(`${dialog} [name=hydrator-folder]`, "apps/dry");
    await save();
    await closed();
    const { source: none, sourceHydrator } = await written();
    assert.deepEqual([none, sourceHydrator], [undefined, { drySource: source, syncSource: { targetBranch: "env/e2e", path: "apps/dry" } }]);
    await page.waitForSelector("[data-hydrator] .badge >> text=Hydrated");
    await page.waitForSelector("[data-hydrator] >> text=env/e2e · apps/dry");
    await page.waitForSelector("[data-kind=ConfigMap]");
    // What the form shows of it is what it is.
    await page.click("text=Edit…");
    assert.equal(await page.inputValue(`${dialog} [name=path]`), "kustomized");
    assert.equal(await page.inputValue(`${dialog} [name=hydrator-branch]`), "env/e2e");
    await page.fill(`${dialog} [name=namespace]`, "wet");
    await save();
    await closed();
    assert.deepEqual((await written()).sourceHydrator, sourceHydrator);
    await api("DELETE", "/api/v1/applications/dry?cascade=false");
    await page.waitForSelector("text=dry was deleted");
  });

  await step("an ApplicationSet is planned, created, changed and deleted", async () => {
    const manifest = (team) => `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: crews
spec:
  goTemplate: true
  generators: [{ list: { elements: [{ team: "${team}" }, { team: "sea" }] } }]
  template:
    metadata: { name: "{{.team}}-crew" }
    spec:
      project: default
      source: { repoURL: "${repoURL}", path: guestbook, targetRevision: HEAD }
      destination: { server: "https://kubernetes.default.svc", namespace: "{{.team}}" }
`;
    const submit = page.locator(`${dialog} button[type=submit]`);
    const planned = (name, effect) => page.waitForSelector(`[aria-label='What would change'] [data-effect=${effect}] >> text=${name}`);
    await page.goto(`${base}/applicationsets`);
    await page.click("button >> text=New ApplicationSet…");
    await page.fill(`${dialog} [name=manifest]`, "kind: ApplicationSet\nspec: {");
    await page.click(`${dialog} >> text=Show what would change`);
    await page.waitForSelector(`${dialog} [role=alert] >> text=line 2`);
    await page.fill(`${dialog} [name=manifest]`, manifest("land"));
    assert.ok(await submit.isDisabled(), "what was not looked at cannot be saved");
    await page.click(`${dialog} >> text=Show what would change`);
    await planned("land-crew", "create");
    await submit.click();
    await page.waitForSelector("table a >> text=land-crew");
    await page.click("button >> text=Edit…");
    const field = page.locator(`${dialog} [name=manifest]`);
    await field.fill((await field.inputValue()).replace("land", "air"));
    await page.click(`${dialog} >> text=Show what would change`);
    await planned("air-crew", "create");
    await planned("land-crew", "delete");
    await planned("sea-crew", "same");
    await submit.click();
    await closed();
    await page.waitForSelector("table a >> text=air-crew");
    await page.waitForSelector("table a >> text=land-crew", { state: "detached" });
    await page.click("button >> text=Delete…");
    assert.ok(await submit.isDisabled());
    await page.fill(`${dialog} [name=confirm]`, "crews");
    await submit.click();
    await page.waitForSelector("text=No ApplicationSets yet");
    await until("its Applications are gone", async () => (await api("GET", "/api/v1/applications")).items.every((app) => !app.metadata.name.endsWith("-crew")));
  });

  await step("a project is created with a role and a token, changed and deleted", async () => {
    await page.goto(`${base}/settings`);
    await page.waitForSelector("[aria-label=Projects] td >> text=default");
    await page.click("text=New project…");
    await page.fill(`${dialog} [name=name]`, "harbour");
    await page.fill(`${dialog} [name=sourceRepos]`, `${repoURL}\n`);
    await unfold("Roles");
    await page.click("text=Add a role");
    await page.fill("[aria-label=Roles] [name=name]", "ci");
    await page.fill("[aria-label=Roles] [name=policies]", "applications, fly, harbour/*, allow");
    await save();
    await refused("fly", 400);
    await page.fill("[aria-label=Roles] [name=policies]", "applications, sync, harbour/*, allow");
    await save();
    await page.click("[aria-label='New token… of ci']");
    await page.fill(`${dialog} [name=id]`, "pipeline");
    await save();
    await closed();
    const token = await page.textContent(".new-token code");
    assert.equal(token.split(".").length, 3);
    await page.waitForSelector("[aria-label='Revoke… token pipeline of ci']");
    await page.click("[aria-label='Project harbour'] >> text=Edit…");
    await unfold("Sync windows");
    await page.click("text=Add a window");
    await page.fill("[aria-label='Sync windows'] [name=schedule]", "0 22 * * *");
    await unfold("Cluster-wide kinds that are allowed");
    await page.click("[aria-label='Cluster-wide kinds that are allowed'] >> text=Add a kind");
    await page.fill("[aria-label='Cluster-wide kinds that are allowed'] [name=kind]", "Namespace");
    await unfold("Signatures of commits");
    const signatures = "[aria-label='Signatures of commits']";
    await page.click(`${signatures} >> text=Add a policy`);
    await page.fill(`${signatures} [name=repos]`, `${repoURL}\n`);
    await page.selectOption(`${signatures} [name=mode]`, "strict");
    await page.fill(`${signatures} [name=keys]`, "4AEE18F83AFDEB23");
    await unfold("Orphaned resources");
    await page.check(`${dialog} [name=orphaned]`);
    await save();
    await closed();
    await page.waitForSelector("[aria-label='Project harbour'] >> text=allow 0 22 * * * for 1h");
    const { spec: written, status } = await api("GET", "/api/v1/projects/harbour");
    assert.deepEqual(written.sourceRepos, [repoURL]);
    assert.deepEqual(written.roles[0].policies, ["p, proj:harbour:ci, applications, sync, harbour/*, allow"]);
    assert.deepEqual(written.clusterResourceWhitelist, [{ group: "", kind: "Namespace" }]);
    assert.deepEqual(written.sourceIntegrity, { git: { policies: [{ repos: [{ url: repoURL }], gpg: { mode: "strict", keys: ["4AEE18F83AFDEB23"] } }] } });
    assert.deepEqual(written.orphanedResources, { warn: false });
    assert.equal(status.jwtTokensByRole.ci.items[0].id, "pipeline");
    await page.click("[aria-label='Revoke… token pipeline of ci']");
    await save();
    await page.waitForSelector("[aria-label='Revoke… token pipeline of ci']", { state: "detached" });
    await page.click("[aria-label='Project harbour'] >> text=Delete…");
    await page.fill(`${dialog} [name=confirm]`, "harbour");
    await save();
    await page.waitForSelector("[aria-label=Projects] td >> text=default");
    assert.equal(await page.locator("td >> text=harbour").count(), 0);
  });

  await step("a repository is connected, tested, edited and disconnected", async () => {
    await page.goto(`${base}/settings?view=repositories`);
    await page.click("text=Connect a repository…");
    await page.fill(`${dialog} [name=repo]`, "https://127.0.0.1:1/nothing.git");
    await page.fill(`${dialog} [name=username]`, "me");
    await page.fill(`${dialog} [name=password]`, "hidden");
    await save();
    await refused("error testing repository connectivity", 500);
    await page.fill(`${dialog} [name=repo]`, repoURL);
    await save();
    await closed();
    const row = `[aria-label=Repositories] tr:has-text("${repoURL}")`;
    await page.waitForSelector(`${row} .badge >> text=Successful`);
    await page.click(`${row} >> text=Test`);
    await page.waitForSelector(`text=${repoURL} can be reached`);
    await page.click(`${row} >> text=Edit…`);
    assert.equal(await page.inputValue(`${dialog} [name=password]`), "");
    await page.fill(`${dialog} [name=name]`, "home");
    await save();
    await page.waitForSelector(`${row} >> text=home`);
    await page.click(`${row} >> text=Disconnect…`);
    await save();
    await page.waitForSelector(row, { state: "detached" });
  });

  await step("templates, clusters, known hosts and accounts are managed", async () => {
    await page.click("[role=tab] >> text=Credential templates");
    await page.click("text=New template…");
    await page.fill(`${dialog} [name=url]`, "https://git.example.org/team");
    await page.fill(`${dialog} [name=username]`, "robot");
    await page.fill(`${dialog} [name=password]`, "hidden");
    await save();
    await page.waitForSelector("td >> text=robot");
    await page.click("[aria-label='Remove… https://git.example.org/team']");
    await save();
    await page.waitForSelector("td >> text=robot", { state: "detached" });

    await page.click("[role=tab] >> text=Clusters");
    await page.waitForSelector("[aria-label=Clusters] td >> text=Successful");
    await page.click("[aria-label=Clusters] >> text=Read again");
    await page.waitForSelector("text=is read again");

    await page.click("[aria-label=Clusters] >> text=Edit…");
    await page.fill(`${dialog} [name=labels]`, "env=test\nport=");
    await save();
    await closed();
    const { items } = await api("GET", "/api/v1/clusters");
    assert.deepEqual(items[0].labels, { env: "test", port: "" });

    const access = await readFile(kubeconfig, "utf8");
    const of = (key) => new RegExp(`^\\s*(?:- )?${key}:\\s*"?([^"\\s]+)"?\\s*$`, "m").exec(access)?.[1] ?? "";
    const address = of("server");
    await page.click("text=Add a cluster…");
    await page.fill(`${dialog} [name=server]`, "https://127.0.0.1:1");
    await page.fill(`${dialog} [name=name]`, "second");
    await page.fill(`${dialog} [name=labels]`, "env=second");
    await page.fill(`${dialog} [name=bearerToken]`, of("token"));
    await page.fill(`${dialog} [name=ca]`, Buffer.from(of("certificate-authority-data"), "base64").toString());
    await page.check(`${dialog} [name=insecure]`);
    await save();
    await page.waitForSelector(`${dialog} [role=alert] >> text=A certificate authority counts only if`);
    await page.uncheck(`${dialog} [name=insecure]`);
    await save();
    await refused("error getting server version", 500);
    await page.fill(`${dialog} [name=server]`, address);
    await save();
    await closed();
    const row = "[aria-label=Clusters] tr:has-text('second')";
    await page.waitForSelector(`${row} .badge >> text=Successful`);
    await page.click("[aria-label='Edit… second']");
    assert.equal(await page.locator(`${dialog} [name=bearerToken]`).count(), 0, "credentials stay unless one says otherwise");
    await page.check(`${dialog} [name=replaces]`);
    assert.equal(await page.inputValue(`${dialog} [name=bearerToken]`), "");
    await page.fill(`${dialog} [name=bearerToken]`, of("token"));
    await page.fill(`${dialog} [name=ca]`, Buffer.from(of("certificate-authority-data"), "base64").toString());
    await page.fill(`${dialog} [name=project]`, "default");
    await save();
    await closed();
    const second = (await api("GET", "/api/v1/clusters")).items.find(({ name }) => name === "second");
    assert.deepEqual([second.server, second.project, second.labels], [address, "default", { env: "second" }]);
    await page.click("[aria-label='Remove… second']");
    await save();
    await page.waitForSelector(row, { state: "detached" });

    await page.click("[role=tab] >> text=Certificates and keys");
    await page.click("text=Add known hosts…");
    await page.fill(`${dialog} [name=hosts]`, "ship.example.org ssh-ed25519 nonsense");
    await save();
    await page.waitForSelector(`${dialog} [role=alert]`);
    await expected("the refused call", /status of 500/);
    const key = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    await page.fill(`${dialog} [name=hosts]`, `ship.example.org ssh-ed25519 ${key}`);
    await save();
    await page.waitForSelector("td >> text=ship.example.org");
    await page.click("[aria-label='Remove… ssh-ed25519 of ship.example.org']");
    await save();
    await page.waitForSelector("td >> text=ship.example.org", { state: "detached" });

    await configure("accounts.robot", "apiKey");
    await until("the account is there", async () => (await api("GET", "/api/v1/account")).items.some(({ name }) => name === "robot"), 100);
    await page.click("[role=tab] >> text=Accounts");
    await page.click("[aria-label='New token… of robot']");
    await page.fill(`${dialog} [name=id]`, "ci");
    await page.fill(`${dialog} [name=expires]`, "1 year");
    await save();
    await page.waitForSelector(`${dialog} [role=alert] >> text=1 year is not a number with d, h or m`);
    await page.fill(`${dialog} [name=expires]`, "1d");
    await save();
    await page.waitForSelector(".new-token code");
    await page.click("text=I have it");
    await page.click("[aria-label='Revoke… token ci of robot']");
    await save();
    await page.waitForSelector("[aria-label='Revoke… token ci of robot']", { state: "detached" });
    await page.click("[aria-label='Change password… of admin']");
    await page.fill(`${dialog} [name=current]`, "wrong");
    await page.fill(`${dialog} [name=wanted]`, "longer-than-eight");
    await page.fill(`${dialog} [name=again]`, "longer-than-nine");
    await save();
    await page.waitForSelector(`${dialog} [role=alert] >> text=differ`);
    await page.fill(`${dialog} [name=again]`, "longer-than-eight");
    await save();
    await refused("password", 400);
    await page.click(`${dialog} >> text=Cancel`);
    await closed();
  });

  await step("a terminal opens, and says why there is none", async () => {
    await configure("exec.enabled", "true");
    await until("the server has terminals", async () => (await api("GET", "/api/v1/settings")).execEnabled === true, 100);
    await page.goto(`${base}/applications/guestbook`);
    await page.click("[data-kind=Pod]");
    await page.click("[role=tab] >> text=Terminal");
    await page.waitForSelector(".terminal .xterm-rows");
    const says = () => page.waitForFunction(() => document.querySelector(".terminal .xterm-rows")?.textContent?.includes("this cluster only simulates containers"));
    await says();
    await page.waitForSelector("text=The connection is closed.");
    // In a terminal it is a key like others.
    await page.focus(".terminal textarea");
    await page.keyboard.press("Escape");
    await page.keyboard.press("F6");
    await page.waitForSelector("button:focus >> text=Reconnect");
    await page.keyboard.press("Enter");
    await says();
    await configure("exec.enabled", "false");
    await until("the server has no terminals", async () => !(await api("GET", "/api/v1/settings")).execEnabled, 100);
    await page.click("text=Reconnect");
    await page.waitForSelector("[role=alert] >> text=404 page not found");
    // The connection itself, and the call that asks why.
    await expected("the refused connection", /\b404\b/, 2);
  });
}

/** On the narrowest screens. `page` is signed in. */
export async function manageNarrow(page, base) {
  await page.setViewportSize({ width: 360, height: 780 });
  const fits = async (what) => {
    const over = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok((await over()) <= 0, `${what} is wider than the screen`);
    const dialog = await page.$("dialog[open]");
    if (dialog) assert.ok(await dialog.evaluate((e) => e.scrollWidth <= e.clientWidth), `the dialog of ${what} scrolls sideways`);
    // Whatever can be filled in says what it is.
    const nameless = await page.locator("input, select, textarea").evaluateAll((all) => all.filter((e) => !e.labels?.length && !e.getAttribute("aria-label") && !e.closest(".terminal")).map((e) => e.outerHTML));
    assert.deepEqual(nameless, []);
  };
  for (const [view, ready, button] of [
    ["projects", "[aria-label=Projects] td", "New project…"],
    ["repositories", "[aria-label=Repositories]", "Connect a repository…"],
    ["templates", "[aria-label='Credential templates']", "New template…"],
    ["clusters", "[aria-label=Clusters] td", "Edit…"],
    ["clusters", "[aria-label=Clusters] td", "Add a cluster…"],
    ["trust", "[aria-label='Certificates and known hosts'] p", "Add a certificate…"],
    ["accounts", "[aria-label=Accounts] td", "Change password…"],
  ]) {
    await page.goto(`${base}/settings?view=${view}`);
    await page.waitForSelector(ready);
    await fits(view);
    await page.click(`text=${button}`);
    for (const summary of await page.$$("dialog[open] summary")) await summary.click();
    for (const add of await page.$$("dialog[open] .rows > button")) await add.click();
    await fits(`${view}: ${button}`);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
  }
  await page.goto(`${base}/settings?project=default`);
  await page.waitForSelector("[aria-label='Project default'] dd");
  await fits("a project");
  await page.goto(`${base}/applications`);
  await page.click("text=New Application…");
  await page.click("dialog[open] >> text=Add a source");
  for (const [at, tool] of [["0", "kustomize"], ["1", "helm"]]) await page.selectOption(`dialog[open] [data-source='${at}'] [name=tool]`, tool);
  for (const add of await page.$$("dialog[open] .rows > button")) await add.click();
  await fits("the form of an Application");
  await page.selectOption("dialog[open] [data-source='0'] [name=tool]", "plugin");
  await page.click("dialog[open] >> text=Add a parameter");
  await fits("the parameters of a plugin");
  await page.click("[aria-label='Remove source 2']");
  await page.check("dialog[open] [name=hydrate]");
  await fits("the form of a hydrator");
  await page.keyboard.press("Escape");
  await page.goto(`${base}/applicationsets`);
  await page.click("button >> text=New ApplicationSet…");
  await fits("the form of an ApplicationSet");
  await page.keyboard.press("Escape");
}
