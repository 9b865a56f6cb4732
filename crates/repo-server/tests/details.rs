//! GetAppDetails.

use crate::world::{World, repo, text};
use std::{collections::BTreeMap, path::Path};
use tiphys_api::{
    operation::RefTarget,
    rpc::repo_server::{RepoAppDetailsResponse, RepoServerAppDetailsQuery},
    source::{ApplicationSource, ApplicationSourceHelm},
};
use tiphys_repo::Repos;

fn query(path: &Path, folder: &str) -> RepoServerAppDetailsQuery {
    RepoServerAppDetailsQuery {
        repo: repo(&text(path)),
        source: Some(ApplicationSource {
            repo_url: text(path),
            path: folder.to_owned(),
            target_revision: "main".to_owned(),
            ..ApplicationSource::default()
        }),
        app_name: "web".to_owned(),
        ..RepoServerAppDetailsQuery::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_type_has_its_own() {
    let world = World::plain().await;
    let (path, _) = world.repository(
        "r",
        &[
            ("plain/a.yaml", ""),
            ("kustomize/kustomization.yaml", "resources: [a.yaml]\n"),
            (
                "kustomize/a.yaml",
                "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: nginx:1}]}\n",
            ),
            ("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("chart/values.yaml", "a: {b: 1}\n"),
            ("chart/values-prod.yaml", "a: {b: 2}\n"),
        ],
    );
    let (values, _) = world.repository("values", &[("v.yaml", "a: {b: 3}\n")]);
    let ask = async |query: &RepoServerAppDetailsQuery| -> Result<RepoAppDetailsResponse, _> {
        world.ask("GetAppDetails", query).await
    };
    let plain = ask(&query(&path, "plain")).await.expect("details");
    assert_eq!(plain.type_, "Directory");
    assert!(plain.directory.is_some() && plain.helm.is_none());
    let kustomize = ask(&query(&path, "kustomize")).await.expect("details");
    assert_eq!(kustomize.kustomize.expect("it is one").images, ["nginx:1"]);
    let parameter = |details: RepoAppDetailsResponse| {
        let helm = details.helm.expect("it is a chart");
        let first = helm.parameters.first().expect("a parameter");
        (first.name.clone(), first.value.clone())
    };
    let chart = ask(&query(&path, "chart")).await.expect("details");
    let helm = chart.helm.clone().expect("it is a chart");
    assert_eq!(helm.value_files, ["values-prod.yaml", "values.yaml"]);
    assert_eq!(helm.values, "a: {b: 1}\n");
    assert_eq!(parameter(chart), ("a.b".to_owned(), "1".to_owned()));
    let mut with_values = query(&path, "chart");
    let source = with_values.source.as_mut().expect("it has one");
    source.helm = Some(Box::new(ApplicationSourceHelm {
        value_files: vec!["$values/v.yaml".to_owned()],
        ..ApplicationSourceHelm::default()
    }));
    let target = RefTarget {
        repo: repo(&text(&values)),
        target_revision: Some("main".to_owned()),
        chart: None,
    };
    with_values.ref_sources = BTreeMap::from([("$values".to_owned(), target)]);
    let chart = ask(&with_values).await.expect("details");
    assert_eq!(parameter(chart), ("a.b".to_owned(), "3".to_owned()));

    let changes = [("v.yaml", Some("a: {b: 4}\n"))];
    Repos::commit_files(&values, "main", &changes, "Change").expect("a commit");
    let chart = ask(&with_values).await.expect("details");
    assert_eq!(parameter(chart), ("a.b".to_owned(), "4".to_owned()));

    let missing = ask(&query(&path, "none")).await.expect_err("no folder");
    assert_eq!(
        missing,
        ("3".to_owned(), "none: app path does not exist".to_owned())
    );
    let mut gone = query(&path, "plain");
    gone.source.as_mut().expect("it has one").target_revision = "gone".to_owned();
    let gone = ask(&gone).await.expect_err("no revision");
    assert_eq!(
        gone,
        (
            "3".to_owned(),
            "unable to resolve 'gone' to a commit SHA: revision not found".to_owned()
        )
    );
}
