//! The API server of Applications alone: a list of all, a page, one, and many watchers, ours and
//! then the genuine one on the same cluster, asked the same by the same client.
//!
//! Times are those of the client, which reads each answer to its end; CPU time is the server's.

mod client;
mod figures;
mod running;
mod watchers;
mod world;

use super::{Output, ServerArgs, fleet};
use anyhow::{Context, bail, ensure};
use client::{Ask, Client};
use figures::{Asked, Figures};
use running::Running;
use serde_json::json;
use std::{
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tiphys_api::rpc::application::ApplicationQuery;
use tiphys_testkit::{Api, ControlPlane, redis::Redis};
use watchers::Watchers;

/// The names of the servers.
const OURS: &str = "tiphys";
const GENUINE: &str = "argocd";

/// Requests that each connection makes before it is measured.
const WARM: usize = 3;
/// Changes that every watcher must see, after it saw its first.
const CHANGES: usize = 20;
/// How long a change may take before another one is made, for watchers that came too late for it.
const SOON: Duration = Duration::from_secs(2);
/// Until nothing is left to do.
const REST: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

const LIST: &str = "/api/v1/applications";

pub fn run(root: &Path, args: &ServerArgs) -> anyhow::Result<()> {
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
    world::seed(root, &kube, args.apps)?;
    let redis = Redis::default();
    let redis = redis.serve(0);
    let patience = Duration::from_secs(args.timeout);
    let mut all: Vec<Figures> = Vec::new();
    let genuine = args.genuine.iter().map(|program| (GENUINE, program));
    for (name, program) in [(OURS, &ours)].into_iter().chain(genuine) {
        let running = Running::start(program, &kubeconfig, redis.address, patience)
            .with_context(|| name.to_owned())?;
        let subject = Subject {
            name,
            running: &running,
            kube: &kube,
            args,
        };
        let figures = subject
            .figures()
            .with_context(|| format!("{name}: {}", running.last_words()))?;
        if args.output == Output::Json {
            println!("{}", figures.json(args.apps));
        } else {
            show(args, &figures, all.first());
        }
        all.push(figures);
    }
    Ok(())
}

fn show(args: &ServerArgs, figures: &Figures, first: Option<&Figures>) {
    if first.is_none() {
        println!(
            "{} Applications; one connection, mixed: {}",
            args.apps, args.connections
        );
    }
    for line in figures.lines(first) {
        println!("{line}");
    }
}

/// A server that is measured.
struct Subject<'a> {
    name: &'static str,
    running: &'a Running,
    kube: &'a Api,
    args: &'a ServerArgs,
}

impl Subject<'_> {
    /// Everything. Memory comes first: what lists leave behind would hide what watchers need.
    fn figures(&self) -> anyhow::Result<Figures> {
        let some = world::PAGE.min(self.args.apps);
        self.has(&labelled(0), some)?;
        thread::sleep(REST);
        let idle = self.running.resident_mebibytes()?;
        let watched = self.watched(idle)?;
        self.has(
            &format!("{LIST}?fields=items.metadata.name"),
            self.args.apps,
        )?;
        Ok(Figures {
            name: self.name,
            idle,
            watchers: self.args.watchers,
            watched,
            asked: self.asked()?,
            peak: self.running.peak_mebibytes()?,
        })
    }

    /// That a list has this many items.
    fn has(&self, path: &str, wanted: usize) -> anyhow::Result<()> {
        let api = Api::plain(&format!("http://{}", self.running.address));
        let api = api.with_token(&self.running.token);
        let end = Instant::now() + Duration::from_secs(self.args.timeout);
        loop {
            // Argo CD's server answers before it has listed them, and an empty list has no items.
            let found = fleet::items(&api, path).map(|items| items.len());
            match found {
                Ok(found) if found == wanted => return Ok(()),
                _ if Instant::now() < end => std::thread::sleep(Duration::from_millis(200)),
                _ => bail!("{path} has {found:?} Applications, not {wanted}"),
            }
        }
    }

    /// How much memory the watchers add.
    fn watched(&self, before: f64) -> anyhow::Result<f64> {
        let Running { address, token, .. } = self.running;
        let version = world::version(self.kube)?;
        let watchers = Watchers::start(*address, token, self.args.watchers, &version)?;
        let end = Instant::now() + Duration::from_secs(self.args.timeout);
        // Every change must be another than those of earlier runs.
        let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let mut change = usize::try_from(began)?;
        let mut seen = 0;
        while seen < CHANGES {
            change += 1;
            // Those that do not watch yet miss it, and see a later one.
            match self.change(&watchers, change)? {
                true => seen += 1,
                false if Instant::now() > end => bail!("some watchers see no change"),
                false => {}
            }
        }
        thread::sleep(REST);
        Ok(self.running.resident_mebibytes()? - before)
    }

    /// Changes an Application; whether all watchers see it soon.
    fn change(&self, watchers: &Watchers, change: usize) -> anyhow::Result<bool> {
        let path = format!("{}/{}", world::applications(), world::name(0));
        let patch = json!({"metadata": {"annotations": {"bench": watchers::value(change)}}});
        let answer = fleet::answered(self.kube.merge(&path, &patch))?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
        let end = Instant::now() + SOON;
        while watchers.informed(change)? < self.args.watchers {
            if Instant::now() > end {
                return Ok(false);
            }
            thread::sleep(POLL);
        }
        Ok(true)
    }

    /// Every kind of request.
    fn asked(&self) -> anyhow::Result<Vec<Asked>> {
        let apps = self.args.apps;
        let (lists, small) = (self.args.rounds, self.args.requests);
        let pages = small.div_ceil(10);
        let is_ours = self.name == OURS;
        Ok(vec![
            self.load("all", (1, lists), |_| Ask::Rest(LIST.to_owned()))?,
            self.load("all, gRPC", (1, lists), |_| {
                Ask::Grpc("List", Box::default())
            })?,
            // Argo CD has no pages: a label selects as many there.
            self.load("a page of 100", (1, pages), |number| match is_ours {
                true => Ask::Rest(format!("{LIST}?limit={}", world::PAGE)),
                false => Ask::Rest(labelled(number * world::PAGE % apps)),
            })?,
            self.load("100 by a label", (1, pages), |number| {
                Ask::Rest(labelled(number * world::PAGE % apps))
            })?,
            self.load("one", (1, small), |number| one(number % apps))?,
            self.load("one, gRPC", (1, small), |number| called(number % apps))?,
            self.load("mixed", (self.args.connections, small), |number| {
                mixed(number, apps)
            })?,
        ])
    }

    /// This many requests over so many connections.
    fn load(
        &self,
        what: &'static str,
        (connections, requests): (usize, usize),
        ask: impl Fn(usize) -> Ask + Sync,
    ) -> anyhow::Result<Asked> {
        let Running { address, token, .. } = self.running;
        let mut clients = (0..connections)
            .map(|_| Client::connect(*address, token))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for client in &mut clients {
            for number in 0..WARM {
                client.ask(&ask(number))?;
            }
        }
        let cpu = self.running.cpu_seconds()?;
        let lanes = thread::scope(|scope| {
            let each = clients.iter_mut().enumerate();
            let spawned: Vec<_> = each
                .map(|(first, client)| {
                    let (ask, numbers) = (&ask, (first..requests).step_by(connections));
                    scope.spawn(move || lane(client, numbers, ask))
                })
                .collect();
            spawned
                .into_iter()
                .map(|lane| lane.join().expect("a lane returns its errors"))
                .collect::<anyhow::Result<Vec<_>>>()
        });
        let lanes = lanes.with_context(|| what.to_owned())?;
        let cpu = self.running.cpu_seconds()? - cpu;
        let bytes = lanes.iter().map(|(_, bytes)| bytes).sum();
        let seconds = lanes.into_iter().flat_map(|(seconds, _)| seconds).collect();
        Ok(Asked::new(what, seconds, cpu, bytes))
    }
}

/// One request after the other: how long each takes, and the size of all answers.
fn lane(
    client: &mut Client,
    numbers: impl Iterator<Item = usize>,
    ask: &impl Fn(usize) -> Ask,
) -> anyhow::Result<(Vec<f64>, usize)> {
    let (mut seconds, mut bytes) = (Vec::new(), 0);
    for number in numbers {
        let ask = ask(number);
        let began = Instant::now();
        bytes += client.ask(&ask)?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok((seconds, bytes))
}

/// The list of those with the same label as this one.
fn labelled(number: usize) -> String {
    let (label, page) = (world::LABEL, world::page(number));
    format!("{LIST}?selector={label}%3D{page}")
}

fn one(number: usize) -> Ask {
    Ask::Rest(format!("{LIST}/{}", world::name(number)))
}

fn called(number: usize) -> Ask {
    let query = ApplicationQuery {
        name: Some(world::name(number)),
        ..ApplicationQuery::default()
    };
    Ask::Grpc("Get", Box::new(query))
}

/// What pages and command lines ask most: of ten requests seven are for one Application, one is for
/// a hundred, and two for what every page needs.
fn mixed(number: usize, apps: usize) -> Ask {
    match number % 10 {
        0..=4 => one(number % apps),
        5 | 6 => called(number % apps),
        7 => Ask::Rest(labelled(number % apps)),
        8 => Ask::Rest("/api/v1/session/userinfo".to_owned()),
        _ => Ask::Rest("/api/v1/settings".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_mixed_and_for_applications_that_are_there() {
        let asked: Vec<Ask> = (0..1_000).map(|number| mixed(number, 30)).collect();
        let calls = asked
            .iter()
            .filter(|ask| matches!(ask, Ask::Grpc("Get", _)));
        assert_eq!(calls.count(), 200);
        let lists = asked.iter().filter(|ask| **ask == Ask::Rest(labelled(7)));
        assert_eq!(lists.count(), 100);
        let known: Vec<Ask> = (0..30).flat_map(|n| [one(n), called(n)]).collect();
        assert_eq!(asked.iter().filter(|ask| known.contains(ask)).count(), 700);
    }

    #[test]
    fn a_page_is_selected_by_its_label() {
        let path = "/api/v1/applications?selector=bench-page%3Dp0002";
        assert_eq!(labelled(250), path);
    }
}
