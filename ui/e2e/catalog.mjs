// The catalogue in a browser: from an empty one through a repository, a search, an install with a changed value, an upgrade with a
// conflict, to a rollback.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const TEMPLATE = `apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .Release.Name }}-web"
data:
  colour: {{ .Values.colour | quote }}
  size: {{ .Values.size | quote }}
  version: {{ .Chart.Version | quote }}
`;
const SCHEMA = JSON.stringify({ type: "object", properties: { colour: { type: "string", title: "Colour" }, size: { type: "integer", default: 1 } } });
const VERSIONS = [
  ["1.0.0", "colour: red\nsize: 1\n"],
  ["1.1.0", "colour: green\nsize: 2\n"],
];

/** The archive of a version of chart web. */
async function archive(folder, [version, values]) {
  const chart = join(folder, "web");
  await mkdir(join(chart, "templates"), { recursive: true });
  const files = {
    "Chart.yaml": `apiVersion: v2\nname: web\nversion: ${version}\ndescription: A page to look at\nkeywords: [page]\n`,
    "values.yaml": values,
    "values.schema.json": SCHEMA,
    "README.md": `# Web ${version}\n\n<script>document.title = "taken over"</script>\n`,
    "templates/web.yaml": TEMPLATE,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(chart, name), text);
  const file = join(folder, `web-${version}.tgz`);
  await run("tar", ["-czf", file, "-C", folder, "web"]);
  return readFile(file);
}

/** Serves a chart repository on loopback; `publish` says how many versions are there. */
async function repository() {
  const folder = await mkdtemp(join(tmpdir(), "tiphys-e2e-charts-"));
  const archives = [];
  for (const version of VERSIONS) archives.push(await archive(folder, version));
  let count = 1;
  const index = () => {
    const entry = ([version], at) =>
      `  - {apiVersion: v2, name: web, version: ${version}, description: A page to look at, keywords: [page], ` +
      `digest: ${createHash("sha256").update(archives[at]).digest("hex")}, urls: [web-${version}.tgz]}\n`;
    return `apiVersion: v1\nentries:\n  web:\n${VERSIONS.slice(0, count).map(entry).reverse().join("")}`;
  };
  const server = createServer((request, response) => {
    const at = VERSIONS.findIndex(([version]) => request.url === `/web-${version}.tgz`);
    if (request.url === "/index.yaml") response.end(index());
    else if (at >= 0) response.end(archives[at]);
    else response.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    publish: (versions) => (count = versions),
    stop,
    close: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** `step`, `until` and `picture` are those of the whole run. */
export async function catalogScenario({ page, base, api, cluster, step, until, picture }) {
  const charts = await repository();
  const source = async () => (await api("GET", "/api/v1/applications/shop")).spec.source;
  const data = async () => {
    const found = await cluster("/api/v1/namespaces/shop/configmaps/shop-web", "GET");
    return found.status === 200 ? JSON.parse(found.text).data : {};
  };
  const has = (wanted) =>
    until(`the cluster has ${JSON.stringify(wanted)}`, async () => {
      const found = await data();
      return Object.entries(wanted).every(([key, value]) => found[key] === value);
    }, 100);
  try {
    await step("the catalogue is empty", async () => {
      await page.goto(`${base}/catalog`);
      await page.waitForSelector("text=The catalogue is empty");
    });
    await step("a repository is added, and its chart is found as one types", async () => {
      await page.click("text=Add repository…");
      await page.fill("dialog [name=name]", "Team");
      await page.fill("dialog [name=url]", charts.url);
      await page.fill("dialog [name=interval]", "24h");
      await page.click("dialog button[type=submit]");
      assert.equal(await page.locator("dialog [name=name]:invalid").count(), 1);
      await page.fill("dialog [name=name]", "team");
      await page.click("dialog button[type=submit]");
      await page.waitForSelector("dialog", { state: "detached" });
      await until("the chart is read", async () => ((await api("GET", "/api/v1/catalog/charts")).items ?? []).length === 1, 100);
      await page.reload();
      await page.fill(".catalog-search", "nothing like it");
      await page.waitForSelector("text=No chart matches");
      await page.fill(".catalog-search", "PAGE");
      await page.waitForSelector("[data-chart=web]");
      await picture(page, "catalog-1280");
    });
    await step("its README is text, never a script", async () => {
      await page.click("[data-chart=web] .cover");
      await page.waitForSelector(".chart-panel >> text=Web 1.0.0");
      assert.equal(await page.locator(".chart-panel script").count(), 0);
      assert.notEqual(await page.title(), "taken over");
    });
    await step("it is installed with a changed value", async () => {
      await page.click("text=Install…");
      await page.fill("dialog [name=name]", "shop");
      await page.fill("dialog [name=destNamespace]", "shop");
      await page.fill("dialog [name=colour]", "blue");
      // What it changes in the cluster: the object is new.
      await page.waitForSelector("dialog .unified .line-added >> text=blue");
      await page.click("[data-manifests] summary");
      await page.waitForSelector("[data-manifests] pre >> text=blue");
      await page.click("[data-for-git] summary");
      await page.waitForSelector("[data-for-git] pre >> text=catalog.tiphys.dev/digest");
      await picture(page, "catalog-install-1280");
      await page.click("dialog button[type=submit]");
      await page.waitForURL(/applications/);
      await has({ colour: "blue", size: "1", version: "1.0.0" });
    });
    await step("an upgrade names its conflict, and writes nothing before it is decided", async () => {
      charts.publish(2);
      await api("POST", "/api/v1/catalog/repositories/argocd/team/sync", {});
      await until("the newer version is offered", async () => ((await api("GET", "/api/v1/catalog/updates")).items ?? [])[0]?.newest === "1.1.0", 100);
      await page.goto(`${base}/catalog`);
      await page.click("[data-update=shop] button");
      await page.waitForSelector("[data-conflict=colour]");
      // What it would apply is there before anything happens.
      await page.click("dialog [data-manifests] summary");
      await page.waitForSelector("dialog [data-manifests] pre >> text=1.1.0");
      await page.click("dialog [data-manifests] summary");
      assert.ok(await page.locator("dialog button[type=submit]").isDisabled());
      await picture(page, "catalog-upgrade-1280");
      await page.click("text=Keep yours");
      await page.click("dialog button[type=submit]:not([disabled])");
      await page.waitForSelector("dialog", { state: "detached" });
      assert.equal((await source()).targetRevision, "1.1.0");
      await has({ colour: "blue", size: "2", version: "1.1.0" });
    });
    await step("it is rolled back", async () => {
      await until("it is synced", async () => {
        const { status } = await api("GET", "/api/v1/applications/shop");
        return status.sync?.status === "Synced" && (status.history ?? []).length > 1;
      }, 100);
      await page.goto(`${base}/applications/shop`);
      await page.click("text=Roll back…");
      await page.click("dialog button[type=submit]:not([disabled])");
      await page.waitForSelector("dialog", { state: "detached" });
      await has({ colour: "blue", size: "1", version: "1.0.0" });
    });
    await step("the origin is gone: what was fetched is still shown, and what failed is told", async () => {
      await charts.stop();
      await api("POST", "/api/v1/catalog/repositories/argocd/team/sync", {});
      await until("the failure is told", async () => Boolean(((await api("GET", "/api/v1/catalog/repositories")).items ?? [])[0]?.error), 100);
      await page.goto(`${base}/catalog`);
      await page.waitForSelector("text=failed");
      await page.click("[data-chart=web] .cover");
      await page.waitForSelector(".chart-panel >> text=Web 1.1.0");
      await has({ colour: "blue", size: "1", version: "1.0.0" });
    });
    await step("a repository that is gone takes its chart along, and the Application stays", async () => {
      await page.goto(`${base}/catalog`);
      await page.click("[data-repository=team] >> text=Remove");
      await page.click("dialog button[type=submit]");
      await page.waitForSelector("dialog", { state: "detached" });
      await until("the chart is gone", async () => ((await api("GET", "/api/v1/catalog/charts")).items ?? []).length === 0, 100);
      await page.goto(`${base}/catalog`);
      await page.waitForSelector("[data-update=shop] >> text=(origin gone)");
      await has({ colour: "blue" });
    });
  } finally {
    await charts.close();
  }
}
