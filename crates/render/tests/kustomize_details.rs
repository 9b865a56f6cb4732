//! Details of Kustomize 5.8.1 that random builds found. The values are those of the real one.

use crate::kustomize::built;
use tiphys_render::MemoryFiles;

fn build_of(kustomization: &str, objects: &str) -> Result<String, String> {
    let files = [
        ("app/kustomization.yaml", kustomization),
        ("app/a.yaml", objects),
    ];
    built(&MemoryFiles::new(files), "app", &[]).map_err(|e| e.to_string())
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n";

#[test]
fn a_value_takes_the_quotes_of_the_one_it_replaces() {
    let objects = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: "3"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  quoted: "a"
  block: |
    b
  tagged: !!int "1"
  plain: c
  text: 'd'
"#;
    let kustomization = "\
resources: [a.yaml]
replicas: [{name: d, count: 4}]
patches:
- patch: |-
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c}
    data:
      quoted: 0x1f
      block: 1e3
      tagged: 12
      plain: 0x1f
      text: 2001-01-01
";
    let want = r#"apiVersion: v1
data:
  block: "1e3"
  plain: 31
  quoted: "0x1f"
  tagged: 12
  text: "2001-01-01"
kind: ConfigMap
metadata:
  name: c
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  replicas: "4"
"#;
    assert_eq!(build_of(kustomization, objects).as_deref(), Ok(want));
}

#[test]
fn an_object_that_lost_its_kind_or_name_is_refused() {
    for (operation, why) in [
        (
            "{op: replace, path: /kind, value: null}",
            "missing kind in object ",
        ),
        (
            "{op: copy, path: /metadata/name, from: /data}",
            "missing metadata.name in object ",
        ),
    ] {
        let kustomization = format!(
            "resources: [a.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n    - \
             {operation}\n"
        );
        let error = build_of(&kustomization, CONFIG).expect_err(operation);
        assert!(error.contains(why), "{error}");
    }
    let error = build_of("resources: [a.yaml]\n", "kind: null\nmetadata: {name: a}\n");
    let error = error.expect_err("no kind");
    assert!(error.contains("missing kind in object "), "{error}");
}

#[test]
fn messages_say_where_vars_and_plugins_failed() {
    let twice = "\
resources: [a.yaml]
vars:
- {name: X, objref: {kind: ConfigMap, name: c, apiVersion: v1}}
- {name: X, objref: {kind: Deployment, name: d, group: apps, version: v1}, fieldref: {fieldpath: spec.x}}
";
    let error = build_of(twice, CONFIG).expect_err("a var occurs twice");
    let shown = "merging vars [{X ConfigMap.[noVer].[noGrp] {}} {X Deployment.v1.apps {spec.x}}]: \
                 var 'X' already encountered";
    assert!(error.contains(shown), "{error}");
    let unknown = "\
resources: [a.yaml]
transformers:
- |-
  apiVersion: builtin
  kind: NopeTransformer
  metadata: {name: x}
";
    let error = build_of(unknown, CONFIG).expect_err("no such plugin");
    assert!(
        error.ends_with("unable to load builtin NopeTransformer.builtin.[noGrp]"),
        "{error}"
    );
}

#[test]
fn a_release_has_a_name_or_a_template_of_one() {
    let build = |names: &str| {
        let kustomization = format!("helmCharts: [{{name: c, {names}}}]\n");
        let files = [
            ("app/kustomization.yaml", kustomization.as_str()),
            (
                "app/charts/c/Chart.yaml",
                "apiVersion: v2\nname: c\nversion: 1.0.0\n",
            ),
            ("app/charts/c/values.yaml", ""),
            (
                "app/charts/c/templates/t.yaml",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ .Release.Name }}\"}\n",
            ),
        ];
        built(&MemoryFiles::new(files), "app", &["--enable-helm"]).map_err(|e| e.to_string())
    };
    for (names, name) in [("nameTemplate: t", "t"), ("releaseName: r", "r")] {
        let text = build(names).expect(names);
        assert!(
            text.ends_with(&format!("metadata:\n  name: {name}\n")),
            "{text}"
        );
    }
    let error = build("releaseName: r, nameTemplate: t").expect_err("both");
    assert!(
        error.contains("cannot set --name-template and also specify a name"),
        "{error}"
    );
}
