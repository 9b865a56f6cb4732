//! YAML that would take much memory: aliases of long texts, anchors and lists in each other,
//! prefixes of tags, and keys that are repeated without end.

use serde_json::json;
use tiphys_gocompat::yaml::{self, Duplicates, Limits, YamlError, tree};

const MIB: Limits = Limits {
    bytes: 64 << 20,
    depth: 200,
    nodes: 4_000_000,
    aliases: 400_000,
    copied_bytes: 1 << 20,
    documents: 100,
};
const OVER_A_MIB: &str =
    "anchors and aliases copy more than the 1048576 bytes that the input has left for them";

fn parse(text: &str, limits: &Limits) -> Result<serde_json::Value, YamlError> {
    yaml::parse_document(text, limits, Duplicates::LastWins)
}

/// A text of 10,000 bytes, and so many aliases of it.
fn repeated(count: usize) -> String {
    let long = "x".repeat(10_000);
    format!("a: &a {long}\nb: [{}]\n", vec!["*a"; count].join(", "))
}

#[test]
fn aliases_of_a_long_text_are_counted_with_its_bytes() {
    let text = repeated(90);
    let value = parse(&text, &MIB).expect("900,000 bytes");
    assert_eq!(value["b"].as_array().map(Vec::len), Some(90));
    let error = parse(&repeated(200), &MIB).expect_err("2,000,000 bytes");
    assert_eq!((error.line, &error.message[..]), (2, OVER_A_MIB));
    assert_eq!(error.go_text(), format!("line 2: {OVER_A_MIB}"));

    parse(&repeated(1_000), &Limits::default()).expect("10 MB");
    let error = parse(&repeated(10_000), &Limits::default()).expect_err("100 MB");
    assert!(error.message.contains("67108864 bytes"), "{error}");
}

#[test]
fn merged_maps_are_counted_with_their_keys_and_texts() {
    let merged = |key: usize, text: usize| {
        let (key, text) = ("k".repeat(key), "x".repeat(text));
        let maps = vec!["{<<: *m}"; 200].join(", ");
        format!("m: &m\n  ? {key}\n  : {text}\nb: [{maps}]\n")
    };
    parse(&merged(1, 10), &MIB).expect("short");
    for (key, text) in [(1, 10_000), (10_000, 1)] {
        let error = parse(&merged(key, text), &MIB).expect_err("long");
        assert_eq!(error.message, OVER_A_MIB);
    }
}

#[test]
fn anchored_lists_in_each_other_are_counted_with_their_copies() {
    let nested = |open: &str| {
        let text = "x".repeat(10_000);
        format!("{}{text}{}\n", open.repeat(150), "]".repeat(150))
    };
    parse(&nested("["), &MIB).expect("no anchors");
    let error = parse(&nested("&a ["), &MIB).expect_err("150 copies");
    assert_eq!(error.message, OVER_A_MIB);
}

#[test]
fn the_documents_of_an_input_share_the_limit() {
    let one = repeated(60);
    yaml::parse_documents(&one, &MIB).expect("600,000 bytes");
    let error = yaml::parse_documents(format!("{one}---\n{one}"), &MIB).expect_err("both");
    assert_eq!(error.line, 5);
    assert!(
        error.message.starts_with("anchors and aliases copy"),
        "{error}"
    );

    let mut budget = MIB;
    yaml::parse_entries(&one, &mut budget, &["a"]).expect("600,000 bytes");
    assert_eq!((budget.copied_bytes, budget.nodes), (448_576, MIB.nodes));
    yaml::parse_entries(&one, &mut budget, &["a"]).expect_err("both");
}

#[test]
fn go_yaml_refuses_first_what_consists_of_aliases() {
    let mut text = "a: &a [l, l, l, l, l, l, l, l, l]\n".to_owned();
    for (before, name) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        let list = vec![format!("*{before}"); 9].join(", ");
        text.push_str(&format!("{name}: &{name} [{list}]\n"));
    }
    let error = parse(&text, &Limits::default()).expect_err("a bomb");
    assert_eq!(error.message, "document contains excessive aliasing");
}

#[test]
fn trees_of_nodes_have_the_same_limit() {
    let read = |text: &str| tree::first_node(text, &mut MIB.clone()).map(|_| ());
    read(&repeated(90)).expect("900,000 bytes");
    let error = read(&repeated(200)).expect_err("2,000,000 bytes");
    assert_eq!((error.line, &error.message[..]), (2, OVER_A_MIB));
    let nested = |open: &str| format!("{}{}\n", open.repeat(150), "]".repeat(150));
    let long = "x".repeat(10_000);
    read(&nested("[").replacen("[]", &format!("[{long}]"), 1)).expect("no anchors");
    let error =
        read(&nested("&a [").replacen("[]", &format!("[{long}]"), 1)).expect_err("150 copies");
    assert_eq!(error.message, OVER_A_MIB);

    let mut budget = MIB;
    tree::first_node(&repeated(60), &mut budget).expect("600,000 bytes");
    assert!(tree::first_node(&repeated(60), &mut budget).is_err());
}

#[test]
fn prefixes_of_tags_are_short() {
    let tagged = |length: usize| {
        let prefix = "p".repeat(length);
        format!("%TAG !e! {prefix}\n---\na: !e!x 1\n")
    };
    let limits = Limits::default();
    assert_eq!(parse(&tagged(256), &limits), Ok(json!({"a": "1"})));
    let error = parse(&tagged(257), &limits).expect_err("long");
    assert_eq!(
        error.message,
        "the prefix of a %TAG directive is longer than 256 bytes"
    );
}

/// Only an anchor keeps a tag; its aliases do not copy it.
#[test]
fn tags_of_anchors_are_counted() {
    let prefix = "p".repeat(256);
    let tagged = |scalar: &str, count: usize, more: &str| {
        let items = format!("- {scalar}\n").repeat(count);
        format!("%TAG !e! {prefix}\n---\n{items}{more}")
    };
    parse(&tagged("!e!x 1", 5000, ""), &MIB).expect("no anchors");
    parse(&tagged("&a !e!x 1", 4000, ""), &MIB).expect("1,028,000 bytes");
    let error = parse(&tagged("&a !e!x 1", 5000, ""), &MIB).expect_err("1,285,000 bytes");
    assert_eq!((error.line, &error.message[..]), (4083, OVER_A_MIB));
    let aliases = "- *a\n".repeat(5000);
    let value = parse(&tagged("&a !e!x 1", 1, &aliases), &MIB).expect("5,000 bytes");
    assert_eq!(value[5000], json!("1"));

    let long = "t".repeat(200_000);
    parse(
        &format!("a: &a !{long} 1\nb: [*a, *a, *a, *a, *a, *a]\n"),
        &MIB,
    )
    .expect("200,007 bytes");
}

#[test]
fn of_many_repeated_keys_the_first_are_listed() {
    let strict =
        |text: &str| yaml::parse_document(text, &Limits::default(), Duplicates::Refuse).map(|_| ());
    let error = strict(&"a: 1\n".repeat(1001)).expect_err("repeated");
    assert!(error.is_repeated_key());
    let lines: Vec<_> = error.message.lines().collect();
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[99], "  line 101: key \"a\" already set in map");
    assert_eq!(lines[100], "  and 900 more keys already set in map");

    let long = "k".repeat(1000);
    let error = strict(&format!("{long}: 1\n").repeat(500)).expect_err("repeated");
    assert!(error.message.len() < 100_000, "{}", error.message.len());
    assert!(!strict("a: b: c").expect_err("no YAML").is_repeated_key());
}

#[test]
fn errors_tell_their_kind() {
    let error = parse("a: .inf", &Limits::default()).expect_err("not JSON");
    assert!(error.is_not_json() && !error.is_too_deep());
    assert_eq!(
        error.json_text(),
        "error converting YAML to JSON: json: unsupported value: +Inf"
    );
    let shallow = Limits { depth: 3, ..MIB };
    let error = parse("[[[[]]]]", &shallow).expect_err("deep");
    assert!(error.is_too_deep() && !error.is_not_json());
    let error = parse("a: &a [[]]\nb: [[*a]]", &shallow).expect_err("deep with the alias");
    assert!(error.is_too_deep());
    assert_eq!(error.message, "exceeded max depth of 3");
}

#[test]
fn what_is_written_ends_at_its_limit() {
    let items = json!(vec![1; 10_000]);
    let nested = (0..100).fold(items, |inner, _| json!({"a": [inner]}));
    let whole = yaml::to_string(&nested);
    assert!(whole.len() > 1_000_000, "{}", whole.len());
    assert_eq!(yaml::to_string_within(&nested, 100_000), None);
    assert_eq!(yaml::to_string_within(&nested, whole.len() - 1), None);
    assert_eq!(
        yaml::to_string_within(&nested, whole.len()).as_ref(),
        Some(&whole)
    );
}
