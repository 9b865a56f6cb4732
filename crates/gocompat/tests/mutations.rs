//! Damaged input never panics and never exceeds its limits, and parsed values are unchanged when
//! printed and parsed again.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use serde_json::Value;
use tiphys_gocompat::{
    duration,
    glob::Glob,
    yaml::{self, Limits},
};

/// A small random number generator, so that every run is the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit.max(1) as u64).expect("below a usize")
    }
}

const PIECES: &[&str] = &[
    "\n", "  ", "- ", ": ", "? ", "|", ">", "\t", "'", "\"", "{", "}", "[", "]", ",", "&a ", "*a",
    "<<: ", "!!str ", "!x ", "%", "@", "#", "---\n", "...\n", "\\", "é", "\u{2028}", "0x", "1e9",
    "~", "yes", "\u{FEFF}", "|2-\n", ">+\n",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(chars.len() + 1);
        match random.below(4) {
            0 => {
                let piece = PIECES[random.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
            1 => {
                let end = (at + 1 + random.below(3)).min(chars.len());
                chars.drain(at.min(end)..end);
            }
            2 => {
                let from = random.below(chars.len() + 1);
                let end = (from + random.below(12)).min(chars.len());
                let copied: Vec<char> = chars[from..end].to_vec();
                chars.splice(at..at, copied);
            }
            _ => chars.truncate(at),
        }
    }
    chars.into_iter().collect()
}

fn seeds() -> Vec<String> {
    let parse = include_str!("baseline/yaml_parse.jsonl")
        .lines()
        .skip(1)
        .map(|line| {
            let case: Value = serde_json::from_str(line).expect("a baseline line is JSON");
            case["in"].as_str().expect("in").to_owned()
        });
    let emit = include_str!("baseline/yaml_emit.jsonl")
        .lines()
        .skip(1)
        .filter_map(|line| {
            let case: Value = serde_json::from_str(line).expect("a baseline line is JSON");
            case["out"].as_str().map(str::to_owned)
        });
    parse.chain(emit).collect()
}

/// Compares numbers by value: a float from 2^63 on prints as an integer, as in Go.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|((k, x), (l, y))| k == l && equal(x, y))
        }
        _ => a == b,
    }
}

#[test]
fn damaged_yaml() {
    let seeds = seeds();
    let mut random = Random(1);
    let limits = Limits {
        depth: 50,
        nodes: 5_000,
        aliases: 500,
        ..Limits::default()
    };
    let (mut good, mut bad) = (0, 0);
    for _ in 0..rounds(20_000) {
        let seed = &seeds[random.below(seeds.len())];
        let text = mutate(seed, &mut random);
        match yaml::parse_documents(&text, &limits) {
            Err(_) => bad += 1,
            Ok(documents) => {
                good += 1;
                for document in documents {
                    let printed = yaml::to_string(&document.value);
                    // Line breaks that only the printer recognizes, and keys that are merged when
                    // parsed.
                    if printed.contains(['\u{2028}', '\u{2029}']) || printed.contains("<<") {
                        continue;
                    }
                    let back = yaml::parse_documents(&printed, &limits)
                        .unwrap_or_else(|e| panic!("{text:?}\n{printed:?}: {e}"));
                    let back = back.into_iter().next().map_or(Value::Null, |d| d.value);
                    assert!(
                        equal(&back, &document.value),
                        "{text:?} printed as {printed:?}"
                    );
                }
            }
        }
    }
    assert!(
        good > 1000.min(bad) && bad > 0,
        "{good} read, {bad} refused"
    );
}

#[test]
fn damaged_globs_and_durations() {
    let mut random = Random(2);
    for _ in 0..rounds(20_000) {
        let pattern = mutate("a*{b,c?}[d-f]\\g**", &mut random);
        if let Ok(glob) = Glob::new(&pattern, &['/']) {
            glob.matches("abce/gxyz");
        }
        if let Ok(nanos) = duration::parse(&mutate("1h30m1.5s-2ms", &mut random)) {
            assert_eq!(duration::parse(&duration::to_string(nanos)), Ok(nanos));
        }
    }
}

/// More with TIPHYS_ROUNDS.
fn rounds(default: usize) -> usize {
    std::env::var("TIPHYS_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}
