//! `cargo xtask parity rbac --peer PROGRAM`: random policies and requests, decided by casbin with
//! Argo CD's model and by ours.
//!
//! Main function: [`run`]. The peer reads a line of JSON a policy, as the cases of suite `rbac` have
//! it (`configmap`, `builtin`, `questions` of subject, resource, action and object), and answers a
//! line: `load_error` (null or a text) and `answers`, a boolean a question; where its program panics,
//! that is a refusal. Patterns in which gobwas has a fault that ours has not are not made (the
//! conformance suite names them).

use super::{Random, peer::Peer, shrink::shrunk};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};
use tiphys_rbac::{Rbac, Request, Settings};
use tiphys_testkit::Rng;

/// Questions about each policy.
const QUESTIONS: u64 = 10;
/// Policies that the peer has not answered yet: less than what a pipe holds.
const AHEAD: usize = 4;

#[derive(clap::Args)]
pub struct Args {
    /// The program that asks casbin
    #[arg(long, value_name = "PROGRAM")]
    peer: PathBuf,
    #[command(flatten)]
    random: Random,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut peer = Peer::start(&args.peer)?;
    let mut rng = Rng::new(args.random.seed);
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    let mut waiting = VecDeque::new();
    let policies = args.random.count.div_ceil(QUESTIONS);
    let mut made = 0;
    while made < policies || !waiting.is_empty() {
        if made < policies && waiting.len() < AHEAD {
            let case = case(&mut rng);
            peer.ask(&case)?;
            waiting.push_back(case);
            made += 1;
            continue;
        }
        let case = waiting.pop_front().context("nothing was asked")?;
        if counts.compare(&case, &peer.answer()?)?.is_some() {
            wrong.push(case);
        }
    }
    println!(
        "{} questions about {policies} policies, {} allowed, {} policies that casbin does not load: {} differ",
        counts.questions,
        counts.allowed,
        counts.refused,
        wrong.len()
    );
    for case in wrong.iter().take(args.random.show) {
        println!("{}\n", smallest(case, &mut peer)?);
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        bail!("{} policies differ", wrong.len())
    }
}

/// The smallest part of a case that still differs, as one text of lines.
fn smallest(case: &Value, peer: &mut Peer) -> anyhow::Result<String> {
    let (mut case, mut told) = (case.clone(), String::new());
    let texts = ["policy.csv", "policy.overlay.csv"]
        .map(|key| case["configmap"][key].as_str().unwrap_or_default());
    let text = texts.join("\n");
    if let Some(texts) = case["configmap"].as_object_mut() {
        texts.remove("policy.overlay.csv");
    }
    case["configmap"]["policy.csv"] = json!(text);
    let text = shrunk(&text, |smaller| {
        let mut case = case.clone();
        case["configmap"]["policy.csv"] = json!(smaller);
        let answer = peer.ask(&case).and_then(|()| peer.answer());
        let found = answer.and_then(|answer| Counts::default().compare(&case, &answer));
        let Ok(Some(found)) = found else { return false };
        told = found;
        true
    });
    case["configmap"]["policy.csv"] = json!(text);
    Ok(format!(
        "{told}\n{}, builtin {}",
        case["configmap"], case["builtin"]
    ))
}

#[derive(Default)]
struct Counts {
    questions: usize,
    allowed: usize,
    refused: usize,
}

impl Counts {
    /// What differs first.
    fn compare(&mut self, case: &Value, answer: &Value) -> anyhow::Result<Option<String>> {
        let texts: BTreeMap<String, String> = serde_json::from_value(case["configmap"].clone())?;
        let ours = Settings::new(&texts)
            .ok()
            .and_then(|settings| Rbac::new(case["builtin"] == true, settings).ok());
        let loads = answer["load_error"].is_null();
        self.refused += usize::from(!loads);
        let questions = case["questions"].as_array().context("questions")?;
        let answers = answer["answers"].as_array().context("answers")?;
        ensure!(questions.len() == answers.len(), "an answer a question");
        let mut told = (ours.is_some() != loads)
            .then(|| format!("loads: {} instead of {loads} ({answer})", ours.is_some()));
        for (question, want) in questions.iter().zip(answers) {
            let field = |index: usize| question[index].as_str().unwrap_or_default();
            let request = Request {
                resource: field(1),
                action: field(2),
                object: field(3),
            };
            let got = ours
                .as_ref()
                .is_some_and(|rbac| rbac.permits_subject(field(0), request));
            // What does not load answers nothing in Argo CD, and refuses in ours.
            let want = loads && *want == true;
            self.questions += 1;
            self.allowed += usize::from(want);
            if got != want && told.is_none() {
                told = Some(format!("{question}: {got} instead of {want}"));
            }
        }
        Ok(told)
    }
}

const SUBJECTS: [&str; 12] = [
    "alice",
    "bob",
    "role:dev",
    "role:ops",
    "role:admin",
    "role:readonly",
    "proj:a:ci",
    "a team",
    "Ä@example.org",
    "role:lead",
    "role:night",
    "",
];
const RESOURCES: [&str; 9] = [
    "applications",
    "applicationsets",
    "clusters",
    "projects",
    "repositories",
    "logs",
    "exec",
    "accounts",
    "extensions",
];
const ACTIONS: [&str; 10] = [
    "get",
    "create",
    "update",
    "update/apps/Deployment/ns/web",
    "delete",
    "delete//Pod/ns/web-1",
    "sync",
    "override",
    "action/apps/Deployment/restart",
    "invoke",
];
const OBJECTS: [&str; 12] = [
    "a/web",
    "a/web-1",
    "a/team/web",
    "b/shop",
    "ab/shop",
    "default/guestbook",
    "*/*",
    "https://git.example.org/shop.git",
    "a/ä",
    "a/[x]",
    "a",
    "",
];

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    let length = u64::try_from(from.len()).unwrap_or(1);
    let index = usize::try_from(rng.below(length)).unwrap_or_default();
    from.get(index).copied().unwrap_or_default()
}

fn one_in(rng: &mut Rng, number: u64) -> bool {
    rng.below(number) == 0
}

fn case(rng: &mut Rng) -> Value {
    let regex = one_in(rng, 4);
    let mut texts = BTreeMap::new();
    texts.insert("policy.csv", lines(rng, regex));
    if one_in(rng, 5) {
        texts.insert("policy.overlay.csv", lines(rng, regex));
    }
    if regex {
        texts.insert("policy.matchMode", "regex".to_owned());
    } else if one_in(rng, 4) {
        let mode = pick(rng, &["glob", "", "Regex"]);
        texts.insert("policy.matchMode", mode.to_owned());
    }
    if one_in(rng, 4) {
        let role = pick(rng, &["role:readonly", "role:dev", "role:none", "alice"]);
        texts.insert("policy.default", role.to_owned());
    }
    let questions: Vec<[&str; 4]> = (0..QUESTIONS)
        .map(|_| {
            [
                pick(rng, &SUBJECTS),
                pick(rng, &RESOURCES),
                pick(rng, &ACTIONS),
                pick(rng, &OBJECTS),
            ]
        })
        .collect();
    json!({"configmap": texts, "builtin": !one_in(rng, 4), "questions": questions})
}

fn lines(rng: &mut Rng, regex: bool) -> String {
    let mut text = String::new();
    for _ in 0..rng.below(30) {
        let line = line(rng, regex);
        text.push_str(&line);
        text.push_str(pick(rng, &["\n", "\n", "\n", "\r\n", "\n\n", " \n"]));
    }
    text
}

fn line(rng: &mut Rng, regex: bool) -> String {
    if one_in(rng, 150) {
        let odd = [
            "# p, alice, *, *, *, allow",
            "p, alice, applications, get, allow",
            "g, alice",
            "g, alice, role:dev, extra",
            "p2, alice, *, *, *, allow",
            "x, y",
            "\"p\", alice, *, get, *, allow",
            "p, alice, appl\"ications, get, *, allow",
            "m, 1 == 1",
            ", alice",
        ];
        return pick(rng, &odd).to_owned();
    }
    if one_in(rng, 3) {
        let fields = [pick(rng, &SUBJECTS), pick(rng, &SUBJECTS)].map(str::to_owned);
        return record(rng, "g", fields);
    }
    let subject = pick(rng, &SUBJECTS).to_owned();
    let resource = pattern(rng, &RESOURCES, regex);
    let action = pattern(rng, &ACTIONS, regex);
    let object = pattern(rng, &OBJECTS, regex);
    let effect = pick(
        rng,
        &["allow", "allow", "allow", "deny", "deny", "Allow", "", "no"],
    );
    record(
        rng,
        "p",
        [subject, resource, action, object, effect.to_owned()],
    )
}

/// The fields with spaces before and behind them, some in quotes.
fn record<const N: usize>(rng: &mut Rng, kind: &str, fields: [String; N]) -> String {
    let mut line = kind.to_owned();
    for field in fields {
        line.push_str(pick(rng, &[", ", ", ", ", ", ",", ",  ", ",\t"]));
        if field.contains([',', '"']) || one_in(rng, 12) {
            line.push_str(&format!("\"{}\"", field.replace('"', "\"\"")));
        } else {
            line.push_str(&field);
            if one_in(rng, 40) {
                line.push(' ');
            }
        }
    }
    line
}

fn pattern(rng: &mut Rng, from: &[&str], regex: bool) -> String {
    let word = pick(rng, from);
    let (start, end) = cut(rng, word);
    let other = pick(rng, from);
    // gobwas's question mark matches an empty text, and not every rune of several bytes.
    let plain = from.iter().all(|word| !word.is_empty() && word.is_ascii());
    if regex {
        return match rng.below(12) {
            0..3 => ".*".to_owned(),
            3..5 => word.to_owned(),
            5 => format!("^{start}.*{end}$"),
            6 => format!("({word}|{other})"),
            7 => format!("^{word}$"),
            8 => format!("{start}[a-z/-]+"),
            9 => "*".to_owned(),
            10 => format!("{start}(.)?{end}"),
            _ => pick(rng, &["[", "(", "a{2,1}", "\\d+", "(?i)A.*", "\\x"]).to_owned(),
        };
    }
    match rng.below(20) {
        16..20 | 0..4 => "*".to_owned(),
        4..7 => word.to_owned(),
        7 => format!("{start}*"),
        8 => format!("*{end}"),
        9 => format!("{start}*{end}"),
        10 => "*/*".to_owned(),
        11 => format!("{{{word},{other}}}"),
        12 if plain && one_in(rng, 4) => pick(rng, &["?", "??*"]).to_owned(),
        12 if plain => format!("{start}?{end}"),
        13 => format!("[{}]*", pick(rng, &["a-c", "!a", "ab", "!b-z", "*"])),
        14 => format!("{start}**"),
        _ => pick(
            rng,
            &[
                "\\*/\\*", "[", "{a", "a/[[]x]", "a/*/*", "", "**", "a]", "\\",
            ],
        )
        .to_owned(),
    }
}

/// The start and the end of a word, with nothing between them or a character.
fn cut<'a>(rng: &mut Rng, word: &'a str) -> (&'a str, &'a str) {
    let places: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
    let length = u64::try_from(places.len()).unwrap_or_default();
    let index = usize::try_from(rng.below(length.max(1))).unwrap_or_default();
    let Some(at) = places.get(index) else {
        return (word, "");
    };
    let (start, rest) = word.split_at(*at);
    let behind = rest.char_indices().nth(1).map_or(rest.len(), |(at, _)| at);
    (start, rest.get(behind..).unwrap_or_default())
}
