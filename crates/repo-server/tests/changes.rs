//! UpdateRevisionForPaths.

use crate::world::{World, repo, text};
use std::collections::BTreeMap;
use tiphys_api::{
    operation::RefTarget,
    rpc::repo_server::UpdateRevisionForPathsRequest,
    source::{ApplicationSource, ApplicationSourceHelm},
};
use tiphys_repo::Repos;

#[tokio::test(flavor = "multi_thread")]
async fn only_the_paths_of_an_application_matter() {
    let world = World::plain().await;
    let (path, first) = world.repository("r", &[("a/x", "1"), ("b/x", "1"), ("shared/x", "1")]);
    let commit = |file: &str| {
        let changes = [(file, Some("2"))];
        Repos::commit_files(&path, "main", &changes, "Change").expect("a commit")
    };
    let second = commit("b/x");
    let third = commit("shared/x");
    let client = world.client();
    let source = ApplicationSource {
        repo_url: text(&path),
        path: "a".to_owned(),
        ..ApplicationSource::default()
    };
    let plain = UpdateRevisionForPathsRequest {
        repo: repo(&text(&path)),
        application_source: Some(source.clone()),
        app_name: "web".to_owned(),
        paths: vec!["a".to_owned(), "shared".to_owned()],
        no_revision_cache: true,
        ..UpdateRevisionForPathsRequest::default()
    };
    for (synced, revision, changes, resolved) in [
        (&first, &second, false, &second),
        (&second, &third, true, &third),
        (&first, &third, true, &third),
        (&third, &"main".to_owned(), false, &third),
        (&second, &"main".to_owned(), true, &third),
        (&third, &third, false, &third),
    ] {
        let asked = UpdateRevisionForPathsRequest {
            synced_revision: synced.clone(),
            revision: revision.clone(),
            ..plain.clone()
        };
        let found = client.update_revision(&asked).await.expect("an answer");
        assert_eq!((found.changes, &found.revision), (changes, resolved));
    }
    let anywhere = UpdateRevisionForPathsRequest {
        paths: Vec::new(),
        synced_revision: third.clone(),
        revision: third.clone(),
        ..plain.clone()
    };
    let found = client.update_revision(&anywhere).await.expect("an answer");
    assert!(found.changes, "without paths everything matters");
    let chart = UpdateRevisionForPathsRequest {
        application_source: Some(ApplicationSource {
            chart: "c".to_owned(),
            ..source.clone()
        }),
        synced_revision: "1.0.0".to_owned(),
        revision: "1.1.0".to_owned(),
        ..plain.clone()
    };
    let found = client.update_revision(&chart).await.expect("an answer");
    assert!(!found.changes, "as Argo CD's");
    let gone = UpdateRevisionForPathsRequest {
        synced_revision: first,
        revision: "gone".to_owned(),
        ..plain
    };
    let e = client.update_revision(&gone).await.expect_err("missing");
    assert_eq!(
        e.to_string(),
        "rpc error: code = Internal desc = unable to resolve git revision gone: unable to resolve 'gone' to a commit SHA: revision not found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sources_matter_if_they_are_read() {
    let world = World::plain().await;
    let (path, sha) = world.repository("r", &[("chart/Chart.yaml", "name: c")]);
    let (values, first) = world.repository("values", &[("chart/v.yaml", "a: 1"), ("x", "1")]);
    let commit = |file: &str| {
        let changes = [(file, Some("2"))];
        Repos::commit_files(&values, "main", &changes, "Change").expect("a commit")
    };
    let second = commit("x");
    let third = commit("chart/v.yaml");
    let client = world.client();
    let refs = |sha: &str| {
        let target = RefTarget {
            repo: repo(&text(&values)),
            target_revision: Some(sha.to_owned()),
            chart: None,
        };
        BTreeMap::from([("$values".to_owned(), target)])
    };
    let asked = |file: &str, from: &str, to: &str| UpdateRevisionForPathsRequest {
        repo: repo(&text(&path)),
        application_source: Some(ApplicationSource {
            path: "chart".to_owned(),
            helm: Some(Box::new(ApplicationSourceHelm {
                value_files: vec![file.to_owned()],
                ..ApplicationSourceHelm::default()
            })),
            ..ApplicationSource::default()
        }),
        has_multiple_sources: true,
        synced_revision: sha.clone(),
        revision: sha.clone(),
        synced_ref_sources: refs(from),
        ref_sources: refs(to),
        paths: vec!["chart".to_owned()],
        ..UpdateRevisionForPathsRequest::default()
    };
    for (file, from, to, changes) in [
        ("$values/chart/v.yaml", &first, &second, false),
        ("$values/chart/v.yaml", &second, &third, true),
        ("$values/chart/v.yaml", &third, &third, false),
        ("own.yaml", &first, &third, false),
    ] {
        let found = client.update_revision(&asked(file, from, to)).await;
        assert_eq!(
            found.expect("an answer").changes,
            changes,
            "{file} {from} {to}"
        );
    }
    let unknown = asked("$other/v.yaml", &first, &second);
    let e = client.update_revision(&unknown).await.expect_err("unknown");
    let expected = "source referenced \"$other\", but no source has a 'ref' field defined";
    assert!(e.to_string().ends_with(expected), "{e}");
}
