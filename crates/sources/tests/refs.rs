//! Sources that other sources of the same Application read files of.

use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    AppProject, Application, operation::RefTarget, repository::Repository,
    source::ApplicationSource,
};
use tiphys_cluster::Settings;
use tiphys_repo::Repos;
use tiphys_sources::{AppRequest, RefSources, SourceRequest, Sources};
use tiphys_testkit::Repo;

fn sources(list: Value) -> Vec<ApplicationSource> {
    serde_json::from_value(list).expect("sources")
}

#[test]
fn only_names_that_can_be_referred_to_are_accepted() {
    let twice = "invalid sources: multiple sources had the same `ref` key";
    let special = |name: &str| {
        format!("sources.ref {name} cannot contain any special characters except '_' and '-'")
    };
    for (refs, want) in [
        (vec!["a-b_1", "", "C"], Ok(vec![(2, "C"), (0, "a-b_1")])),
        (vec!["", ""], Ok(vec![])),
        (vec![], Ok(vec![])),
        // It may read its own files by the name.
        (vec!["a"], Ok(vec![(0, "a")])),
        (vec!["a", "a"], Err(twice.to_owned())),
        (vec!["a", "b", "a"], Err(twice.to_owned())),
        (vec!["a/b", ""], Err(special("a/b"))),
        (vec!["é"], Err(special("é"))),
        // The first that is wrong is named.
        (vec!["a b", "c", "c"], Err(special("a b"))),
    ] {
        let list = sources(refs.iter().map(|name| json!({"ref": name})).collect());
        let found = RefSources::of(&list).map_err(|e| e.to_string());
        let found = found.map(|found| {
            let all = found.iter();
            all.map(|(i, source)| (i, source.ref_.as_str())).collect()
        });
        assert_eq!(found, want, "{refs:?}");
    }
}

#[test]
fn a_target_has_the_repository_revision_and_chart_of_its_source() {
    let list = sources(json!([
        {"repoURL": "https://example.com/charts", "chart": "web", "ref": "chart"},
        {"repoURL": "https://example.com/app", "path": "."},
        {"repoURL": "https://example.com/values", "ref": "values"},
    ]));
    let targets = RefSources::of(&list).expect("refs").targets(|i, source| {
        let repository = Repository {
            repo: source.repo_url.clone(),
            ..Repository::default()
        };
        (repository, format!("revision {i}"))
    });
    let target = |url: &str, revision: &str, chart: Option<&str>| RefTarget {
        repo: Some(Repository {
            repo: url.to_owned(),
            ..Repository::default()
        }),
        target_revision: Some(revision.to_owned()),
        chart: chart.map(str::to_owned),
    };
    let chart = target("https://example.com/charts", "revision 0", Some("web"));
    let values = target("https://example.com/values", "revision 2", None);
    let want = BTreeMap::from([("chart".to_owned(), chart), ("values".to_owned(), values)]);
    assert_eq!(targets, want);
}

#[test]
fn a_request_says_what_the_application_says() {
    let app: Application = serde_json::from_value(json!({
        "metadata": {
            "name": "a",
            "annotations": {"argocd.argoproj.io/manifest-generate-paths": "/x;."}
        },
        "spec": {
            "project": "",
            "destination": {"namespace": "n"},
            "sources": [{"repoURL": "https://example.com/app", "path": "."}]
        }
    }))
    .expect("an Application");
    let request = AppRequest::of(&app, "team_a".to_owned());
    let told = [
        request.instance.as_str(),
        &request.namespace,
        &request.project,
        &request.generate_paths,
    ];
    assert_eq!(told, ["team_a", "n", "default", "/x;."]);
    assert!(request.several && request.refs.is_empty());
}

/// A chart can be another source, but no source of values; what is not read does not matter.
#[tokio::test]
async fn values_are_read_from_repositories_and_not_from_charts() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Values.name }}'}\n";
    let repo = Repo::with(&[
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: app\nversion: 1.0.0\n",
        ),
        ("app/templates/a.yaml", template),
        ("of-others.yaml", "name: of-others\n"),
    ]);
    let cache = tempfile::tempdir().expect("a folder");
    let (settings, project) = (Arc::new(Settings::default()), AppProject::default());
    let project = Arc::new(project);
    let known = Sources::with(
        Repos::new(cache.path().to_owned()),
        None,
        move || Arc::clone(&settings),
        move |_| Some(Arc::clone(&project)),
    );
    let list = sources(json!([
        {"repoURL": repo.url(), "path": "app"},
        {"repoURL": repo.url(), "ref": "values"},
        {"repoURL": "https://charts.example.invalid", "chart": "web", "ref": "chart"},
    ]));
    let app = AppRequest {
        instance: "app".to_owned(),
        several: true,
        refs: RefSources::of(&list).expect("refs").targets(|_, source| {
            let repository = Repository {
                repo: source.repo_url.clone(),
                ..Repository::default()
            };
            (repository, repo.head())
        }),
        ..AppRequest::default()
    };
    let app = Arc::new(app);
    let chart = "source has a 'chart' field defined, but Helm charts are not yet not supported for 'ref' sources";
    for (file, want) in [
        ("$values/of-others.yaml", Ok("of-others")),
        ("$chart/values.yaml", Err(chart)),
    ] {
        let mut source = list[0].clone();
        source.helm = serde_json::from_value(json!({"valueFiles": [file]})).expect("options");
        let request = SourceRequest {
            app: Arc::clone(&app),
            repository: Repository::default(),
            source,
            revision: repo.head(),
        };
        let got = known.manifests(&request, None).await.map(|manifests| {
            assert!(manifests.errors.is_empty(), "{:?}", manifests.errors);
            manifests.objects[0].object().name().to_owned()
        });
        let got = got.map_err(|e| e.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{file}");
    }
}
