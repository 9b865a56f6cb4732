//! Jsonnet files of plain directories: options, imports, results, errors and limits.

use serde_json::{Value, json};
use tiphys_api::source::{
    ApplicationSource, ApplicationSourceDirectory, ApplicationSourceJsonnet, JsonnetVar,
};
use tiphys_render::{
    AppFacts, Budget, EvaluateJsonnet as _, FileEntry, FileError, FileKind, InProcess,
    JsonnetError, JsonnetFile, JsonnetLimits, JsonnetOptions, MemoryFiles, RenderError,
    RenderParams, Rendered, SourceFiles, SourceSet, prepare,
};

use crate::directory::NoCharts;

fn render(
    files: &dyn SourceFiles,
    jsonnet: ApplicationSourceJsonnet,
) -> Result<Rendered, RenderError> {
    let directory = ApplicationSourceDirectory {
        jsonnet,
        ..Default::default()
    };
    let params = RenderParams {
        source: ApplicationSource {
            path: "app".into(),
            directory: Some(Box::new(directory)),
            ..Default::default()
        },
        app: AppFacts {
            name: "web".into(),
            namespace: "team".into(),
            revision: "0123456789abcdef".into(),
            ..AppFacts::default()
        },
        ..RenderParams::default()
    };
    let sources = SourceSet::new(files);
    let prepared = prepare(&sources, &params)?;
    tiphys_render::render(&sources, &prepared, &NoCharts, &Budget::default())
}

/// A ConfigMap with this as its data.
fn cm(data: &str) -> String {
    format!("{{apiVersion: 'v1', kind: 'ConfigMap', metadata: {{name: 'a'}}, data: {data}}}")
}

fn data(files: &dyn SourceFiles, jsonnet: ApplicationSourceJsonnet) -> Result<Value, String> {
    let rendered = render(files, jsonnet).map_err(|e| e.to_string())?;
    if let Some(error) = rendered.errors.first() {
        return Err(error.to_string());
    }
    Ok(rendered.objects[0].0["data"].clone())
}

fn variable(name: &str, value: &str, code: bool) -> JsonnetVar {
    JsonnetVar {
        name: name.into(),
        value: value.into(),
        code,
    }
}

#[test]
fn variables_and_arguments() {
    let main = format!(
        "function(text, code, again='default') {}",
        cm("{t: text, c: code, a: again, x: std.extVar('x'), y: std.extVar('y')}")
    );
    let files = MemoryFiles::new([("app/main.jsonnet", main.as_str())]);
    let options = ApplicationSourceJsonnet {
        ext_vars: vec![
            variable("x", "first", false),
            variable(
                "x",
                "$ARGOCD_APP_NAME-${ARGOCD_APP_NAMESPACE}-$NO-$$",
                false,
            ),
            variable("y", "{n: 1 + 1, app: '$ARGOCD_APP_NAME'}", true),
        ],
        tlas: vec![
            variable("text", "1 + 1", false),
            variable("code", "std.extVar('y').n + 1", true),
        ],
        libs: Vec::new(),
    };
    assert_eq!(
        data(&files, options).expect("data"),
        json!({
            "t": "1 + 1", "c": 3, "a": "default", "x": "web-team--$", "y": {"n": 2, "app": "web"},
        })
    );
    // What is no function ignores the arguments.
    let main = cm("{}");
    let plain = MemoryFiles::new([("app/main.jsonnet", main.as_str())]);
    let options = ApplicationSourceJsonnet {
        tlas: vec![variable("x", "1", false)],
        ..Default::default()
    };
    assert_eq!(data(&plain, options).expect("data"), json!({}));
}

#[test]
fn imports_are_found_in_the_order_of_the_libraries() {
    let main = cm("{lib: (import 'who.libsonnet').who, near: (import 'near.libsonnet').who}");
    let files = MemoryFiles::new([
        ("app/main.jsonnet", main.as_str()),
        ("app/near.libsonnet", "{who: 'app'}"),
        ("lib/who.libsonnet", "{who:'lib'}"),
        ("lib/near.libsonnet", "{who:'lib'}"),
        ("vendor/who.libsonnet", "{who:'vendor'}"),
    ]);
    for (libs, lib) in [(["lib", "/vendor"], "vendor"), (["vendor", "lib"], "lib")] {
        let options = ApplicationSourceJsonnet {
            libs: libs.map(str::to_owned).to_vec(),
            ..Default::default()
        };
        let got = data(&files, options).expect("data");
        assert_eq!(got, json!({"lib": lib, "near": "app"}), "{libs:?}");
    }
    let outside = ApplicationSourceJsonnet {
        libs: vec!["../lib".into()],
        ..Default::default()
    };
    assert_eq!(
        data(&files, outside).expect_err("outside"),
        "file '../lib' resolved to outside repository root"
    );
}

/// One program in `app/main.jsonnet`, other files beside it, and its value or the beginning of its
/// error.
#[test]
fn programs() {
    let files = MemoryFiles(
        [
            ("app/text.txt", &b"hello\n"[..]),
            ("app/data.bin", &[0, 255]),
            (
                "app/sub/a.libsonnet",
                b"(import '../b.libsonnet') + {a: 1, file: std.thisFile}",
            ),
            ("app/b.libsonnet", b"{b: 2}"),
            ("app/data.json", br#"{"z": 1, "a": [1.5]}"#),
            ("app/broken.libsonnet", b"{\n  a: b,\n}"),
            ("app/one.libsonnet", b"import 'two.libsonnet'"),
            ("app/two.libsonnet", b"import 'one.libsonnet'"),
            (
                "app/loop.libsonnet",
                b"{a: (import 'loop.libsonnet').b, b: 1}",
            ),
            ("up.libsonnet", b"'up'"),
        ]
        .map(|(path, content)| (path.to_owned(), content.to_vec()))
        .into(),
    );
    let not_found = "no match locally or in the Jsonnet library paths";
    for (program, want) in [
        ("importstr 'text.txt'", Ok(json!("hello\n"))),
        ("importbin 'data.bin'", Ok(json!([0, 255]))),
        ("import './x/../sub/a.libsonnet'", Ok(json!({"a": 1, "b": 2, "file": "app/sub/a.libsonnet"}))),
        ("import 'data.json'", Ok(json!({"a": [1.5], "z": 1}))),
        ("import '../up.libsonnet'", Ok(json!("up"))),
        ("(import 'loop.libsonnet').a", Ok(json!(1))),
        ("std.thisFile", Ok(json!("app/main.jsonnet"))),
        ("[1, -0.5, 1e100, 0.1 + 0.2, 9007199254740993]", Ok(json!([1, -0.5, 1e100, 0.1 + 0.2, 9_007_199_254_740_992_u64]))),
        ("{b: 1, a:: 2, c::: null}", Ok(json!({"b": 1, "c": null}))),
        ("std.trace('quiet', 1)", Ok(json!(1))),
        ("std.native('x') == null", Ok(json!(true))),
        ("import 'none'", Err(format!("RUNTIME ERROR: couldn't open import \"none\": {not_found}\n\tapp/main.jsonnet:1:1-14"))),
        ("import '../../x'", Err("RUNTIME ERROR: couldn't open import \"../../x\": it is outside of the repository".into())),
        ("import '/etc/passwd'", Err("RUNTIME ERROR: couldn't open import \"/etc/passwd\": absolute paths are not supported".into())),
        ("importstr 'sub'", Err("RUNTIME ERROR: couldn't open import \"sub\": \"app/sub\" is not a file".into())),
        ("import 'broken.libsonnet'", Err("RUNTIME ERROR: app/broken.libsonnet:2:6-7 Unknown variable: b".into())),
        ("import 'one.libsonnet'", Err("RUNTIME ERROR: ".into())),
        ("std.extVar('missing')", Err("RUNTIME ERROR: Undefined external variable: missing\n\tapp/main.jsonnet:1:1-22".into())),
        ("function(name) name", Err("RUNTIME ERROR: Missing argument: name".into())),
        ("local f(x) = x.a; f({b: 1})", Err("RUNTIME ERROR: Field does not exist: a\n\tapp/main.jsonnet:1:14-17\n\tapp/main.jsonnet:1:19-28".into())),
        ("assert 1 == 2 : 'no'; 1", Err("RUNTIME ERROR: no\n\tapp/main.jsonnet:1:1-21".into())),
        ("error 'stop'", Err("RUNTIME ERROR: stop".into())),
        ("{a: function(x) x}", Err("RUNTIME ERROR: ".into())),
        ("{", Err("app/main.jsonnet:1:2-2 Expected ".into())),
        ("self.a", Err("app/main.jsonnet:1:1-5 Can't use self outside of an object.".into())),
    ] {
        let got = evaluate(&files, program, &JsonnetLimits::default());
        match want {
            Ok(want) => assert_eq!(normal(got.expect(program)), normal(want), "{program}"),
            Err(want) => {
                let got = got.expect_err(program).to_string();
                assert!(got.starts_with(&want), "{program}: {got}");
            }
        }
    }
}

fn evaluate(
    files: &dyn SourceFiles,
    program: &str,
    limits: &JsonnetLimits,
) -> Result<Value, JsonnetError> {
    let options = JsonnetOptions::default();
    let file = JsonnetFile {
        folder: "app",
        path: "app/main.jsonnet",
        content: program.as_bytes(),
        options: &options,
        limits,
    };
    InProcess.evaluate(files, file)
}

/// Jsonnet has one kind of number.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(n) => n.as_f64().into(),
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Object(map) => map.into_iter().map(|(k, v)| (k, normal(v))).collect(),
        other => other,
    }
}

#[test]
fn results_become_objects() {
    let object =
        |name: &str| format!("{{apiVersion: 'v1', kind: 'Pod', metadata: {{name: '{name}'}}}}");
    let (a, b) = (object("a"), object("b"));
    let kind = "document 1: Object 'Kind' is missing";
    for (program, names, error) in [
        (a.clone(), vec!["a"], None),
        (format!("[{b}, null, {a}]"), vec!["b", "a"], None),
        (
            format!("{{apiVersion: 'v1', kind: 'List', items: [{a}, {b}]}}"),
            vec!["a", "b"],
            None,
        ),
        ("null".into(), vec![], None),
        ("[]".into(), vec![], None),
        ("{}".into(), vec![], Some(kind)),
        (
            "'text'".into(),
            vec![],
            Some("document 1: a manifest must be a map"),
        ),
        (
            format!("[[{a}], {b}]"),
            vec!["b"],
            Some("document 1: a manifest must be a map"),
        ),
        (format!("{{a: {a}}}"), vec![], Some(kind)),
    ] {
        let files = MemoryFiles::new([("app/main.jsonnet", program.as_str())]);
        let rendered = render(&files, ApplicationSourceJsonnet::default()).expect("rendered");
        let got: Vec<&str> = rendered.objects.iter().map(|o| o.name()).collect();
        assert_eq!(got, names, "{program}");
        let errors: Vec<String> = rendered.errors.iter().map(ToString::to_string).collect();
        let wanted: Vec<String> = error
            .iter()
            .map(|e| format!("Failed to unmarshal generated json \"main.jsonnet\": {e}"))
            .collect();
        assert_eq!(errors, wanted, "{program}");
    }
}

#[test]
fn a_program_that_fails_hides_no_other_file() {
    let good = cm("{}");
    let skipped = format!("// +argocd:skip-file-rendering\n{good}");
    let files = MemoryFiles::new([
        ("app/a.jsonnet", "error 'no'"),
        ("app/b.jsonnet", good.as_str()),
        ("app/c.libsonnet", "error 'only imported'"),
        ("app/d.jsonnet", skipped.as_str()),
        ("app/sub/e.jsonnet", "error 'not recursive'"),
    ]);
    let rendered = render(&files, ApplicationSourceJsonnet::default()).expect("rendered");
    assert_eq!(rendered.objects.len(), 1);
    let errors: Vec<String> = rendered.errors.iter().map(ToString::to_string).collect();
    let want =
        "Failed to evaluate jsonnet \"a.jsonnet\": RUNTIME ERROR: no\n\tapp/a.jsonnet:1:1-11";
    assert_eq!(errors, [want]);
}

/// A source with a link that leads out of it.
struct Linked(MemoryFiles);

impl SourceFiles for Linked {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        if path.split('/').any(|part| part == "out") {
            return Err(FileError::OutsideLink(path.to_owned()));
        }
        self.0.kind(path)
    }
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        self.0.read(path)
    }
    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        self.0.list(path)
    }
}

#[test]
fn links_do_not_lead_out() {
    for (program, libs) in [("import 'out'", vec![]), ("{}", vec!["lib/out".to_owned()])] {
        let files = Linked(MemoryFiles::new([("app/main.jsonnet", program)]));
        let options = ApplicationSourceJsonnet {
            libs,
            ..Default::default()
        };
        let error = render(&files, options).expect_err("outside");
        assert!(
            matches!(error, RenderError::File(FileError::OutsideLink(_))),
            "{error}"
        );
    }
}

#[test]
fn hostile_programs_end() {
    let twice = (0..40).fold("local a0 = [0];".to_owned(), |program, i| {
        format!("{program} local a{} = [a{i}, a{i}];", i + 1)
    });
    let deep = |start: &str, middle: &str, end: &str| {
        format!("{}{middle}{}", start.repeat(200_000), end.repeat(200_000))
    };
    let limits = JsonnetLimits {
        steps: 10_000,
        values: 3_000,
        import_bytes: 1_000,
        ..JsonnetLimits::default()
    };
    let steps = "RUNTIME ERROR: the program does more steps than it may";
    let nested = "app/main.jsonnet: more than 10000 brackets and words are nested";
    let big = "x".repeat(1_001);
    let files = MemoryFiles::new([("app/big", big.as_str()), ("app/small", &big[..900])]);
    for (program, want) in [
        (
            "local f(x) = f(x + 1); f(0)".to_owned(),
            "RUNTIME ERROR: max stack frames exceeded.",
        ),
        ("local f(x) = f(x + 1) tailstrict; f(0)".into(), steps),
        (
            "local f(n) = if n < 2 then 1 else f(n - 1) + f(n - 2); f(60)".into(),
            steps,
        ),
        (
            "local f = function(n) if n < 2 then 1 else f(n - 1) + f(n - 2); f(60)".into(),
            steps,
        ),
        (
            "local o = {f(n):: if n < 2 then 1 else o.f(n - 1) + o.f(n - 2)}; o.f(60)".into(),
            steps,
        ),
        (
            "local r = std.range(1, 150); [1 for a in r for b in r for c in r]".into(),
            steps,
        ),
        (
            "local r = std.range(1, 150); {['%d' % a]: 1 for a in r for b in r for c in r}".into(),
            steps,
        ),
        (
            "std.foldl(function(a, b) a + b, std.range(1, 100000), 0)".into(),
            steps,
        ),
        (
            "std.repeat('x', 1e12)".into(),
            "RUNTIME ERROR: invalid count value",
        ),
        (
            "std.makeArray(1e12, function(i) i)".into(),
            "RUNTIME ERROR: invalid size value",
        ),
        (
            "'%1000000000000d' % 1".into(),
            "RUNTIME ERROR: format field width is too large",
        ),
        (format!("{twice} a40"), steps),
        ("std.range(1, 4000)".into(), "the result is too large"),
        ("local a = a; a".into(), "RUNTIME ERROR: infinite recursion"),
        (deep("[", "", "]"), nested),
        (deep("{a:", "1", "}"), nested),
        (deep("local a = 1;", "a", ""), nested),
        (deep("if true then ", "1", ""), nested),
        (deep("", "{}", "{}"), nested),
        (deep("", "{}", ".a"), nested),
        (
            "importstr 'big'".into(),
            "RUNTIME ERROR: couldn't open import \"big\": the files together",
        ),
        (
            "[importstr 'small', importstr 'small']".into(),
            "RUNTIME ERROR: couldn't open import \"small\": the files",
        ),
    ] {
        let got = evaluate(&files, &program, &limits)
            .expect_err(&program)
            .to_string();
        let shown: String = program.chars().take(80).collect();
        assert!(got.starts_with(want), "{shown}: {got}");
    }
    // As deep as it may be: the stack suffices.
    for (start, end) in [
        ("{a:", "}"),
        ("{local a=", "}"),
        ("{assert ", "}"),
        ("error ", ""),
        ("std.id(", ")"),
    ] {
        let program = format!("{}1{}", start.repeat(4_900), end.repeat(4_900));
        let _ = evaluate(&files, &program, &limits);
    }
}
