//! GenerateManifest.

use crate::world::{World, request, text};
use std::collections::BTreeMap;
use tiphys_api::{
    operation::RefTarget,
    repository::{KustomizeOptions, KustomizeVersion, Repository},
    rpc::repo_server::ManifestRequest,
    source::{ApplicationSource, ApplicationSourceHelm, ApplicationSourceKustomize},
};
use tiphys_repo::{Manifests, RepoServer};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

const FILES: &[(&str, &str)] = &[
    ("plain/a.yaml", CONFIG_MAP),
    (
        "plain/crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n",
    ),
    (
        "jsonnet/a.jsonnet",
        "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'a'}, data: {sum: std.toString(1 + 2)}}",
    ),
    (
        "kustomize/kustomization.yaml",
        "namePrefix: k-\nresources: [a.yaml]\n",
    ),
    ("kustomize/a.yaml", CONFIG_MAP),
    (
        "chart/Chart.yaml",
        "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    ),
    ("chart/values.yaml", "greeting: hello\n"),
    (
        "chart/templates/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-a, namespace: {{ .Release.Namespace }}}\ndata: {greeting: {{ .Values.greeting }}, kube: {{ .Capabilities.KubeVersion.Version }}}\n",
    ),
    ("values/prod.yaml", "greeting: from-values\n"),
    (
        "broken/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: [}\n",
    ),
    (
        "mixed/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {x: 1}}\n",
    ),
];

async fn ask(client: &RepoServer, request: &ManifestRequest) -> Manifests {
    let found = client.manifests(request).await.expect("manifests");
    (*found).clone()
}

async fn refused(client: &RepoServer, request: &ManifestRequest) -> String {
    let refused = client.manifests(request).await.expect_err("refused");
    refused.to_string()
}

/// The value at a pointer of the first object.
fn value(manifests: &Manifests, pointer: &str) -> String {
    let object = manifests.objects[0].object();
    let whole = serde_json::Value::Object(object.0.clone());
    let found = whole.pointer(pointer).and_then(|v| v.as_str());
    found.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tool_renders() {
    let world = World::plain().await;
    let (path, sha) = world.repository("repository", FILES);
    let client = world.client();
    for (folder, kind, name) in [
        ("plain", "Directory", "a"),
        ("jsonnet", "Directory", "a"),
        ("kustomize", "Kustomize", "k-a"),
        ("chart", "Helm", "web-a"),
    ] {
        let found = ask(&client, &request(&path, folder)).await;
        assert_eq!(found.source_type, kind, "{folder}");
        assert_eq!(found.revision, sha, "{folder}");
        assert_eq!(value(&found, "/metadata/name"), name);
        let namespace = if folder == "chart" { "prod" } else { "" };
        assert_eq!(value(&found, "/metadata/namespace"), namespace);
        assert_eq!(
            value(
                &found,
                "/metadata/annotations/argocd.argoproj.io~1tracking-id"
            ),
            format!("web:/ConfigMap:prod/{name}")
        );
    }
    let chart = ask(&client, &request(&path, "chart")).await;
    assert_eq!(value(&chart, "/data/kube"), "v1.33.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_tracked_as_asked() {
    let world = World::plain().await;
    let (path, _) = world.repository("repository", FILES);
    let client = world.client();
    let annotation = "/metadata/annotations/argocd.argoproj.io~1tracking-id";
    let label = "/metadata/labels/app.kubernetes.io~1instance";
    let plain = request(&path, "plain");
    let found = ask(&client, &plain).await;
    let crd = found.objects[1].object();
    assert_eq!(crd.kind(), "CustomResourceDefinition");
    assert!(crd.metadata("annotations").is_none(), "it is shared");
    for (method, annotated, labelled) in [
        ("annotation", true, false),
        ("label", false, true),
        ("annotation+label", true, true),
        // As for Argo CD's.
        ("", true, false),
    ] {
        let asked = ManifestRequest {
            tracking_method: method.to_owned(),
            ..plain.clone()
        };
        let found = ask(&client, &asked).await;
        let is = [annotation, label].map(|at| !value(&found, at).is_empty());
        assert_eq!(is, [annotated, labelled], "{method:?}");
    }
    // The same objects for another Application, and in another namespace.
    for (name, namespace) in [("other", "prod"), ("web", "stage"), ("web", "prod")] {
        let asked = ManifestRequest {
            app_name: name.to_owned(),
            namespace: namespace.to_owned(),
            ..plain.clone()
        };
        let mark = value(&ask(&client, &asked).await, annotation);
        assert_eq!(mark, format!("{name}:/ConfigMap:{namespace}/a"));
    }
    let bare = ManifestRequest {
        app_label_key: String::new(),
        ..plain.clone()
    };
    let found = ask(&client, &bare).await;
    assert!(value(&found, annotation).is_empty());
    let e = refused(&client, &request(&path, "mixed")).await;
    let start = "rpc error: code = Unknown desc = failed to set app instance tracking info on manifest: failed to get annotations from target object";
    assert!(e.starts_with(start), "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_from_another_source() {
    let world = World::plain().await;
    let (path, _) = world.repository("repository", FILES);
    let (values, sha) = world.repository("values", &[("envs/prod.yaml", "greeting: ours\n")]);
    let client = world.client();
    let plain = request(&path, "chart");
    let with = |file: &str, refs: &[(&str, RefTarget)]| ManifestRequest {
        has_multiple_sources: true,
        application_source: Some(ApplicationSource {
            helm: Some(Box::new(ApplicationSourceHelm {
                value_files: vec![file.to_owned()],
                ..ApplicationSourceHelm::default()
            })),
            ..plain.application_source.clone().expect("it has one")
        }),
        ref_sources: refs
            .iter()
            .map(|(name, target)| ((*name).to_owned(), target.clone()))
            .collect(),
        ..plain.clone()
    };
    let target = RefTarget {
        repo: Some(Repository {
            repo: text(&values),
            ..Repository::default()
        }),
        target_revision: Some("main".to_owned()),
        chart: None,
    };
    let refs = [("$values", target.clone())];
    let found = ask(&client, &with("$values/envs/prod.yaml", &refs)).await;
    assert_eq!(value(&found, "/data/greeting"), "ours");
    let chart = RefTarget {
        chart: Some("chart".to_owned()),
        ..target.clone()
    };
    let gone = RefTarget {
        target_revision: Some("gone".to_owned()),
        ..target.clone()
    };
    let unknown = format!(
        "Unknown desc = failed to get git client for repo {}: unable to resolve 'gone' to a commit SHA: revision not found",
        text(&values)
    );
    for (file, refs, expected) in [
        (
            "$values/x.yaml",
            vec![],
            "Unknown desc = source referenced \"$values\", but no source has a 'ref' field defined",
        ),
        (
            "$other/x.yaml",
            vec![("$values", target.clone())],
            "Unknown desc = source referenced \"$other\", which is not one of the available sources ($values)",
        ),
        (
            "$values/x.yaml",
            vec![("$values", chart)],
            "Unknown desc = source has a 'chart' field defined, but Helm charts are not yet not supported for 'ref' sources",
        ),
        ("$values/x.yaml", vec![("$values", gone)], &unknown),
        (
            "envs/*.yaml",
            vec![],
            "NotFound desc = error resolving helm value files: values file glob \"envs/*.yaml\" matched no files",
        ),
    ] {
        let refused = client.manifests(&with(file, &refs)).await;
        let e = refused.expect_err("refused");
        assert_eq!(e.to_string(), format!("rpc error: code = {expected}"));
        assert_eq!(e.awaits_values(), expected.starts_with("NotFound"));
    }
    // A source that only has files for others is resolved, nothing more.
    let only_ref = ManifestRequest {
        has_multiple_sources: true,
        application_source: Some(ApplicationSource {
            repo_url: text(&values),
            ref_: "values".to_owned(),
            ..ApplicationSource::default()
        }),
        repo: target.repo.clone(),
        ref_sources: BTreeMap::new(),
        ..plain
    };
    let found = ask(&client, &only_ref).await;
    assert_eq!((found.objects.len(), found.revision), (0, sha));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_rendered_is_told() {
    let world = World::plain().await;
    let (path, _) = world.repository("repository", FILES);
    let client = world.client();
    let plain = request(&path, "plain");
    let unknown = ManifestRequest {
        revision: "nope".to_owned(),
        ..plain.clone()
    };
    let old = ManifestRequest {
        verify_signature: true,
        ..plain.clone()
    };
    for (asked, expected) in [
        (
            request(&path, "none"),
            "Unknown desc = none: app path does not exist",
        ),
        (
            request(&path, "../x"),
            "Unknown desc = ../x: app path outside root",
        ),
        (
            unknown,
            "Unknown desc = unable to resolve 'nope' to a commit SHA: revision not found",
        ),
        (
            request(&path, "broken"),
            "Unknown desc = Failed to unmarshal \"a.yaml\"",
        ),
        (
            old,
            "Unimplemented desc = signatures are verified only for clients that send sourceIntegrity",
        ),
        (
            ManifestRequest::default(),
            "InvalidArgument desc = must pass a valid repo",
        ),
        (
            ManifestRequest {
                application_source: None,
                ..plain.clone()
            },
            "InvalidArgument desc = must pass a valid source",
        ),
    ] {
        let refused = client.manifests(&asked).await;
        let e = refused.expect_err("refused");
        assert!(
            e.to_string()
                .starts_with(&format!("rpc error: code = {expected}")),
            "{e}"
        );
        let missing = expected.ends_with("app path does not exist");
        assert_eq!(e.lacks_path(), missing, "{e}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_can_be_switched_off() {
    let world = World::plain().await;
    let (path, _) = world.repository("repository", FILES);
    let asked = ManifestRequest {
        enabled_source_types: BTreeMap::from([("Kustomize".to_owned(), false)]),
        ..request(&path, "kustomize")
    };
    let found = ask(&world.client(), &asked).await;
    assert_eq!(found.source_type, "Directory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_of_kustomize_is_registered() {
    let world = World::plain().await;
    let (path, _) = world.repository("r", FILES);
    let client = world.client();
    let options = KustomizeOptions {
        versions: vec![KustomizeVersion {
            name: Some("v4.5.7".to_owned()),
            path: Some("/bin/kustomize4".to_owned()),
            build_options: Some("--enable-exec".to_owned()),
        }],
        ..KustomizeOptions::default()
    };
    let of_version = |folder: &str, version: &str| {
        let plain = request(&path, folder);
        let source = plain.application_source.clone().expect("a source");
        ManifestRequest {
            application_source: Some(ApplicationSource {
                kustomize: Some(Box::new(ApplicationSourceKustomize {
                    version: version.to_owned(),
                    ..ApplicationSourceKustomize::default()
                })),
                ..source
            }),
            kustomize_options: Some(options.clone()),
            ..plain
        }
    };
    let e = refused(&client, &of_version("kustomize", "v1.2.3")).await;
    assert!(
        e.contains("kustomize version v1.2.3 is not registered"),
        "{e}"
    );
    let built_in = ask(&client, &of_version("kustomize", "v5.8.1")).await;
    assert_eq!(built_in.objects.len(), 1);
    // Its flags count, and here they are refused.
    let e = refused(&client, &of_version("kustomize", "v4.5.7")).await;
    assert!(e.contains("--enable-exec"), "{e}");
    let unknown = ManifestRequest {
        kustomize_options: None,
        ..of_version("kustomize", "v1.2.3")
    };
    assert_eq!(ask(&client, &unknown).await.objects.len(), 1);
}
