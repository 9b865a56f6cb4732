//! What scenarios run on: our API server with its controllers, a second API server with TLS, a
//! repository, a chart repository. Main type: [`World`].

use super::{
    super::{
        api_server::{has_status, path},
        program,
    },
    normalise::Normaliser,
    steps,
};
use anyhow::{Context, bail, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_testkit::{Api, Options, Tiphys, charts::FileServer, free_port};

const NAMESPACES: [&str; 2] = ["argocd", "team-apps"];
/// The password of `admin` in all scenarios.
const PASSWORD: &str = "adminpass1";
/// Where the charts were recorded.
const CHARTS: u16 = 18_090;
const REPOSITORY: &str = "/tmp/tiphys-cases";
/// How long it may take to empty namespaces.
const EMPTIED: Duration = Duration::from_secs(20);
/// How long an API server remembers its settings.
const REMEMBERED: Duration = Duration::from_millis(3300);
/// The settings that scenarios change.
const CONFIG_MAPS: [&str; 6] = [
    "argocd-cm",
    "argocd-rbac-cm",
    "argocd-notifications-cm",
    "argocd-gpg-keys-cm",
    "argocd-tls-certs-cm",
    "argocd-ssh-known-hosts-cm",
];
/// The kinds that the argocd-cm of an installation has customizations for.
const CUSTOMIZED: [&str; 8] = [
    "all",
    "ConfigMap",
    "Endpoints",
    "apps_ReplicaSet",
    "argoproj.io_Application",
    "argoproj.io_Rollout",
    "autoscaling_HorizontalPodAutoscaler",
    "discovery.k8s.io_EndpointSlice",
];
/// Scenarios see how many there are, not what they do.
const NOTHING_IGNORED: &str = "jsonPointers:\n- /metadata/resourceVersion\n";
/// Those of a new installation.
const KNOWN_HOSTS: &str = include_str!("../../../../deploy/ssh_known_hosts");
/// What a scenario does not add to argocd-secret.
const OWN_KEYS: [&str; 5] = [
    "admin.password",
    "admin.passwordMtime",
    "server.secretkey",
    "tls.crt",
    "tls.key",
];

pub struct World {
    pub normaliser: Normaliser,
    kube: Api,
    /// Placeholders with what they stand for.
    real: Vec<(&'static str, String)>,
    password_hash: String,
    /// The settings of the last scenario.
    settings: Value,
    folder: TempDir,
    /// The program by its name.
    bin: TempDir,
    _tls: Process,
    _charts: FileServer,
    _server: Tiphys,
    _data: TempDir,
}

/// Ended with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl World {
    pub fn start(dir: &Path) -> anyhow::Result<Self> {
        let (program, bin, data) = (program()?, TempDir::new()?, TempDir::new()?);
        let named = bin.path().join("argocd");
        symlink(&program, &named)?;
        repository(&dir.join("cli/fixtures"))?;
        let charts = chart_repository(&dir.join("cli/fixtures"))?;
        let options = Options {
            program: program.clone(),
            data: Some(data.path().to_owned()),
            ..Options::default()
        };
        let (server, kube) = started(&options)?;
        let kubeconfig = bin.path().join("kubeconfig");
        let (address, authority) = write_kubeconfig(&data.path().join("kubeconfig"), &kubeconfig)?;
        let port = free_port();
        let tls = tls_server(&program, &kubeconfig, port)?;
        let http = server.url.trim_start_matches("http://").to_owned();
        let mut normaliser = Normaliser::new()?;
        let version = version(&named)?;
        let release = version.split('+').next().unwrap_or_default();
        let secured = format!("127.0.0.1:{port}");
        normaliser.known = vec![
            (version.clone(), "<VERSION>".to_owned()),
            (release.to_owned(), "<VERSION>".to_owned()),
            (http.clone(), "<SERVER>".to_owned()),
            (secured.clone(), "<TLSSERVER>".to_owned()),
            (address.clone(), "<KUBEAPI>".to_owned()),
        ];
        if !authority.is_empty() {
            normaliser.known.insert(0, (authority, "<CA>".to_owned()));
        }
        let hashed = Command::new(&named)
            .args(["account", "bcrypt", "--password", PASSWORD])
            .output()?;
        Ok(Self {
            normaliser,
            kube,
            real: vec![
                ("<SERVER>", http),
                ("<TLSSERVER>", secured),
                ("<KUBEAPI>", address),
                ("<KUBECONFIG>", kubeconfig.display().to_string()),
            ],
            password_hash: String::from_utf8(hashed.stdout)?.trim().to_owned(),
            settings: Value::Null,
            folder: TempDir::new()?,
            bin,
            _tls: tls,
            _charts: charts,
            _server: server,
            _data: data,
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Text with what its placeholders stand for.
    pub fn real(&self, text: &str) -> String {
        let mut text = text.replace("<DIR>", &self.folder().display().to_string());
        for (placeholder, real) in &self.real {
            text = text.replace(placeholder, real);
        }
        text
    }

    pub fn write(&self, name: &str, content: &str) -> anyhow::Result<()> {
        steps::write(&self.folder().join(name), content)
    }

    /// The command line, with the environment of scenarios.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.bin.path().join("argocd"));
        command.current_dir(self.folder()).env_clear();
        command.env("HOME", self.folder().join("home"));
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TZ", "UTC"),
            ("LANG", "C.UTF-8"),
        ];
        command.envs(variables);
        command
    }

    /// An empty server with the fixtures of a scenario, and its session.
    pub fn prepare(&mut self, case: &Value) -> anyhow::Result<()> {
        let fixtures = &case["fixtures"];
        self.folder = TempDir::new()?;
        let dir = self.folder().display().to_string();
        self.normaliser
            .known
            .retain(|(_, placeholder)| placeholder != "<DIR>");
        self.normaliser.known.insert(0, (dir, "<DIR>".to_owned()));
        fs::create_dir_all(self.folder().join("home"))?;
        self.reset()?;
        self.store_settings(&fixtures["settings"])?;
        for object in fixtures["manifests"].as_array().into_iter().flatten() {
            self.apply(object)?;
        }
        for (name, content) in fixtures["files"].as_object().into_iter().flatten() {
            self.write(name, &self.real(content.as_str().unwrap_or_default()))?;
        }
        match fixtures["login"].as_str() {
            None | Some("none") => Ok(()),
            Some("admin") => self.log_in("admin", PASSWORD),
            Some(other) => {
                let (name, password) = other.split_once(':').context("no account")?;
                self.log_in(name, password)
            }
        }
    }

    fn log_in(&self, name: &str, password: &str) -> anyhow::Result<()> {
        let mut command = self.command();
        let words = ["login", &self.real("<SERVER>"), "--plaintext"];
        command
            .args(words)
            .args(["--username", name, "--password", password]);
        let ended = command.output()?;
        ensure!(
            ended.status.success(),
            "login: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
        Ok(())
    }

    /// Deletes what a scenario may have made.
    fn reset(&self) -> anyhow::Result<()> {
        for kind in ["ApplicationSet", "Application", "AppProject", "Secret"] {
            for namespace in NAMESPACES {
                for object in self.kube.list(&path(kind, namespace, "")?) {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    let is_kept = match kind {
                        "AppProject" => name == "default" && namespace == "argocd",
                        "Secret" => ["argocd-secret", "tiphys-revoked-sessions"].contains(&name),
                        _ => false,
                    };
                    if is_kept {
                        continue;
                    }
                    let at = path(kind, namespace, name)?;
                    if !object["metadata"]["finalizers"].is_null() {
                        let none = json!({"metadata": {"finalizers": null}});
                        let _ = self.kube.merge(&at, &none);
                    }
                    let _ = self.kube.send("DELETE", &at, "", None);
                }
            }
        }
        self.remove_namespaces()?;
        let everything = json!({
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        });
        let at = path("AppProject", "argocd", "default")?;
        let mut project = self.kube.find(&at).context("no project")?;
        project["spec"] = everything;
        project["status"] = json!({});
        project["metadata"]["annotations"] = Value::Null;
        let put = self
            .kube
            .send("PUT", &at, "application/json", Some(&project));
        put.map(drop)
            .map_err(|e| anyhow::anyhow!("the project: {}", e.0))
    }

    /// Those that scenarios made, with what is in them.
    fn remove_namespaces(&self) -> anyhow::Result<()> {
        let all = path("Namespace", "", "")?;
        let made = || {
            let mut names = Vec::new();
            for namespace in self.kube.list(&all) {
                let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
                if name.starts_with("c-") {
                    names.push(name.to_owned());
                }
            }
            names
        };
        for name in made() {
            self.delete("Namespace", "", &name)?;
        }
        let begun = Instant::now();
        while !made().is_empty() {
            ensure!(begun.elapsed() < EMPTIED, "namespaces stay: {:?}", made());
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn store_settings(&mut self, over: &Value) -> anyhow::Result<()> {
        for name in CONFIG_MAPS {
            let mut data = over[name].as_object().cloned().unwrap_or_default();
            if name == "argocd-cm" {
                for kind in CUSTOMIZED {
                    let key = format!("resource.customizations.ignoreResourceUpdates.{kind}");
                    data.entry(key).or_insert(NOTHING_IGNORED.into());
                }
            }
            if name == "argocd-ssh-known-hosts-cm" {
                data.insert("ssh_known_hosts".to_owned(), KNOWN_HOSTS.into());
            }
            self.replace_data("ConfigMap", name, data)?;
        }
        let at = path("Secret", "argocd", "argocd-secret")?;
        let secret = self.kube.find(&at).context("no argocd-secret")?;
        let own = secret["data"].as_object().into_iter().flatten();
        let own = own.filter(|(key, _)| OWN_KEYS.contains(&key.as_str()));
        let mut data: Map<String, Value> = own.map(|(k, v)| (k.clone(), v.clone())).collect();
        let encoded = |text: &str| Value::from(BASE64_STANDARD.encode(text));
        data.insert("admin.password".to_owned(), encoded(&self.password_hash));
        data.insert(
            "admin.passwordMtime".to_owned(),
            encoded("2026-01-01T00:00:00Z"),
        );
        for (key, value) in over["argocd-secret"].as_object().into_iter().flatten() {
            data.insert(key.clone(), encoded(value.as_str().unwrap_or_default()));
        }
        self.replace_data("Secret", "argocd-secret", data)?;
        if *over != self.settings {
            self.settings = over.clone();
            sleep(REMEMBERED);
        }
        Ok(())
    }

    fn replace_data(&self, kind: &str, name: &str, data: Map<String, Value>) -> anyhow::Result<()> {
        let at = path(kind, "argocd", name)?;
        let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"});
        let new = json!({
            "apiVersion": "v1", "kind": kind, "data": data,
            "metadata": {"name": name, "namespace": "argocd", "labels": labels},
        });
        let Some(found) = self.kube.find(&at) else {
            return self.apply(&new);
        };
        if found["data"].as_object().cloned().unwrap_or_default() == data {
            return Ok(());
        }
        let answer = self.kube.send("PUT", &at, "application/json", Some(&new));
        let answer = answer.map_err(|e| anyhow::anyhow!("{name}: {}", e.0))?;
        ensure!(answer.is_success(), "{name}: {}", answer.body);
        Ok(())
    }

    /// Creates an object, or merges it into the one that is there.
    pub fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        let object: Value = serde_json::from_str(&self.real(&object.to_string()))?;
        let made = self.kube.post(&path(&kind, &namespace, "")?, &object);
        let made = made.map_err(|e| anyhow::anyhow!("{kind} {name}: {}", e.0))?;
        if made.status == 409 {
            return self.merge(&kind, &namespace, &name, &object);
        }
        ensure!(made.is_success(), "{kind} {name}: {}", made.body);
        Ok(())
    }

    pub fn merge(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> anyhow::Result<()> {
        let answer = self.kube.merge(&path(kind, namespace, name)?, patch);
        let answer = answer.map_err(|e| anyhow::anyhow!("{kind} {name}: {}", e.0))?;
        ensure!(answer.is_success(), "{kind} {name}: {}", answer.body);
        Ok(())
    }

    /// What is not there stays so.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) -> anyhow::Result<()> {
        let at = path(kind, namespace, name)?;
        let answer = self.kube.send("DELETE", &at, "", None);
        answer
            .map(drop)
            .map_err(|e| anyhow::anyhow!("{kind} {name}: {}", e.0))
    }

    /// Waits until an object is as a step says.
    pub fn wait(&self, wanted: &Value, patience: Duration) -> anyhow::Result<()> {
        if let Some(seconds) = wanted["seconds"].as_f64() {
            sleep(Duration::from_secs_f64(seconds));
            return Ok(());
        }
        let begun = Instant::now();
        loop {
            let Err(why) = self.is_as(wanted) else {
                return Ok(());
            };
            if begun.elapsed() > patience {
                bail!("waited for {wanted} in vain: {why}");
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn find(&self, named: &str) -> anyhow::Result<Option<Value>> {
        let mut parts = named.splitn(3, '/');
        let mut next = || parts.next().context("Kind/namespace/name");
        let at = path(next()?, next()?, next()?)?;
        Ok(self.kube.find(&at))
    }

    fn is_as(&self, wanted: &Value) -> anyhow::Result<()> {
        if let Some(named) = wanted["gone"].as_str() {
            ensure!(self.find(named)?.is_none(), "it is there");
        } else if let Some(named) = wanted["exists"].as_str() {
            self.find(named)?.context("it is not there")?;
        } else if let Some(named) = wanted["object"].as_str() {
            let object = self.find(named)?.context("it is not there")?;
            let at = wanted["path"].as_str().unwrap_or_default();
            let pointer = format!("/{}", at.trim_start_matches(['.', '/']).replace('.', "/"));
            let value = object.pointer(&pointer).cloned().unwrap_or_default();
            ensure!(value == wanted["equals"], "it is {value}");
        } else if let Some(named) = wanted["app"].as_str() {
            let (namespace, name) = named.split_once('/').unwrap_or(("argocd", named));
            let app = self.kube.find(&path("Application", namespace, name)?);
            as_app(&app.context("it is not there")?, wanted)?;
        }
        Ok(())
    }
}

fn as_app(app: &Value, wanted: &Value) -> anyhow::Result<()> {
    has_status(app, wanted)?;
    if !wanted["condition"].is_null() {
        let conditions = &app["status"]["conditions"];
        let all = conditions.as_array().into_iter().flatten();
        let has = all.into_iter().any(|c| c["type"] == wanted["condition"]);
        ensure!(has, "its conditions are {conditions}");
    }
    let runs = wanted["phase"] == "Running";
    ensure!(
        runs || app["operation"].is_null(),
        "an operation is pending"
    );
    Ok(())
}

/// The server with ApplicationSets and Applications in another namespace, whose settings it reads
/// when it starts.
fn started(options: &Options) -> anyhow::Result<(Tiphys, Api)> {
    let (first, kube) = Tiphys::ready(options);
    kube.namespace("team-apps");
    let params = json!({"data": {
        "application.namespaces": "team-apps",
        "applicationsetcontroller.namespaces": "team-apps",
    }});
    kube.patch(
        &path("ConfigMap", "argocd", "argocd-cmd-params-cm")?,
        &params,
    );
    let _ = first.terminate();
    Ok(Tiphys::ready(options))
}

/// A kubeconfig with one context, and the address and the authority in it.
fn write_kubeconfig(own: &Path, to: &Path) -> anyhow::Result<(String, String)> {
    let text = fs::read_to_string(own)?;
    let value = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(key));
        line.map(|value| value.trim().trim_matches('"').to_owned())
    };
    let server = value("server:").context("no server in the kubeconfig")?;
    let authority = value("certificate-authority-data:").unwrap_or_default();
    let token = value("token:").context("no token in the kubeconfig")?;
    let mut cluster = json!({"server": server});
    if !authority.is_empty() {
        cluster["certificate-authority-data"] = authority.as_str().into();
    }
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {
            "cluster": "test", "user": "test", "namespace": "argocd",
        }}],
    });
    fs::write(to, config.to_string())?;
    let address = server
        .split_once("://")
        .map_or(server.clone(), |(_, address)| address.to_owned());
    Ok((address, authority))
}

/// The server's role with a certificate of its own making, on the same records.
fn tls_server(program: &Path, kubeconfig: &Path, port: u16) -> anyhow::Result<Process> {
    let mut command = Command::new(program);
    command.args(["server", "--metrics-port", "0", "--allow-file-repositories"]);
    command.args([
        "--application-namespaces",
        "team-apps",
        "--namespace",
        "argocd",
    ]);
    command.args([
        "--address",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--kubeconfig",
    ]);
    command
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let process = Process(command.spawn()?);
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(
            begun.elapsed() < Duration::from_secs(30),
            "the server with TLS does not start"
        );
        sleep(Duration::from_millis(50));
    }
    Ok(process)
}

/// The version that the program says, which is in many outputs.
fn version(program: &Path) -> anyhow::Result<String> {
    let said = Command::new(program)
        .args(["version", "--client", "--short"])
        .output()?;
    let said = String::from_utf8(said.stdout)?;
    let version = said.split_whitespace().last().context("no version")?;
    Ok(version.to_owned())
}

fn repository(fixtures: &Path) -> anyhow::Result<()> {
    if Path::new(REPOSITORY).join("repo.git/HEAD").exists() {
        return Ok(());
    }
    let made = Command::new("bash")
        .arg(fixtures.join("make-repo.sh"))
        .arg(REPOSITORY)
        .output()?;
    ensure!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    Ok(())
}

fn chart_repository(fixtures: &Path) -> anyhow::Result<FileServer> {
    let folder = TempDir::new()?;
    let script = fixtures.join("make-charts.py");
    let made = Command::new("python3")
        .arg(script)
        .arg(folder.path())
        .output()?;
    ensure!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let server = FileServer::at(CHARTS);
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let path = format!("/{}", entry.file_name().to_string_lossy());
        server.serve(&path, fs::read(entry.path())?);
    }
    Ok(server)
}
