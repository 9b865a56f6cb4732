//! The fleet: N Applications of one ConfigMap each, from their creation until all are Synced and
//! Healthy and their objects live.

use super::{
    FleetArgs, Output, limit,
    subject::{Subject, times},
};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};
use tiphys_testkit::{
    Answer, Api, ControlPlane, Options, Repo, Tiphys, TransportError, apps_path, namespaced,
};

pub(super) const NAMESPACE: &str = "fleet";
/// Connections that create Applications.
const CREATORS: usize = 4;
/// Size of the text in each ConfigMap.
const PAYLOAD: usize = 2000;
const POLL: Duration = Duration::from_millis(200);

/// The cost of one run.
struct Figures {
    name: String,
    apps: usize,
    cluster: &'static str,
    created_seconds: f64,
    wall_seconds: f64,
    cpu_seconds: f64,
    /// Before any Application was created.
    idle_mebibytes: f64,
    peak_mebibytes: f64,
    objects_live: usize,
}

pub fn run(root: &Path, args: &FleetArgs) -> anyhow::Result<()> {
    let program = super::program(root, args.program.as_deref())?;
    let repo = repository(args.apps);
    let control_plane = args.real.then(|| ControlPlane::start(root));
    let kubeconfig = args
        .kubeconfig
        .clone()
        .or_else(|| control_plane.as_ref().map(|c| c.kubeconfig.clone()));
    let cluster = if kubeconfig.is_some() {
        "real"
    } else {
        "embedded"
    };
    // The kubeconfig of an ephemeral API server is in a folder that only the program knows until it
    // prints it.
    let options = Options {
        program,
        ephemeral: true,
        kubeconfig,
        ..Options::default()
    };
    let (tiphys, kube) = Tiphys::ready(&options);
    let mut all: Vec<Figures> = Vec::new();
    let subjects = Subject::all(&tiphys, kube, &args.beside)?;
    for subject in &subjects {
        let figures = measure(
            args,
            subject,
            &repo,
            if all.is_empty() { cluster } else { "real" },
        )?;
        show(&figures, all.first(), args.output);
        all.push(figures);
    }
    tiphys.interrupt();
    if cluster == "real" {
        let seconds = limit::fleet(&subjects[0].kube, args.apps, &repo.url())?;
        limit::show(
            seconds,
            all.iter().map(|f| (f.name.as_str(), f.wall_seconds)),
            args.output,
        );
    }
    Ok(())
}

pub(super) fn repository(apps: usize) -> Repo {
    committed(&files(apps))
}

/// The same objects, each as the resource of a kustomization with labels, an annotation and a patch.
pub(super) fn kustomizations(apps: usize) -> Repo {
    committed(&kustomized(apps))
}

fn committed(files: &[(String, String)]) -> Repo {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    Repo::with(&files)
}

fn files(apps: usize) -> Vec<(String, String)> {
    (0..apps)
        .map(|i| (format!("fleet/app-{i:04}/cm.yaml"), config_map(i)))
        .collect()
}

fn kustomized(apps: usize) -> Vec<(String, String)> {
    const KUSTOMIZATION: &str = "\
resources: [cm.yaml]
labels:
- pairs: {team: fleet}
commonAnnotations: {example.com/owner: fleet}
patches:
- target: {kind: ConfigMap}
  patch: |
    - {op: add, path: /data/patched, value: here}
";
    let own = (0..apps).map(|i| {
        let path = format!("fleet/app-{i:04}/kustomization.yaml");
        (path, KUSTOMIZATION.to_owned())
    });
    own.chain(files(apps)).collect()
}

/// Text that differs from object to object and does not compress well.
pub(super) fn config_map(number: usize) -> String {
    let line = |i: usize| {
        format!(
            "    setting.{i} = {}\n",
            (number + 1) * (i + 7) * 2_654_435_761 % 1_000_003
        )
    };
    let mut text = String::new();
    for i in 0.. {
        if text.len() >= PAYLOAD {
            break;
        }
        text.push_str(&line(i));
    }
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm-{number:04}\ndata:\n  settings: |\n{text}"
    )
}

fn measure(
    args: &FleetArgs,
    subject: &Subject,
    repo: &Repo,
    cluster: &'static str,
) -> anyhow::Result<Figures> {
    let (kube, url) = (&subject.kube, repo.url());
    kube.namespace(NAMESPACE);
    let idle_mebibytes = subject.peak_mebibytes()?;
    let (cpu, start) = (subject.cpu_seconds()?, Instant::now());
    each_of(args.apps, |i| create(kube, i, &url, &json!({"limit": 5})))?;
    let created_seconds = start.elapsed().as_secs_f64();
    all_well(kube, args.apps, Duration::from_secs(args.timeout))?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = subject.cpu_seconds()? - cpu;
    let objects = items(kube, &namespaced("v1", NAMESPACE, "configmaps"))?;
    let objects_live = objects
        .iter()
        .filter(|o| {
            o["metadata"]["name"]
                .as_str()
                .is_some_and(|n| n.starts_with("cm-"))
        })
        .count();
    ensure!(
        objects_live == args.apps,
        "{objects_live} ConfigMaps are live, not {}",
        args.apps
    );
    let (name, peak_mebibytes) = (subject.name.clone(), subject.peak_mebibytes()?);
    Ok(Figures {
        name,
        apps: args.apps,
        cluster,
        created_seconds,
        wall_seconds,
        cpu_seconds,
        idle_mebibytes,
        peak_mebibytes,
        objects_live,
    })
}

/// Performs an action for each Application, over several connections.
pub(super) fn each_of(
    apps: usize,
    work: impl Fn(usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let lane = |first: usize| (first..apps).step_by(CREATORS).try_for_each(&work);
        let lanes: Vec<_> = (0..CREATORS)
            .map(|first| scope.spawn(move || lane(first)))
            .collect();
        lanes
            .into_iter()
            .try_for_each(|l| l.join().expect("a lane returns its errors"))
    })
}

/// Waits until this many are Synced and Healthy.
pub(super) fn all_well(kube: &Api, apps: usize, patience: Duration) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let (healthy, example) = healthy(kube)?;
        if healthy >= apps {
            return Ok(());
        }
        if start.elapsed() > patience {
            bail!(
                "{healthy} of {apps} are Synced and Healthy after {patience:?}; one of the others: {example}"
            );
        }
        thread::sleep(POLL);
    }
}

pub(super) fn answered(answer: Result<Answer, TransportError>) -> anyhow::Result<Answer> {
    answer.map_err(|e| anyhow::anyhow!(e.0))
}

pub(super) fn create(kube: &Api, number: usize, url: &str, retry: &Value) -> anyhow::Result<()> {
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": format!("fleet-{number:04}"), "namespace": "argocd"},
        "spec": {
            "project": "default", "source": {"repoURL": url, "path": format!("fleet/app-{number:04}"), "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "retry": retry}
        }
    });
    let answer = answered(kube.post(&apps_path(), &application))?;
    ensure!(
        answer.status == 201,
        "Application fleet-{number:04} is not created: {} {}",
        answer.status,
        answer.body
    );
    Ok(())
}

pub(super) fn items(kube: &Api, path: &str) -> anyhow::Result<Vec<Value>> {
    let mut answer = answered(kube.get(path))?;
    ensure!(
        answer.status == 200,
        "GET {path}: {} {}",
        answer.status,
        answer.body
    );
    answer.body["items"]
        .as_array_mut()
        .map(std::mem::take)
        .with_context(|| format!("GET {path}: no items"))
}

/// How many Applications are Synced and Healthy, and the status of one that is not.
fn healthy(kube: &Api) -> anyhow::Result<(usize, String)> {
    let apps = items(kube, &apps_path())?;
    let example = apps
        .iter()
        .find(|a| !is_well(a))
        .map(|a| format!("{} {}", a["metadata"]["name"], a["status"]))
        .unwrap_or_default();
    Ok((apps.iter().filter(|a| is_well(a)).count(), example))
}

/// Whether an Application is Synced and Healthy, and its last sync succeeded.
pub(super) fn is_well(app: &Value) -> bool {
    let state = &app["status"]["operationState"]["phase"];
    app["status"]["sync"]["status"] == "Synced"
        && app["status"]["health"]["status"] == "Healthy"
        && *state == "Succeeded"
}

/// `ours`: Tiphys's figures for the same run, if these are another controller's.
fn show(figures: &Figures, ours: Option<&Figures>, output: Output) {
    let Figures {
        name,
        apps,
        cluster,
        created_seconds,
        wall_seconds,
        cpu_seconds,
        idle_mebibytes,
        peak_mebibytes,
        objects_live,
    } = figures;
    let each = |total: f64| total / f64::from(u32::try_from(*apps).unwrap_or(u32::MAX)).max(1.0);
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    if output == Output::Json {
        let json = json!({
            "name": name, "apps": apps, "cluster": cluster, "objects_live": objects_live, "created_s": rounded(*created_seconds),
            "wall_s": rounded(*wall_seconds), "cpu_s": rounded(*cpu_seconds), "cpu_ms_per_app": rounded(each(cpu_seconds * 1000.0)),
            "idle_mib": rounded(*idle_mebibytes), "peak_mib": rounded(*peak_mebibytes)
        });
        println!("{json}");
        return;
    }
    let ratio = |of: fn(&Figures) -> f64| {
        ours.map(|o| format!(", {} ours", times(of(o), of(figures))))
            .unwrap_or_default()
    };
    println!(
        "{name}: fleet of {apps} Applications, {cluster} API server: all Synced and Healthy, {objects_live} ConfigMaps live"
    );
    println!(
        "  wall        {wall_seconds:8.2} s   (created after {created_seconds:.2} s{})",
        ratio(|f| f.wall_seconds)
    );
    println!(
        "  CPU         {cpu_seconds:8.2} s   ({:.1} ms each{}{})",
        each(cpu_seconds * 1000.0),
        if *cluster == "embedded" {
            ", the embedded API server included"
        } else {
            ""
        },
        ratio(|f| f.cpu_seconds)
    );
    println!(
        "  memory      {peak_mebibytes:8.1} MiB at the peak ({idle_mebibytes:.1} MiB before{})",
        ratio(|f| f.peak_mebibytes)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::kustomize::NoChance;
    use tiphys_render::{
        Budget, MemoryFiles, SourceSet,
        kustomize::{BuildOptions, build},
    };

    /// The storm waits for the object by its name and by how its text begins.
    #[test]
    fn kustomizations_keep_the_name_and_the_text() {
        let files = kustomized(2).into_iter();
        let files = MemoryFiles(
            files
                .map(|(path, text)| (path, text.into_bytes()))
                .collect(),
        );
        let sources = SourceSet::new(&files);
        let (options, budget) = (BuildOptions::default(), Budget::default());
        let built = build(&sources, "fleet/app-0001", &options, &NoChance, &budget);
        let objects = built.expect("it is a kustomization").objects;
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0]["metadata"]["name"], "cm-0001");
        assert_eq!(objects[0]["metadata"]["labels"]["team"], "fleet");
        assert_eq!(objects[0]["data"]["patched"], "here");
        let text = objects[0]["data"]["settings"].as_str();
        assert!(text.is_some_and(|text| text.starts_with("setting.0 = ")));
    }
}
