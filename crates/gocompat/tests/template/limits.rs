//! Templates that never end, grow without bound or nest too deeply.

use super::world::{Included, functions, universe};
use std::sync::Arc;
use tiphys_gocompat::template::{
    Budget, Error, ErrorKind, Function, Functions, LIST, Limits, MissingKey, Options, Parsed,
    TemplateSet, Type, Value, execute,
};

fn run_with(text: &str, limits: Limits, functions: Arc<Functions>) -> Result<String, Error> {
    let mut set = TemplateSet::new("root", functions);
    set.parse("t", text.as_bytes())?;
    let budget = Budget::new(limits);
    let mut included = Included::new();
    let mut out = Vec::new();
    let options = Options {
        missing_key: MissingKey::Zero,
        budget: &budget,
        host: &mut included,
    };
    execute(
        &Arc::new(set),
        "t",
        universe(&serde_json::Value::Null),
        options,
        &mut out,
    )?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn run(text: &str) -> Result<String, Error> {
    run_with(text, Limits::default(), functions())
}

#[test]
fn a_template_that_calls_itself_ends_as_in_go() {
    let error =
        run("{{define \"a\"}}{{template \"a\" .}}{{end}}{{template \"a\" .}}").expect_err("no end");
    let want = "template: t:1:25: executing \"a\" at <{{template \"a\" .}}>: exceeded maximum template depth (100000)";
    assert_eq!(error.to_string(), want);
    assert_eq!(error.kind(), ErrorKind::Execute);
}

#[test]
fn functions_that_execute_templates_nest_without_native_stack() {
    // `again` is an `include` without a limit, so that only memory ends it.
    let mut all = (*functions()).clone();
    all.insert(
        "again",
        Function::running(&[Type::Any], |call| {
            Ok(tiphys_gocompat::template::Run {
                templates: call.templates().clone(),
                name: "t".into(),
                data: call.take(0),
                then: Box::new(|_, result| {
                    result.map(|out| String::from_utf8_lossy(out).into_owned().into())
                }),
            })
        }),
    );
    let limits = Limits {
        memory: 64 << 20,
        ..Limits::default()
    };
    let error = run_with("x{{ again . }}", limits, Arc::new(all)).expect_err("no end");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(
        error.chain().count() > 10_000,
        "{} links",
        error.chain().count()
    );
    let first = error.message();
    assert_eq!(
        first,
        "template: t:1:4: executing \"t\" at <again .>: error calling again: "
    );
}

#[test]
fn bombs_end_with_a_limit() {
    let small = Limits {
        steps: 100_000,
        output: 10_000,
        memory: 1 << 20,
    };
    for (text, why) in [
        ("{{range 9000000000000000000}}{{end}}", "steps"),
        ("{{range 9000000}}{{range 9000000}}{{end}}{{end}}", "steps"),
        (
            "{{range 5000}}xxxxxxxxxxxxxxxxxxxx{{end}}",
            "writes more than 10000 bytes",
        ),
        (
            "{{range 5000}}{{$x := printf \"%100000d\" 1}}{{end}}",
            "bytes of memory",
        ),
        (
            "{{$l := list 1}}{{range 40}}{{$l = list $l $l}}{{end}}{{$l}}",
            "too deep or too large",
        ),
    ] {
        let error = run_with(text, small, functions()).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Limit, "{text}: {error}");
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

#[test]
fn deep_and_cyclic_values_do_not_end_the_process() {
    let deep =
        run("{{$l := list}}{{range 200000}}{{$l = list $l}}{{end}}{{len $l}}").expect("only built");
    assert_eq!(deep, "1");
    let error =
        run("{{$l := list}}{{range 2000}}{{$l = list $l}}{{end}}{{$l}}").expect_err("printed");
    assert_eq!(error.kind(), ErrorKind::Limit);
    let mut all = (*functions()).clone();
    all.insert(
        "put",
        Function::new(&[LIST, Type::Any], |call| {
            call.list(0)?.set(0, call.arg(1).clone());
            Ok(Value::Nil)
        }),
    );
    let error = run_with(
        "{{$l := list 1}}{{$_ := put $l $l}}{{$l}}",
        Limits::default(),
        Arc::new(all),
    )
    .expect_err("a list in itself");
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn deeply_nested_text_is_refused() {
    for (open, close) in [("{{if .}}", "{{end}}"), ("{{", "}}")] {
        let inner = if open == "{{" {
            format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000))
        } else {
            String::new()
        };
        let depth = if open == "{{" { 1 } else { 100_000 };
        let text = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
        let error = run(&text).expect_err("too deep");
        assert_eq!(error.kind(), ErrorKind::Parse, "{error}");
        assert!(
            error.to_string().contains("deep") || error.to_string().contains("depth"),
            "{error}"
        );
    }
    let chain = format!(
        "{{{{if .f}}}}{}{{{{else}}}}last{{{{end}}}}",
        "{{else if .f}}x".repeat(20_000)
    );
    assert_eq!(run(&chain).expect("a long chain"), "last");
}

#[test]
fn complete_sets_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&TemplateSet::new("root", functions()));
    shared(&Parsed::parse("t", b"{{ .s }}", &functions()).expect("a template"));
}

#[test]
fn a_field_that_does_not_exist_is_an_error_of_its_own_kind() {
    let error = run("{{ $x := 1 }}{{ $x.y }}").expect_err("a number has no fields");
    assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
    let error = run("{{ index 1 2 }}").expect_err("a number has no items");
    assert_ne!(error.kind(), ErrorKind::Missing, "{error}");
}
