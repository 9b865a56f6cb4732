//! What is rendered twice, and how errors name the part of a set that they are about.

use crate::reports::generate;
use serde_json::{Value, json};
use tiphys_api::ApplicationSet;

/// A set of these generators, whose Applications show `{{.values.title}}` and `{{.path}}`.
fn set(go: bool, generators: &Value, title: &str) -> ApplicationSet {
    serde_json::from_value(json!({
        "metadata": {"name": "s", "namespace": "argocd"},
        "spec": {
            "goTemplate": go,
            "goTemplateOptions": ["missingkey=error"],
            "generators": generators,
            "template": {
                "metadata": {"name": "app", "annotations": {"title": title}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "https://example.com/r", "path": "x"},
                    "destination": {"name": "east", "namespace": "n"},
                },
            },
        },
    }))
    .expect("an ApplicationSet")
}

/// Without the cluster that every installation has.
fn registered() -> Value {
    json!({"matchLabels": {"argocd.argoproj.io/secret-type": "cluster"}})
}

fn titles(set: &ApplicationSet) -> Vec<String> {
    let world = json!({"clusters": [{"name": "east", "server": "https://east.example"}]});
    let generated = generate(&world, set);
    assert_eq!(generated.failure, None);
    let apps = generated.applications.iter();
    apps.map(|app| app.metadata.annotations["title"].clone())
        .collect()
}

/// Of `fix {{.Values.x}}`.
const SHA256: &str = "06ed2dd2043302ab33c8fcec9fc9cd026f4dc5e67674e5ba30ddd7bbaf568a31";

/// What anybody may write into the title of a pull request.
const HOSTILE: [&str; 5] = [
    "fix {{.Values.x}}",
    r#"{{ fail "x" }}"#,
    "{{{server}}}",
    "{{server}} {{ .server }}",
    "an opening {{ without its end",
];

fn matrix(first: &Value, second: &Value) -> Value {
    json!({"matrix": {"generators": [first, second]}})
}

#[test]
fn parameters_of_one_generator_are_no_template_in_another() {
    for go in [true, false] {
        let parameter = if go { "{{.title}}" } else { "{{title}}" };
        let shown = if go {
            "{{.values.title}}"
        } else {
            "{{values.title}}"
        };
        for hostile in HOSTILE {
            let list = json!({"list": {"elements": [{"title": hostile}]}});
            let clusters =
                json!({"clusters": {"selector": registered(), "values": {"title": parameter}}});
            let one = json!({"list": {"elements": [{"k": "v"}]}});
            for generator in [
                matrix(&list, &clusters),
                // The second is a matrix, which fills its own second once more.
                matrix(&list, &matrix(&one, &clusters)),
                matrix(&list, &matrix(&clusters, &one)),
                matrix(
                    &list,
                    &json!({"merge": {"mergeKeys": ["name"], "generators": [clusters, clusters]}}),
                ),
            ] {
                let made = titles(&set(go, &json!([generator]), shown));
                assert_eq!(made, [hostile], "{generator}");
            }
        }
    }
}

/// A brace at the end of one parameter and one at the beginning of the next.
#[test]
fn parameters_beside_each_other_are_no_template() {
    for (go, text, shown) in [
        (true, "{{.a}}{{.b}}", "{{.values.title}}"),
        (true, "{{.m.a}}{{.b}}", "{{.values.title}}"),
        (true, "{{upper .a}}{{lower .b}}", "{{.values.title}}"),
        (true, "{ {{- .b}}", "{{.values.title}}"),
        (true, "{ {{- .m.b}}", "{{.values.title}}"),
        (true, "{ {{- index .l 0}}", "{{.values.title}}"),
        (true, "{{range .l}}{ {{- .}}{{end}}", "{{.values.title}}"),
        (
            true,
            r#"{{ list "{" .m.b | join "" }}"#,
            "{{.values.title}}",
        ),
        (
            true,
            r#"{{ join "{" (list "" .m.b) }}"#,
            "{{.values.title}}",
        ),
        (
            true,
            r#"{{ join .m.b (list "{" "") }}"#,
            "{{.values.title}}",
        ),
        (
            true,
            r#"{{ print (list) "{" .m.b | trimPrefix "[]" }}"#,
            "{{.values.title}}",
        ),
        (true, r#"{{ html "{" .m.b }}"#, "{{.values.title}}"),
        (false, "{{a}}{{b}}", "{{values.title}}"),
    ] {
        let b = if go { "{.nobody}}" } else { "{server}}" };
        let values = json!({"title": text});
        let clusters = json!({"clusters": {"selector": registered(), "values": values}});
        // Without Go templates, parameters are texts.
        let element = match go {
            true => json!({"a": "{", "b": b, "m": {"a": "{", "b": b}, "l": [b]}),
            false => json!({"a": "{", "b": b}),
        };
        let list = json!({"list": {"elements": [element]}});
        let made = titles(&set(go, &json!([matrix(&list, &clusters)]), shown));
        assert_eq!(made, [format!("{{{b}")], "{text}");
    }
}

/// Functions see a text as it is, and what they make of it is no template either.
#[test]
fn functions_see_parameters_as_they_are() {
    let title = "fix {{.Values.x}}";
    let cases = [
        ("{{ len .title }}", "17"),
        ("{{ sha256sum .title }}", SHA256),
        ("{{ .title | upper }}", "FIX {{.VALUES.X}}"),
        ("{{ trunc -7 .title }}", "ues.x}}"),
        ("{{ substr 4 6 .title }}", "{{"),
        ("{{ quote .title }}", r#""fix {{.Values.x}}""#),
        ("{{ printf \"%q\" .title }}", r#""fix {{.Values.x}}""#),
        ("{{ b64enc .title | b64dec }}", title),
        ("{{ eq .title \"fix {{.Values.x}}\" }}", "true"),
        ("{{ hasPrefix \"fix {{\" .title }}", "true"),
        ("{{ replace \"fix\" \"see\" .title }}", "see {{.Values.x}}"),
        ("{{ get .texts .title }}", "found"),
        ("{{ (dict \"a\" .title).a }}", title),
        (
            "{{ $d := dict }}{{ $_ := set $d \"a\" .title }}{{ $d.a }}",
            title,
        ),
        ("{{ list .title | first }}", title),
        ("{{ default \"x\" .title }}", title),
        ("{{ nospace .apart }}", "{{fail}}"),
        ("{{ b64dec .encoded }}", "{{fail}}"),
        ("{{ (fromJson .escaped).a }}", "{{fail}}"),
        (
            "{{ range $k, $v := fromJson .json }}{{ $k }}={{ $v }}{{ end }}",
            "{{k}}={{v}}",
        ),
        ("{{ toJson .texts }}", r#"{"fix {{.Values.x}}":"found"}"#),
        // Texts in maps have no mark at their beginning.
        ("{{ (fromJson .m.escaped).a }}", "{{fail}}"),
        ("{{ nospace .m.apart }}", "{{fail}}"),
        ("{{ replace \" \" \"\" .m.apart }}", "{{fail}}"),
        ("{{ trunc 1 .m.one }}{{ .m.one }}", "{{fail}}"),
        ("{{ printf \"{%s}\" .m.one }}", "{{fail}}}"),
        ("{{ print \"{\" .m.one }}", "{{fail}}"),
        ("{{ cat \"{\" .m.one | nospace }}", "{{fail}}"),
    ];
    let element = json!({
        "title": title, "texts": {title: "found"}, "json": r#"{"{{k}}": "{{v}}"}"#,
        "m": {"escaped": r#"{"a": "\u007b{fail}}"}"#, "apart": "{ {fail} }", "one": "{fail}}"},
        "apart": "{ {fail} }", "encoded": "e3tmYWlsfX0=", "escaped": r#"{"a": "\u007b{fail}}"}"#,
    });
    let list = json!({"list": {"elements": [element]}});
    for (text, wanted) in cases {
        // It is rendered twice: with the parameters of the list, and with those of the clusters.
        let values = json!({"title": text});
        let clusters = json!({"clusters": {"selector": registered(), "values": values}});
        let generator = matrix(&list, &clusters);
        let made = titles(&set(true, &json!([generator]), "{{.values.title}}"));
        assert_eq!(made, [wanted], "{text}");
    }
}

/// Whether a parameter is missing is no matter of what an error says.
#[test]
fn an_error_that_reads_like_a_missing_key_is_an_error() {
    let list = json!({"list": {"elements": [{"k": "v"}]}});
    let values = json!({"title": "{{ fail \"map has no entry for key\" }}"});
    let clusters = json!({"clusters": {"selector": registered(), "values": values}});
    let generator = matrix(&list, &clusters);
    let message = failure(&set(true, &json!([generator]), "{{.values.title}}"));
    let wanted = "failed to replace parameters in generator";
    assert!(message.contains(wanted), "{message}");
}

/// What the author of a set wrote may print a template for the second generator.
#[test]
fn a_template_may_print_a_template() {
    let list = json!({"list": {"elements": [{"k": "server"}]}});
    for text in [
        r#"{{ "{{" }}.{{.k}}{{ "}}" }}"#,
        r#"{{ join "" (list "{{." .k "}}") }}"#,
        r#"{{ join "" (list "{" "{" "." .k "}}") }}"#,
        r#"{{ join "." (list "{{" .k) }}{{ "}}" }}"#,
        r#"{{ print (list "{{." .k "}}") | trimAll "[]" | nospace }}"#,
    ] {
        let values = json!({"title": text});
        let generator = matrix(
            &list,
            &json!({"clusters": {"selector": registered(), "values": values}}),
        );
        let made = titles(&set(true, &json!([generator]), "{{.values.title}}"));
        assert_eq!(made, ["https://east.example"], "{text}");
    }
}

/// Without further arguments a slug has at most 50 characters and ends with a word.
#[test]
fn slugs_end_with_a_word() {
    let long = "this-is-a-very-long-branch-name-which-is-longer-than-fifty";
    let list = json!([{"list": {"elements": [{"long": long}]}}]);
    for (text, wanted) in [
        (
            "{{slugify .long}}",
            "this-is-a-very-long-branch-name-which-is-longer",
        ),
        ("{{slugify 10 .long}}", "this-is-a"),
        ("{{slugify 12 true .long}}", "this-is-a"),
        ("{{slugify 12 false .long}}", "this-is-a-ve"),
        ("{{slugify 0 .long}}", long),
        ("{{slugify -1 .long}}", long),
        ("{{slugify}}", ""),
    ] {
        assert_eq!(titles(&set(true, &list, text)), [wanted], "{text}");
    }
}

/// The label that makes a Secret a cluster cannot be used to choose others.
#[test]
fn clusters_are_chosen_among_clusters() {
    let labels = json!({"argocd.argoproj.io/secret-type": "repository"});
    let clusters = json!([{"clusters": {"selector": {"matchLabels": labels}}}]);
    assert_eq!(titles(&set(true, &clusters, "{{.name}}")), ["east"]);
}

/// Members called `values` deep in a list's element are texts and numbers like others.
#[test]
fn only_values_of_generators_are_kept_for_later() {
    let first = json!({"list": {"elements": [{"k": "v"}]}});
    let second = json!({"list": {"elements": [{"x": {"values": {"n": 7, "t": "{{.k}}"}}}]}});
    let shown = "{{.x.values.n}} {{.x.values.t}}";
    let made = titles(&set(true, &json!([matrix(&first, &second)]), shown));
    assert_eq!(made, ["7 v"]);
}

/// Argo CD refuses more than two. Each is filled with the parameters of those before it.
#[test]
fn a_matrix_may_have_more_than_two_generators() {
    let list = |key: &str, values: &[&str]| {
        let elements: Vec<Value> = values.iter().map(|value| json!({key: value})).collect();
        json!({"list": {"elements": elements}})
    };
    let third = json!({"list": {"elements": [{"c": "{{.a}}-{{.b}}"}]}});
    let matrix =
        json!({"matrix": {"generators": [list("a", &["1", "2"]), list("b", &["x", "y"]), third]}});
    assert_eq!(
        titles(&set(true, &json!([matrix]), "{{.c}} {{.a}}")),
        ["1-x 1", "1-y 1", "2-x 2", "2-y 2"]
    );
    let wrong = json!({"list": {"elements": [{"c": "{{.nothing}}"}]}});
    let matrix = json!({"matrix": {"generators": [list("a", &["1"]), list("b", &["x"]), wrong]}});
    let message = failure(&set(true, &json!([matrix]), "x"));
    assert!(
        message.starts_with("failed to get params for generator 3 of 3 in the matrix generator: "),
        "{message}"
    );
}

/// A generator without templates answers the same beside each element; what a template changes of
/// one is not seen by the others.
#[test]
fn the_same_answers_of_a_generator_are_not_shared() {
    let first = json!({"list": {"elements": [{}, {"a": "1"}, {"a": "2"}]}});
    let second = json!({"list": {"elements": [{"m": {"k": "v"}, "x": null}]}});
    let title = r#"{{ hasKey . "x" }} {{ set .m "got" (get . "a") }}"#;
    let set = set(true, &json!([matrix(&first, &second)]), title);
    // Members with null vanish where parameters are filled in.
    let wanted = [
        "true map[got: k:v]",
        "false map[got:1 k:v]",
        "false map[got:2 k:v]",
    ];
    assert_eq!(titles(&set), wanted);
}

fn failure(set: &ApplicationSet) -> String {
    let world = json!({"clusters": [{"name": "east", "server": "https://east.example"}]});
    let failure = generate(&world, set).failure.expect("a failure");
    failure.to_string()
}

#[test]
fn an_error_names_the_generator_the_element_and_the_field() {
    let list = |elements: Value| json!({"list": {"elements": elements}});
    let elements = json!([{"title": "a"}, {"t": "b"}, {"title": "c"}]);
    let generators = json!([list(json!([{"title": "z"}])), list(elements.clone())]);
    let message = failure(&set(true, &generators, "{{.title}}"));
    assert!(
        message.starts_with("failed to execute go template {{.title}}: "),
        "{message}"
    );
    let place = "(in metadata.annotations.title of the template for element 2 of 3 of generators[1] (list))";
    assert!(message.ends_with(place), "{message}");

    let clusters = json!({"clusters": {"selector": {"matchLabels": {"a": "{{ .title }}"}}}});
    let generators = json!([matrix(&list(elements), &clusters)]);
    let message = failure(&set(true, &generators, "x"));
    assert!(
        message.contains("(in clusters.selector.matchLabels.a of the second generator with element 2 before it of generators[0] (matrix))"),
        "{message}"
    );

    let clusters = json!({"clusters": {"values": {"v": "{{ .nothing }}"}}});
    let message = failure(&set(true, &json!([clusters]), "x"));
    assert!(
        message.contains(
            "error appending templated values for cluster: failed to replace templated string: \
             failed to replace templated string with rendered values: failed to execute go \
             template {{ .nothing }}: "
        ) && message.ends_with("(in values.v of generators[0] (clusters))"),
        "{message}"
    );
}

/// The numbers are those of the genuine controller, as its API server keeps them.
#[test]
fn integers_of_values_are_those_of_float64() {
    let values = json!({
        "a": 9_007_199_254_740_993_i64, "b": 9_007_199_254_740_992_i64, "c": i64::MAX,
        "d": -9_007_199_254_740_993_i64, "e": 1.5, "f": 10_000_000, "g": 1e21,
        "l": [123_456_789_012_345_678_i64, {"x": 1_152_921_504_606_846_977_i64}],
        "one": 1.0, "s": "9007199254740993", "u": u64::MAX,
    });
    let rounded = json!({
        "a": 9_007_199_254_740_992_i64, "b": 9_007_199_254_740_992_i64,
        "c": 9_223_372_036_854_776_000_u64, "d": -9_007_199_254_740_992_i64, "e": 1.5,
        "f": 10_000_000, "g": 1e21,
        "l": [123_456_789_012_345_680_i64, {"x": 1_152_921_504_606_847_000_i64}],
        "one": 1, "s": "9007199254740993",
        // Go writes it as 18446744073709552000, which is no integer of 64 bits.
        "u": 2_f64.powi(64),
    });
    let patch = "spec: {source: {helm: {valuesObject: {a: 9007199254740993}}}}";
    for (element, patch, wanted) in [
        (json!({"k": "v"}), None, rounded.clone()),
        // Nothing is rendered without parameters.
        (json!({}), None, values.clone()),
        // A patch is decoded with exact integers.
        (json!({"k": "v"}), Some(patch), {
            let mut wanted = rounded;
            wanted["a"] = json!(9_007_199_254_740_993_i64);
            wanted
        }),
    ] {
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"name": "s", "namespace": "argocd"},
            "spec": {
                "goTemplate": true,
                "generators": [{"list": {"elements": [element]}}],
                "template": {
                    "metadata": {"name": "app"},
                    "spec": {
                        "project": "default",
                        "source": {
                            "repoURL": "https://example.com/r", "path": "x",
                            "helm": {"valuesObject": values},
                        },
                        "destination": {"name": "in-cluster", "namespace": "n"},
                    },
                },
                "templatePatch": patch,
            },
        }))
        .expect("an ApplicationSet");
        let generated = generate(&json!({}), &set);
        assert_eq!(generated.failure, None);
        let app = serde_json::to_value(&generated.applications[0]).expect("JSON");
        let made = &app["spec"]["source"]["helm"]["valuesObject"];
        assert_eq!(made, &wanted, "{element} {patch:?}");
    }
}

#[test]
fn combinations_of_long_values_are_refused_before_they_are_made() {
    let long = json!({"list": {"elements": [{"long": "x".repeat(1 << 20)}]}});
    let many = |count: usize| {
        let element = |number: usize| json!({"n": number.to_string()});
        json!({"list": {"elements": (0..count).map(element).collect::<Vec<_>>()}})
    };
    for go in [true, false] {
        let message = failure(&set(go, &json!([matrix(&long, &many(1000))]), "x"));
        assert!(
            message.contains("the parameters and texts of the Applications take more than 512 MiB"),
            "{message}"
        );
        let few = set(go, &json!([matrix(&long, &many(3))]), "x");
        assert_eq!(titles(&few).len(), 3);
    }
}
