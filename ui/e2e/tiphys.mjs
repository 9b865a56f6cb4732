// Starts `tiphys up --ephemeral` and talks to it as a user would: its API, its Kubernetes API, its Git repository.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const START = 60_000;

/** Starts the program and waits until it says where it is. */
export async function start(binary) {
  const child = spawn(binary, ["up", "--ephemeral", "--port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const said = (pattern) => pattern.exec(output)?.[1];
  const ready = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`tiphys is not ready after ${START / 1000} s:\n${output}`)), START);
    const look = (text) => {
      output += text;
      const [page, password, kubeconfig] = [said(/^\s*page\s+(\S+)/m), said(/admin \/ (\S+)/), said(/KUBECONFIG=(\S+)/)];
      // Addresses come first, this when the examples run.
      if (!output.includes("all Synced and Healthy after")) return;
      clearTimeout(timer);
      if (page && password && kubeconfig) resolve({ page, password, kubeconfig });
      else reject(new Error(`tiphys did not say where its page is, how to log in and where the KUBECONFIG is:\n${output}`));
    };
    child.stdout.setEncoding("utf8").on("data", look);
    child.stderr.setEncoding("utf8").on("data", look);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`tiphys ended with ${code}:\n${output}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return resolve();
      const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
      child.on("exit", () => (clearTimeout(timer), resolve()));
      child.kill("SIGINT");
    });
  try {
    return { ...(await ready), stop, output: () => output };
  } catch (e) {
    await stop();
    throw e;
  }
}

/** Calls of the API with a token, apart from the page's session. */
export async function client(base, password) {
  const call = async (method, path, body, token) => {
    const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await fetch(base + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  const { token } = await call("POST", "/api/v1/session", { username: "admin", password });
  return (method, path, body) => call(method, path, body, token);
}

/** Calls the Kubernetes API; answers its status and text. */
export async function kube(kubeconfig) {
  const text = await readFile(kubeconfig, "utf8");
  const value = (key) => new RegExp(`^\\s*(?:- )?${key}:\\s*"?([^"\\s]+)"?\\s*$`, "m").exec(text)?.[1];
  const [server, token, ca] = [value("server"), value("token"), value("certificate-authority-data")];
  if (!server || !token) throw new Error("the kubeconfig names no server or token");
  const agent = new https.Agent({ keepAlive: true, ca: ca && Buffer.from(ca, "base64") });
  return (path, method = "GET", body = undefined) =>
    new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${token}`, ...(body && { "Content-Type": "application/json" }) };
      const request = https.request(server + path, { agent, method, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode, text }));
      });
      request.on("error", reject);
      request.end(body && JSON.stringify(body));
    });
}

/** A clone of the repository. `change` edits it, commits and pushes. */
export async function clone(repoURL) {
  const folder = await mkdtemp(join(tmpdir(), "tiphys-e2e-"));
  const git = (...args) => run("git", ["-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.org", ...args]);
  await run("git", ["clone", "--quiet", repoURL.startsWith("file:") ? fileURLToPath(repoURL) : repoURL, folder]);
  return {
    folder,
    change: async (message, edit) => {
      await edit(folder);
      await git("add", "--all");
      await git("commit", "--quiet", "-m", message);
      await git("push", "--quiet", "origin", "HEAD");
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
