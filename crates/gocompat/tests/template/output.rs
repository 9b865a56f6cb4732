//! What becomes of the output of templates that functions have executed.

use super::world::{Included, functions, universe};
use std::sync::Arc;
use tiphys_gocompat::template::{
    Around, Budget, Error, Function, Functions, Limits, MissingKey, Options, Run, Str, TemplateSet,
    Type, Value, execute,
};

/// The output, also that before an error, and the error.
fn run(text: &str, functions: Functions) -> (String, Option<Error>) {
    run_within(Limits::default(), text, functions)
}

fn run_within(limits: Limits, text: &str, functions: Functions) -> (String, Option<Error>) {
    let mut set = TemplateSet::new("root", Arc::new(functions));
    set.parse("t", text.as_bytes()).expect("a template");
    let budget = Budget::new(limits);
    let mut included = Included::new();
    let mut out = b"before ".to_vec();
    let options = Options {
        missing_key: MissingKey::Zero,
        budget: &budget,
        host: &mut included,
    };
    let data = universe(&serde_json::Value::Null);
    let done = execute(&Arc::new(set), "t", data, options, &mut out);
    (String::from_utf8_lossy(&out).into_owned(), done.err())
}

/// With `attempt`, an `include` whose errors become a word.
fn with_attempt() -> Functions {
    let mut all = (*functions()).clone();
    all.insert(
        "attempt",
        Function::running(&[Type::String, Type::Any], |call| {
            Ok(Run {
                templates: call.templates().clone(),
                name: call.string(0)?.clone(),
                data: call.take(1),
                then: Box::new(|_, result| {
                    Ok(result.map_or_else(|_| "none".into(), |out| Value::String(Str::from(out))))
                }),
            })
        }),
    );
    all
}

const PARTS: &str = "{{define \"good\"}}1{{ attempt \"bad\" . }}2{{end}}\
    {{define \"bad\"}}lost{{ attempt \"fine\" . }}{{ index 1 2 }}{{end}}{{define \"fine\"}}3{{end}}";

#[test]
fn what_a_failed_template_wrote_is_dropped_where_a_function_handles_the_error() {
    let text = format!(
        "{PARTS}a{{{{ attempt \"good\" . }}}}b{{{{ attempt \"missing\" . }}}}c{{{{ attempt \"fine\" . }}}}"
    );
    let (out, error) = run(&text, with_attempt());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(out, "before a1none2bnonec3");
}

#[test]
fn what_was_written_before_an_error_stays() {
    let text = format!("{PARTS}a{{{{ attempt \"fine\" . }}}}b{{{{ include \"bad\" . }}}}c");
    let (out, error) = run(&text, with_attempt());
    assert!(error.is_some());
    assert_eq!(out, "before a3b");
}

#[test]
fn what_was_written_before_a_template_that_is_too_large_is_dropped_too() {
    let variables: String = (0..1000).map(|n| format!("{{{{ $v{n} := 1 }}}}")).collect();
    let text = format!(
        "{{{{define \"large\"}}}}{variables}{{{{end}}}}\
         {{{{define \"good\"}}}}lost{{{{ attempt \"large\" . }}}}{{{{end}}}}\
         a{{{{ attempt \"good\" . }}}}b"
    );
    let limits = Limits {
        memory: 10_000,
        ..Limits::default()
    };
    let (out, error) = run_within(limits, &text, with_attempt());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(out, "before anoneb");
    let (out, error) = run(&text, with_attempt());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(out, "before alostb");
}

#[test]
fn braces_are_kept_apart_only_within_one_output() {
    let mut all = (*functions()).clone();
    all.set_around(Around {
        before: |_, _| false,
        after: |value| value,
        between_braces: Some('|'),
    });
    let text = "{{define \"open\"}}{{ \"{\" }}{{end}}\
        {{ \"{\" }}{{ $x := include \"open\" . }}{{ len $x }}{{ \"{\" }}{{ \"{\" }}{{ $x }}";
    let (out, error) = run(text, all);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(out, "before {1{|{|{");
}
