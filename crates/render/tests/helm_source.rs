//! Applications with charts: values in Argo CD's order, compared with `helm template`; errors with
//! Argo CD's messages.
//!
//! `baseline/helm_source.json` contains the output or error of the Helm version that it names,
//! called as Argo CD calls it for each case: `helm template . --name-template shop --namespace prod
//! --kube-version 1.36.3 [--values FILE] [--set A=B] --api-versions … --include-crds`. `cargo xtask
//! baseline source` makes it from `generate/source/cases.json`.

use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::source::ApplicationSource;
use tiphys_gocompat::{sprig, yaml};
use tiphys_render::{
    AppFacts, Budget, Charts, ClusterFacts, MemoryFiles, RenderError, RenderParams, Rendered,
    SourceKind, SourceSet, prepare,
};

struct Plain;

impl Charts for Plain {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        let now = jiff::Timestamp::UNIX_EPOCH;
        Arc::new(move || sprig::Sources {
            random: Box::new(|bytes| bytes.fill(4)),
            now,
            zone: || jiff::tz::TimeZone::UTC,
        })
    }
}

fn baseline() -> (MemoryFiles, Vec<Value>) {
    let all: Value = serde_json::from_str(include_str!("baseline/helm_source.json")).expect("JSON");
    let files = all["files"].as_object().expect("files");
    let files = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str().expect("text")));
    (
        MemoryFiles::new(files),
        all["cases"].as_array().expect("cases").clone(),
    )
}

fn params(helm: &Value) -> RenderParams {
    let source =
        serde_json::json!({"repoURL": "https://example.com/r", "path": "app", "helm": helm});
    RenderParams {
        source: serde_json::from_value(source).expect("a source"),
        folder: None,
        app: AppFacts {
            name: "elsewhere_shop".into(),
            namespace: "prod".into(),
            project: "p".into(),
            revision: "0123456789012345678901234567890123456789".into(),
        },
        cluster_facts: ClusterFacts {
            kube_version: "v1.36.3+k3s1".into(),
            api_versions: vec!["apps/v1".to_owned(), "apps/v1/Deployment".to_owned()].into(),
            value_file_schemes: vec!["https".into()],
            kustomize_build_options: String::new(),
            switched_off: Vec::new(),
        },
    }
}

fn render(sources: &SourceSet<'_>, params: &RenderParams) -> Result<Rendered, RenderError> {
    tiphys_render::render(
        sources,
        &prepare(sources, params)?,
        &Plain,
        &Budget::default(),
    )
}

#[test]
fn charts_are_rendered_as_helm_does_when_argo_cd_calls_it() {
    let (files, cases) = baseline();
    for case in cases {
        let name = case["name"].as_str().expect("a name");
        let mut params = params(&case["helm"]);
        if name == "the build environment" {
            // The instance name is filled in; outside the control plane's namespace it includes the
            // Application's namespace.
            params.app.name = "shop".into();
        }
        let made = render(&SourceSet::new(&files), &params);
        match case["prints"].as_str() {
            Some(printed) => {
                let made = made.unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(
                    (made.errors, made.kind),
                    (vec![], SourceKind::Helm),
                    "{name}"
                );
                let made: Vec<Value> = made.objects.into_iter().map(|o| o.into_value()).collect();
                let printed =
                    yaml::parse_documents(printed, &yaml::Limits::default()).expect("YAML");
                let printed: Vec<Value> = printed
                    .into_iter()
                    .map(|d| d.value)
                    .filter(|v| !v.is_null())
                    .collect();
                assert_eq!(made, printed, "{name}");
            }
            None => {
                let said = case["fails"]
                    .as_str()
                    .expect("an error")
                    .strip_prefix("Error: ")
                    .expect("Helm says so");
                // Helm names files as they were passed to it, we from the root of the repository.
                let want = format!(
                    "failed to execute helm template command: Error: {}",
                    said.replace("open ", "open app/")
                );
                assert_eq!(made.expect_err(name).to_string(), want, "{name}");
            }
        }
    }
}

#[test]
fn values_of_other_sources_are_read() {
    let (files, _) = baseline();
    let other = MemoryFiles::new([
        ("web/values.yaml", "replicas: 42\n"),
        ("web/note.txt", "from afar"),
    ]);
    let mut sources = SourceSet::new(&files);
    sources.refs.insert("vals".to_owned(), &other);
    sources.several = true;
    let helm = serde_json::json!({"valueFiles": ["values-prod.yaml", "$vals/web/values.yaml"],
        "fileParameters": [{"name": "note", "path": "$vals/web/note.txt"}], "skipCrds": true, "skipTests": true});
    let made = render(&sources, &params(&helm)).expect("rendered");
    let values = made.objects[0].str_at("/data/values").to_owned();
    assert!(
        values.contains("\"replicas\":42")
            && values.contains("\"note\":\"from afar\"")
            && values.contains("\"tag\":\"prod\""),
        "{values}"
    );
    sources.refs.clear();
    let error = render(&sources, &params(&helm)).expect_err("nobody has the name");
    assert_eq!(
        error.to_string(),
        "source referenced \"$vals\", but no source has a 'ref' field defined"
    );
}

/// R58: values of files in their order, then those of the source, then parameters, those that are
/// texts, and those of files; wherever they are written.
#[test]
fn later_kinds_of_values_win() {
    let files = MemoryFiles::new([
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        ("app/values.yaml", "a: default\n"),
        ("app/one.yaml", "a: one\n"),
        ("app/two.yaml", "a: two\n"),
        ("app/six.txt", "six"),
        (
            "app/templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: {{ .Values.a | quote }}}\n",
        ),
    ]);
    let sources = SourceSet::new(&files);
    let mut helm = serde_json::json!({});
    let plain = serde_json::json!({"name": "a", "value": "four"});
    let text = serde_json::json!({"name": "a", "value": "five", "forceString": true});
    for (field, value, want) in [
        ("releaseName", "shop".into(), "default"),
        ("valueFiles", vec!["one.yaml"].into(), "one"),
        ("valueFiles", vec!["one.yaml", "two.yaml"].into(), "two"),
        ("valueFiles", vec!["two.yaml", "one.yaml"].into(), "one"),
        ("values", "a: three".into(), "three"),
        ("parameters", vec![plain.clone()].into(), "four"),
        ("parameters", vec![text, plain].into(), "five"),
        (
            "fileParameters",
            serde_json::json!([{"name": "a", "path": "six.txt"}]),
            "six",
        ),
    ] {
        helm[field] = value;
        let made = render(&sources, &params(&helm)).expect("rendered");
        assert_eq!(made.objects[0].str_at("/data/a"), want, "{helm}");
    }
}

#[test]
fn what_cannot_be_rendered_is_named() {
    let chart = |more: &[(&str, &str)]| {
        let mut files = BTreeMap::from([(
            "app/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        )]);
        files.extend(more.iter().copied());
        MemoryFiles::new(files)
    };
    let depending = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: db, version: 1.x.x, repository: https://example.com}\n";
    let command = "failed to execute helm template command: Error:";
    let helm = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    for (files, options, want) in [
        (
            chart(&[("app/Chart.yaml", depending)]),
            "{}",
            "chart db 1.x.x of https://example.com cannot be fetched here".into(),
        ),
        (
            chart(&[("app/templates/a.yaml", "{{ fail \"no way\" }}")]),
            "{}",
            format!("{command} execution error at (web/templates/a.yaml:1:3): no way"),
        ),
        (
            chart(&[]),
            "{\"version\": \"v2\"}",
            "error initializing helm app object: failed to create new helm command: helm version 'v2' is not supported".into(),
        ),
        (chart(&[]), "{\"kubeVersion\": \"one\"}", "could not parse kubernetes version one: could not parse \"one\" as version".into()),
        (
            chart(&[]),
            "{\"releaseName\": \"Not_Good\"}",
            format!(
                "{command} release name check failed: release name \"Not_Good\": invalid release name, must match regex \
                 ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
            ),
        ),
        (
            chart(&[]),
            "{\"fileParameters\": [{\"name\": \"a\", \"path\": \"../../x\"}]}",
            "error resolving helm value file path: file '../../x' resolved to outside repository root".into(),
        ),
        (
            chart(&[]),
            "{\"fileParameters\": [{\"name\": \"a\", \"path\": \"none\"}]}",
            format!("{command} failed parsing --set-file data: open app/none: no such file or directory"),
        ),
    ] {
        assert_eq!(render(&SourceSet::new(&files), &params(&helm(options))).expect_err(&want).to_string(), want);
    }
    let broken = chart(&[
        ("app/templates/a.yaml", "a: 1\n---\nkind: B\n"),
        (
            "app/templates/b.yaml",
            "apiVersion: v1\nkind: A\nmetadata: {name: x}",
        ),
    ]);
    let made = render(&SourceSet::new(&broken), &params(&Value::Null)).expect("the rest is there");
    assert_eq!(made.objects.len(), 1);
    let errors: Vec<String> = made.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors
            .iter()
            .all(|e| e.starts_with("Failed to unmarshal \"web/templates/a.yaml\": ")),
        "{errors:?}"
    );
}

#[test]
fn a_chart_is_found_by_its_file() {
    let files = MemoryFiles::new([
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        ("app/.argocd-source-shop.yaml", "helm: {releaseName: x}"),
    ]);
    let sources = SourceSet::new(&files);
    let mut params = params(&Value::Null);
    params.source = ApplicationSource {
        path: "app".into(),
        ..Default::default()
    };
    assert_eq!(
        prepare(&sources, &params).expect("prepared").tool.kind(),
        SourceKind::Helm
    );
    params.app.name = "shop".into();
    let tiphys_render::Tool::Helm(options) = prepare(&sources, &params).expect("prepared").tool
    else {
        panic!("a chart")
    };
    assert_eq!(
        (options.release.as_str(), options.namespace.as_str()),
        ("x", "prod"),
        "its own file is read"
    );
}
