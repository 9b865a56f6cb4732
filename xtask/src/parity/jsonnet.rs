//! `cargo xtask parity jsonnet DIR…`: every Jsonnet file below some folders, evaluated by the real
//! jsonnet of go-jsonnet and by ours.
//!
//! Main function: [`run`]. Each folder is a source of its own and its files import from it only.
//! Parsed values are compared; of failures, only that both fail counts.

use super::helm::read_folder;
use anyhow::{Context, bail};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tiphys_render::{
    Budget, EvaluateJsonnet as _, InProcess, JsonnetFile, JsonnetOptions, JsonnetVariable,
    MemoryFiles,
};

#[derive(clap::Args)]
pub struct Args {
    /// Folders with Jsonnet files, at any depth
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// The real program [env: JSONNET] [default: jsonnet in the PATH]
    #[arg(long, value_name = "PROGRAM")]
    jsonnet: Option<PathBuf>,
    /// A folder of each DIR to import from, as `directory.jsonnet.libs`
    #[arg(long, value_name = "FOLDER")]
    lib: Vec<String>,
    /// A text for `std.extVar`
    #[arg(long, value_name = "NAME=TEXT")]
    ext_str: Vec<String>,
    /// Jsonnet for `std.extVar`
    #[arg(long, value_name = "NAME=CODE")]
    ext_code: Vec<String>,
    /// Seconds that the real program may take for one file; files that take longer are not compared
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// How many that differ to print
    #[arg(long, default_value_t = 10)]
    show: usize,
}

/// What both made of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Same,
    BothFail,
    Differ,
    OnlyWeFail,
    OnlyTheyFail,
    /// The real program takes too long.
    NotCompared,
}

impl Outcome {
    fn is_wrong(self) -> bool {
        matches!(self, Self::Differ | Self::OnlyWeFail | Self::OnlyTheyFail)
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let named = std::env::var_os("JSONNET").map(PathBuf::from);
    let program = args.jsonnet.clone().or(named);
    let program = program.unwrap_or_else(|| PathBuf::from("jsonnet"));
    let options = options(args)?;
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    let mut shown = 0;
    for dir in &args.dirs {
        let dir = dir
            .canonicalize()
            .with_context(|| format!("{}", dir.display()))?;
        let files = read_folder(&dir)?;
        for path in files.0.keys().filter(|path| path.ends_with(".jsonnet")) {
            let theirs = real(&program, &dir, path, args)?;
            let (outcome, told) = compare(&files, path, &options, theirs);
            *counts.entry(outcome).or_default() += 1;
            if outcome.is_wrong() && shown < args.show {
                shown += 1;
                println!("{outcome:?} {}/{path}: {told}", dir.display());
            }
        }
    }
    println!("{counts:?}");
    let count = |wanted: fn(Outcome) -> bool| -> usize {
        let counted = counts.iter().filter(|(outcome, _)| wanted(**outcome));
        counted.map(|(_, count)| count).sum()
    };
    let wrong = count(Outcome::is_wrong);
    let compared = count(|outcome| outcome != Outcome::NotCompared);
    println!(
        "{:.2} % of {compared} files are as the real program has them",
        100.0 * (compared - wrong) as f64 / compared.max(1) as f64
    );
    if wrong > 0 {
        bail!("{wrong} files are not evaluated as the real jsonnet evaluates them");
    }
    Ok(())
}

fn options(args: &Args) -> anyhow::Result<JsonnetOptions> {
    let texts = args.ext_str.iter().map(|text| (text, false));
    let codes = args.ext_code.iter().map(|text| (text, true));
    let mut options = JsonnetOptions {
        libs: args.lib.clone(),
        ..JsonnetOptions::default()
    };
    for (text, code) in texts.chain(codes) {
        let (name, value) = text
            .split_once('=')
            .with_context(|| format!("{text:?} has no ="))?;
        options.ext_vars.push(JsonnetVariable {
            name: name.to_owned(),
            value: value.to_owned(),
            code,
        });
    }
    Ok(options)
}

/// The real program's output, or its message; `None` if it takes too long.
fn real(
    program: &Path,
    dir: &Path,
    path: &str,
    args: &Args,
) -> anyhow::Result<Option<Result<String, String>>> {
    const TOO_LONG: i32 = 124;
    let mut command = Command::new("timeout");
    command.arg(args.seconds.to_string()).arg(program);
    command.arg("--jpath").arg(dir);
    for lib in &args.lib {
        command.arg("--jpath").arg(dir.join(lib));
    }
    for text in &args.ext_str {
        command.arg("--ext-str").arg(text);
    }
    for code in &args.ext_code {
        command.arg("--ext-code").arg(code);
    }
    command.arg(dir.join(path)).current_dir(dir);
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("timeout does not start")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match output.status.code() {
        Some(TOO_LONG) => None,
        Some(0) => Some(Ok(text(&output.stdout))),
        Some(126 | 127) => bail!("{}: {}", program.display(), text(&output.stderr)),
        _ => Some(Err(text(&output.stderr))),
    })
}

fn compare(
    files: &MemoryFiles,
    path: &str,
    options: &JsonnetOptions,
    theirs: Option<Result<String, String>>,
) -> (Outcome, String) {
    let Some(theirs) = theirs else {
        return (Outcome::NotCompared, String::new());
    };
    let content = files.0.get(path).map_or(&[][..], Vec::as_slice);
    let limits = Budget::default().jsonnet;
    let file = JsonnetFile {
        folder: "",
        path,
        content,
        options,
        limits: &limits,
    };
    let ours = InProcess.evaluate(files, file);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            let Ok(theirs) = serde_json::from_str::<Value>(&theirs) else {
                return (Outcome::NotCompared, String::new());
            };
            if floats(ours.clone()) == floats(theirs.clone()) {
                return (Outcome::Same, String::new());
            }
            let told = crate::conformance::first_difference(&theirs, &ours, "");
            (Outcome::Differ, told)
        }
        (Err(_), Err(_)) => (Outcome::BothFail, String::new()),
        (Err(error), Ok(_)) => (Outcome::OnlyWeFail, error.to_string()),
        (Ok(_), Err(theirs)) => (Outcome::OnlyTheyFail, theirs),
    }
}

/// Jsonnet has one kind of number, JSON's reader has three.
fn floats(value: Value) -> Value {
    match value {
        Value::Number(n) => n.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => Value::Array(items.into_iter().map(floats).collect()),
        Value::Object(map) => {
            let fields = map.into_iter().map(|(name, value)| (name, floats(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}
