// What a resource's panel does in daily use: its live manifest is edited, its logs are narrowed and downloaded.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

export async function resourceScenario({ page, base, api, cluster, step, until }) {
  const configure = async (data) => {
    const path = "/api/v1/namespaces/argocd/configmaps/argocd-cm";
    const found = JSON.parse((await cluster(path)).text);
    const { status, text } = await cluster(path, "PUT", { ...found, data: { ...found.data, ...data } });
    assert.equal(status, 200, text);
  };
  const deployment = async () => JSON.parse((await cluster("/apis/apps/v1/namespaces/guestbook/deployments/guestbook-ui")).text);
  const edit = async (change) => {
    await page.click(".panel [role=tab] >> text=Live");
    await page.click(".panel .tools >> text=Edit…");
    const field = page.locator("dialog [name=live]");
    await field.fill(change(await field.inputValue()));
    await page.click("dialog button[type=submit]");
  };

  await step("a live manifest is edited", async () => {
    await page.goto(`${base}/applications/guestbook`);
    await page.click("[data-kind=Deployment][data-name=guestbook-ui]");
    await edit((text) => text.replace(/^spec:\n/m, "spec:\n  minReadySeconds: 1\n"));
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal((await deployment()).spec.minReadySeconds, 1);
    await page.waitForSelector(".panel pre.code >> text=minReadySeconds: 1");
    // It stays the object that it is, and the dialog says so.
    await edit((text) => text.replace("name: guestbook-ui", "name: other"));
    await page.waitForSelector("dialog [role=alert] >> text=metadata.name");
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await edit((text) => text.replace(/^ {2}minReadySeconds: 1\n/m, ""));
    await page.waitForSelector("dialog", { state: "detached" });
    await until("the field is gone", async () => !(await deployment()).spec.minReadySeconds);
  });
  await step("logs have times, are narrowed and downloaded", async () => {
    await page.click("[data-kind=Pod] >> nth=0");
    await page.click(".panel [role=tab] >> text=Logs");
    await page.waitForSelector(".log-lines >> text=simulated container");
    await page.check(".logs >> text=Times");
    await page.waitForSelector(".log-lines >> text=/\\d{4}-\\d\\d-\\d\\dT/");
    const narrow = async (text) => {
      await page.fill(".logs input[type=search]", text);
      await page.press(".logs input[type=search]", "Enter");
    };
    const isEmpty = () => page.waitForFunction(() => document.querySelector(".log-lines").textContent === "");
    // Between two looks for the same line there is none.
    await narrow("no line has this");
    await isEmpty();
    await narrow("SIMULATED");
    await page.waitForSelector(".log-lines >> text=simulated container");
    await page.check(".logs >> text=Match case");
    await isEmpty();
    await page.uncheck(".logs >> text=Match case");
    await page.waitForSelector(".log-lines >> text=simulated container");
    const isAsked = page.waitForRequest((request) => request.url().includes("sinceSeconds=86400"));
    await page.selectOption("[aria-label='Since when']", "86400");
    await isAsked;
    await page.waitForSelector(".log-lines >> text=simulated container");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(".logs >> text=Download")]);
    assert.match(await readFile(await file.path(), "utf8"), /simulated container/);
    await page.press("body", "Escape");
  });
  await step("notices, links of the settings, help and the version are shown", async () => {
    await configure({
      "ui.bannercontent": "Maintenance on Sunday",
      "ui.bannerurl": "https://status.example.org/",
      "application.links": '- title: Dashboard\n  url: "https://dash.example.org/{{.app.metadata.name}}"\n',
      "resource.links": '- title: Metrics\n  url: "https://metrics.example.org/{{.resource.metadata.name}}"\n  if: resource.kind == "Deployment"\n',
      "help.chatUrl": "https://chat.example.org/",
      "help.chatText": "Ask us",
    });
    await until("the settings are known", async () => (await api("GET", "/api/v1/settings")).uiBannerContent === "Maintenance on Sunday");
    await page.goto(`${base}/applications/guestbook`);
    await page.waitForSelector(".banner a[href='https://status.example.org/']");
    await page.waitForSelector(".app-head .links a[href='https://dash.example.org/guestbook']");
    await page.click("[data-kind=Deployment][data-name=guestbook-ui]");
    await page.click(".panel [role=tab] >> text=Summary");
    await page.waitForSelector(".panel .links a[href='https://metrics.example.org/guestbook-ui']");
    await page.click(".banner button");
    await page.waitForSelector(".banner", { state: "detached" });
    await page.goto(`${base}/help`);
    await page.waitForSelector("[aria-label=Help] >> text=Ask us");
    await page.waitForSelector("[aria-label=You] >> text=admin");
    await page.waitForSelector("[aria-label=Version] dd");
    assert.equal(await page.locator(".banner").count(), 0);
    // Another notice is shown again.
    await configure({ "ui.bannercontent": "It is over" });
    await until("the settings are known", async () => (await api("GET", "/api/v1/settings")).uiBannerContent === "It is over");
    await page.reload();
    await page.waitForSelector(".banner >> text=It is over");
    await configure({ "ui.bannercontent": "", "application.links": "", "resource.links": "" });
  });
  await step("orphaned resources are shown when they are wanted", async () => {
    const project = await api("GET", "/api/v1/projects/default");
    await api("PUT", "/api/v1/projects/default", { project: { ...project, spec: { ...project.spec, orphanedResources: { warn: false } } } });
    const left = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "left-over", namespace: "guestbook" } };
    assert.equal((await cluster("/api/v1/namespaces/guestbook/configmaps", "POST", left)).status, 201);
    await page.goto(`${base}/applications/guestbook`);
    await page.check("text=/\\d+ orphaned/");
    await page.waitForSelector("[data-name=left-over] >> text=orphaned");
    await page.click("[data-name=left-over]");
    await page.click(".panel [role=tab] >> text=Live");
    await page.waitForSelector(".panel pre.code >> text=left-over");
    await page.press("body", "Escape");
    await page.uncheck("text=/\\d+ orphaned/");
    await page.waitForSelector("[data-name=left-over]", { state: "detached" });
    assert.equal((await cluster("/api/v1/namespaces/guestbook/configmaps/left-over", "DELETE")).status, 200);
    const now = await api("GET", "/api/v1/projects/default");
    delete now.spec.orphanedResources;
    await api("PUT", "/api/v1/projects/default", { project: now });
  });
  await step("a sync is tried again as often as it was told, and prunes as it was told", async () => {
    await page.goto(`${base}/applications/guestbook?deploy=all`);
    await page.click("dialog summary >> text=Sync options");
    await page.selectOption("dialog [name=propagation]", "PrunePropagationPolicy=background");
    await page.fill("dialog [name=retries]", "2");
    await page.click("dialog button.primary");
    await until("the sync has what was chosen", async () => {
      // The last one is forgotten when another is asked for.
      const { operation } = (await api("GET", "/api/v1/applications/guestbook")).status.operationState ?? {};
      return Number(operation?.retry?.limit) === 2 && operation.sync.syncOptions?.includes("PrunePropagationPolicy=background");
    });
  });
  await step("the spec of an Application is edited as a whole", async () => {
    await page.goto(`${base}/applications/guestbook?view=manifest`);
    const edit = async (change) => {
      await page.click("text=Edit the spec…");
      const field = page.locator("dialog [name=spec]");
      await field.fill(change(await field.inputValue()));
      await page.click("dialog button[type=submit]");
    };
    await edit((text) => `${text}revisionHistoryLimit: 7\n`);
    await page.waitForSelector("dialog", { state: "detached" });
    await page.waitForSelector("[aria-label='Manifest of the Application'] >> text=revisionHistoryLimit: 7");
    await edit((text) => `spec:\n${text.replace(/^/gm, "  ")}`);
    await page.waitForSelector("dialog [role=alert] >> text=below spec");
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await edit((text) => text.replace("revisionHistoryLimit: 7\n", ""));
    await page.waitForSelector("[aria-label='Manifest of the Application']:not(:has-text('revisionHistoryLimit'))");
    assert.equal((await api("GET", "/api/v1/applications/guestbook")).spec.revisionHistoryLimit, undefined);
  });
}
