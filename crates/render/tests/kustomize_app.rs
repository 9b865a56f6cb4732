//! Applications with kustomizations: what the Application says is laid over the file, step by step,
//! in the words of Argo CD and of `kustomize edit`.

use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_gocompat::sprig;
use tiphys_render::{
    AppFacts, Budget, Charts, ClusterFacts, MemoryFiles, RenderError, RenderParams, Rendered,
    SourceKind, SourceSet, details, prepare, render,
};

struct NoCharts;

impl Charts for NoCharts {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        unreachable!("no chart is rendered")
    }
}

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  \
    replicas: 1\n  template:\n    spec:\n      containers:\n      - name: web\n        image: nginx:1\n";

fn files(kustomization: &str) -> MemoryFiles {
    MemoryFiles::new([
        ("app/kustomization.yaml", kustomization),
        ("app/web.yaml", DEPLOYMENT),
        (
            "app/comp/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n",
        ),
        ("app/empty/readme.md", "nothing"),
    ])
}

fn params(kustomize: Value, flags: &str) -> RenderParams {
    let source = json!({"repoURL": "https://example.com/r", "path": "app", "kustomize": kustomize});
    RenderParams {
        source: serde_json::from_value(source).expect("a source"),
        folder: None,
        app: AppFacts {
            name: "shop".into(),
            revision: "0123456789012345678901234567890123456789".into(),
            ..AppFacts::default()
        },
        cluster_facts: ClusterFacts {
            kustomize_build_options: flags.into(),
            ..ClusterFacts::default()
        },
    }
}

fn rendered(files: &MemoryFiles, params: &RenderParams) -> Result<Rendered, RenderError> {
    let sources = SourceSet::new(files);
    render(
        &sources,
        &prepare(&sources, params)?,
        &NoCharts,
        &Budget::default(),
    )
}

/// Name, namespace, labels, replicas and image of the one object.
fn facts(kustomization: &str, kustomize: Value) -> Result<Value, String> {
    let rendered = rendered(&files(kustomization), &params(kustomize, ""));
    let rendered = rendered.map_err(|error| error.to_string())?;
    assert_eq!(
        (rendered.kind, &rendered.errors[..]),
        (SourceKind::Kustomize, &[][..])
    );
    let object = &rendered.objects[0];
    Ok(json!([
        object.name(),
        object.namespace(),
        object.labels(),
        object.annotations(),
        object.i64_at("/spec/replicas"),
        object.str_at("/spec/template/spec/containers/0/image"),
    ]))
}

const PLAIN: &str = "resources: [web.yaml]\n";

#[test]
fn an_application_changes_the_kustomization() {
    for (kustomization, kustomize, want) in [
        (PLAIN, json!({}), json!(["web", "", {}, {}, 1, "nginx:1"])),
        (
            PLAIN,
            json!({"namePrefix": "a-", "nameSuffix": "-b", "namespace": "n",
                "images": ["nginx=other:$ARGOCD_APP_REVISION_SHORT"],
                "replicas": [{"name": "web", "count": "3"}]}),
            json!(["a-web-b", "n", {}, {}, 3, "other:0123456"]),
        ),
        (
            "resources: [web.yaml]\nimages: [{name: nginx, newName: kept, newTag: '7'}]\nreplicas: [{name: web, count: 9}]\n",
            json!({"images": ["nginx=*:8"], "replicas": [{"name": "web", "count": 2}]}),
            json!(["web", "", {}, {}, 2, "kept:8"]),
        ),
        (
            PLAIN,
            json!({"commonLabels": {"app": "${ARGOCD_APP_NAME}"}, "labelWithoutSelector": true,
                "commonAnnotations": {"a": "$ARGOCD_APP_NAME"}}),
            json!(["web", "", {"app": "shop"}, {"a": "$ARGOCD_APP_NAME"}, 1, "nginx:1"]),
        ),
        (
            "resources: [web.yaml]\ncommonLabels: {app: old}\ncommonAnnotations: {a: old}\n",
            json!({"commonLabels": {"app": "new"}, "forceCommonLabels": true,
                "commonAnnotations": {"a": "$ARGOCD_APP_NAME"}, "commonAnnotationsEnvsubst": true,
                "forceCommonAnnotations": true}),
            json!(["web", "", {"app": "new"}, {"a": "shop"}, 1, "nginx:1"]),
        ),
        (
            "resources: [web.yaml]\npatches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/replicas\", \"value\": 4}]', target: {kind: Deployment}}]\n",
            json!({"patches": [{"target": {"kind": "Deployment"}, "options": {"allowNameChange": true},
                "patch": "kind: D\nmetadata:\n  name: renamed\n"}]}),
            json!(["renamed", "", {}, {}, 4, "nginx:1"]),
        ),
        (
            PLAIN,
            json!({"components": ["comp", "missing", "empty"], "ignoreMissingComponents": true}),
            json!(["web-c", "", {}, {}, 1, "nginx:1"]),
        ),
        (
            PLAIN,
            json!({"components": ["c*"]}),
            json!(["web-c", "", {}, {}, 1, "nginx:1"]),
        ),
    ] {
        assert_eq!(facts(kustomization, kustomize), Ok(want), "{kustomization}");
    }
}

#[test]
fn refusals_are_those_of_kustomize_edit() {
    for (kustomization, kustomize, words) in [
        (
            "resources: [web.yaml]\ncommonLabels: {app: old}\n",
            json!({"commonLabels": {"app": "new"}}),
            "`kustomize edit add label app:new` failed exit status 1: Error: label app already in kustomization file. Use --force to override.",
        ),
        (
            PLAIN,
            json!({"commonLabels": {"a": "b"}, "labelIncludeTemplates": true}),
            "--without-selector flag must be specified",
        ),
        (
            PLAIN,
            json!({"images": ["nginx"]}),
            "invalid format of image",
        ),
        (
            PLAIN,
            json!({"replicas": [{"name": "web", "count": "x"}]}),
            "expected integer value for count. Received: x",
        ),
        (
            PLAIN,
            json!({"components": ["missing"]}),
            "missing has no match",
        ),
        (
            "foo: 1\n",
            json!({"namePrefix": "a"}),
            "json: unknown field \"foo\"",
        ),
        (
            "patches: {}\n",
            json!({"patches": [{"path": "x"}]}),
            "expected 'patches' field in kustomization.yaml to be []any",
        ),
        (
            "resources: [nope.yaml]\n",
            json!({}),
            "`kustomize build app` failed exit status 1: Error: accumulating resources",
        ),
    ] {
        let error = facts(kustomization, kustomize).expect_err("refused");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn flags_of_the_installation_count() {
    let files = MemoryFiles::new([
        ("app/kustomization.yaml", "resources: [../outside.yaml]\n"),
        ("outside.yaml", DEPLOYMENT),
    ]);
    assert!(rendered(&files, &params(json!({}), "")).is_err());
    let flags = "--enable-helm  --load-restrictor LoadRestrictionsNone";
    assert!(rendered(&files, &params(json!({}), flags)).is_ok());
    let error = rendered(&files, &params(json!({}), "--enable-alpha-plugins"));
    let error = error.expect_err("programs are not run").to_string();
    assert!(
        error.contains("--enable-alpha-plugins is not supported"),
        "{error}"
    );
    let mut off = params(json!({}), "");
    off.source.kustomize = None;
    off.cluster_facts.switched_off = vec![SourceKind::Kustomize];
    let kind = rendered(&files, &off).expect("plain manifests").kind;
    assert_eq!(kind, SourceKind::Directory);
}

#[test]
fn details_name_the_images() {
    let files = files("resources: [web.yaml]\n");
    let params = params(json!({"images": ["nginx:2"]}), "");
    let found = details(
        &SourceSet::new(&files),
        &params,
        &NoCharts,
        &Budget::default(),
    );
    let found = found.expect("details");
    assert_eq!(
        (found.kind, &found.images[..]),
        (SourceKind::Kustomize, &["nginx:2".to_owned()][..])
    );
}
