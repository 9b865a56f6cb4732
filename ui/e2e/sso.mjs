// Signing in through a real Dex, which runs beside a server: the page's button, Dex's own pages, and back.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expecting } from "./expected.mjs";
import { kube } from "./tiphys.mjs";

const PLACE = "sso";
const HOST = "127.0.0.1";
/** Dex replaces variables in what connectors have: the dollar signs must survive it. */
const PASSWORD = "a$HOME$b$";
const SETTINGS = `connectors:
- {type: mockCallback, id: mock, name: Mock}
- {type: mockPassword, id: corp, name: Corp, config: {username: ann, password: $dex.ann}}
`;
/** Whom both of them sign in, and the group that only the first one names. */
const EMAIL = "kilgore@kilgore.trout";
const POLICY = "p, role:author, applications, get, */*, allow\ng, authors, role:author\n";

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, HOST, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** What the server and Dex read, and an Application to see. */
async function install(cluster, url) {
  const labels = { "app.kubernetes.io/part-of": "argocd" };
  const create = async (path, object) => {
    const { status, text } = await cluster(path, "POST", object);
    assert.equal(status, 201, `${path}: ${text}`);
  };
  const core = `/api/v1/namespaces/${PLACE}`;
  const argo = `/apis/argoproj.io/v1alpha1/namespaces/${PLACE}`;
  await create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: PLACE } });
  const stringData = { "server.secretkey": "of this test, and of no other", "dex.ann": PASSWORD };
  await create(`${core}/secrets`, { apiVersion: "v1", kind: "Secret", metadata: { name: "argocd-secret", labels }, stringData });
  for (const [name, data] of [
    ["argocd-cm", { url, "dex.config": SETTINGS }],
    ["argocd-rbac-cm", { "policy.csv": POLICY }],
  ]) {
    await create(`${core}/configmaps`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data });
  }
  const [group, kind] = ["argoproj.io/v1alpha1", "AppProject"];
  await create(`${argo}/appprojects`, { apiVersion: group, kind, metadata: { name: "default" }, spec: {} });
  const source = { repoURL: "https://example.invalid/repository", path: "." };
  const spec = { project: "default", source, destination: { name: "in-cluster", namespace: "seen" } };
  await create(`${argo}/applications`, { apiVersion: group, kind: "Application", metadata: { name: "seen" }, spec });
}

/** Stands before Dex in PATH, because the configuration names fixed ports on all addresses; it ends Dex with its parent. */
const onLoopback = (dex, port) => `#!/usr/bin/env bash
sed -i.old 's/0.0.0.0:5556/${HOST}:${port}/; s/0.0.0.0:555[78]/${HOST}:0/' "$2"
'${dex}' "$@" &
trap 'kill $!; wait $!; exit 0' TERM
while kill -0 $PPID && kill -0 $!; do sleep 0.1; done 2> /dev/null
kill $!
`;

/** Starts a server and a Dex beside it. */
async function begin(binary, dex, kubeconfig) {
  const folder = await mkdtemp(join(tmpdir(), "tiphys-sso-"));
  const [port, metrics, portOfDex] = [await freePort(), await freePort(), await freePort()];
  await writeFile(join(folder, "dex"), onLoopback(dex, portOfDex));
  await chmod(join(folder, "dex"), 0o755);
  const url = `http://${HOST}:${port}`;
  await install(await kube(kubeconfig), url);
  let output = "";
  const children = [];
  const run = (words, env) => {
    const child = spawn(binary, [...words, "-n", PLACE, "--kubeconfig", kubeconfig], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
    child.on("error", (e) => (output += e.message));
    children.push(child);
  };
  run(["dex", "rundex", "--config-dir", folder], { ...process.env, PATH: folder + delimiter + process.env.PATH });
  const listen = ["--insecure", "--address", HOST, "--port", String(port), "--metrics-port", String(metrics)];
  run(["server", ...listen, "--dex-server", `${HOST}:${portOfDex}`], process.env);
  const stop = async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
      const ended = new Promise((resolve) => child.on("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  };
  return { url, stop, output: () => output };
}

export async function ssoScenario({ browser, binary, kubeconfig, dex, step, until }) {
  const sso = await begin(binary, dex, kubeconfig);
  const problems = [];
  const context = await browser.newContext();
  const page = await context.newPage();
  page.on("pageerror", (e) => problems.push(e.message));
  page.on("console", (m) => m.type() === "error" && problems.push(`${m.text()} (${m.location().url})`));
  const user = () => page.evaluate(async () => (await fetch("/api/v1/session/userinfo")).json());
  const arrive = () => page.waitForURL(`${sso.url}/applications`);
  /** From the page to Dex's list of connectors. */
  const chooser = async () => {
    await page.goto(`${sso.url}/login`);
    await page.click("button:has-text('Log in with')");
    await page.waitForSelector("text=Log in with Mock");
  };
  const leave = async () => {
    await page.click("text=Log out");
    await page.waitForSelector("[name=password]");
    assert.equal((await user()).loggedIn ?? false, false);
  };
  try {
    await step("Dex answers through the server", async () => {
      await until("Dex answers", async () => (await fetch(`${sso.url}/api/dex/.well-known/openid-configuration`).catch(() => undefined))?.ok, 200);
    });
    await step("a password typed at Dex signs in", async () => {
      await chooser();
      await page.click("text=Log in with Corp");
      for (const [password, next] of [
        ["wrong", () => page.waitForSelector("#login-error")],
        [PASSWORD, arrive],
      ]) {
        await page.fill("#login", "ann");
        await page.fill("#password", password);
        await page.click("#submit-login");
        await next();
      }
      const { username, groups } = await user();
      assert.deepEqual([username, groups ?? []], [EMAIL, []]);
      assert.equal(await page.locator("[data-app]").count(), 0);
      await leave();
    });
    await expecting(problems, until)("the password that Dex refused", /status of 401 .*\/api\/dex\//);
    await step("groups that Dex names have their rights", async () => {
      await chooser();
      await page.click("text=Log in with Mock");
      await arrive();
      assert.deepEqual((await user()).groups, ["authors"]);
      await page.waitForSelector("[data-app=seen]");
      await leave();
    });
    // Calls that the page had begun when it was logged out: how many is a matter of time.
    const withoutSession = (text) => text.includes("status of 401 ") && text.includes(`(${sso.url}/api/v1/`);
    await step("the browser reported no errors of the sign-in", async () => assert.deepEqual(problems.filter((text) => !withoutSession(text)), []));
  } catch (e) {
    console.error("What the server and Dex printed:\n" + sso.output());
    throw e;
  } finally {
    await context.close();
    await sso.stop();
  }
}
