//! Hostile programs are refused or stopped by their budget. Those that would never end are in
//! tests/jq_endless.rs.

use serde_json::json;
use tiphys_gocompat::jq::{Limits, Program};

/// How a program ends: its error, or the number of results.
fn end(source: &str) -> Result<usize, String> {
    let program = Program::parse(source).map_err(|e| e.to_string())?;
    let input = json!({"list": [1, 2, 3], "text": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"});
    let mut count = 0;
    for result in program.run(&input, Limits::default()) {
        result.map_err(|e| e.to_string())?;
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_text_that_is_no_json_is_told_from_one_with_more_behind_it() {
    for (text, want) in [
        (
            "[1,]",
            r#"fromjson cannot be applied to "[1,]": invalid character ']' looking for beginning of value"#,
        ),
        ("1 2", r#"fromjson cannot be applied to: string ("1 2")"#),
        (
            "[1] x",
            r#"fromjson cannot be applied to: string ("[1] x")"#,
        ),
    ] {
        assert_eq!(end(&format!("{text:?} | fromjson")), Err(want.to_owned()));
    }
}

#[test]
fn regular_expressions_end() {
    assert_eq!(end(".text | test(\"(a+)+$\")"), Ok(1));
    assert_eq!(end(".text | test(\"(a|aa)+$\")"), Ok(1));
    for source in [
        ".text | test(\"((a{100}){100}){100}\")",
        ".text | test(\"(((a{1,9}){1,9}){1,9}){1,99}\")",
        ".text | test(\"\\\\pL{999}\")",
    ] {
        assert!(
            end(source).is_err_and(|e| e.starts_with("invalid regular expression")),
            "{source}"
        );
    }
    assert!(
        end("(\"a\" * 1000000) as $t | [range(100) | $t | test(\"(a|b)*c\")] | length")
            .is_err_and(|e| e.contains("steps"))
    );
    assert!(
        end("(\"a\" * 1000000) | [match(\"\"; \"g\")] | length").is_err_and(|e| e.contains("data"))
    );
}

#[test]
fn long_and_deep_programs_are_refused() {
    let refused = |source: &str, why: &str| {
        assert_eq!(
            end(source),
            Err(why.to_owned()),
            "{}",
            &source[..20.min(source.len())]
        )
    };
    let deep = "the expression is nested too deeply";
    refused(&format!("{}.{}", "(".repeat(2000), ")".repeat(2000)), deep);
    refused(&format!("{}.{}", "[".repeat(2000), "]".repeat(2000)), deep);
    refused(&format!("{}1", "-".repeat(4000)), deep);
    refused(&"try ".repeat(1900), deep);
    refused(&"if 1 then ".repeat(500), deep);
    refused(
        &format!("if 1 then 1 {} end", "elif 1 then 1 ".repeat(300)),
        deep,
    );
    refused(&format!("1{}", " // 1".repeat(1000)), deep);
    refused(&"\"\\(".repeat(1000), "unterminated string literal");
    refused(
        &format!("{}1{}", "\"\\(".repeat(1000), ")\"".repeat(1000)),
        deep,
    );
    refused(
        &format!(". as {}$x{} | 1", "[".repeat(1000), "]".repeat(1000)),
        deep,
    );
    let parts = "the expression has too many parts";
    refused(&"|.".repeat(3000)[1..], parts);
    refused(&",.".repeat(3000)[1..], parts);
    refused(&"+1".repeat(3000)[1..], parts);
    refused(&".a".repeat(3000), parts);
    refused(&format!(".{}", "?".repeat(3000)), parts);
    refused(&format!(".{}", "[]".repeat(3000)), parts);
    refused(&"a".repeat(9000), "an expression may have 8192 bytes");
    // Programs just within the limits do not overflow the stack.
    for source in ["|.".repeat(1400), ",.".repeat(1400), "+1".repeat(1400)] {
        assert!(end(&source[1..]).is_ok(), "{}", &source[..9]);
    }
    assert!(end(&format!(".{}", "?".repeat(1400))).is_ok());
    assert_eq!(end(&".z?".repeat(700)), Ok(1));
}
