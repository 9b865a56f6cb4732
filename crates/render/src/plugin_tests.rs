//! What a source asks plugins for, and what becomes of their answers.

use super::*;
use crate::{
    AppFacts, Charts, ClusterFacts, Details, FileError, MemoryFiles, details, prepare,
    render as render_source,
};
use tiphys_gocompat::sprig;

struct NoCharts;

impl Charts for NoCharts {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        unreachable!("no chart is rendered")
    }
}

fn params(source: Value) -> RenderParams {
    RenderParams {
        source: serde_json::from_value(source).expect("a source"),
        app: AppFacts {
            name: "web".into(),
            namespace: "shop".into(),
            project: "p".into(),
            revision: "0123456789abcdef".into(),
        },
        cluster_facts: ClusterFacts {
            kube_version: "v1.36.3-gke.1".into(),
            api_versions: ["apps/v1".to_owned(), "v1".to_owned()].into(),
            ..ClusterFacts::default()
        },
        ..RenderParams::default()
    }
}

type Answers = BTreeMap<PluginQuestion, Arc<PluginAnswer>>;

/// Renders until nothing more is needed, and says what was asked.
fn rendered(
    files: &MemoryFiles,
    params: &RenderParams,
    answer: impl Fn(&PluginQuestion) -> PluginAnswer,
) -> (Vec<PluginQuestion>, Result<Rendered, RenderError>) {
    until_known(files, answer, |sources| {
        let prepared = prepare(sources, params)?;
        render_source(sources, &prepared, &NoCharts, &Budget::default())
    })
}

fn until_known<T>(
    files: &MemoryFiles,
    answer: impl Fn(&PluginQuestion) -> PluginAnswer,
    work: impl Fn(&SourceSet<'_>) -> Result<T, RenderError>,
) -> (Vec<PluginQuestion>, Result<T, RenderError>) {
    let (mut asked, mut answers) = (Vec::new(), Answers::new());
    loop {
        let sources = SourceSet {
            plugins: Plugins {
                is_open: true,
                is_any: true,
                answers: Some(&answers),
            },
            ..SourceSet::new(files)
        };
        let needed = match work(&sources) {
            Err(RenderError::Need(needed)) => needed,
            outcome => return (asked, outcome),
        };
        for needed in needed {
            let SourceRef::Plugin(question) = needed else {
                unreachable!("nothing else is needed: {needed}")
            };
            let earlier = answers.insert((*question).clone(), Arc::new(answer(&question)));
            assert_eq!(earlier, None, "asked twice: {question:?}");
            asked.push(*question);
        }
    }
}

fn generated(manifests: &[&str]) -> PluginAnswer {
    PluginAnswer::Generated {
        manifests: manifests.iter().map(|m| (*m).to_owned()).collect(),
        digest: [0; 32],
    }
}

const CONFIG: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;

#[test]
fn the_variables_are_argo_cds() {
    let source = serde_json::json!({
        "repoURL": "https://h/r", "path": "./app", "targetRevision": "main",
        "plugin": {
            "name": "p",
            "env": [
                {"name": "FOO", "value": "$ARGOCD_APP_NAME on $KUBE_VERSION costs $$5"},
                {"name": "EMPTY", "value": ""},
                {"name": "UNKNOWN", "value": "<$HOME>"},
            ],
            "parameters": [
                {"name": "values-files", "array": ["a.yaml", "b&c"]},
                {"name": "helm.ß", "map": {"image.tag": "1", "x-y": "2"}},
                {"name": "one", "string": "two"},
                {"name": "nothing"},
            ],
        },
    });
    let files = MemoryFiles::new([("app/a.yaml", "")]);
    let (asked, outcome) = rendered(&files, &params(source), |_| generated(&[]));
    outcome.expect("nothing is fine");
    let question = &asked[0];
    assert_eq!(
        (question.plugin.as_str(), question.folder.as_str()),
        ("p", "app")
    );
    let lines: Vec<String> = question
        .env
        .iter()
        .map(|(n, v)| format!("{n}={v}"))
        .collect();
    assert_eq!(
        lines,
        [
            "ARGOCD_APP_NAME=web",
            "ARGOCD_APP_NAMESPACE=shop",
            "ARGOCD_APP_PROJECT_NAME=p",
            "ARGOCD_APP_REVISION=0123456789abcdef",
            "ARGOCD_APP_REVISION_SHORT=0123456",
            "ARGOCD_APP_REVISION_SHORT_8=01234567",
            "ARGOCD_APP_SOURCE_PATH=./app",
            "ARGOCD_APP_SOURCE_REPO_URL=https://h/r",
            "ARGOCD_APP_SOURCE_TARGET_REVISION=main",
            "KUBE_API_VERSIONS=apps/v1,v1",
            "KUBE_VERSION=1.36.3",
            "ARGOCD_ENV_FOO=web on 1.36.3 costs $5",
            "ARGOCD_ENV_EMPTY=",
            "ARGOCD_ENV_UNKNOWN=<>",
            "ARGOCD_APP_PARAMETERS=[{\"array\":[\"a.yaml\",\"b\\u0026c\"],\"name\":\"values-files\"},\
             {\"map\":{\"image.tag\":\"1\",\"x-y\":\"2\"},\"name\":\"helm.ß\"},\
             {\"name\":\"one\",\"string\":\"two\"},{\"name\":\"nothing\"}]",
            "PARAM_VALUES_FILES_0=a.yaml",
            "PARAM_VALUES_FILES_1=b&c",
            "PARAM_HELM___IMAGE_TAG=1",
            "PARAM_HELM___X_Y=2",
            "PARAM_ONE=two",
        ]
    );
}

/// What is asked for a source, and what type it has in the end.
#[test]
fn only_sources_without_a_type_are_offered_to_plugins() {
    let with = |block: &str, value: Value| serde_json::json!({"path": "app", block: value});
    let plain = serde_json::json!({"path": "app"});
    let chart = (
        "app/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    );
    let kustomization = ("app/kustomization.yaml", "");
    for (source, file, answer, want) in [
        (&plain, chart, Some("p"), "Detect; Generate p; Plugin"),
        (
            &plain,
            kustomization,
            Some("p-v1"),
            "Detect; Generate p-v1; Plugin",
        ),
        (&plain, ("app/a.yaml", ""), None, "Detect; Directory"),
        (
            &with("directory", serde_json::json!({"recurse": true})),
            chart,
            Some("p"),
            "Directory",
        ),
        (
            &with("plugin", serde_json::json!({"name": "q"})),
            chart,
            None,
            "Generate q; Plugin",
        ),
        (
            &with("plugin", serde_json::json!({})),
            chart,
            None,
            "Generate ; Plugin",
        ),
    ] {
        let files = MemoryFiles::new([file]);
        let (asked, outcome) = rendered(&files, &params(source.clone()), |question| match question
            .task
        {
            PluginTask::Detect => PluginAnswer::Detected(answer.map(str::to_owned)),
            _ => generated(&[CONFIG]),
        });
        let mut told: Vec<String> = asked
            .iter()
            .map(|question| match question.task {
                PluginTask::Detect => "Detect".to_owned(),
                task => format!("{task:?} {}", question.plugin),
            })
            .collect();
        told.push(outcome.expect("it renders").kind.to_string());
        assert_eq!(told.join("; "), want, "{source}");
    }
}

#[test]
fn all_of_the_output_counts_or_nothing() {
    let source = serde_json::json!({"path": "app", "plugin": {"name": "p"}});
    let files = MemoryFiles::new([("app/a.yaml", "")]);
    let of = |manifests: &[&str]| {
        let (_, outcome) = rendered(&files, &params(source.clone()), |_| generated(manifests));
        outcome.map(|rendered| {
            assert_eq!(rendered.errors, []);
            let names = rendered
                .objects
                .iter()
                .map(|object| object.name().to_owned());
            names.collect::<Vec<_>>().join(",")
        })
    };
    let failed = "CMP processing failed for application \"web\": failed to convert CMP manifests to unstructured objects: ";
    let list = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}"#;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n";
    assert_eq!(of(&[]), Ok(String::new()));
    assert_eq!(of(&[CONFIG, list, yaml]), Ok("a,b,c,d".to_owned()));
    for broken in [
        "{\"kind\": \"ConfigMap\"",
        "a: b",
        "just text",
        "{\"a\": 1}",
    ] {
        let e = of(&[CONFIG, broken]).expect_err("refused").to_string();
        assert!(e.starts_with(failed), "{broken}: {e}");
    }
}

#[test]
fn parameters_are_told() {
    let source = serde_json::json!({"path": "app", "plugin": {"name": "p"}});
    let files = MemoryFiles::new([("app/a.yaml", "")]);
    let announced = vec![ParameterAnnouncement {
        name: "a".into(),
        ..ParameterAnnouncement::default()
    }];
    let (asked, outcome) = until_known(
        &files,
        |_| PluginAnswer::Announced(announced.clone()),
        |sources| {
            details(
                sources,
                &params(source.clone()),
                &NoCharts,
                &Budget::default(),
            )
        },
    );
    assert_eq!(asked[0].task, PluginTask::Announce);
    assert_eq!(
        outcome,
        Ok(Details {
            kind: SourceKind::Plugin,
            parameters: announced,
            ..Details::default()
        })
    );
}

#[test]
fn an_answer_to_something_else_is_an_error() {
    let source = serde_json::json!({"path": "app", "plugin": {"name": "p"}});
    let files = MemoryFiles::new([("app/a.yaml", "")]);
    let (_, outcome) = rendered(&files, &params(source), |_| PluginAnswer::Detected(None));
    outcome.expect_err("no manifests");
    let missing = FileError::Outside("a".into());
    assert!(matches!(RenderError::from(missing), RenderError::File(_)));
}
