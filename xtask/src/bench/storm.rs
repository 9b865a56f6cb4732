//! The storm: one commit that changes one of many Applications of a repository, all of which are
//! refreshed.

use super::{
    Output, StormArgs, fleet, limit,
    subject::{Subject, times},
};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};
use tiphys_testkit::{Api, ControlPlane, Options, Repo, Tiphys, apps_path};

/// The Application that the commit changes.
const CHANGED: usize = 7;
const POLL: Duration = Duration::from_millis(20);
#[derive(Clone, Copy)]
struct Figures {
    /// Time until the changed object is live.
    changed: f64,
    /// Time until all are at the new revision.
    wall: f64,
    cpu: f64,
}

pub fn run(root: &Path, args: &StormArgs) -> anyhow::Result<()> {
    let program = super::program(root, args.program.as_deref())?;
    let control_plane = args.kubeconfig.is_none().then(|| ControlPlane::start(root));
    let kubeconfig = args
        .kubeconfig
        .clone()
        .or_else(|| control_plane.as_ref().map(|c| c.kubeconfig.clone()));
    let repo = if args.kustomize {
        fleet::kustomizations(args.apps)
    } else {
        fleet::repository(args.apps)
    };
    let (tiphys, kube) = Tiphys::ready(&Options {
        program,
        ephemeral: true,
        kubeconfig,
        ..Options::default()
    });
    let url = repo.url();
    let subjects = Subject::all(&tiphys, kube, &args.beside)?;
    for Subject { kube, .. } in &subjects {
        kube.namespace(fleet::NAMESPACE);
        fleet::each_of(args.apps, |number| {
            fleet::create(kube, number, &url, &json!({"limit": 5}))
        })?;
        fleet::all_well(kube, args.apps, Duration::from_secs(args.timeout))?;
    }
    let mut measured = vec![Vec::new(); subjects.len()];
    for round in 0..args.rounds {
        for (index, subject) in subjects.iter().enumerate() {
            // Wait until the work that the last sync left is done.
            thread::sleep(Duration::from_secs(3));
            let commit = round * subjects.len() + index;
            measured[index]
                .push(storm(subject, &repo, args, commit).with_context(|| subject.name.clone())?);
        }
    }
    tiphys.interrupt();
    let medians: Vec<_> = measured.into_iter().map(median).collect();
    show(args, &subjects, &medians);
    let seconds = limit::storm(&subjects[0].kube, args.apps)?;
    limit::show(
        seconds,
        subjects
            .iter()
            .zip(&medians)
            .map(|(s, f)| (s.name.as_str(), f.wall)),
        args.output,
    );
    Ok(())
}

fn median(mut rounds: Vec<Figures>) -> Figures {
    rounds.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    rounds[rounds.len() / 2]
}

fn storm(
    subject: &Subject,
    repo: &Repo,
    args: &StormArgs,
    commit: usize,
) -> anyhow::Result<Figures> {
    let kube = &subject.kube;
    let text = fleet::config_map(CHANGED).replace(
        "settings: |\n",
        &format!("settings: |\n    commit = {commit}\n"),
    );
    let sha = repo.commit(&[(&format!("fleet/app-{CHANGED:04}/cm.yaml"), &text)], &[]);
    let (cpu, began) = (subject.cpu_seconds()?, Instant::now());
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    let changed = thread::scope(|scope| {
        let live = scope.spawn(|| until_live(kube, commit, began, args.timeout));
        fleet::each_of(args.apps, |number| {
            let answer = fleet::answered(
                kube.merge(&format!("{}/fleet-{number:04}", apps_path()), &refresh),
            )?;
            ensure!(
                answer.status == 200,
                "fleet-{number:04}: {} {}",
                answer.status,
                answer.body
            );
            Ok(())
        })?;
        live.join().expect("it returns its errors")
    })?;
    loop {
        let apps = fleet::items(kube, &apps_path())?;
        let at_it = |a: &&Value| {
            a["status"]["sync"]["revision"] == sha.as_str()
                && fleet::is_well(a)
                && a["operation"].is_null()
        };
        if apps.iter().filter(at_it).count() == args.apps {
            break;
        }
        if began.elapsed() > Duration::from_secs(args.timeout) {
            bail!("not all are at {sha} after {} s", args.timeout);
        }
        thread::sleep(POLL * 5);
    }
    let wall = began.elapsed().as_secs_f64();
    Ok(Figures {
        changed,
        wall,
        cpu: subject.cpu_seconds()? - cpu,
    })
}

fn until_live(kube: &Api, commit: usize, began: Instant, patience: u64) -> anyhow::Result<f64> {
    let path = format!(
        "{}/cm-{CHANGED:04}",
        tiphys_testkit::namespaced("v1", fleet::NAMESPACE, "configmaps")
    );
    let wanted = format!("commit = {commit}\n");
    loop {
        let object = fleet::answered(kube.get(&path))?.body;
        if object["data"]["settings"]
            .as_str()
            .is_some_and(|s| s.starts_with(&wanted))
        {
            return Ok(began.elapsed().as_secs_f64());
        }
        if began.elapsed() > Duration::from_secs(patience) {
            bail!("the change is not live after {patience} s");
        }
        thread::sleep(POLL);
    }
}

fn show(args: &StormArgs, subjects: &[Subject], medians: &[Figures]) {
    if args.output == Output::Json {
        for (Subject { name, .. }, Figures { changed, wall, cpu }) in subjects.iter().zip(medians) {
            println!(
                "{}",
                json!({"name": name, "apps": args.apps, "kustomize": args.kustomize, "changed_s": changed, "wall_s": wall, "cpu_s": cpu})
            );
        }
        return;
    }
    println!(
        "one commit changes one of {} Applications{}, real API server, all are told to look; median of {} rounds",
        args.apps,
        if args.kustomize {
            " with kustomizations"
        } else {
            ""
        },
        args.rounds
    );
    println!("  {:<18}{:>10}{:>12}{:>10}", "", "live", "all there", "CPU");
    for (number, (Subject { name, .. }, figures)) in subjects.iter().zip(medians).enumerate() {
        let Figures { changed, wall, cpu } = figures;
        println!("  {name:<18}{changed:>8.2} s{wall:>10.2} s{cpu:>8.2} s");
        if number > 0 {
            let ratio = |of: fn(&Figures) -> f64| times(of(&medians[0]), of(figures));
            println!(
                "  {:<18}{:>10}{:>12}{:>10}",
                "  of ours",
                ratio(|f| f.changed),
                ratio(|f| f.wall),
                ratio(|f| f.cpu)
            );
        }
    }
}
