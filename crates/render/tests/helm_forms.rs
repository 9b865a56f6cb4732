//! What Helm refuses in the structure of a chart and of its rendered files, and what its linter
//! finds.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_render::MemoryFiles;
use tiphys_render::helm::chart::Chart;
use tiphys_render::helm::lint::{LintOptions, Linted, Severity, lint};
use tiphys_render::helm::{Limits, ParsedChart, RenderOptions, Sources, log, render_chart};

fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: || jiff::tz::TimeZone::UTC,
    }
}

fn about(api_version: &str) -> String {
    format!("apiVersion: {api_version}\nname: a\nversion: 1.0.0\nicon: https://example.com/a.png\n")
}

#[test]
fn charts_of_unknown_forms_are_not_rendered() {
    let render = |api_version: &str| {
        let about = about(api_version);
        let files = MemoryFiles::new([
            ("Chart.yaml", about.as_str()),
            ("templates/t.yaml", "a: b\n"),
        ]);
        let chart = Chart::from_folder(&files, "", &Limits::default())
            .map_err(|e| e.to_string())?
            .chart;
        let rendered = render_chart(
            chart,
            &Map::new(),
            &RenderOptions::new(Arc::new(sources)),
            &Limits::default(),
        );
        rendered.map(drop).map_err(|e| e.to_string())
    };
    assert_eq!((render("v1"), render("v2")), (Ok(()), Ok(())));
    assert_eq!(render("v3"), Err("invalid chart apiVersion".to_owned()));
    for other in ["v4", "\"2\"", "V2", "x"] {
        assert_eq!(
            render(other),
            Err("unsupported chart version".to_owned()),
            "{other}"
        );
    }
}

fn linted(files: &[(&str, &str)], user: &Value) -> Linted {
    let files = MemoryFiles::new(files.iter().copied());
    let options = LintOptions {
        namespace: "default".to_owned(),
        kube_version: None,
        skip_schema_validation: false,
        shown: "a".to_owned(),
        sources: Arc::new(sources),
    };
    let user = user.as_object().expect("a map").clone();
    lint(&files, "", &user, &options, &Limits::default()).expect("it is linted")
}

/// The errors that the linter finds, each with its file.
fn errors(files: &[(&str, &str)], user: &Value) -> Vec<String> {
    linted(files, user)
        .findings
        .iter()
        .filter(|f| f.severity == Severity::Error)
        .map(|f| format!("{}: {}", f.path, f.message))
        .collect()
}

#[test]
fn a_separator_stands_alone_on_its_line() {
    let about = about("v2");
    let lint = |text: &str| {
        errors(
            &[
                ("Chart.yaml", &about),
                ("values.yaml", ""),
                ("templates/t.yaml", text),
            ],
            &json!({}),
        )
    };
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    let wrong =
        ["templates/t.yaml: unable to parse YAML: invalid Yaml document separator: apiVersion: v1"];
    assert_eq!(lint(&format!("---{map}")), wrong);
    assert_eq!(lint(&format!("{map}---{map}")), wrong);
    for fine in [
        map.to_owned(),
        format!("---\n{map}"),
        format!("--- # a comment\n{map}---   \n{map}"),
    ] {
        assert_eq!(lint(&fine), Vec::<String>::new(), "{fine}");
    }
    let crd = "---apiVersion: apiextensions.k8s.io/v1\n";
    let wrong = [
        "crds/c.yaml: unable to parse YAML: invalid Yaml document separator: apiVersion: apiextensions.k8s.io/v1",
    ];
    assert_eq!(
        errors(
            &[
                ("Chart.yaml", &about),
                ("values.yaml", ""),
                ("templates/t.yaml", map),
                ("crds/c.yaml", crd)
            ],
            &json!({})
        ),
        wrong
    );
}

#[test]
fn the_linter_names_its_own_type_of_values() {
    let about = about("v2");
    let files = [("Chart.yaml", about.as_str()), ("values.yaml", "- a\n")];
    let found = errors(&files, &json!({}));
    // What Helm 4.2.4 says.
    let wrong = "values.yaml: unable to parse YAML: error unmarshaling JSON: while decoding JSON: \
                 json: cannot unmarshal array into Go value of type common.Values";
    assert!(found.iter().any(|error| error == wrong), "{found:?}");
}

/// Helm's linter coalesces the values twice: a default that null removed is back when schemas are
/// checked.
#[test]
fn the_linter_checks_defaults_that_null_takes_away() {
    let parent = format!(
        "{}dependencies: [{{name: sub, version: 1.0.0}}]\n",
        about("v2")
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    let lint = |defaults: &str, values: &str, schema: &str| {
        let files = [
            ("Chart.yaml", parent.as_str()),
            ("values.yaml", values),
            ("templates/t.yaml", map),
            (
                "charts/sub/Chart.yaml",
                "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
            ),
            ("charts/sub/values.yaml", defaults),
            ("charts/sub/values.schema.json", schema),
        ];
        errors(&files, &json!({"sub": {"m": null}}))
    };
    let (integer, required) = (
        r#"{"properties": {"m": {"type": "integer"}}}"#,
        r#"{"type": "object", "required": ["m"]}"#,
    );
    let wrong = [
        "templates/: values don't meet the specifications of the schema(s) in the following chart(s):\nsub:\n- at '/m': got string, want integer\n",
    ];
    assert_eq!(lint("m: text", "{}", integer), wrong);
    assert_eq!(lint("m: 3", "sub: {m: text}", integer), wrong);
    assert_eq!(lint("m: 3", "{}", integer), Vec::<String>::new());
    assert_eq!(lint("m: 3", "{}", required), Vec::<String>::new());
}

/// What the linter of Helm 4.2.4 prints for the same chart.
#[test]
fn the_linter_says_what_is_wrong_below_a_keyword() {
    let parent = format!(
        "{}dependencies: [{{name: one, version: 1.0.0}}]\n",
        about("v2")
    );
    let list = r#"{"required": ["q"], "properties": {"v": {"contains": {"minimum": 5, "multipleOf": 4}}}}"#;
    let email = r#"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"w": {"format": "email"}}}"#;
    let files = [
        ("Chart.yaml", parent.as_str()),
        ("values.yaml", "{v: [2], one: {w: x}}"),
        ("values.schema.json", list),
        ("templates/t.yaml", "a: b\n"),
        (
            "charts/one/Chart.yaml",
            "apiVersion: v2\nname: one\nversion: 1.0.0\n",
        ),
        ("charts/one/values.schema.json", email),
    ];
    let own = "- at '': missing property 'q'
- at '/v': no items match contains schema
  - at '/v/0': validation failed
    - at '/v/0': minimum: got 2, want 5
    - at '/v/0': multipleOf: got 2, want 4
";
    let all = format!(
        "templates/: values don't meet the specifications of the schema(s) in the following chart(s):
a:
{own}one:
- at '/w': 'x' is not valid email: missing @
"
    );
    let found = errors(&files, &json!({}));
    assert_eq!(found, [format!("values.yaml: {own}"), all]);
}

/// What is told of nulls in the values of a chart with two subcharts inside each other.
fn told_of_nulls(values: &str, user: &Value) -> Vec<String> {
    let about = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let (top, sub, deep) = (about("a"), about("sub"), about("deep"));
    let files = MemoryFiles::new([
        ("Chart.yaml", &*top),
        ("values.yaml", values),
        ("charts/sub/Chart.yaml", &*sub),
        (
            "charts/sub/values.yaml",
            "{m: 1, t: {u: 1}, none: null, deep: {k: 1}}",
        ),
        ("charts/sub/charts/deep/Chart.yaml", &*deep),
        ("charts/sub/charts/deep/values.yaml", "{m: 1, k: 2}"),
    ]);
    let chart = ParsedChart::new(
        Chart::from_folder(&files, "", &Limits::default())
            .expect("a chart")
            .chart,
    );
    let user = user.as_object().expect("a map");
    let rendered = chart
        .render(
            user,
            &RenderOptions::new(Arc::new(sources)),
            &Limits::default(),
        )
        .expect("it is rendered");
    let what = "null in a chart's values does not remove the default of its subchart path=";
    rendered
        .warnings
        .iter()
        .map(|warning| {
            warning
                .strip_prefix(what)
                .expect("no other warning")
                .to_owned()
        })
        .collect()
}

#[test]
fn nulls_that_helm_forgets_are_told_of() {
    assert_eq!(
        told_of_nulls(
            "sub: {m: null, t: {u: null, v: null}, none: null}",
            &json!({})
        ),
        ["sub.m chart=a", "sub.t.u chart=a"]
    );
    assert_eq!(
        told_of_nulls("sub: {deep: {m: null, k: null}}", &json!({})),
        ["sub.deep.k chart=a", "sub.deep.m chart=a"]
    );
    // If the user's values mention the subchart, Helm removes the default; and a null without a
    // default to remove is not reported.
    assert_eq!(
        told_of_nulls("sub: {m: null}", &json!({"sub": {"other": 1}})),
        Vec::<String>::new()
    );
    assert_eq!(
        told_of_nulls("{}", &json!({"sub": {"m": null}})),
        Vec::<String>::new()
    );
    assert_eq!(
        told_of_nulls("sub: {w: null, m: 2}", &json!({})),
        Vec::<String>::new()
    );
}

/// The error of a chart with the subchart `b`, and what is told before it.
fn told(more: &str, values: &str, user: &Value) -> (Vec<String>, String) {
    let about = about("v2") + more;
    let files = MemoryFiles::new([
        ("Chart.yaml", about.as_str()),
        ("values.yaml", values),
        (
            "charts/b/Chart.yaml",
            "apiVersion: v2\nname: b\nversion: 1.0.0\n",
        ),
    ]);
    let limits = Limits::default();
    let chart = Chart::from_folder(&files, "", &limits).expect("a chart");
    let user = user.as_object().expect("values");
    let mut warnings = Vec::new();
    let error = ParsedChart::new(chart.chart)
        .render_telling(
            user,
            &RenderOptions::new(Arc::new(sources)),
            &limits,
            &mut warnings,
        )
        .expect_err("it is not rendered");
    (warnings, error.to_string())
}

#[test]
fn a_value_in_the_place_of_a_subcharts_table_is_named_as_go_prints_it() {
    for (value, shown) in [
        ("x", "%!t(string=x)"),
        ("true", "true"),
        ("1.5", "%!t(float64=1.5)"),
        (
            "[x, 0, true, null]",
            "[%!t(string=x) %!t(float64=0) true <nil>]",
        ),
        ("[{k: v}]", "[map[%!t(string=k):%!t(string=v)]]"),
    ] {
        let (_, error) = told("", &format!("b: {value}\n"), &json!({}));
        assert_eq!(error, format!("type mismatch on b: {shown}"));
    }
}

#[test]
fn what_a_chart_that_fails_is_warned_of_is_told() {
    let conditional = "dependencies:\n- {name: b, version: 1.0.0, condition: enabled}\n";
    let (warnings, error) = told(conditional, "enabled: 5\nb: x\n", &json!({"b": {}}));
    assert_eq!(
        error,
        "chart dependencies processing failed: type mismatch on b: %!t(string=x)"
    );
    assert_eq!(
        warnings,
        [
            "warning: skipped value for a.b: Not a table.",
            "returned non-bool value path=enabled chart=b"
        ]
    );
    let missing = "deprecated: true\ndependencies:\n- {name: c, version: 1.0.0}\n";
    let (warnings, error) = told(missing, "", &json!({}));
    assert!(error.contains("missing in charts/ directory: c"), "{error}");
    assert_eq!(warnings, ["this chart is deprecated"]);
}

#[test]
fn the_linter_warns_of_values_that_are_required() {
    for (value, word) in [("null", "value"), ("\"\"", "values")] {
        let about = about("v2");
        let values = format!("v: {value}\n");
        let template = "a: {{ required \"give v\" .Values.v | quote }}\n";
        let files = [
            ("Chart.yaml", about.as_str()),
            ("values.yaml", &values),
            ("templates/t.yaml", template),
        ];
        let warnings = linted(&files, &json!({})).warnings;
        assert_eq!(
            warnings,
            [format!("missing required {word} message=\"give v\"")]
        );
        assert_eq!(
            log::line(&warnings[0]),
            format!("level=WARN msg=\"missing required {word}\" message=\"give v\"")
        );
    }
}

#[test]
fn the_linter_tells_every_key_that_occurs_twice() {
    let about = about("v2") + "name: b\nversion: 1.0.0\n";
    let files = [("Chart.yaml", about.as_str()), ("values.yaml", "")];
    let found = linted(&files, &json!({})).findings;
    let strict = found.iter().find(|f| f.severity == Severity::Warning);
    assert_eq!(
        strict.map(|f| f.message.as_str()),
        Some(
            "failed to strictly parse chart metadata file\n\terror converting YAML to JSON: yaml: \
             unmarshal errors:\n  line 5: key \"name\" already set in map\n  line 6: key \
             \"version\" already set in map"
        )
    );
}

#[test]
fn a_template_of_a_subchart_that_is_switched_off_is_not_found_in_the_next_render() {
    let about = about("v2") + "dependencies:\n- {name: b, version: 1.0.0, condition: b.enabled}\n";
    let files = MemoryFiles::new([
        ("Chart.yaml", about.as_str()),
        ("values.yaml", "b: {enabled: true}\n"),
        ("templates/t.yaml", "kind: {{ include \"shared\" . }}\n"),
        (
            "charts/b/Chart.yaml",
            "apiVersion: v2\nname: b\nversion: 1.0.0\n",
        ),
        (
            "charts/b/templates/_shared.tpl",
            "{{ define \"shared\" }}X{{ end }}",
        ),
    ]);
    let limits = Limits::default();
    let loaded = Chart::from_folder(&files, "", &limits).expect("a chart");
    let chart = ParsedChart::new(loaded.chart);
    let render = |enabled: bool| {
        let user = json!({"b": {"enabled": enabled}});
        let rendered = chart.render(
            user.as_object().expect("a map"),
            &RenderOptions::new(Arc::new(sources)),
            &limits,
        );
        rendered.map(|rendered| rendered.manifests[0].kind.clone())
    };
    for _ in 0..2 {
        assert_eq!(render(true), Ok("X".to_owned()));
        let error = render(false).expect_err("nothing defines it").to_string();
        assert!(error.contains("no template \"shared\""), "{error}");
    }
}

#[test]
fn templates_that_are_parsed_ahead_render_as_the_others() {
    let files = |broken: &'static str| {
        MemoryFiles::new([
            ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
            ("templates/_own.tpl", "{{ define \"own\" }}A{{ end }}"),
            (
                "templates/t.yaml",
                "kind: {{ include \"own\" . }}{{ include \"b\" . }}\n",
            ),
            (
                "charts/b/Chart.yaml",
                "apiVersion: v2\nname: b\nversion: 1.0.0\ntype: library\n",
            ),
            ("charts/b/templates/_b.tpl", "{{ define \"b\" }}B{{ end }}"),
            ("charts/b/templates/x.yaml", "{{ no template"),
            ("templates/u.yaml", broken),
        ])
    };
    let limits = Limits::default();
    let chart = |broken: &'static str| {
        let loaded = Chart::from_folder(&files(broken), "", &limits).expect("a chart");
        ParsedChart::new(loaded.chart)
    };
    let render = |chart: &ParsedChart| {
        let options = RenderOptions::new(Arc::new(sources));
        let rendered = chart.render(&Map::new(), &options, &limits);
        rendered.map(|rendered| rendered.manifests[0].kind.clone())
    };
    for broken in ["", "{{ if }}"] {
        let wanted = render(&chart(broken));
        assert_eq!(wanted.is_ok(), broken.is_empty(), "{wanted:?}");
        let asked = std::cell::Cell::new(0);
        for enough in [0, 2, 100] {
            let chart = chart(broken);
            asked.set(0);
            chart.parse_ahead(&|| asked.replace(asked.get() + 1) == enough);
            assert_eq!(asked.get(), 4.min(enough + 1));
            assert_eq!(render(&chart), wanted);
        }
        // Also at the same time, whichever thread is first.
        for _ in 0..20 {
            let chart = chart(broken);
            let rendered = std::thread::scope(|scope| {
                let parser = scope.spawn(|| chart.parse_ahead(&|| false));
                let rendered = render(&chart);
                parser.join().expect("it parses or stops");
                rendered
            });
            assert_eq!(rendered, wanted);
        }
    }
}
