//! `cargo xtask parity health --peer PROGRAM DIR…`: the health of every object in the folders
//! `testdata` below some folders, and of changed ones, by Argo CD's code and by ours.
//!
//! Main function: [`run`]. The peer reads an object as a line of JSON and answers a line: `health`
//! (null, or `status` and `message`), or `error`, a text. Where Argo CD's script fails, ours may
//! have an answer: that is counted, and is no difference.

use super::{dice::Dice, helm::read_folder, peer::Peer};
use anyhow::{Context, bail};
use regex::Regex;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};
use tiphys_apimachinery::Object;
use tiphys_engine::health;
use tiphys_gocompat::yaml;
use tiphys_render::MemoryFiles;

/// What conditions and phases mostly are.
const WORDS: [&str; 12] = [
    "True",
    "False",
    "Unknown",
    "",
    "Ready",
    "Available",
    "Progressing",
    "Degraded",
    "Failed",
    "Succeeded",
    "Running",
    "Pending",
];
/// Fields that health depends on where no script says which.
const TOLD: [&str; 2] = ["/metadata/generation", "/metadata/annotations"];

#[derive(clap::Args)]
pub struct Args {
    /// Folders with folders `testdata`, such as Argo CD's resource_customizations
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// The program that asks Argo CD
    #[arg(long, value_name = "PROGRAM")]
    peer: PathBuf,
    /// How many changed ones of each object
    #[arg(long, default_value_t = 60)]
    count: u64,
    /// Another seed, other changes
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// How many differences to print
    #[arg(long, default_value_t = 10)]
    show: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Same,
    BothFail,
    OnlyTheyFail,
    Differ,
    OnlyWeFail,
}

impl Outcome {
    fn is_wrong(self) -> bool {
        matches!(self, Self::Differ | Self::OnlyWeFail)
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut peer = Peer::start(&args.peer)?;
    let mut dice = Dice::new(args.seed);
    let scripts = Scripts::new()?;
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    let mut shown = 0;
    for dir in &args.dirs {
        let files = read_folder(dir)?;
        for (path, object) in objects(&files)? {
            let hints = scripts.hints(&files, &path, &object);
            for number in 0..=args.count {
                let mut object = object.clone();
                if number > 0 {
                    for _ in 0..=dice.below(3) {
                        change(&mut dice, &mut object, &hints);
                    }
                }
                peer.ask(&object)?;
                let (outcome, told) = compare(&object, &peer.answer()?)?;
                *counts.entry(outcome).or_default() += 1;
                if outcome.is_wrong() && shown < args.show {
                    shown += 1;
                    println!("{outcome:?} {path} ({number}): {told}\n{object}\n");
                }
            }
        }
    }
    println!("{counts:?}");
    if counts.is_empty() {
        bail!("there are no objects in folders called testdata");
    }
    let wrong = counts.iter().filter(|(outcome, _)| outcome.is_wrong());
    match wrong.map(|(_, count)| count).sum::<usize>() {
        0 => Ok(()),
        wrong => bail!("{wrong} objects are not judged as Argo CD judges them"),
    }
}

fn compare(object: &Value, theirs: &Value) -> anyhow::Result<(Outcome, String)> {
    let object = Object::from_value(object.clone())?;
    let ours = health::assess(&object);
    if let Some(error) = theirs["error"].as_str() {
        let outcome = match ours {
            Ok(_) => Outcome::OnlyTheyFail,
            Err(_) => Outcome::BothFail,
        };
        return Ok((outcome, error.to_owned()));
    }
    let theirs = theirs.get("health").context("the peer says no health")?;
    let ours = match ours {
        Ok(ours) => ours.map(|h| (h.status.as_str().to_owned(), h.message)),
        Err(error) => return Ok((Outcome::OnlyWeFail, error.why())),
    };
    let text = |field: &str| theirs[field].as_str().unwrap_or_default().to_owned();
    let wanted = (!theirs.is_null()).then(|| (text("status"), text("message")));
    if ours == wanted {
        return Ok((Outcome::Same, String::new()));
    }
    Ok((Outcome::Differ, format!("{ours:?} instead of {wanted:?}")))
}

/// The objects with the paths of their files, without what makes every health the same.
fn objects(files: &MemoryFiles) -> anyhow::Result<Vec<(String, Value)>> {
    let mut found = Vec::new();
    for (path, content) in &files.0 {
        let is_data = path.split('/').rev().skip(1).any(|part| part == "testdata");
        if !is_data || !(path.ends_with(".yaml") || path.ends_with(".yml")) {
            continue;
        }
        // Some are broken on purpose.
        let Ok(documents) = yaml::parse_documents(content, &yaml::Limits::default()) else {
            continue;
        };
        for document in documents {
            let mut object = document.value;
            if !object["kind"].is_string() || !object["apiVersion"].is_string() {
                continue;
            }
            let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
            if let Some(metadata) = metadata {
                metadata.remove("deletionTimestamp");
                metadata.remove("managedFields");
            }
            found.push((path.clone(), object));
        }
    }
    Ok(found)
}

/// What to change of an object, and to what.
struct Hints {
    /// JSON pointers.
    places: Vec<String>,
    words: Vec<String>,
}

/// What is found in Argo CD's scripts.
struct Scripts {
    literals: Regex,
    fields: Regex,
}

impl Scripts {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            literals: Regex::new(r#"["']([^"'\n]{1,40})["']"#)?,
            fields: Regex::new(r"\.([A-Za-z_][A-Za-z0-9_]*)")?,
        })
    }

    fn hints(&self, files: &MemoryFiles, path: &str, object: &Value) -> Hints {
        let kind = path.split("testdata/").next().unwrap_or_default();
        let kind = kind.trim_end_matches("actions/");
        let script = files.0.get(&format!("{kind}health.lua"));
        let script = script.map(|script| String::from_utf8_lossy(script).into_owned());
        let mut words: BTreeSet<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        let mut places = Vec::new();
        pointers(object, "", &mut places);
        if let Some(script) = &script {
            let found = self.literals.captures_iter(script);
            words.extend(found.map(|found| found[1].to_owned()));
        }
        let fields: Option<BTreeSet<String>> = script.map(|script| {
            let found = self.fields.captures_iter(&script);
            found.map(|found| found[1].to_owned()).collect()
        });
        places.retain(|place| is_told(place, fields.as_ref()));
        for place in &places {
            let text = object.pointer(place).and_then(Value::as_str);
            words.extend(text.filter(|text| text.len() <= 40).map(str::to_owned));
        }
        Hints {
            places,
            words: words.into_iter().collect(),
        }
    }
}

/// Whether health may depend on a place.
fn is_told(place: &str, fields: Option<&BTreeSet<String>>) -> bool {
    if place.starts_with("/apiVersion") || place.starts_with("/kind") {
        return false;
    }
    let Some(fields) = fields else {
        let is_metadata = place.starts_with("/metadata");
        return !is_metadata || TOLD.iter().any(|told| place.starts_with(told));
    };
    let mut names = place.split('/').skip(1);
    names.all(|name| fields.contains(name) || name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut add = |name: &str, value: &Value| {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        out.push(at.clone());
        pointers(value, &at, out);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| add(&index.to_string(), item));
        }
        _ => {}
    }
}

/// Changes something, or nothing where an earlier change has removed it. Most types stay: the
/// scripts of Argo CD fail with others.
fn change(dice: &mut Dice, object: &mut Value, hints: &Hints) {
    let Some(at) = hints.places.get(dice.below(hints.places.len())) else {
        return;
    };
    let Some(old) = object.pointer(at).cloned() else {
        return;
    };
    let new = match dice.below(8) {
        0..3 => None,
        3..6 => {
            let word = hints.words.get(dice.below(hints.words.len()));
            word.filter(|_| old.is_string()).map(|word| json!(word))
        }
        6 => Some(other(dice, old)),
        _ => Some(match old {
            Value::Array(mut items) if !items.is_empty() => {
                let again = items.get(dice.below(items.len())).cloned();
                items.extend(again);
                Value::Array(items)
            }
            _ => Value::Null,
        }),
    };
    let Some(new) = new else {
        return remove(object, at);
    };
    if let Some(slot) = object.pointer_mut(at) {
        *slot = new;
    }
}

/// Another value of the same type.
fn other(dice: &mut Dice, old: Value) -> Value {
    match old {
        Value::String(_) => json!(dice.pick(&["True", "False", "Unknown", ""])),
        Value::Bool(old) => json!(!old),
        Value::Number(old) => {
            let by = i64::try_from(dice.below(5)).unwrap_or_default() - 2;
            old.as_i64()
                .map_or(json!(1), |old| json!(old.saturating_add(by)))
        }
        Value::Array(mut items) => {
            let (a, b) = (dice.below(items.len()), dice.below(items.len()));
            if a.max(b) < items.len() {
                items.swap(a, b);
            }
            Value::Array(items)
        }
        Value::Object(_) | Value::Null => json!({}),
    }
}

fn remove(object: &mut Value, at: &str) {
    let Some((parent, name)) = at.rsplit_once('/') else {
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&name);
        }
        Some(Value::Array(items)) => {
            let index = name.parse::<usize>().ok();
            if let Some(index) = index.filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "if obj.status.phase == \"Bound\" then return obj.status.reason end";
    const DATA: &str = "apiVersion: x.io/v1\nkind: X\nmetadata:\n  name: a\n  \
                        deletionTimestamp: 2020-01-01T00:00:00Z\nstatus:\n  phase: Lost\n  other: 1\n";

    fn files() -> MemoryFiles {
        MemoryFiles::new([
            ("x.io/X/health.lua", SCRIPT),
            ("x.io/X/testdata/a.yaml", DATA),
            ("x.io/X/testdata/broken.yaml", "a: ["),
            ("x.io/X/no-test.yaml", DATA),
        ])
    }

    #[test]
    fn only_what_the_script_reads_is_changed() {
        let files = files();
        let objects = objects(&files).expect("they are read");
        assert_eq!(objects.len(), 1);
        let (path, object) = &objects[0];
        assert_eq!(object["metadata"], json!({"name": "a"}));
        let scripts = Scripts::new().expect("patterns");
        let hints = scripts.hints(&files, path, object);
        assert_eq!(hints.places, ["/status", "/status/phase"]);
        assert!(hints.words.contains(&"Bound".to_owned()));
        let changed = |seed| {
            let (mut dice, mut object) = (Dice::new(seed), object.clone());
            change(&mut dice, &mut object, &hints);
            object
        };
        let all: BTreeSet<String> = (0..1000).map(|seed| changed(seed).to_string()).collect();
        assert!(all.len() > 8, "{all:?}");
        assert!(all.iter().any(|object| object.contains("Bound")));
        assert!(all.iter().all(|object| object.contains("x.io/v1")));
        assert_eq!(changed(5), changed(5));
    }

    #[test]
    fn answers_are_compared() {
        let object = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
            "status": {"phase": "Bound"},
        });
        let outcome = |theirs: Value| compare(&object, &theirs).expect("an answer").0;
        let healthy = json!({"health": {"status": "Healthy"}});
        assert_eq!(outcome(healthy), Outcome::Same);
        let degraded = json!({"health": {"status": "Degraded"}});
        assert_eq!(outcome(degraded), Outcome::Differ);
        assert_eq!(outcome(json!({"health": null})), Outcome::Differ);
        assert_eq!(outcome(json!({"error": "e"})), Outcome::OnlyTheyFail);
        assert!(compare(&object, &json!({})).is_err());
    }
}
