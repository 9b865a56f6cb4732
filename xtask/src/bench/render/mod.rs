//! Renders of every kind by the real programs, by ours and in process, in one run, with the aim for
//! each.
//!
//! Main function: [`run`]. Rounds of two programs alternate with nothing else; the best of each
//! counts.

mod inputs;
mod repo_server;

use super::{Output, RenderArgs, helm, program as ours_of, timed};
use crate::{conformance::kustomize::NoChance, parity::read_folder};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::{hint::black_box, path::Path};
use tiphys_render::{
    Budget, MemoryFiles, SourceSet,
    kustomize::{BuildOptions, build},
};

/// What is wanted of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    /// So many times as fast as the other.
    Times(f64),
    /// At most so many milliseconds.
    Milliseconds(f64),
}

/// One line of the result.
#[derive(Clone, Debug)]
struct Row {
    what: String,
    /// Seconds of the real program.
    theirs: Option<f64>,
    /// Seconds of ours.
    ours: f64,
    aim: Aim,
}

impl Row {
    fn times(what: impl Into<String>, theirs: f64, ours: f64, aim: f64) -> Self {
        Self {
            what: what.into(),
            theirs: Some(theirs),
            ours,
            aim: Aim::Times(aim),
        }
    }

    fn factor(&self) -> Option<f64> {
        self.theirs.map(|theirs| theirs / self.ours)
    }

    fn is_reached(&self) -> bool {
        match self.aim {
            Aim::Times(aim) => self.factor().is_some_and(|factor| factor >= aim),
            Aim::Milliseconds(aim) => self.ours * 1e3 <= aim,
        }
    }
}

pub fn run(root: &Path, args: &RenderArgs) -> anyhow::Result<()> {
    let ours = ours_of(root, args.program.as_deref())?;
    let folder = tempfile::tempdir()?;
    let mut rows = kustomizations(args, &ours, folder.path())?;
    rows.extend(charts(args, &ours, folder.path())?);
    rows.push(index(args)?);
    if let Some(genuine) = &args.repo_server {
        let programs = repo_server::Programs {
            genuine,
            ours: &ours,
            helm: &real(args.helm.as_deref(), "helm")?,
            kustomize: &real(args.kustomize.as_deref(), "kustomize")?,
        };
        rows.extend(repo_server::rows(&programs, args.rounds)?);
    }
    show(&rows, args.output);
    Ok(())
}

/// The real program of this name.
fn real(named: Option<&Path>, name: &str) -> anyhow::Result<std::path::PathBuf> {
    let default = || {
        std::env::home_dir()
            .unwrap_or_default()
            .join(".cache/control-plane/bin")
            .join(name)
    };
    let program = named.map_or_else(default, Path::to_owned);
    ensure!(
        program.is_file(),
        "{} is missing: see scripts/control-plane",
        program.display()
    );
    Ok(program)
}

fn kustomizations(args: &RenderArgs, ours: &Path, scratch: &Path) -> anyhow::Result<Vec<Row>> {
    let kustomize = real(args.kustomize.as_deref(), "kustomize")?;
    let small = scratch.join("overlay");
    inputs::overlay().write(&small)?;
    let large = scratch.join("large");
    inputs::large(args.resources).write(&large)?;
    let mut rows = Vec::new();
    let cases = [
        ("an overlay".to_owned(), small, "prod", 5.0),
        (format!("{} resources", args.resources), large, "", 50.0),
    ];
    for (name, dir, folder, as_process) in cases {
        let path = dir.join(folder);
        let path = path.to_str().context("the path is not UTF-8")?;
        // The real one takes minutes for the large one.
        let rounds = if folder.is_empty() { 1 } else { args.rounds };
        let theirs = timed::program(&kustomize, &["build", path], rounds, scratch)?;
        let own = timed::program(ours, &["kustomize", "build", path], rounds, scratch)?;
        let files = read_folder(&dir)?;
        built(&files, folder).with_context(|| format!("{name} is not built"))?;
        let inside = timed::best(rounds.max(5), || drop(black_box(built(&files, folder))));
        let what = |how: &str| format!("kustomize build of {name}, {how}");
        rows.push(Row::times(
            what("as a process"),
            theirs.seconds,
            own.seconds,
            as_process,
        ));
        rows.push(Row::times(what("in process"), theirs.seconds, inside, 50.0));
    }
    Ok(rows)
}

/// What is printed for a kustomization.
fn built(files: &MemoryFiles, folder: &str) -> Option<String> {
    let sources = SourceSet::new(files);
    let options = BuildOptions::default();
    build(&sources, folder, &options, &NoChance, &Budget::default())
        .and_then(|built| built.yaml())
        .ok()
}

fn charts(args: &RenderArgs, ours: &Path, scratch: &Path) -> anyhow::Result<Vec<Row>> {
    let real = real(args.helm.as_deref(), "helm")?;
    let umbrella = scratch.join("umbrella");
    helm::write_umbrella(&umbrella, args.subcharts)?;
    let own_chart = scratch.join("chart");
    inputs::chart().write(&own_chart)?;
    let chart = args.chart.as_ref().unwrap_or(&own_chart);
    let template = |program: &Path, verb: &[&str], chart: &Path| {
        helm::template(program, verb, chart, args.rounds, scratch).map(|used| used.seconds)
    };
    let theirs = template(&real, &["template"], chart)?;
    let own = template(ours, &["helm", "template"], chart)?;
    let whole = template(&real, &["template"], &umbrella)?;
    let own_whole = template(ours, &["helm", "template"], &umbrella)?;
    let files = read_folder(&umbrella)?;
    let parsed = helm::parse(&files);
    helm::render(&parsed).context("the umbrella is not rendered")?;
    let cold = timed::best(args.rounds, || {
        drop(black_box(helm::render(&helm::parse(&files))));
    });
    let warm = timed::best(args.rounds.max(20), || {
        drop(black_box(helm::render(&parsed)));
    });
    let umbrella = |how: &str| format!("an umbrella of {} charts, {how}", args.subcharts);
    Ok(vec![
        Row::times("helm template, as a process", theirs, own, 10.0),
        Row::times(umbrella("as a process"), whole, own_whole, 10.0),
        Row::times(umbrella("in process, with parsing"), whole, cold, 200.0),
        Row::times(umbrella("in process, parsed"), whole, warm, 200.0),
    ])
}

fn index(args: &RenderArgs) -> anyhow::Result<Row> {
    let text = inputs::index(args.megabytes * 1_000_000);
    let read = |chart: &str| tiphys_repo::index_versions(text.as_bytes(), chart);
    let found = read("chart-7").map_err(anyhow::Error::msg)?;
    ensure!(found.is_some(), "the index does not list its chart");
    let seconds = timed::best(args.rounds, || drop(black_box(read("chart-7"))));
    Ok(Row {
        what: format!("one chart of an index of {} MB", args.megabytes),
        theirs: None,
        ours: seconds,
        aim: Aim::Milliseconds(60.0),
    })
}

fn show(rows: &[Row], output: Output) {
    if let Output::Json = output {
        let row = |row: &Row| json!({"what": row.what, "theirs": row.theirs, "ours": row.ours, "times": row.factor(), "reached": row.is_reached()});
        println!("{}", Value::Array(rows.iter().map(row).collect()));
        return;
    }
    println!(
        "{:<58} {:>11} {:>11} {:>9} {:>9}",
        "", "real ms", "ours ms", "times", "aim"
    );
    for row in rows {
        let ms = |seconds: f64| format!("{:.2}", seconds * 1e3);
        let aim = match row.aim {
            Aim::Times(times) => format!("{times:.0}x"),
            Aim::Milliseconds(most) => format!("{most:.0} ms"),
        };
        println!(
            "{:<58} {:>11} {:>11} {:>9} {aim:>9} {}",
            row.what,
            row.theirs.map_or_else(|| "-".to_owned(), ms),
            ms(row.ours),
            row.factor()
                .map_or_else(|| "-".to_owned(), |factor| format!("{factor:.1}x")),
            if row.is_reached() { "" } else { "missed" }
        );
    }
    if cfg!(debug_assertions) {
        println!("what is in process is a debug build");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_are_rendered() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = |name: &str, tree: inputs::Tree| {
            let path = folder.path().join(name);
            tree.write(&path).expect("written");
            read_folder(&path).expect("read")
        };
        let small = built(&files("small", inputs::overlay()), "prod").expect("built");
        assert!(small.contains("name: prod-web"), "{small}");
        let large = built(&files("large", inputs::large(130)), "").expect("built");
        assert_eq!(large.matches("\nkind: ").count(), 130, "{large}");
        assert_eq!(large.matches("team: a").count(), 130);
        let chart = helm::parse(&files("chart", inputs::chart()));
        let text = helm::render(&chart).expect("rendered");
        assert!(text.contains("kind: Deployment"), "{text}");
    }

    #[test]
    fn the_index_has_its_size_and_charts() {
        let text = inputs::index(200_000);
        assert!((200_000..210_000).contains(&text.len()), "{}", text.len());
        let read = |chart: &str| tiphys_repo::index_versions(text.as_bytes(), chart);
        assert_eq!(read("chart-7"), Ok(Some(inputs::VERSIONS)));
        assert_eq!(read("none"), Ok(None));
    }

    #[test]
    fn aims() {
        let row = |ours: f64, aim: Aim| Row {
            what: String::new(),
            theirs: Some(1.0),
            ours,
            aim,
        };
        assert!(row(0.1, Aim::Times(10.0)).is_reached());
        assert!(!row(0.2, Aim::Times(10.0)).is_reached());
        assert!(row(0.06, Aim::Milliseconds(60.0)).is_reached());
        assert!(!row(0.061, Aim::Milliseconds(60.0)).is_reached());
    }
}
