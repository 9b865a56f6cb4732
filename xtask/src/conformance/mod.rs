//! `cargo xtask conformance DIR`: runs recorded cases against our code, one line per suite.
//!
//! Main function: [`run`]. A suite is a file `NAME.jsonl` (or `diff/NAME.jsonl`) with one case per
//! line; the runner of a suite is a function from a case to what is wrong with our result. Suites
//! without a runner count as failed, case by case. A result that differs on purpose is neither
//! passed nor failed, but counted by itself; a reason for what does not differ fails the run.
//! `conformance.toml` contains the minimum number of passes of each suite; the test at the end of
//! this file checks it.

mod actions;
mod api_server;
mod appset;
mod cli;
mod diff;
mod expr;
mod health;
mod helm;
mod kubeapps;
pub mod kustomize;
mod notify;
mod rbac;
mod smp;
mod sources;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

#[derive(Args)]
pub struct Conformance {
    /// The folder with the cases
    pub dir: PathBuf,
    /// Only this suite, such as `smp`, `diff` or `diff/two_way`
    #[arg(long)]
    pub suite: Option<String>,
    /// All but this suite
    #[arg(long, conflicts_with = "suite")]
    pub without: Option<String>,
    /// Only cases whose ids begin like this
    #[arg(long)]
    pub case: Option<String>,
    /// List the cases that fail
    #[arg(long)]
    pub failing: bool,
    /// Fail when a suite passes less often than conformance.toml says
    #[arg(long)]
    pub check: bool,
}

/// The result of one suite.
struct Outcome {
    passed: usize,
    total: usize,
    /// Id and reason.
    failures: Vec<(String, String)>,
    /// Those that differ on purpose: id and reason.
    intended: Vec<(String, String)>,
    /// What passes though a reason is given why it would differ: id and what it is.
    outdated: Vec<(String, String)>,
}

/// What is wrong with our result for a case.
type Verdict = Result<(), String>;

/// How our result for a case differs.
#[derive(Debug)]
enum Difference {
    Wrong(String),
    /// We decided so; with the reason.
    Intended(String),
    /// A reason is given for what does not differ any more.
    Outdated(String),
}

impl From<String> for Difference {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

type Runner = Box<dyn Fn(&Value) -> Result<(), Difference>>;

/// The program of this build, beside this one.
fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("tiphys"));
    let found = beside.into_iter().find(|path| path.is_file());
    found.context("the program tiphys is not built: cargo build -p tiphys-cli")
}

/// The runner of a suite without differences on purpose.
fn strict(run: impl Fn(&Value) -> Verdict + 'static) -> Runner {
    Box::new(move |case| run(case).map_err(Difference::Wrong))
}

pub fn run(root: &Path, args: &Conformance) -> anyhow::Result<()> {
    let suites = find(&args.dir, args.suite.as_deref())?;
    if suites.is_empty() {
        bail!(
            "no suite {} in {}",
            args.suite.as_deref().unwrap_or("(*.jsonl)"),
            args.dir.display()
        );
    }
    let minimum = if args.check {
        read_minimum(root)?
    } else {
        BTreeMap::new()
    };
    let mut short = Vec::new();
    let wanted = |name: &String| args.without.as_ref() != Some(name);
    for (name, file) in suites.into_iter().filter(|(name, _)| wanted(name)) {
        let outcome = run_suite(args, &name, &file)?;
        let intended = match outcome.intended.len() {
            0 => String::new(),
            count => format!(", {count} intended differences"),
        };
        println!("{name} {}/{}{intended}", outcome.passed, outcome.total);
        if args.failing {
            for (id, why) in &outcome.failures {
                println!("  {id}: {why}");
            }
            for (id, why) in &outcome.intended {
                println!("  {id}: intended: {why}");
            }
        }
        for (id, what) in &outcome.outdated {
            println!("  {id}: {what}");
        }
        if !outcome.outdated.is_empty() {
            short.push(format!(
                "{name}: {} excuses are of what does not differ: they can go",
                outcome.outdated.len()
            ));
        }
        if let Some(least) = minimum.get(&name).filter(|least| outcome.passed < **least) {
            short.push(format!(
                "{name}: {} of {} pass, conformance.toml wants {least}",
                outcome.passed, outcome.total
            ));
        }
    }
    if short.is_empty() {
        Ok(())
    } else {
        bail!(short.join("\n"))
    }
}

/// The suites by name, with their files.
fn find(dir: &Path, wanted: Option<&str>) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for prefix in ["", "diff/", "kubeapps/"] {
        let folder = dir.join(prefix);
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "jsonl")
                && let Some(stem) = path.file_stem().and_then(|s| s.to_str())
            {
                let name = format!("{prefix}{stem}");
                if wanted.is_none_or(|w| w == name || format!("{w}/") == prefix) {
                    found.insert(name, path);
                }
            }
        }
    }
    Ok(found)
}

fn run_suite(args: &Conformance, name: &str, file: &Path) -> anyhow::Result<Outcome> {
    let dir = args.dir.as_path();
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let runner: Runner = match name {
        "smp" => {
            let types = smp::types(dir)?;
            strict(move |case| smp::run(case, &types))
        }
        "health_builtin" => strict(health::built_in),
        "health" => strict(health::custom),
        "helm_unit" => strict(helm::run),
        "actions" => strict(actions::run),
        "rbac" => Box::new(rbac::run),
        "kustomize" => strict(kustomize::run),
        "expr" => expr::runner(&text)?,
        "notify" => notify::runner(&text)?,
        "appset" => appset::runner(&text)?,
        "sources" => sources::runner(&text)?,
        "authz" => api_server::authz(dir)?,
        "session" => api_server::session(dir)?,
        "api" => api_server::api(dir)?,
        "cli" => cli::runner(dir)?,
        "kubeapps/asset_syncer" => kubeapps::runner(dir)?,
        "kubeapps/controller" => kubeapps::controller::runner()?,
        _ => match name.strip_prefix("diff/") {
            Some(_) => strict(diff::run),
            None => strict(|_| Err("nothing can run this suite yet".into())),
        },
    };
    let mut outcome = Outcome {
        passed: 0,
        total: 0,
        failures: Vec::new(),
        intended: Vec::new(),
        outdated: Vec::new(),
    };
    let excuse = excuse(name);
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let case: Value = serde_json::from_str(line)
            .with_context(|| format!("{} line {}", file.display(), number + 1))?;
        let is_preamble = match name {
            "authz" | "session" | "api" | "cli" => false,
            "expr" => case["code"].is_null(),
            _ => !case["fixtures"].is_null(),
        };
        if name.starts_with("diff/") && diff::needs_code(&case) || is_preamble {
            continue;
        }
        let is_wanted = |beginning: &String| self::text(&case, "id").starts_with(beginning);
        if !args.case.as_ref().is_none_or(is_wanted) {
            continue;
        }
        outcome.total += 1;
        // A case that makes us panic must not hide the others.
        let verdict = catch_unwind(AssertUnwindSafe(|| runner(&case)))
            .unwrap_or_else(|_| Err("panicked".to_owned().into()));
        let id = || case["id"].as_str().unwrap_or("?").to_owned();
        match verdict {
            Ok(()) => {
                outcome.passed += 1;
                if let Some(why) = excuse(&id()) {
                    let what = format!("passes, excused by: {why}");
                    outcome.outdated.push((id(), what));
                }
            }
            Err(Difference::Wrong(why)) => outcome.failures.push((id(), why)),
            Err(Difference::Intended(why)) => outcome.intended.push((id(), why)),
            Err(Difference::Outdated(what)) => outcome.outdated.push((id(), what)),
        }
    }
    // A case that fails says nothing about the reason that it may have.
    if args.case.is_none() && name == "sources" && outcome.failures.is_empty() {
        let unused = sources::unused(&outcome.intended);
        let reasons = unused.map(|why| (why.to_owned(), "no case needs this excuse".to_owned()));
        outcome.outdated.extend(reasons);
    }
    Ok(outcome)
}

/// Why a case may differ, in the suites where a case that has a reason must differ. In
/// `kubeapps/controller` such a case has to be as its reason says, and in `notify` it may be as
/// recorded.
fn excuse(suite: &str) -> fn(&str) -> Option<&'static str> {
    match suite {
        "authz" | "session" | "api" => api_server::intended::excuse,
        "appset" => appset::excuse,
        "rbac" => rbac::excuse,
        "kubeapps/asset_syncer" => kubeapps::excuse,
        _ => |_| None,
    }
}

/// Parses the `name = number` lines of conformance.toml.
fn read_minimum(root: &Path) -> anyhow::Result<BTreeMap<String, usize>> {
    let text = fs::read_to_string(root.join("conformance.toml"))
        .context("cannot read conformance.toml")?;
    let mut minimum = BTreeMap::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with(['#', '[']))
    {
        let (name, number) = line
            .split_once('=')
            .with_context(|| format!("conformance.toml: `{line}` is not `suite = passes`"))?;
        minimum.insert(
            name.trim().trim_matches('"').to_owned(),
            number
                .trim()
                .parse()
                .with_context(|| format!("conformance.toml: {line}"))?,
        );
    }
    Ok(minimum)
}

fn text(case: &Value, key: &str) -> String {
    case[key].as_str().unwrap_or_default().to_owned()
}

/// The first difference between two documents, for a readable message.
pub fn first_difference(expected: &Value, got: &Value, path: &str) -> String {
    match (expected, got) {
        (Value::Object(e), Value::Object(g)) => {
            let differing = e.keys().chain(g.keys()).find(|k| e.get(*k) != g.get(*k));
            let absent = Value::from("<absent>");
            differing.map_or_else(String::new, |k| {
                first_difference(
                    e.get(k).unwrap_or(&absent),
                    g.get(k).unwrap_or(&absent),
                    &format!("{path}/{k}"),
                )
            })
        }
        (Value::Array(e), Value::Array(g)) if e.len() == g.len() => {
            match e.iter().zip(g).position(|(e, g)| e != g) {
                Some(i) => first_difference(&e[i], &g[i], &format!("{path}/{i}")),
                None => String::new(),
            }
        }
        _ => format!("at {path}: expected {expected}, got {got}"),
    }
}

/// Whether both are equal; else the first difference.
fn same(expected: &Value, got: &Value) -> Verdict {
    if expected == got {
        Ok(())
    } else {
        Err(first_difference(expected, got, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_suite_passes_less_often_than_before() {
        let root = crate::root();
        let dir = root.join("../shared/cases");
        if !dir.is_dir() {
            return tiphys_testkit::skip(
                "shared",
                "there are no recorded cases at ../shared/cases",
            );
        }
        let args = Conformance {
            dir,
            suite: None,
            // It takes minutes: a command of its own.
            without: Some("cli".to_owned()),
            case: None,
            failing: false,
            check: true,
        };
        run(&root, &args).expect("the minimum of every suite");
    }

    #[test]
    fn an_excuse_of_what_does_not_differ_fails_the_run() {
        let dir = tempfile::tempdir().expect("a folder");
        let runs = |id: &str, csv: &str| {
            let case = serde_json::json!({
                "id": id, "kind": "policy_csv", "data": {"policy.csv": "p"}, "csv": csv,
            });
            let file = dir.path().join("rbac.jsonl");
            fs::write(file, case.to_string()).expect("it is written");
            let args = Conformance {
                dir: dir.path().to_owned(),
                suite: Some("rbac".to_owned()),
                without: None,
                case: None,
                failing: false,
                check: false,
            };
            run(dir.path(), &args).map_err(|e| e.to_string())
        };
        let excused = "rbac/glob/0043";
        assert_eq!(runs(excused, "another"), Ok(()));
        let refused = runs(excused, "p").expect_err("it does not differ");
        assert!(refused.starts_with("rbac: 1 excuses "), "{refused}");
        assert_eq!(runs("rbac/policy-csv/0001", "p"), Ok(()));
    }

    /// What a failing case would have used is not known.
    #[test]
    fn unused_reasons_are_told_where_nothing_fails() {
        let dir = tempfile::tempdir().expect("a folder");
        let runs = |cases: &str| {
            let file = dir.path().join("sources.jsonl");
            fs::write(file, format!("{{\"fixtures\": {{}}}}\n{cases}")).expect("it is written");
            let args = Conformance {
                dir: dir.path().to_owned(),
                suite: Some("sources".to_owned()),
                without: None,
                case: None,
                failing: false,
                check: false,
            };
            run(dir.path(), &args).map_err(|e| e.to_string())
        };
        let refused = runs("").expect_err("no reason is used");
        assert!(refused.starts_with("sources: "), "{refused}");
        assert_eq!(runs(r#"{"id": "a", "op": "nope"}"#), Ok(()));
    }

    #[test]
    fn minima_are_read() {
        let minimum = read_minimum(&crate::root()).expect("conformance.toml can be read");
        assert!(
            minimum["smp"] >= 131 && minimum.contains_key("diff/two_way"),
            "{minimum:?}"
        );
    }
}
