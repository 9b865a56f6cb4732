//! Hostile programs are refused or stopped by their limits, without exhausting the stack.

use jiff::{Timestamp, tz::TimeZone};
use tiphys_gocompat::expr::{Clock, Limits, Program, Value};

fn end(code: &str) -> Result<String, String> {
    let clock = Clock {
        now: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
    };
    let env = Value::map([("list", Value::list(vec![Value::int(1); 1000]))]);
    Program::compile(code)
        .and_then(|program| program.run(&env, &clock, Limits::default()))
        .map(|value| value.go_type().to_owned())
        .map_err(|error| error.to_string())
}

#[test]
fn hostile_programs_are_refused() {
    let table = [
        ("(".repeat(50_000), "the expression is nested too deeply"),
        ("[".repeat(50_000), "the expression is nested too deeply"),
        ("!".repeat(50_000), "the expression is nested too deeply"),
        ("-".repeat(50_000), "the expression is nested too deeply"),
        (
            "if 1 {".repeat(9_000),
            "the expression is nested too deeply",
        ),
        (
            "let a = 1; ".repeat(5_000),
            "the expression is nested too deeply",
        ),
        (
            format!("1{}", "+1".repeat(20_000)),
            "the expression is nested too deeply",
        ),
        (
            format!("a{}", ".a".repeat(20_000)),
            "the expression is nested too deeply",
        ),
        (
            format!("a{}", "?.a".repeat(15_000)),
            "the expression is nested too deeply",
        ),
        (
            format!("a{}", "?:b".repeat(15_000)),
            "the expression is nested too deeply",
        ),
        (format!("[{}]", "1,".repeat(11_000)), "exceeds maximum"),
        (
            "list | map(list | map(list | map(list | count(true))))".into(),
            "too many steps",
        ),
        ("1..9223372036854775807".into(), "memory budget exceeded"),
        ("repeat(\"a\", 1000000)".into(), "memory budget exceeded"),
        (
            "reduce(1..100, #acc + #acc, \"aaaaaaaa\")".into(),
            "too much text",
        ),
        ("\"a\" matches \"((a{100}){100}){100}\"".into(), "regexp"),
        ("a".repeat(70_000), "may have 65536 bytes"),
    ];
    for (code, why) in table {
        let shown: String = code.chars().take(40).collect();
        let ended = end(&code);
        assert!(
            ended.as_ref().is_err_and(|error| error.contains(why)),
            "{shown}: {ended:?}"
        );
    }
}

/// Lists share their content, so a short program makes one that would be endless if it were
/// printed, compared or flattened.
#[test]
fn what_values_share_is_counted_as_often_as_it_is_there() {
    let table = [
        ("toJSON(reduce(1..40, [#acc, #acc], 1))", "too much data"),
        ("flatten(reduce(1..40, [#acc, #acc], [1]))", "too much data"),
        (
            "reduce(1..40, [{\"a\": #acc, \"b\": #acc}], 1)",
            "too much data",
        ),
        (
            "let a = repeat(\"x\", 500000); toJSON(map(1..1000, a))",
            "too much data",
        ),
        (
            "let a = repeat(\"x\", 500000); string(map(1..100, a))",
            "too much text",
        ),
        (
            "let a = repeat(\"x\", 500000); toJSON(map(1..100, a))",
            "too much text",
        ),
        (
            "join(map(1..100000, \"a\"), repeat(\"x\", 500000))",
            "too much text",
        ),
        (
            "split(reduce(1..20, #acc + #acc, \"aaaaaaaa\"), \"\")",
            "memory budget exceeded",
        ),
        (
            "let d = reduce(1..19, [#acc, #acc], 1); all(1..20, d == d)",
            "too many steps",
        ),
        (
            "let d = reduce(1..19, [#acc, #acc], 1); all(1..20, max(d) == 1)",
            "too many steps",
        ),
    ];
    for (code, why) in table {
        let ended = end(code);
        assert!(
            ended.as_ref().is_err_and(|error| error.contains(why)),
            "{code}: {ended:?}"
        );
    }
    for code in [
        "toJSON(reduce(1..8, [#acc, #acc], 1))",
        "join(map(1..1000, \"a\"), \", \")",
        "len(split(repeat(\"a\", 1000), \"\"))",
        "len(flatten([list, [list, list]]))",
    ] {
        assert!(end(code).is_ok(), "{code}: {:?}", end(code));
    }
}

#[test]
fn long_programs_within_the_limits_run() {
    for code in [
        format!("true{}", " and ok == nil".repeat(120)),
        format!("a{}", "?.a".repeat(50)),
        format!("a{}", " ?? a".repeat(125)),
        format!("i{}", " + i".repeat(125)).replace('i', "list[0]"),
        format!("i{}", " == nil or i".repeat(120)),
        format!("[{}]", "1,".repeat(5000)),
    ] {
        assert!(end(&code).is_ok(), "{:?}", end(&code));
    }
}

#[test]
fn what_a_predicate_is_asked_about_is_counted() {
    let clock = Clock {
        now: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
    };
    let text = "a".repeat(20_000);
    let env = Value::map([("text", Value::from(text.as_str()))]);
    let program = Program::compile("any(text, true)").expect("a program");
    let ended = |limits| {
        let value = program.run(&env, &clock, limits);
        value.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(ended(Limits::default()), Ok(()));
    let few = Limits {
        steps: 1000,
        ..Limits::default()
    };
    let why = ended(few).expect_err("it is copied");
    assert!(why.contains("too many steps"), "{why}");
}

/// As deep as accepted, each construct ends within the stack of a thread of a test.
#[test]
fn deep_programs_run_or_are_refused() {
    let table = [
        ("[", "1", "]"),
        ("{\"a\": ", "1", "}"),
        ("(1 in ", "[1]", ")"),
        ("not (", "true", ")"),
        ("-(", "list[0]", ")"),
        ("list[-", "0", "]"),
        ("list[", "0", ":][0]"),
        ("len([", "1", "])"),
        ("string(", "1", ")"),
        ("first([", "1", "])"),
        ("all([1], ", "true", ")"),
        ("[1] | map(", "1", ")"),
        ("[1] | filter(", "true", ") | any(#)"),
        ("reduce([1], ", "1", ", 0)"),
        ("sortBy([1], ", "1", ")"),
        ("groupBy([1], string(", "1", "))"),
        ("list[0] == nil ? 1 : ", "2", ""),
        ("(list[0] == nil ? 1 : ", "2", ")"),
        ("if list[0] == 1 { ", "1", " } else { 2 }"),
        ("let a = 1; ", "a", ""),
        ("let a = (", "1", "); a"),
        ("(1; ", "1", ")"),
        ("a?.b ?? ", "1", ""),
        ("list[0] ** ", "1", ""),
        ("\"a\" + ", "\"b\"", ""),
    ];
    for (open, inner, close) in table {
        let runs = |deep| {
            let code = format!("{}{inner}{}", open.repeat(deep), close.repeat(deep));
            end(&code)
        };
        let deepest = (1..=130)
            .take_while(|&deep| !runs(deep).is_err_and(|error| error.contains("nested too deeply")))
            .last();
        assert!(
            deepest.is_some_and(|deep| deep >= 20),
            "{open}: {deepest:?}"
        );
    }
}

#[test]
fn errors_name_their_place() {
    let error = end("ok and\n  not a == 'b'").expect_err("types differ");
    assert!(
        error.contains("mismatched types bool and string") && error.ends_with("(2:9)"),
        "{error}"
    );
}
