// The list of Applications: filters, what is done with many, ten thousand of them; and addresses of Argo CD's page.

import assert from "node:assert/strict";

const DELTA = (items) => [...items, { type: "BOOKMARK", application: { metadata: { name: "" }, spec: {} } }].map((result) => `data: ${JSON.stringify({ result })}\n\n`).join("");
const MANY = 10_000;

const many = (count = MANY) =>
  Array.from({ length: count }, (_, n) => ({
    type: "ADDED",
    application: {
      metadata: { name: `app-${String(n).padStart(5, "0")}`, namespace: "argocd", labels: { team: `t${n % 50}` } },
      spec: { project: "default", source: { repoURL: "https://git.example.org/a.git", path: "." }, destination: { name: `c${n % 20}`, namespace: `n${n % 500}` } },
      status: { sync: { status: n % 3 ? "Synced" : "OutOfSync" }, health: { status: "Healthy" } },
    },
  }));

export async function listScenario({ page, base, api, spec, step, until }) {
  const dialog = "dialog[open]";
  const names = () => page.locator("[data-app]").evaluateAll((all) => all.map((e) => e.dataset.app));
  const shows = (...wanted) => until(`the list shows ${wanted}`, async () => JSON.stringify((await names()).sort()) === JSON.stringify(wanted.sort()));
  const total = (text) => page.waitForSelector(`.total:text-is("${text}")`);
  const BULK = ["bulk-a", "bulk-b", "bulk-c"];

  await step("the list is filtered by labels, and a link has the filter", async () => {
    for (const name of BULK) {
      const metadata = { name, labels: { batch: "e2e", of: name.at(-1) } };
      const syncPolicy = { syncOptions: ["CreateNamespace=true"] };
      await api("POST", "/api/v1/applications", { metadata, spec: { project: "default", source: { ...spec.source, path: "guestbook" }, destination: { ...spec.destination, namespace: name }, syncPolicy } });
    }
    await page.goto(`${base}/applications`);
    await page.selectOption("[aria-label='Filter by']", "labels");
    await page.fill(".app-facets input", "batch=e2e");
    await page.press(".app-facets input", "Enter");
    await shows(...BULK);
    await page.fill(".app-facets input", "of!=c");
    await page.press(".app-facets input", "Enter");
    await shows("bulk-a", "bulk-b");
    await page.reload();
    await shows("bulk-a", "bulk-b");
    await page.click("[aria-label='Remove the filter Label of!=c']");
    await shows(...BULK);
    await page.goto(`${base}/applications?autoSync=Disabled&namespace=bulk-*&sync=OutOfSync,Unknown`);
    await shows(...BULK);
  });
  await step("those that are chosen are refreshed, synced and deleted", async () => {
    const deed = async (which) => {
      await page.click(`.bulk [data-deed=${which}]`);
      if (which === "delete") {
        assert.ok(await page.locator(`${dialog} button[type=submit]`).isDisabled());
        await page.fill(`${dialog} [name=confirm]`, "3");
      }
      await page.click(`${dialog} button[type=submit]`);
      await page.waitForSelector(`${dialog} [data-ended] >> text=3 of 3 accepted`);
      await page.click(`${dialog} >> text=Close`);
      await page.waitForSelector("dialog", { state: "detached" });
    };
    await page.goto(`${base}/applications?labels=batch%3De2e`);
    await shows(...BULK);
    await page.check("[aria-label='Choose bulk-a']");
    await page.waitForSelector(".bulk >> text=1 chosen");
    await page.click(".bulk >> text=Choose all 3");
    await deed("refresh");
    await deed("sync");
    await until("all three are synced", async () => (await api("GET", "/api/v1/applications?selector=batch%3De2e")).items.every(({ status }) => status.sync?.status === "Synced" && status.health?.status === "Healthy"));
    await deed("delete");
    await until("all three are gone", async () => !(await api("GET", "/api/v1/applications?selector=batch%3De2e")).items?.length);
    await page.waitForSelector(".bulk", { state: "detached" });
  });
  await step("ten thousand Applications are listed, and only those near the screen are drawn", async () => {
    const asked = (url) => url.pathname === "/api/v1/stream/applications";
    let first = true;
    // What is asked again is not answered.
    await page.route(asked, (route) => (first ? ((first = false), route.fulfill({ contentType: "text/event-stream", body: DELTA(many()) })) : undefined));
    await page.goto(`${base}/applications`);
    await total(String(MANY));
    const drawn = await page.locator("[data-app]").count();
    assert.ok(drawn < 400, `${drawn} rows are drawn`);
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    await page.waitForSelector(`[data-app=app-0${MANY - 1}]`);
    await until("the first rows are not drawn", async () => (await page.locator("[data-app=app-00000]").count()) === 0);
    const from = performance.now();
    await page.fill(".filter", "team=t7");
    await total(`200 of ${MANY}`);
    const filtered = Math.round(performance.now() - from);
    await page.fill(".filter", "");
    await page.evaluate(() => window.scrollTo(0, 0));
    // The keyboard walks on beyond what is drawn at first.
    await page.focus("[aria-label='Choose app-00000']");
    await page.keyboard.press("Space");
    await page.waitForSelector(".bulk >> text=1 chosen");
    await page.click(`.bulk >> text=Choose all ${MANY}`);
    await page.waitForSelector(`.bulk >> text=${MANY} chosen`);
    await page.locator("[aria-label='Choose app-00059']").focus();
    await page.waitForSelector("[data-app=app-00060]");
    for (let n = 0; n < 6; n++) await page.keyboard.press("Tab");
    await until("the focus is in the next rows", () => page.evaluate(() => /app-0006\d/.test(document.activeElement?.closest("[data-app]")?.dataset.app ?? "")));
    await page.click(".views [data-view=tiles]");
    await page.waitForSelector(".app-tile[data-app=app-00000]");
    const tiles = await page.locator(".app-tile").count();
    assert.ok(tiles < 800, `${tiles} tiles are drawn`);
    const at = performance.now();
    await page.click(".views [data-view=summary]");
    await page.waitForSelector(`[data-chart=Health] [data-word=Healthy] >> text=${MANY}`);
    const summed = Math.round(performance.now() - at);
    await page.click(".views [data-view=list]");
    await page.waitForSelector(".app-row[data-app=app-00000]");
    await page.unroute(asked);
    return `${drawn} rows drawn, or ${tiles} tiles; filtered in ${filtered} ms, summed up in ${summed} ms`;
  });
  await step("the focus stays on an Application that moves to another place", async () => {
    const asked = (url) => url.pathname === "/api/v1/stream/applications";
    let isFocused;
    const gate = new Promise((done) => (isFocused = done));
    const watches = [async () => many(130), async () => (await gate, many(130).map((event, n) => (n === 128 ? { ...event, application: { ...event.application, status: { sync: { status: "OutOfSync" }, health: { status: "Degraded" } } } } : event)))];
    await page.route(asked, async (route) => {
      const next = watches.shift();
      if (next) await route.fulfill({ contentType: "text/event-stream", body: DELTA(await next()) });
    });
    await page.goto(`${base}/applications?view=list&sort=health`);
    await total("130");
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    await page.focus("[aria-label='Menu of app-00128']");
    isFocused();
    await page.waitForSelector("[data-app=app-00128][aria-posinset='1']");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Menu of app-00128");
    await page.unroute(asked);
  });
  await step("filters have patterns, and annotations that come when they are asked for", async () => {
    const streams = [];
    const note = (request) => request.url().includes("/api/v1/stream/applications?") && streams.push(new URL(request.url()).searchParams.get("fields").includes("metadata.annotations"));
    page.on("request", note);
    await api("POST", "/api/v1/applications", { metadata: { name: "annotated", annotations: { "e2e.example.org/owner": "anna" } }, spec: { project: "default", source: { ...spec.source, path: "guestbook" }, destination: { ...spec.destination, namespace: "annotated" } } });
    await page.goto(`${base}/applications?view=list`);
    await page.waitForSelector("[data-app=annotated]");
    assert.ok(!streams.includes(true), "annotations come unasked");
    await page.selectOption("[aria-label='Filter by']", "annotations");
    await page.fill(".app-facets input", "e2e.example.org/owner=a[m-n]{n,x}?");
    await page.press(".app-facets input", "Enter");
    await shows("annotated");
    assert.ok(streams.at(-1), "annotations are not asked for");
    page.off("request", note);
    await api("DELETE", "/api/v1/applications/annotated?cascade=false");
    await page.waitForSelector("[data-app=annotated]", { state: "detached" });
  });
  await step("addresses of Argo CD's page open the same here", async () => {
    await page.goto(`${base}/applications/argocd/guestbook?view=tree&resource=kind%3ADeployment`);
    await page.waitForSelector("[data-kind=Deployment]");
    assert.equal(await page.locator("[data-kind=Service]").count(), 0);
    const { nodes } = await api("GET", "/api/v1/applications/guestbook/resource-tree");
    const pod = nodes.find(({ kind }) => kind === "Pod");
    await page.goto(`${base}/applications/argocd/guestbook?node=%2FPod%2F${pod.namespace}%2F${pod.name}%2F0&tab=manifest`);
    await page.waitForSelector(".panel pre.code >> text=kind: Pod");
    await page.goto(`${base}/applications/argocd/guestbook/${pod.namespace}/${pod.name}/logs?podName=${pod.name}`);
    await page.waitForSelector(".panel-full .log-lines");
    await page.press("body", "Escape");
    await page.waitForSelector(".panel:not(.panel-full) .log-lines");
    await page.waitForSelector("[data-kind=Deployment]");
    await page.goto(`${base}/applications/guestbook?deploy=all`);
    await page.waitForSelector(`${dialog} >> text=Sync guestbook`);
    await page.press("body", "Escape");
    await page.goto(`${base}/settings/projects/default`);
    await page.waitForSelector("h2 >> text=default");
    await page.goto(`${base}/settings/repos`);
    await page.waitForSelector("[role=tab][aria-selected=true] >> text=Repositories");
  });
}
