//! The functions of sprig compared with their results in Go (tests/baseline/sprig.jsonl, by
//! tests/baseline/generate/sprig), and hostile calls.

use serde_json::Value as Json;
use std::sync::Arc;
use tiphys_gocompat::{
    sprig::{self, Sources},
    template::{
        Budget, Functions, INT, IntKind, LIST, Limits, List, MAP, Map, MissingKey, Options, Str,
        TemplateSet, Type, UintKind, Value, execute,
    },
};

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(Map::of(MAP, entries.map(|(k, v)| (Str::from(k), v))))
}

fn list<const N: usize>(items: [Value; N]) -> Value {
    Value::List(List::new(items.to_vec()))
}

/// The dot of the generator.
fn dot() -> Value {
    let strings = Type::Map(&Type::String);
    map([
        ("nil", Value::Nil),
        ("u8", Value::Uint(UintKind::Uint8, 200)),
        ("i32", Value::Int(IntKind::Int32, -7)),
        ("by", Value::Bytes(Str::from("bytes"))),
        ("ss", Value::strings(["x", "b", "x"])),
        (
            "is",
            Value::List(List::of(
                Type::Slice(&INT),
                [3, 1, 3].map(Value::int).to_vec(),
            )),
        ),
        ("nm", Value::Map(Map::nil(MAP))),
        ("nl", Value::List(List::nil(LIST))),
        (
            "ms",
            Value::Map(Map::of(
                strings,
                [(Str::from("k"), "v".into()), (Str::from("z"), "w".into())],
            )),
        ),
        (
            "m",
            map([
                ("a", Value::int(1)),
                ("b", "two".into()),
                ("c", Value::Nil),
                ("d", map([("e", 5.0.into()), ("f", list(["g".into()]))])),
                ("l", list([Value::int(1), "x".into()])),
            ]),
        ),
        (
            "l",
            list([
                "a".into(),
                Value::int(1),
                2.5.into(),
                Value::Nil,
                true.into(),
                list([1.0.into()]),
                "a".into(),
            ]),
        ),
        ("bad", Value::String(Str::from(&b"a\xffb"[..]))),
    ])
}

fn known() -> Arc<Functions> {
    let mut functions = Functions::builtins();
    functions.extend(sprig::functions::<Sources>());
    Arc::new(functions)
}

/// A stopped clock and repeating bytes.
fn sources() -> Sources {
    let mut seed = 1_u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (seed >> 56) as u8;
        }
    };
    let zone = || jiff::tz::TimeZone::get("Europe/Berlin").expect("a known zone");
    Sources {
        random: Box::new(random),
        now: "2024-05-06T07:08:09Z".parse().expect("a time"),
        zone,
    }
}

fn run(text: &str, functions: &Arc<Functions>, limits: Limits) -> (String, String) {
    let mut set = TemplateSet::new("t", functions.clone());
    if let Err(e) = set.parse("t", text.as_bytes()) {
        return (String::new(), e.to_string());
    }
    let budget = Budget::new(limits);
    let mut host = sources();
    let mut out = Vec::new();
    let options = Options {
        missing_key: MissingKey::Invalid,
        budget: &budget,
        host: &mut host,
    };
    let done = execute(&Arc::new(set), "t", dot(), options, &mut out);
    (
        String::from_utf8_lossy(&out).into_owned(),
        done.err().map(|e| e.to_string()).unwrap_or_default(),
    )
}

#[test]
fn as_in_go() {
    let functions = known();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("../baseline/sprig.jsonl").lines().skip(1) {
        let case: Json = serde_json::from_str(line).expect("a baseline line is JSON");
        let text = case["t"].as_str().expect("a template");
        let want = (
            case["o"].as_str().unwrap_or(""),
            case["e"].as_str().unwrap_or(""),
        );
        count += 1;
        let got = run(text, &functions, Limits::default());
        if (got.0.as_str(), got.1.as_str()) != want {
            wrong.push(format!("{text}\n   got {got:?}\n  want {want:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn chance_and_time_come_from_the_caller() {
    let functions = known();
    let text = "{{ ago (int64 1714979288) }} {{ now.Unix }} {{ durationRound (now | date_modify \"-49h\") }} {{ htmlDate nil }} {{ randAlphaNum 8 }} \
                {{ randNumeric 3 }} {{ randInt 5 9 }} {{ shuffle \"abcdef\" }} {{ uuidv4 }} {{ randBytes 4 }} {{ randAscii 4 }}";
    let first = run(text, &functions, Limits::default());
    assert_eq!(first, run(text, &functions, Limits::default()));
    assert_eq!(first.1, "");
    let words: Vec<&str> = first.0.split(' ').collect();
    assert_eq!(words[..4], ["1s", "1714979289", "2d", "2024-05-06"]);
    assert!(
        words[4].len() == 8 && words[4].bytes().all(|b| b.is_ascii_alphanumeric()),
        "{first:?}"
    );
    assert!(
        words[5].len() == 3 && words[5].bytes().all(|b| b.is_ascii_digit()),
        "{first:?}"
    );
    assert!(matches!(words[6], "5" | "6" | "7" | "8"), "{first:?}");
    let mut letters: Vec<u8> = words[7].bytes().collect();
    letters.sort_unstable();
    assert_eq!(letters, b"abcdef");
    assert!(
        words[8].len() == 36 && &words[8][14..15] == "4",
        "{first:?}"
    );
}

#[test]
fn secrets_are_bounded_and_can_be_repeated() {
    let functions = known();
    let text = "{{ decryptAES \"k\" (encryptAES \"k\" \"plain\") }} {{ (genCA \"ca\" 1).Cert }} {{ genPrivateKey \"ecdsa\" }} {{ htpasswd \"u\" \"p\" }}";
    let (out, error) = run(text, &functions, Limits::default());
    assert!(
        out.starts_with("plain -----BEGIN CERTIFICATE-----\n")
            && out.contains("BEGIN EC PRIVATE KEY")
            && out.contains("u:$2a$10$"),
        "{out} {error}"
    );
    assert_eq!((out, error), run(text, &functions, Limits::default()));
    let few = Limits {
        steps: 10_000_000,
        ..Limits::default()
    };
    let (_, error) = run(
        "{{ range until 1000 }}{{ genCA \"ca\" 1 }}{{ end }}",
        &functions,
        few,
    );
    assert!(error.contains("more than"), "{error}");
}

#[test]
fn what_costs_too_much_is_refused() {
    let functions = known();
    let small = Limits {
        memory: 8 << 20,
        ..Limits::default()
    };
    for text in [
        "{{ repeat 1000000000 \"x\" }}",
        "{{ until 1000000000 }}",
        "{{ untilStep 0 9000000000000000000 1 }}",
        "{{ seq 1000000000 }}",
        "{{ indent 1000000000 \"a\\nb\" }}",
        "{{ replace \"\" (repeat 10000 \"x\") (repeat 10000 \"y\") }}",
        "{{ join (repeat 10000 \"x\") (until 10000) }}",
        "{{ $l := list 1 }}{{ range until 30 }}{{ $l = concat $l $l }}{{ end }}",
        "{{ $l := list 1 }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}",
        "{{ $l := list 1 }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ deepCopy $l | len }}",
        "{{ regexReplaceAll \"\" (repeat 10000 \"x\") (repeat 10000 \"y\") }}",
    ] {
        let (out, error) = run(text, &functions, small);
        assert!(
            out.is_empty() && error.contains("more than"),
            "{text}: {out:.100} {error}"
        );
    }
    for text in [
        "{{ regexMatch (repeat 100000 \"(\") \"x\" }}",
        "{{ mustRegexMatch \"((((a{900}){900}){900}){900})\" \"x\" }}",
    ] {
        let (_, error) = run(text, &functions, small);
        assert!(
            text.contains("regexMatch (") || error.contains("expression too large"),
            "{text}: {error}"
        );
    }
    let (_, error) = run(
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ deepCopy $d }}",
        &functions,
        small,
    );
    assert!(error.contains("nest too deeply"), "{error}");
}
