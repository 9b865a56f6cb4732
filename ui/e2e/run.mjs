// The page in a real browser: it follows Git without a reload, and looks as in docs/pictures/.
//
// TIPHYS_BIN   the program (default: the newest of target/release/tiphys and target/debug/tiphys)
// CHROMIUM     the browser (default: the usual places)
// DEX          a Dex for the sign-in through one (default: the one of scripts/control-plane)
// E2E_ONLY     catalog, list, manage (forms, settings, terminals), resource, sso or views: only that part
// E2E_PREVIEW  set: serve ui/dist, or the folder that it names, beside a program that was built without its page

import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { mkdir, readFile, unlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { catalogScenario } from "./catalog.mjs";
import { expecting } from "./expected.mjs";
import { listScenario } from "./list.mjs";
import { manageNarrow, manageScenario } from "./manage.mjs";
import { resourceScenario } from "./resource.mjs";
import { ssoScenario } from "./sso.mjs";
import { client, clone, kube, start } from "./tiphys.mjs";
import { viewsScenario } from "./views.mjs";

const ui = dirname(dirname(fileURLToPath(import.meta.url)));
const pictures = join(ui, "../docs/pictures");
const first = (paths) => paths.find((path) => existsSync(path));
const usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browserPath = first(process.env.CHROMIUM ? [process.env.CHROMIUM] : usual);
const built = ["release", "debug"].map((profile) => join(ui, "../target", profile, "tiphys")).filter(existsSync);
const newest = built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
const binary = process.env.TIPHYS_BIN || newest;
const FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
/** So long after the cluster has a change the page must show it. */
const LIMIT = 2000;
const WAIT = 30_000;
const PARTS = ["catalog", "list", "manage", "resource", "sso", "views"];

const CONFIG = (word) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\ndata:\n  word: ${word}\n`;
const STUCK = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: stuck
spec:
  selector: { matchLabels: { app: stuck } }
  template:
    metadata:
      labels: { app: stuck }
      annotations: { sim.tiphys.dev/behaviour: image-pull-error }
    spec:
      containers: [{ name: stuck, image: nobody/has-it }]
`;
const greeting = "[data-kind=ConfigMap][data-name=greeting]";

const steps = [];
async function step(name, body) {
  const from = performance.now();
  const note = await body();
  steps.push(name);
  console.log(`ok  ${name} (${Math.round(performance.now() - from)} ms${note ? `; ${note}` : ""})`);
}

async function until(what, test, every = 10) {
  const end = performance.now() + WAIT;
  while (performance.now() < end) {
    if (await test()) return performance.now();
    await sleep(every);
  }
  throw new Error(`${what}: not so after ${WAIT / 1000} s`);
}

/** Both times are taken side by side: when the cluster has it, and when the page shows it. */
async function measured(cluster, page) {
  const [at, shown] = await Promise.all([cluster, page.then(() => performance.now())]);
  const late = Math.round(shown - at);
  assert.ok(late <= LIMIT, `the page showed it ${late} ms after the cluster had it; ${LIMIT} are allowed`);
  return `page ${late < 0 ? "at once" : `${late} ms after the cluster`}`;
}

async function login(page, base, password) {
  await page.goto(`${base}/`);
  await page.fill("[name=username]", "admin");
  await page.fill("[name=password]", password);
  await page.press("[name=password]", "Enter");
  await page.waitForSelector("[data-app=guestbook]", { timeout: WAIT });
}

async function preview(api) {
  const vite = await import("vite");
  const outDir = first([process.env.E2E_PREVIEW, "dist"]) ?? "dist";
  // As strict as the program's own page.
  const policy = (await fetch(`${api}/`)).headers.get("content-security-policy");
  const headers = { ...(policy && { "Content-Security-Policy": policy }) };
  const server = await vite.preview({ root: ui, logLevel: "error", build: { outDir }, preview: { headers, port: 0, host: "127.0.0.1", proxy: { "/api": api, "/extensions.js": api, "/terminal": { target: api, ws: true } } } });
  return { url: server.resolvedUrls.local[0].replace(/\/$/, ""), close: () => server.close() };
}

async function scenario(browser, up, base) {
  const api = await client(up.page, up.password);
  const cluster = await kube(up.kubeconfig);
  const { spec } = await api("GET", "/api/v1/applications/guestbook");
  const repository = await clone(spec.source.repoURL);
  const problems = [];
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  page.on("pageerror", (e) => problems.push(e.message));
  page.on("console", (m) => m.type() === "error" && problems.push(m.text()));
  try {
    await step("a wrong password is refused", async () => {
      await page.goto(`${base}/`);
      await page.fill("[name=password]", "wrong");
      await page.press("[name=password]", "Enter");
      await page.waitForSelector("[role=alert]");
      await expecting(problems, until)("the refused call", /status of 401/);
    });
    await step("login shows the Applications", async () => {
      await login(page, base, up.password);
      const names = await page.locator("[data-app]").evaluateAll((all) => all.map((e) => e.dataset.app));
      assert.deepEqual(names, ["chart", "examples", "guestbook", "waves"]);
      assert.equal(await page.locator(".app-row .badge", { hasText: "Healthy" }).count(), 4);
    });
    if (!process.env.E2E_ONLY) await followsGit({ page, base, api, cluster, repository, spec });
    const runs = (part) => [undefined, "", part].includes(process.env.E2E_ONLY);
    if (runs("list")) await listScenario({ page, base, api, spec, step, until });
    if (runs("views")) await viewsScenario({ page, base, api, cluster, problems, step, until, picture });
    if (runs("resource")) await resourceScenario({ page, base, api, cluster, step, until });
    if (runs("manage")) await manageScenario({ page, base, api, cluster, kubeconfig: up.kubeconfig, repository, spec, problems, step, until });
    if (runs("catalog")) await catalogScenario({ page, base, api, cluster, step, until, picture });
    await step("the browser reported no errors", async () => assert.deepEqual(problems, []));
    await narrow(browser, up, base);
    await step("logging out ends the session", async () => {
      await page.click("text=Log out");
      await page.waitForSelector("[name=password]");
      assert.equal(await page.evaluate(async () => (await fetch("/api/v1/applications")).status), 401);
    });
  } catch (e) {
    await page.screenshot({ path: join(ui, "e2e-failure.png") }).catch(() => undefined);
    if (problems.length > 0) console.error("The browser reported:", problems);
    throw e;
  } finally {
    await context.close();
    await repository.remove();
  }
}

async function followsGit({ page, base, api, cluster, repository, spec }) {
  await step("the filter finds by name", async () => {
    await page.press("body", "/");
    await page.keyboard.type("wav");
    await page.waitForFunction(() => document.querySelectorAll("[data-app]").length === 1);
    // It is in the address, so a link shows the same.
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("[data-app]").length === 1);
    await page.fill(".filter", "");
  });
  await step("the tree shows Deployment, ReplicaSet and Pod", async () => {
    await page.click("[data-app=guestbook] .cover");
    for (const kind of ["Deployment", "ReplicaSet", "Pod", "Service"]) await page.waitForSelector(`[data-kind=${kind}]`);
    await page.evaluate(() => (window.notReloaded = true));
  });
  const address = "/api/v1/namespaces/guestbook/configmaps/greeting";
  await step("a file added in Git appears in the tree", async () => {
    await repository.change("Add a greeting", (folder) => writeFile(join(folder, "guestbook/greeting.yaml"), CONFIG("hello")));
    // Synced and with an age: it is the live object in the tree, not what is only wanted.
    const shown = page.waitForSelector(`${greeting}:has([aria-label=Synced]) .node-age:not(:empty)`);
    const there = until("the cluster has the ConfigMap", async () => (await cluster(address)).status === 200);
    await api("GET", "/api/v1/applications/guestbook?refresh=normal");
    return measured(there, shown);
  });
  await step("more replicas in Git appear in the tree", async () => {
    const before = await page.locator("[data-kind=Pod]").count();
    await repository.change("Run more", async (folder) => {
      const file = join(folder, "guestbook/guestbook.yaml");
      const text = await readFile(file, "utf8");
      await writeFile(file, /replicas: \d+/.test(text) ? text.replace(/replicas: \d+/, "replicas: 4") : text.replace(/kind: Deployment[\s\S]*?\nspec:\n/, "$&  replicas: 4\n"));
    });
    await api("GET", "/api/v1/applications/guestbook?refresh=normal");
    await page.waitForFunction(() => document.querySelectorAll("[data-kind=Pod]").length === 4);
    await page.waitForFunction(() => document.querySelectorAll("[data-kind=Pod] [aria-label=Healthy]").length === 4);
    return `${before} to 4 Pods`;
  });
  await step("a file deleted in Git disappears from the tree", async () => {
    await repository.change("Remove the greeting", (folder) => unlink(join(folder, "guestbook/greeting.yaml")));
    const gone = page.waitForSelector(greeting, { state: "detached" });
    const absent = until("the cluster has no ConfigMap", async () => (await cluster(address)).status === 404);
    await api("GET", "/api/v1/applications/guestbook?refresh=normal");
    return measured(absent, gone);
  });
  await step("what keeps a Deployment from being healthy is said", async () => {
    const file = "guestbook/stuck.yaml";
    await repository.change("Run an image that nobody has", (folder) => writeFile(join(folder, file), STUCK));
    await api("GET", "/api/v1/applications/guestbook?refresh=normal");
    await page.waitForSelector("[data-kind=Deployment][data-name=stuck] [aria-label*=ImagePullBackOff]");
    await page.waitForSelector(".tiles >> text=Deployment stuck 0/1");
    await page.click("[data-kind=Deployment][data-name=stuck]");
    await page.waitForSelector(".panel >> text=ImagePullBackOff");
    await page.press("body", "Escape");
    await page.waitForSelector(".panel", { state: "detached" });
    await repository.change("Do not run it", (folder) => unlink(join(folder, file)));
    await api("GET", "/api/v1/applications/guestbook?refresh=normal");
    await page.waitForSelector("[data-name=stuck]", { state: "detached" });
  });
  await step("a node opens its live manifest", async () => {
    await page.click("[data-kind=Deployment]");
    await page.click(".panel [role=tab] >> text=Live");
    await page.waitForSelector("pre.code >> text=kind: Deployment");
    // A dialog takes Escape for itself; the panel stays.
    await page.click("[data-action=restart]");
    await page.waitForSelector("dialog[open]");
    await page.press("body", "Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal(await page.locator(".panel").count(), 1);
    await page.press("body", "Escape");
    await page.waitForSelector(".panel", { state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement?.dataset.kind), "Deployment");
  });
  await step("a Pod shows its events and logs", async () => {
    await page.click("[data-kind=Pod]");
    await page.click(".panel [role=tab] >> text=Events");
    await page.waitForSelector(".panel .events >> text=Scheduled");
    await page.press(".panel [role=tab][aria-selected=true]", "ArrowRight");
    await page.waitForSelector(".log-lines >> text=simulated container");
    await page.press("body", "Escape");
  });
  await step("all of it without a reload", async () => {
    assert.equal(await page.evaluate(() => window.notReloaded), true);
  });
  await step("an Application is synced with the button, and its drift is shown", async () => {
    await createManual(api, spec);
    await page.goto(`${base}/applications/staging`);
    await page.waitForSelector("[data-kind=Deployment] [aria-label=Missing]");
    await page.click(".page-head button.primary");
    // What it would do is said before it is done, hooks and waves included.
    await page.waitForSelector("dialog .plan summary >> text=4 created, 1 hook");
    const order = await page.locator(".plan-steps h3").allTextContents();
    assert.deepEqual(order, ["PreSync", "Sync", "Sync, wave 1"]);
    await page.click("dialog button.primary");
    await page.waitForSelector(".tiles .badge >> text=Healthy");
    await page.waitForSelector(".tiles .badge >> text=Synced");
    await repository.change("Change the greeting", async (folder) => {
      const file = join(folder, "waves/backend.yaml");
      await writeFile(file, (await readFile(file, "utf8")).replace(/greeting: .*/, "greeting: good morning"));
    });
    await api("GET", "/api/v1/applications/staging?refresh=normal");
    await page.waitForSelector(".tiles .badge >> text=OutOfSync");
    await page.click("[data-kind=ConfigMap]");
    await page.waitForSelector(".diff .added >> text=good morning");
  });
  await step("a link to a resource opens it", async () => {
    await page.reload();
    await page.waitForSelector(".diff .added >> text=good morning");
  });
  // It goes by itself, too.
  await page.click(".toast button", { timeout: 1000 }).catch(() => undefined);
  await picture(page, "diff-1280");
  await changes({ page, base, api, spec });
  await api("GET", "/api/v1/applications/waves?refresh=normal");
  await page.goto(`${base}/applications/waves`);
  await page.waitForFunction(() => document.querySelectorAll("[data-kind=Pod] [aria-label=Healthy]").length >= 2);
  await page.waitForSelector(".tiles .badge >> text=Synced");
  await picture(page, "tree-1280");
  await page.goto(`${base}/applications`);
  await page.waitForSelector("[data-app=staging]");
  await picture(page, "list-1280");
}

/** Synced in part, rolled back, created, edited and deleted, all on the page. */
async function changes({ page, base, api, spec }) {
  const staging = async () => (await api("GET", "/api/v1/applications/staging")).status;
  await step("only the resources that are chosen are synced, then all of them", async () => {
    await page.goto(`${base}/applications/staging`);
    await page.click(".page-head button.primary");
    await page.click("dialog .plan [data-effect=change] summary >> text=ConfigMap backend");
    await page.waitForSelector("dialog .plan .added >> text=good morning");
    await page.click("dialog summary >> text=Resources");
    await page.click("text=Those out of sync");
    await page.click("dialog button.primary");
    await until("the sync of one resource has ended", async () => {
      const { operationState } = await staging();
      return operationState?.phase === "Succeeded" && operationState.operation.sync.resources?.length === 1;
    });
    await page.click(".page-head button.primary");
    await page.click("dialog button.primary");
    await until("there is a second entry in the history", async () => (await staging()).history?.length === 2);
  });
  await step("it is rolled back to an entry of its history", async () => {
    await page.click("[role=tab] >> text=History");
    await page.click("[data-history='0'] >> text=Roll back…");
    // What would differ is there before it is done, and can be seen side by side.
    await page.click("dialog .plan [data-effect=change] summary >> text=ConfigMap backend");
    await page.waitForSelector("dialog .plan .removed >> text=good morning");
    await page.click("dialog .legend >> text=Side by side");
    await page.waitForSelector("dialog .diff.split .pair .side.removed >> text=good morning");
    assert.equal(await page.locator("dialog .diff.split .pair:has(.side.removed) .side.added >> text=greeting").count(), 1);
    await page.click("dialog .legend >> text=Side by side");
    await page.waitForSelector("dialog .diff:not(.split)");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.waitForSelector(".tiles .badge >> text=OutOfSync");
    const { history } = await staging();
    assert.equal(history.at(-1).revision, history[0].revision);
  });
  await step("the parameters of a chart are shown and edited", async () => {
    // One that Git does not describe: it stays as it was edited.
    const source = { ...spec.source, path: "chart", helm: { parameters: [{ name: "image.tag", value: "v6" }] } };
    await api("POST", "/api/v1/applications", { metadata: { name: "tuned" }, spec: { project: "default", source, destination: { ...spec.destination, namespace: "tuned" } } });
    await page.goto(`${base}/applications/tuned?view=parameters`);
    await page.waitForSelector("[role=tabpanel] tr:has-text('image.repository')");
    await page.click("text=Edit…");
    await page.waitForSelector("dialog >> text=values-prod.yaml");
    const field = page.locator("dialog [name=parameters]");
    const before = await field.inputValue();
    await field.fill(`${before}\ngreeting=Hello`);
    await page.click("dialog button[type=submit]");
    await page.waitForSelector("[role=tabpanel] tr:has-text('greeting') b >> text=Hello");
    const { helm } = (await api("GET", "/api/v1/applications/tuned")).spec.source;
    assert.deepEqual(helm.parameters, [...source.helm.parameters, { name: "greeting", value: "Hello" }]);
    await api("DELETE", "/api/v1/applications/tuned?cascade=false");
    await page.waitForSelector("text=tuned was deleted");
  });
  await step("an ApplicationSet shows its Applications and what it generates", async () => {
    const { repoURL } = spec.source;
    const destination = { server: "https://kubernetes.default.svc", namespace: "{{.team}}" };
    const template = { metadata: { name: "{{.team}}-web" }, spec: { project: "default", source: { repoURL, path: "guestbook", targetRevision: "HEAD" }, destination } };
    const generators = [{ list: { elements: [{ team: "red" }, { team: "blue" }] } }];
    await page.goto(`${base}/applicationsets`);
    await page.waitForSelector("text=No ApplicationSets yet");
    await api("POST", "/api/v1/applicationsets", { metadata: { name: "teams" }, spec: { goTemplate: true, generators, template } });
    await page.click("table a >> text=teams");
    await page.waitForSelector("table a >> text=red-web");
    await page.click("[role=tab] >> text=What it generates");
    await page.waitForSelector("[aria-label='What it generates'] li >> text=blue-web");
    await page.click("[role=tab] >> text=Conditions");
    await page.waitForSelector("table >> text=ResourcesUpToDate True");
    // The page of a set that is deleted leads back to the list, and asks for it no more: the browser would report that.
    await api("DELETE", "/api/v1/applicationsets/teams");
    await page.waitForSelector(".toast >> text=The ApplicationSet teams was deleted");
    await page.waitForSelector("text=No ApplicationSets yet");
    assert.equal(new URL(page.url()).pathname, "/applicationsets");
    await until("the set's Applications are gone", async () => (await api("GET", "/api/v1/applications")).items.every((app) => !app.metadata.name.endsWith("-web")));
  });
}

/** An Application that nobody syncs by itself. */
async function createManual(api, spec) {
  const metadata = { name: "staging", namespace: "argocd" };
  const destination = { ...spec.destination, namespace: "staging" };
  const source = { ...spec.source, path: "waves" };
  const syncPolicy = { syncOptions: ["CreateNamespace=true"] };
  await api("POST", "/api/v1/applications", { metadata, spec: { project: "default", source, destination, syncPolicy } });
}

async function narrow(browser, up, base) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, colorScheme: "dark", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  await step("everything fits into 390 pixels", async () => {
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    await login(page, base, up.password);
    assert.ok((await overflow()) <= 0, "the list is wider than the screen");
    await picture(page, "list-390");
    await page.click("[data-app=waves] .cover");
    await page.waitForSelector(".tree-list [data-kind=Pod]");
    assert.ok((await overflow()) <= 0, "the tree is wider than the screen");
    await picture(page, "tree-390");
  });
  await step("settings and forms fit into 360 pixels", () => manageNarrow(page, base));
  await context.close();
}

async function picture(page, name) {
  await mkdir(pictures, { recursive: true });
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(pictures, `${name}.png`), scale: "css" });
}

/** With a Dex, where there is one; the program must have its page. */
async function signIn(browser, up) {
  const only = process.env.E2E_ONLY;
  if (only && only !== "sso") return;
  if (process.env.E2E_PREVIEW) {
    console.log("SKIPPED: with E2E_PREVIEW, signing in through Dex was NOT tested: the program itself must have its page.");
    return;
  }
  const dex = first(process.env.DEX ? [process.env.DEX] : [join(homedir(), ".cache/control-plane/bin/dex")]);
  if (dex) await ssoScenario({ browser, binary, kubeconfig: up.kubeconfig, dex, step, until });
  else console.log("SKIPPED: no Dex here, so signing in through it was NOT tested. `scripts/control-plane build` builds one; DEX names another.");
}

async function main() {
  const only = process.env.E2E_ONLY;
  if (only && !PARTS.includes(only)) throw new Error(`E2E_ONLY=${only}: it can be ${PARTS.join(", ")}.`);
  if (!browserPath) {
    console.log("SKIPPED: no Chromium here, so the page was NOT tested in a browser. Install chromium or set CHROMIUM.");
    return;
  }
  if (!binary) throw new Error("No program to test: run `cargo build -p tiphys-cli`, or set TIPHYS_BIN.");
  const up = await start(binary);
  let browser;
  let served;
  try {
    served = process.env.E2E_PREVIEW ? await preview(up.page) : undefined;
    const base = served?.url ?? up.page;
    const html = await (await fetch(`${base}/`)).text();
    if (!html.includes('id="root"')) throw new Error("The program was built without its page: run `make ui`, then build it again.");
    browser = await chromium.launch({ executablePath: browserPath, args: FLAGS.split(" ") });
    if (only !== "sso") await scenario(browser, up, base);
    await signIn(browser, up);
    if (steps.length === 0) throw new Error("No step ran.");
    console.log(`${steps.length} steps passed.`);
  } catch (e) {
    console.error("What tiphys printed:\n" + up.output());
    throw e;
  } finally {
    await browser?.close();
    await served?.close();
    await up.stop();
  }
}

main().catch((e) => {
  console.error(e);
  process.exitCode = 1;
});
