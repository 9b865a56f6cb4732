// Ways to see things: tiles, favourites and the summary of the list, menus of rows and nodes, Pods by node, the network, differences side by side, dark and light.

import assert from "node:assert/strict";
import { expecting } from "./expected.mjs";

const dialog = "dialog[open]";
const menu = "[role=menu]";

export async function viewsScenario({ page, base, api, cluster, problems, step, until, picture }) {
  const query = (name) => new URL(page.url()).searchParams.get(name);
  const operations = async (name) => (await api("GET", `/api/v1/applications/${name}`)).status.operationState?.startedAt;

  await step("tiles sync, refresh and delete, and are there again the next time", async () => {
    await page.goto(`${base}/applications`);
    await page.click("[data-view=tiles]");
    await page.waitForSelector(".app-tile[data-app=guestbook]");
    assert.equal(query("view"), "tiles");
    await page.goto(`${base}/applications`);
    await page.waitForSelector(".app-tile[data-app=guestbook]");
    assert.equal(await page.locator(".app-row").count(), 0);
    await picture(page, "tiles-1280");
    await page.click("[aria-label='Refresh guestbook']");
    await page.waitForSelector(".toast >> text=guestbook is refreshed");
    await page.click("[aria-label='Delete guestbook']");
    assert.ok(await page.locator(`${dialog} button[type=submit]`).isDisabled());
    await page.fill(`${dialog} [name=confirm]`, "guestbook");
    assert.ok(await page.locator(`${dialog} button[type=submit]`).isEnabled());
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    const before = await operations("guestbook");
    await page.click("[aria-label='Sync guestbook']");
    await page.click(`${dialog} button[type=submit]`);
    await page.waitForSelector(`${dialog} [data-ended] >> text=1 of 1 accepted`);
    await page.click(`${dialog} >> text=Close`);
    await until("there is another operation", async () => (await operations("guestbook")) !== before);
  });
  await step("extensions have tabs, views, buttons, parts of the state and pages", async () => {
    const script = `((window) => {
      const text = (of) => (props) => window.React.createElement("p", { className: "own-" + of }, of + " of " + (props.resource?.metadata?.name ?? props.application?.metadata.name ?? "all"));
      const api = window.extensionsAPI;
      api.registerResourceExtension(text("tab"), "apps", "Deploy*", "Own tab");
      api.registerResourceExtension(() => { throw new Error("broken inside"); }, "apps", "Deployment", "Zbroken");
      api.registerAppViewExtension(text("view"), "Own view", "fa-x");
      api.registerStatusPanelExtension(text("state"), "Own state", "own-state");
      api.registerTopBarActionMenuExt(text("button"), "Own button", "own-button", text("flyout"), (app) => app.metadata.name === "guestbook");
      api.registerSystemLevelExtension(text("page"), "Own page", "/own", "fa-x");
    })(window);`;
    await page.route("**/extensions.js", (route) => route.fulfill({ contentType: "application/javascript", body: script }));
    await page.goto(`${base}/applications/guestbook`);
    await page.waitForSelector(".tiles >> text=state of guestbook");
    await page.click("[data-kind=Deployment][data-name=guestbook-ui]");
    await page.click(".panel [role=tab] >> text=Own tab");
    await page.waitForSelector(".panel >> text=tab of guestbook-ui");
    assert.equal(query("tab"), "extension-0");
    // What fails inside of one says so, and the panel stays.
    await page.click(".panel [role=tab] >> text=Zbroken");
    await page.waitForSelector(".panel [role=alert] >> text=broken inside");
    await expecting(problems, until)("the broken extension", /broken inside/);
    await page.press("body", "Escape");
    await page.click("[data-extension=own-button]");
    await page.waitForSelector(`${dialog} >> text=flyout of guestbook`);
    assert.equal(query("extension"), "own-button");
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.click(".tree-tools [data-view='Own view']");
    await page.waitForSelector("text=view of guestbook");
    await page.goto(`${base}/applications/argocd/guestbook?view=Own+view`);
    await page.waitForSelector("text=view of guestbook");
    await page.click(".tree-tools [data-view=tree]");
    await page.waitForSelector("[data-kind=Deployment]");
    await page.click("nav >> text=Own page");
    await page.waitForSelector("text=page of all");
    await page.unroute("**/extensions.js");
  });
  await step("a style sheet of the settings comes after those of the page", async () => {
    await page.route("**/custom/own.css", (route) => route.fulfill({ contentType: "text/css", body: ".bar { background: rgb(1, 2, 3); }" }));
    const settings = (url) => url.pathname === "/api/v1/settings";
    const json = { ...(await api("GET", "/api/v1/settings")), uiCssURL: "./custom/own.css" };
    await page.route(settings, (route) => route.fulfill({ json }));
    await page.goto(`${base}/applications`);
    await until("the bar has the colour of the style sheet", () => page.evaluate(() => getComputedStyle(document.querySelector(".bar") ?? document.body).backgroundColor === "rgb(1, 2, 3)"));
    await page.unroute(settings);
    await page.unroute("**/custom/own.css");
  });
  await step("favourites are kept in the browser, and are a filter", async () => {
    await page.click("[aria-label='Favourite waves']");
    await page.click("[data-count=favourites]");
    await until("only the favourite is shown", async () => (await page.locator("[data-app]").count()) === 1);
    assert.equal(query("showFavorites"), "true");
    await page.goto(`${base}/applications?showFavorites=true&view=list`);
    await page.waitForSelector(".app-row[data-app=waves] .star[aria-pressed=true]");
    assert.equal(await page.locator("[data-app]").count(), 1);
    await page.click("[data-count=favourites]");
    await page.waitForSelector("[data-app=guestbook]");
  });
  await step("the menu of a row is for the keyboard, too", async () => {
    const button = page.locator(".menu-button[aria-label='Menu of waves']");
    await button.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${menu} [data-item=open]:focus`);
    await page.keyboard.press("End");
    await page.waitForSelector(`${menu} [data-item=delete]:focus`);
    await page.keyboard.press("Escape");
    await page.waitForSelector(menu, { state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Menu of waves");
    // A second click closes it.
    await button.click();
    await page.waitForSelector(menu);
    await button.click();
    await page.waitForSelector(menu, { state: "detached" });
    await button.click();
    await page.click(`${menu} [data-item=favourite]`);
    await page.waitForSelector("[data-app=waves] .star[aria-pressed=false]");
    await button.click();
    await page.click(`${menu} [data-item=delete]`);
    await page.waitForSelector(`${dialog} >> text=Delete waves`);
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
  });
  await step("the summary has charts that filter", async () => {
    await page.click("[data-view=summary]");
    const { items } = await api("GET", "/api/v1/applications");
    const counted = (title) => page.locator(`[data-chart=${title}] svg.donut`).getAttribute("aria-label");
    // States move on while both are asked.
    const sum = async (title) => (await counted(title)).split(", ").reduce((all, part) => all + parseInt(part, 10), 0);
    for (const title of ["Sync", "Health"]) await until(`${title} counts all of them`, async () => (await sum(title)) === items.length);
    await page.waitForSelector(`.figures div:has(dt:text-is("Applications")) dd:text-is("${items.length}")`);
    await page.click("[data-chart=Health] [data-word=Healthy]");
    await page.waitForSelector(".count[aria-pressed=true] >> text=Healthy");
    assert.equal(query("health"), "Healthy");
    await page.goto(`${base}/applications?view=list`);
    await page.click(".views [data-view=list]");
    await page.waitForSelector(".app-row[data-app=guestbook]");
  });
  await step("a node's menu opens its logs, restarts it, deletes it and syncs it alone", async () => {
    await page.goto(`${base}/applications/waves`);
    const open = async (kind) => {
      await page.click(`.node-place:has([data-kind=${kind}]) .node-menu >> nth=0`);
      await page.waitForSelector(menu);
    };
    await page.waitForSelector("[data-kind=Pod]");
    await open("Pod");
    assert.equal(await page.locator(`${menu} [data-item=sync]`).count(), 0);
    await page.click(`${menu} [data-item=logs]`);
    await page.waitForSelector(".panel .logs");
    await page.press(".panel", "Escape");
    await page.waitForSelector(".panel", { state: "detached" });
    await open("Deployment");
    await page.click(`${menu} [data-item=restart]`);
    await page.waitForSelector(`${dialog} >> text=Restart Deployment`);
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await open("Deployment");
    await page.click(`${menu} [data-item=delete]`);
    await page.waitForSelector(`${dialog} >> text=Delete Deployment`);
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    const before = await operations("waves");
    await open("Deployment");
    await page.click(`${menu} [data-item=sync]`);
    await page.waitForSelector(`${dialog} summary >> text=/Resources \\(1 of/`);
    await page.click(`${dialog} button[type=submit]`);
    await until("one resource was synced", async () => {
      const { operationState } = (await api("GET", "/api/v1/applications/waves")).status;
      return operationState?.startedAt !== before && operationState?.operation?.sync?.resources?.length === 1;
    });
  });
  await step("Pods are shown by node, and by what has them", async () => {
    await page.goto(`${base}/applications/guestbook?view=pods`);
    const { nodes } = await api("GET", "/api/v1/applications/guestbook/resource-tree");
    const pods = nodes.filter(({ kind }) => kind === "Pod");
    await until("all Pods are there", async () => (await page.locator(".pod").count()) === pods.length);
    const place = pods[0].info.find(({ name }) => name === "Node").value;
    await page.waitForSelector(`[data-group='${place}'] [data-pod='${pods[0].name}']`);
    await page.selectOption("[aria-label='Pods together by']", "topLevelResource");
    await page.waitForSelector(`[data-group=guestbook-ui] [data-pod='${pods[0].name}']`);
    await page.click(`[data-pod='${pods[0].name}']`);
    await page.waitForSelector(".panel h2");
    await page.press(".panel", "Escape");
    await page.waitForSelector(`[data-pod='${pods[0].name}']:focus`);
    await page.click("[data-view=list]");
    await page.waitForSelector(".tree-list [data-kind=Pod]");
  });
  await step("the network leads from a Service to its Pods", async () => {
    await page.goto(`${base}/applications/guestbook?view=network`);
    const { nodes } = await api("GET", "/api/v1/applications/guestbook/resource-tree");
    const pods = nodes.filter(({ kind }) => kind === "Pod").map(({ name }) => `guestbook-ui ${name}`);
    await page.waitForSelector("[data-kind=Service]");
    const edges = await page.locator("path[data-edge]").evaluateAll((all) => all.map((path) => path.dataset.edge));
    assert.deepEqual(edges.sort(), pods.sort());
    // What is no part of the network is not there.
    assert.equal(await page.locator("[data-kind=Deployment]").count(), 0);
  });
  await step("colours are chosen, and kept in the browser; a project has events", async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.goto(`${base}/settings/appearance`);
    await page.waitForSelector("[name=theme][value=auto]:checked");
    const light = await ground();
    await page.check("[name=theme][value=dark]");
    assert.notEqual(await ground(), light);
    await page.reload();
    await page.waitForSelector("[name=theme][value=dark]:checked");
    assert.notEqual(await ground(), light);
    await page.check("[name=theme][value=auto]");
    assert.equal(await ground(), light);
    const event = { metadata: { name: "e2e-default", namespace: "argocd" }, involvedObject: { kind: "AppProject", name: "default", namespace: "argocd", uid: (await project(api)).metadata.uid }, reason: "ResourceUpdated", message: "the e2e looks at events", type: "Normal", lastTimestamp: new Date().toISOString() };
    const { status, text } = await cluster("/api/v1/namespaces/argocd/events", "POST", { apiVersion: "v1", kind: "Event", ...event });
    assert.equal(status, 201, text);
    await page.goto(`${base}/settings?project=default`);
    await page.waitForSelector(".events >> text=the e2e looks at events");
  });
}

const project = async (api) => api("GET", "/api/v1/projects/default");
