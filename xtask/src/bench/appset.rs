//! ApplicationSets: a matrix of clusters and a list that generates many Applications, what a
//! reconcile costs in which nothing changes, and a change of them all. The controllers run alone on
//! one real API server, one after the other, each in a namespace of its own.

use super::{AppSetArgs, Output, fleet, process, subject::times};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tiphys_gocompat::yaml;
use tiphys_testkit::{Api, ControlPlane, free_port, namespaced};

const GROUP: &str = "argoproj.io/v1alpha1";
/// The elements of the list; each of them is combined with each cluster.
const ELEMENTS: usize = 25;
const POLL: Duration = Duration::from_millis(50);
/// Until nothing is left to do.
const REST: Duration = Duration::from_secs(3);
/// The names of the controllers.
const OURS: &str = "tiphys";
const GENUINE: &str = "argocd";

/// What one controller needed.
struct Figures {
    name: &'static str,
    /// Until all Applications were there and the set said so.
    wall: f64,
    cpu: f64,
    peak: f64,
    /// A reconcile that changes nothing: by the controller's own metric, and CPU time.
    unchanged: f64,
    unchanged_cpu: f64,
    /// A change of the template that updates all Applications: CPU time.
    changed_cpu: f64,
}

pub fn run(root: &Path, args: &AppSetArgs) -> anyhow::Result<()> {
    let ours = super::program(root, args.program.as_deref())?;
    let control_plane = args
        .kubeconfig
        .is_none()
        .then(|| ControlPlane::api_server(root, false));
    let kubeconfig = args
        .kubeconfig
        .clone()
        .or_else(|| control_plane.as_ref().map(|c| c.kubeconfig.clone()))
        .context("one of the two is there")?;
    let kube = Api::kubeconfig(&kubeconfig).map_err(anyhow::Error::msg)?;
    define(root, &kube)?;
    let mut all = Vec::new();
    let genuine = args.genuine.iter().map(|program| (GENUINE, program));
    for (name, program) in [(OURS, &ours)].into_iter().chain(genuine) {
        let figures = measure(&kube, &kubeconfig, args, (name, program));
        all.push(figures.with_context(|| name.to_owned())?);
    }
    show(args, &all);
    Ok(())
}

/// Creates the definitions, unless they are there.
pub(super) fn define(root: &Path, kube: &Api) -> anyhow::Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for name in ["application", "applicationset", "appproject"] {
        let file = root.join(format!("deploy/crds/{name}-crd.yaml"));
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let last = yaml::Duplicates::LastWins;
        let object = yaml::parse_document(text, &yaml::Limits::default(), last)?;
        let answer = fleet::answered(kube.post(path, &object))?;
        ensure!(
            matches!(answer.status, 201 | 409),
            "{name}: {} {}",
            answer.status,
            answer.body
        );
    }
    let began = Instant::now();
    while kube
        .get(&namespaced(GROUP, "default", "applicationsets"))
        .is_ok_and(|a| a.status != 200)
    {
        ensure!(
            began.elapsed() < REST * 20,
            "the definitions are not served"
        );
        thread::sleep(POLL);
    }
    Ok(())
}

/// What Argo CD has in its namespace, and clusters.
fn furnish(kube: &Api, namespace: &str, clusters: usize) -> anyhow::Result<()> {
    kube.namespace(namespace);
    let part = json!({"app.kubernetes.io/part-of": "argocd"});
    let named = |name: &str| json!({"name": name, "labels": part});
    let project = json!({
        "apiVersion": GROUP, "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
    });
    kube.create(&namespaced(GROUP, namespace, "appprojects"), &project);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("argocd-cm")});
    kube.create(&namespaced("v1", namespace, "configmaps"), &config);
    let secrets = namespaced("v1", namespace, "secrets");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": named("argocd-secret"),
        "stringData": {"server.secretkey": "key"},
    });
    kube.create(&secrets, &secret);
    fleet::each_of(clusters, |number| {
        let name = format!("cluster-{number:03}");
        let labels = json!({"argocd.argoproj.io/secret-type": "cluster", "bench": "yes"});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
            "stringData": {
                "name": name, "server": format!("https://{name}.example.com"), "config": "{}",
            },
        });
        kube.create(&secrets, &secret);
        Ok(())
    })
}

fn set() -> Value {
    let elements: Vec<Value> = (0..ELEMENTS)
        .map(|n| json!({"app": format!("app-{n:02}"), "team": format!("team-{}", n % 5)}))
        .collect();
    json!({
        "apiVersion": GROUP, "kind": "ApplicationSet", "metadata": {"name": "bench"},
        "spec": {
            "goTemplate": true,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"matrix": {"generators": [
                {"clusters": {"selector": {"matchLabels": {"bench": "yes"}}}},
                {"list": {"elements": elements}},
            ]}}],
            "template": {
                "metadata": {"name": "{{.name}}-{{.app}}", "labels": {"team": "{{.team}}"}},
                "spec": {
                    "project": "default",
                    "source": {
                        "repoURL": "https://git.example.com/{{.team}}/{{.app}}.git",
                        "path": "deploy/{{.name}}", "targetRevision": "HEAD",
                        "helm": {"valuesObject": {"cluster": "{{.name}}", "replicas": 2}},
                    },
                    "destination": {"server": "{{.server}}", "namespace": "{{.app}}"},
                    "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
                },
            },
            "syncPolicy": {"preserveResourcesOnDeletion": true},
        },
    })
}

/// A controller; ended on drop.
struct Running {
    child: Child,
    metrics: Api,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(
        (name, program): (&str, &PathBuf),
        kubeconfig: &Path,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        let port = free_port();
        let log = std::env::temp_dir().join(format!("{namespace}.log"));
        let log = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(program);
        match name {
            OURS => command.arg("applicationset"),
            _ => command.env("ARGOCD_BINARY_NAME", "argocd-applicationset-controller"),
        };
        let child = command
            .args(["--namespace", namespace, "--loglevel", "warn"])
            .arg(format!("--metrics-addr=127.0.0.1:{port}"))
            .arg(format!("--probe-addr=127.0.0.1:{}", free_port()))
            .arg(format!("--webhook-addr=127.0.0.1:{}", free_port()))
            .arg("--argocd-repo-server=127.0.0.1:1")
            .env("KUBECONFIG", kubeconfig)
            .env("NAMESPACE", namespace)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self {
            child,
            metrics: Api::plain(&format!("http://127.0.0.1:{port}")),
        })
    }

    fn cpu(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    /// How long all reconciles took together, in seconds, and how many there were.
    fn reconciles(&self) -> anyhow::Result<(f64, f64)> {
        let answer = fleet::answered(self.metrics.get("/metrics"))?;
        let text = answer.body.as_str().unwrap_or_default();
        let sum = |part: &str| -> f64 {
            let start = format!("argocd_appset_reconcile_{part}{{");
            let lines = text.lines().filter(|line| line.starts_with(&start));
            let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            values.sum()
        };
        Ok((sum("sum"), sum("count")))
    }
}

fn measure(
    kube: &Api,
    kubeconfig: &Path,
    args: &AppSetArgs,
    (name, program): (&'static str, &PathBuf),
) -> anyhow::Result<Figures> {
    let namespace = format!("appset-{name}");
    let clusters = args.apps.div_ceil(ELEMENTS);
    furnish(kube, &namespace, clusters)?;
    let running = Running::start((name, program), kubeconfig, &namespace)?;
    let patience = Duration::from_secs(args.timeout);
    let began = Instant::now();
    while running.reconciles().is_err() {
        ensure!(began.elapsed() < patience, "it does not start");
        thread::sleep(POLL);
    }
    thread::sleep(REST);
    let (cpu, began) = (running.cpu()?, Instant::now());
    let sets = namespaced(GROUP, &namespace, "applicationsets");
    kube.create(&sets, &set());
    let path = format!("{sets}/bench");
    let wanted = clusters * ELEMENTS;
    until(patience, || {
        let set = fleet::answered(kube.get(&path))?.body;
        Ok(set["status"]["resourcesCount"] == wanted && is_up_to_date(&set))
    })?;
    let wall = began.elapsed().as_secs_f64();
    thread::sleep(REST);
    let cpu_of_all = running.cpu()? - cpu;

    let (before, cpu) = (running.reconciles()?, running.cpu()?);
    let secret = format!("{}/cluster-000", namespaced("v1", &namespace, "secrets"));
    for round in 0..args.rounds {
        let count = running.reconciles()?.1;
        // Sets look again at every change of a cluster, of which templates do not see this part.
        let config = json!({"tlsClientConfig": {"insecure": round % 2 == 0}}).to_string();
        let patch = json!({"stringData": {"config": config}});
        let answer = fleet::answered(kube.merge(&secret, &patch))?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
        until(patience, || Ok(running.reconciles()?.1 > count))?;
    }
    thread::sleep(REST);
    let after = running.reconciles()?;
    let count = after.1 - before.1;
    ensure!(count > 0.0, "no reconcile was counted");
    let unchanged_cpu = (running.cpu()? - cpu) / count;
    let changed_cpu = change_all(kube, (&namespace, wanted), &running, patience)?;
    Ok(Figures {
        name,
        wall,
        cpu: cpu_of_all,
        peak: process::peak_mebibytes(running.child.id())?,
        unchanged: (after.0 - before.0) / count,
        unchanged_cpu,
        changed_cpu,
    })
}

/// Changes one field of the template, and says what the controller needed for it.
fn change_all(
    kube: &Api,
    (namespace, wanted): (&str, usize),
    running: &Running,
    patience: Duration,
) -> anyhow::Result<f64> {
    let cpu = running.cpu()?;
    let path = format!("{}/bench", namespaced(GROUP, namespace, "applicationsets"));
    let patch = json!({"spec": {"template": {"spec": {"source": {"targetRevision": "v2"}}}}});
    let answer = fleet::answered(kube.merge(&path, &patch))?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    let applications = namespaced(GROUP, namespace, "applications");
    until(patience, || {
        // A list of them all takes the API server longer than the pause between two looks.
        thread::sleep(REST / 6);
        let list = fleet::answered(kube.get(&applications))?.body;
        let all = list["items"].as_array().into_iter().flatten();
        let changed = all.filter(|app| app["spec"]["source"]["targetRevision"] == "v2");
        Ok(changed.count() == wanted)
    })?;
    thread::sleep(REST);
    Ok(running.cpu()? - cpu)
}

fn is_up_to_date(set: &Value) -> bool {
    let conditions = set["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|c| c["type"] == "ResourcesUpToDate" && c["status"] == "True")
}

fn until(patience: Duration, mut is: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !is()? {
        if began.elapsed() > patience {
            bail!("it is not done after {} s", patience.as_secs());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn show(args: &AppSetArgs, all: &[Figures]) {
    let apps = args.apps.div_ceil(ELEMENTS) * ELEMENTS;
    if args.output == Output::Json {
        for f in all {
            println!(
                "{}",
                json!({"name": f.name, "apps": apps, "wall_s": f.wall, "cpu_s": f.cpu, "peak_mib": f.peak,
                    "unchanged_s": f.unchanged, "unchanged_cpu_s": f.unchanged_cpu,
                    "changed_cpu_s": f.changed_cpu})
            );
        }
        return;
    }
    println!(
        "a matrix of {apps} Applications, real API server; then {} reconciles that change nothing, \
         and a change of the template",
        args.rounds
    );
    println!(
        "  {:<12}{:>10}{:>10}{:>10}{:>14}{:>14}{:>14}",
        "", "all there", "CPU", "memory", "unchanged", "CPU of that", "CPU, changed"
    );
    for f in all {
        println!(
            "  {:<12}{:>8.2} s{:>8.2} s{:>6.0} MiB{:>11.1} ms{:>11.1} ms{:>12.2} s",
            f.name,
            f.wall,
            f.cpu,
            f.peak,
            f.unchanged * 1e3,
            f.unchanged_cpu * 1e3,
            f.changed_cpu
        );
    }
    if let [ours, theirs] = all {
        println!(
            "  {:<12}{:>10}{:>10}{:>10}{:>14}{:>14}{:>14}",
            "  of ours",
            times(ours.wall, theirs.wall),
            times(ours.cpu, theirs.cpu),
            times(ours.peak, theirs.peak),
            times(ours.unchanged, theirs.unchanged),
            times(ours.unchanged_cpu, theirs.unchanged_cpu),
            times(ours.changed_cpu, theirs.changed_cpu)
        );
    }
}
