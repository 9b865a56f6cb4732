//! `cargo xtask parity helm DIR`: every chart below a folder, rendered by the real Helm and by
//! ours.
//!
//! Main function: [`run`]. [`collection`] finds charts and adds their dependencies, [`real`] runs
//! Helm (and caches its results), [`ours`] renders in process, [`compare`] compares, [`report`]
//! prints; [`variants`] generates more values. Nothing is fetched.

mod collection;
mod compare;
mod ours;
mod real;
mod report;
mod variants;

pub use collection::read_folder;

use anyhow::bail;
use collection::{Collection, Prepared};
use compare::Verdict;
use report::Report;
use std::path::{Path, PathBuf};

/// How often Helm is run if our result differs: random output must be observed to vary.
const MOST_RUNS: usize = 8;

#[derive(clap::Args)]
pub struct Args {
    /// A folder with charts, at any depth
    dir: PathBuf,
    /// Only this chart; prints what differs
    #[arg(long, value_name = "NAME")]
    chart: Option<String>,
    /// The real program [default: ~/.cache/control-plane/bin/helm]
    #[arg(long, value_name = "PROGRAM")]
    helm: Option<PathBuf>,
    /// Write both outputs and the difference of every render that is not identical into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// More charts that dependencies may be taken from
    #[arg(long, value_name = "DIR")]
    with: Vec<PathBuf>,
    /// Where prepared charts and Helm's answers are kept [default: target/parity-helm]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Take what cannot be had out of Chart.yaml, and compare the rest
    #[arg(long)]
    without_missing: bool,
    /// So many more renders of every chart, with values changed by chance
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    variants: u64,
    /// Another seed, other values
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave out the renders with the defaults and with the files of ci/
    #[arg(long)]
    only_variants: bool,
    #[command(flatten)]
    flags: Flags,
}

/// What both programs are told besides the values files.
#[derive(clap::Args, Clone, Default)]
pub struct Flags {
    /// `--set` for every render
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// With the manifests of crds/
    #[arg(long)]
    include_crds: bool,
    /// As an upgrade
    #[arg(long)]
    is_upgrade: bool,
    /// Into this namespace
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// For this version of Kubernetes: 1.32, 1.32.3 or with anything behind it
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// For a cluster that also has these versions of groups or kinds
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    api_versions: Vec<String>,
    /// `helm lint` instead of `helm template`
    #[arg(long, conflicts_with_all = ["include_crds", "is_upgrade", "api_versions"])]
    lint: bool,
}

/// One render.
pub struct Case {
    /// The chart, and the values file, if any.
    name: String,
    chart: PathBuf,
    /// Inside the chart, or anywhere.
    values: Option<PathBuf>,
}

/// A program's result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    success: bool,
    stdout: String,
    stderr: String,
}

impl Answer {
    /// The text before the error, and the error.
    fn parts(&self) -> (&str, &str) {
        let at = if self.stderr.starts_with("Error: ") {
            Some(0)
        } else {
            self.stderr.find("\nError: ").map(|at| at + 1)
        };
        self.stderr
            .split_at(at.unwrap_or(if self.success { self.stderr.len() } else { 0 }))
    }

    fn error(&self) -> &str {
        self.parts().1.trim_end()
    }

    /// Sorted, because Helm iterates over maps.
    fn warnings(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self
            .parts()
            .0
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        lines.sort_unstable();
        lines
    }
}

pub fn run(root: &Path, args: &Args) -> anyhow::Result<()> {
    let scratch = args
        .scratch
        .clone()
        .unwrap_or_else(|| root.join("target/parity-helm"));
    let helm = real::Helm::new(args.helm.clone(), &scratch)?;
    let mut collection = Collection::find(&args.dir, &args.with, &scratch, args.without_missing)?;
    let names: Vec<String> = collection
        .names()
        .filter(|name| args.chart.as_ref().is_none_or(|wanted| wanted == name))
        .collect();
    if names.is_empty() {
        bail!(
            "no chart {} below {}",
            args.chart.as_deref().unwrap_or("(Chart.yaml)"),
            args.dir.display()
        );
    }
    let mut report = Report::new(args.out.clone(), args.chart.is_some())?;
    let mut cases = Vec::new();
    for name in names {
        match collection.prepare(&name, &helm)? {
            Prepared::Ready(chart) => {
                if !args.only_variants {
                    cases.extend(collection::cases(&name, &chart)?);
                }
                cases.extend(variants::variants(
                    &name,
                    &chart,
                    &scratch.join("values"),
                    args.variants,
                    args.seed,
                )?);
            }
            Prepared::Missing(what) => report.not_comparable(&name, &what),
        }
    }
    // All first runs before all second ones, so that times differ, too.
    for wanted in 1..=2 {
        for case in &cases {
            helm.answers(case, &args.flags, wanted)?;
        }
    }
    for case in &cases {
        let ours = ours::answer(case, &args.flags);
        let mut runs = helm.answers(case, &args.flags, 2)?;
        let mut verdict = compare::judge(&runs, &ours);
        while !verdict.is_good() && runs.len() < MOST_RUNS {
            runs = helm.answers(case, &args.flags, runs.len() + 1)?;
            verdict = compare::judge(&runs, &ours);
        }
        report.render(case, &runs, &ours, &verdict)?;
    }
    report.finish()
}

impl Verdict {
    fn is_good(&self) -> bool {
        matches!(self, Self::Identical | Self::SameFailure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Result<Flags, clap::Error> {
        let line = Line::try_parse_from([&["helm", "charts"], words].concat());
        line.map(|line| line.args.flags)
    }

    fn flags(words: &[&str]) -> Flags {
        parse(words).unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }

    #[test]
    fn what_both_programs_are_told() {
        let none = flags(&[]);
        assert!(!none.lint && none.kube_version.is_none() && none.api_versions.is_empty());
        assert_eq!(none.namespace, "default");
        let lint = flags(&["--lint", "--kube-version", "1.31.4", "--namespace", "n"]);
        assert!(lint.lint);
        assert_eq!(lint.kube_version.as_deref(), Some("1.31.4"));
        let versions = [
            "--api-versions",
            "a.example.org/v1,v1/Pod",
            "--api-versions",
            "b/v2",
        ];
        assert_eq!(
            flags(&versions).api_versions,
            ["a.example.org/v1", "v1/Pod", "b/v2"]
        );
        // `helm lint` has none of these.
        for other in [&versions[..], &["--include-crds"], &["--is-upgrade"]] {
            assert!(parse(other).is_ok(), "{other:?}");
            assert!(parse(&[&["--lint"], other].concat()).is_err(), "{other:?}");
        }
    }

    /// The real program is told what ours is.
    #[test]
    fn the_real_program_is_told_the_same() {
        let case = Case {
            name: "web".into(),
            chart: "charts/web".into(),
            values: Some("ci/a.yaml".into()),
        };
        for (words, expected) in [
            (
                &["--lint", "--kube-version", "1.31.4", "--set", "a=b"][..],
                "lint . --namespace default -f ci/a.yaml --set a=b --kube-version 1.31.4",
            ),
            (
                &[
                    "--api-versions",
                    "a/v1,b/v2",
                    "--kube-version",
                    "1.31.4",
                    "--is-upgrade",
                ],
                "template release-name . --namespace default -f ci/a.yaml --kube-version 1.31.4 \
                 --api-versions a/v1 --api-versions b/v2 --is-upgrade",
            ),
        ] {
            assert_eq!(real::arguments(&case, &flags(words)).join(" "), expected);
        }
    }

    #[test]
    fn versions_of_kubernetes_may_have_three_parts() {
        for (text, normalized) in [
            ("1.32", "v1.32"),
            ("1.32.3", "v1.32.3"),
            ("v1.32.3", "v1.32.3"),
            ("1.32.3-gke.100", "v1.32.3"),
        ] {
            let found = ours::kube_version(&flags(&["--kube-version", text]));
            let found = found.expect(text).expect("one is given");
            assert_eq!(
                (found.normalized.as_str(), found.minor.as_str()),
                (normalized, "32")
            );
        }
        let unknown = ours::kube_version(&flags(&["--kube-version", "latest"]));
        assert!(unknown.is_err_and(|why| why.starts_with("invalid kube version 'latest': ")));
        assert!(matches!(ours::kube_version(&flags(&[])), Ok(None)));
    }
}
