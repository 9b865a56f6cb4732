//! The embedded API server compared with a real one, one after the other in the same run: requests
//! per second of the servers' CPU time.
//!
//! Both run without controllers. With `--durable` both wait for the disk before they respond;
//! without it neither does.

use super::{KubeArgs, Output, process};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};
use tiphys_testkit::{Api, ControlPlane, namespaced};

const NAMESPACE: &str = "bench";
const LISTS: usize = 20;
const WATCHERS: usize = 100;
const WATCHED_CHANGES: usize = 1_000;
/// Size of the text in each ConfigMap.
const PAYLOAD: usize = 1024;

/// The cost of one kind of request.
#[derive(Clone)]
struct Measured {
    name: &'static str,
    requests: usize,
    wall: f64,
    cpu: f64,
}

impl Measured {
    /// Requests per second of CPU time.
    fn per_core(&self) -> f64 {
        self.requests as f64 / self.cpu.max(0.01)
    }
}

/// The figures of one server.
struct Figures {
    measured: Vec<Measured>,
    bytes_an_object: f64,
}

/// A server under test, stopped on drop.
enum Server {
    Real(ControlPlane),
    Embedded {
        child: Child,
        kubeconfig: PathBuf,
        _folder: tempfile::TempDir,
    },
}

impl Server {
    fn embedded(program: &Path, durable: bool) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = Command::new(program);
        command
            .arg("--alone")
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stderr(Stdio::piped());
        if durable {
            command.arg("--data").arg(folder.path().join("data"));
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let mut line = String::new();
        BufReader::new(child.stderr.take().context("its output")?).read_line(&mut line)?;
        ensure!(
            line.starts_with("serving"),
            "the embedded server does not start: {line}"
        );
        Ok(Self::Embedded {
            child,
            kubeconfig,
            _folder: folder,
        })
    }

    fn api(&self) -> anyhow::Result<Api> {
        match self {
            Self::Real(plane) => Ok(plane.api()),
            Self::Embedded { kubeconfig, .. } => {
                Api::kubeconfig(kubeconfig).map_err(anyhow::Error::msg)
            }
        }
    }

    fn processes(&self) -> anyhow::Result<Vec<u32>> {
        match self {
            Self::Embedded { child, .. } => Ok(vec![child.id()]),
            Self::Real(plane) => {
                let folder = plane
                    .kubeconfig
                    .parent()
                    .context("the kubeconfig lies in a folder")?;
                let id = |name: &str| {
                    Ok(std::fs::read_to_string(folder.join(format!("{name}.pid")))?
                        .trim()
                        .parse()?)
                };
                ["etcd", "kube-apiserver"].into_iter().map(id).collect()
            }
        }
    }

    fn cpu(&self) -> anyhow::Result<f64> {
        self.processes()?
            .into_iter()
            .map(process::cpu_seconds)
            .sum()
    }

    fn memory(&self) -> anyhow::Result<f64> {
        self.processes()?
            .into_iter()
            .map(process::resident_mebibytes)
            .sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Embedded { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn run(root: &Path, args: &KubeArgs) -> anyhow::Result<()> {
    let program = args
        .program
        .clone()
        .unwrap_or_else(|| root.join("target/dist/examples/serve"));
    ensure!(
        program.exists(),
        "{} is missing; build it with `cargo build --profile dist --workspace --example serve`, or name another with --program",
        program.display()
    );
    let (mut real, mut embedded) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        // They take turns in going first.
        for turn in 0..2 {
            let (server, figures) = if (round + turn) % 2 == 0 {
                (
                    Server::Real(ControlPlane::api_server(root, args.durable)),
                    &mut real,
                )
            } else {
                (Server::embedded(&program, args.durable)?, &mut embedded)
            };
            figures.push(measure(&server, args)?);
        }
    }
    show(&best(real), &best(embedded), args);
    Ok(())
}

/// The least CPU time over several rounds for each kind of request.
fn best(rounds: Vec<Figures>) -> Figures {
    let mut rounds = rounds.into_iter();
    let mut best = rounds.next().expect("at least one round");
    for round in rounds {
        for (best, other) in best.measured.iter_mut().zip(round.measured) {
            if other.cpu < best.cpu {
                *best = other;
            }
        }
        best.bytes_an_object = best.bytes_an_object.min(round.bytes_an_object);
    }
    best
}

fn config_map(number: usize) -> Value {
    let text: String = (0..)
        .map(|i| {
            format!(
                "setting.{i} = {}\n",
                (number + 1) * (i + 7) * 2_654_435_761 % 1_000_003
            )
        })
        .take(PAYLOAD / 20)
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("cm-{number:05}"), "labels": {"app": format!("a{}", number % 100)}},
        "data": {"settings": text}})
}

fn deployment(number: usize, image: &str) -> Value {
    let name = format!("web-{number:04}");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "containers": [{"name": "web", "image": image, "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}}})
}

fn measure(server: &Server, args: &KubeArgs) -> anyhow::Result<Figures> {
    let kube = server.api()?;
    kube.namespace(NAMESPACE);
    let (maps, deployments) = (
        namespaced("v1", NAMESPACE, "configmaps"),
        namespaced("apps/v1", NAMESPACE, "deployments"),
    );
    let (objects, patched) = (args.objects, args.objects.div_ceil(10));
    // The first requests warm up caches on both sides.
    load(server, args, "", patched, |kube, i| {
        create(kube, &deployments, &deployment(i, "nginx:0"))
    })?;
    let before = server.memory()?;
    let mut measured = vec![load(server, args, "POST", objects, |kube, i| {
        create(kube, &maps, &config_map(i))
    })?];
    let bytes_an_object = (server.memory()? - before) * 1024.0 * 1024.0 / objects as f64;
    measured.push(load(server, args, "GET", objects, |kube, i| {
        read(kube, &format!("{maps}/cm-{i:05}"))
    })?);
    let one = |i: usize| format!("{deployments}/web-{:04}", i % patched);
    let image = |i: usize| format!("nginx:{i}");
    measured.push(load(server, args, "PATCH json", objects, |kube, i| {
        let patch = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image(i + 1)}]);
        change(kube, &one(i), "application/json-patch+json", &patch)
    })?);
    measured.push(load(server, args, "PATCH merge", objects, |kube, i| {
        change(
            kube,
            &one(i),
            "application/merge-patch+json",
            &json!({"metadata": {"annotations": {"at": i.to_string()}}}),
        )
    })?);
    measured.push(load(server, args, "PATCH strategic", objects, |kube, i| {
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image(i + 2)}]}}}});
        change(kube, &one(i), "application/strategic-merge-patch+json", &patch)
    })?);
    measured.push(load(server, args, "PATCH apply", objects, |kube, i| {
        let path = format!("{}?fieldManager=bench&force=true", one(i));
        change(
            kube,
            &path,
            "application/apply-patch+yaml",
            &deployment(i % patched, &image(i + 3)),
        )
    })?);
    measured.push(load(server, args, "LIST", LISTS, |kube, _| {
        read(kube, &maps)
    })?);
    measured.push(watch(server, args, &kube, &maps)?);
    measured.push(load(server, args, "DELETE", objects, |kube, i| {
        let answer = kube
            .send("DELETE", &format!("{maps}/cm-{i:05}"), "", None)
            .map_err(|e| anyhow::anyhow!(e.0))?;
        ensure!(
            answer.status == 200,
            "DELETE: {} {}",
            answer.status,
            answer.body
        );
        Ok(())
    })?);
    Ok(Figures {
        measured,
        bytes_an_object,
    })
}

fn create(kube: &Api, path: &str, object: &Value) -> anyhow::Result<()> {
    let answer = kube.post(path, object).map_err(|e| anyhow::anyhow!(e.0))?;
    ensure!(
        answer.status == 201,
        "POST {path}: {} {}",
        answer.status,
        answer.body
    );
    Ok(())
}

fn change(kube: &Api, path: &str, kind: &str, patch: &Value) -> anyhow::Result<()> {
    let answer = kube
        .send("PATCH", path, kind, Some(patch))
        .map_err(|e| anyhow::anyhow!(e.0))?;
    ensure!(
        answer.status == 200,
        "PATCH {path}: {} {}",
        answer.status,
        answer.body
    );
    Ok(())
}

fn read(kube: &Api, path: &str) -> anyhow::Result<()> {
    let bytes = std::io::copy(
        &mut kube.stream(path).map_err(|e| anyhow::anyhow!(e.0))?,
        &mut std::io::sink(),
    )?;
    ensure!(bytes > 0, "GET {path}: nothing");
    Ok(())
}

/// `n` requests over the requested number of connections.
fn load(
    server: &Server,
    args: &KubeArgs,
    name: &'static str,
    n: usize,
    request: impl Fn(&Api, usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Measured> {
    let apis = (0..args.connections)
        .map(|_| server.api())
        .collect::<anyhow::Result<Vec<_>>>()?;
    let (cpu, start) = (server.cpu()?, Instant::now());
    thread::scope(|scope| {
        let worker = |first: usize, api: Api| {
            let request = &request;
            scope.spawn(move || {
                (first..n)
                    .step_by(args.connections)
                    .try_for_each(|i| request(&api, i))
            })
        };
        let workers: Vec<_> = apis
            .into_iter()
            .enumerate()
            .map(|(first, api)| worker(first, api))
            .collect();
        workers
            .into_iter()
            .try_for_each(|w| w.join().expect("a worker returns its errors"))
    })?;
    Ok(Measured {
        name,
        requests: n,
        wall: start.elapsed().as_secs_f64(),
        cpu: server.cpu()? - cpu,
    })
}

/// Many watchers of the same collection, until each has seen every change. Counts delivered events.
fn watch(server: &Server, args: &KubeArgs, kube: &Api, maps: &str) -> anyhow::Result<Measured> {
    let ready = Arc::new(Barrier::new(WATCHERS + 1));
    let apis = (0..args.connections)
        .map(|_| server.api())
        .collect::<anyhow::Result<Vec<_>>>()?;
    let streams = (0..WATCHERS).map(|_| {
        let path = format!(
            "{maps}?watch=1&resourceVersion={}&timeoutSeconds=120",
            newest(kube, maps)?
        );
        Ok(BufReader::new(
            server
                .api()?
                .stream(&path)
                .map_err(|e| anyhow::anyhow!(e.0))?,
        ))
    });
    let streams = streams.collect::<anyhow::Result<Vec<_>>>()?;
    thread::scope(|scope| {
        let follow = |stream: BufReader<_>| {
            let ready = ready.clone();
            scope.spawn(move || -> anyhow::Result<()> {
                ready.wait();
                let seen = stream
                    .lines()
                    .take(WATCHED_CHANGES)
                    .collect::<Result<Vec<_>, _>>()?
                    .len();
                ensure!(seen == WATCHED_CHANGES, "a watch ended after {seen} events");
                Ok(())
            })
        };
        let followers: Vec<_> = streams.into_iter().map(follow).collect();
        ready.wait();
        let (cpu, start) = (server.cpu()?, Instant::now());
        let writers = apis.into_iter().enumerate().map(|(first, kube)| {
            let write = move |i: usize| {
                change(
                    &kube,
                    &format!("{maps}/cm-{i:05}"),
                    "application/merge-patch+json",
                    &json!({"data": {"n": i.to_string()}}),
                )
            };
            scope.spawn(move || {
                (first..WATCHED_CHANGES)
                    .step_by(args.connections)
                    .try_for_each(write)
            })
        });
        writers
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|w| w.join().expect("a writer returns its errors"))?;
        followers
            .into_iter()
            .try_for_each(|f| f.join().expect("a follower returns its errors"))?;
        // The last writes are accounted for a moment later.
        thread::sleep(Duration::from_millis(20));
        let requests = WATCHERS * WATCHED_CHANGES;
        Ok(Measured {
            name: "watch events",
            requests,
            wall: start.elapsed().as_secs_f64(),
            cpu: server.cpu()? - cpu,
        })
    })
}

fn newest(kube: &Api, path: &str) -> anyhow::Result<String> {
    let list = kube
        .get(&format!("{path}?limit=1"))
        .map_err(|e| anyhow::anyhow!(e.0))?;
    Ok(list.body["metadata"]["resourceVersion"]
        .as_str()
        .context("a list has a resourceVersion")?
        .to_owned())
}

fn show(real: &Figures, embedded: &Figures, args: &KubeArgs) {
    let rows = real.measured.iter().zip(&embedded.measured);
    if args.output == Output::Json {
        let row = |(r, e): (&Measured, &Measured)| {
            json!({"request": r.name, "real_per_cpu_s": r.per_core().round(), "embedded_per_cpu_s": e.per_core().round(), "ratio": e.per_core() / r.per_core(),
                "real_wall_s": r.wall, "embedded_wall_s": e.wall})
        };
        let rows: Vec<_> = rows.map(row).collect();
        println!(
            "{}",
            json!({"durable": args.durable, "objects": args.objects, "requests": rows, "real_bytes_an_object": real.bytes_an_object.round(),
                "embedded_bytes_an_object": embedded.bytes_an_object.round()})
        );
        return;
    }
    let disk = if args.durable {
        "both wait for the disk"
    } else {
        "neither waits for the disk"
    };
    println!(
        "{} objects, {} connections, {disk}; requests for a second of the server's CPU time",
        args.objects, args.connections
    );
    println!(
        "{:<16} {:>10} {:>10} {:>7}   wall: real, embedded",
        "", "real", "embedded", "ratio"
    );
    for (r, e) in rows {
        let ratio = e.per_core() / r.per_core();
        println!(
            "{:<16} {:>10.0} {:>10.0} {:>6.1}x   {:.2} s, {:.2} s",
            r.name,
            r.per_core(),
            e.per_core(),
            ratio,
            r.wall,
            e.wall
        );
    }
    let (r, e) = (real.bytes_an_object, embedded.bytes_an_object);
    println!(
        "{:<16} {:>10.0} {:>10.0} {:>6.1}x   for a ConfigMap with 1 KiB of data",
        "bytes an object",
        r,
        e,
        r / e
    );
}
