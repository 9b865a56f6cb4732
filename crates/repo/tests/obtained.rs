//! What renders of the caller's own files need.

use tiphys_render::{
    SourceRef,
    helm::{Limits, chart::Chart},
};
use tiphys_repo::{ManifestRequest, Obtained, Repos};
use tiphys_testkit::charts::{FileServer, index, plain_chart};

#[tokio::test]
async fn what_files_of_this_machine_need_is_fetched() {
    let (server, dir) = (FileServer::start(), tempfile::tempdir().expect("a folder"));
    server.serve("/a.yaml", "a: 1\n");
    server.serve("/charts/web-1.0.0.tgz", plain_chart("web", "1.0.0", &[]));
    let charts = index(&[("web", "1.0.0", "web-1.0.0.tgz", "")]);
    server.serve("/charts/index.yaml", charts.as_str());
    let file = |name: &str| SourceRef::File {
        url: format!("{}/{name}", server.url()),
    };
    let chart = SourceRef::Chart {
        repository: format!("{}/charts", server.url()),
        name: "web".to_owned(),
        version: "1.x".to_owned(),
    };
    let repos = Repos::new(dir.path().join("cache"));
    let request = ManifestRequest::default();

    let needed = vec![file("a.yaml"), file("b.yaml"), chart.clone()];
    let obtained = repos.obtain(&request, &Obtained::default(), needed).await;
    let obtained = obtained.expect("what is missing matters where it is still needed");
    let files = obtained.files();
    assert_eq!(files.len(), 2);
    assert!(obtained.failure(&file("a.yaml")).is_none());
    assert!(obtained.failure(&file("b.yaml")).is_some());
    let content = files[&file("a.yaml")].read(SourceRef::FILE);
    assert_eq!(content, Ok(Some(b"a: 1\n".to_vec())));
    let loaded = Chart::from_unpacked(files[&chart].as_ref(), &Limits::default());
    assert_eq!(loaded.expect("a chart").chart.metadata.version, "1.0.0");

    let again = repos
        .obtain(&request, &obtained, vec![file("b.yaml")])
        .await;
    let missing = again.map(|_| ()).expect_err("it is nowhere");
    assert_eq!(
        missing.to_string(),
        format!("failed to fetch {}/b.yaml: 404 Not Found", server.url())
    );
    let twice = repos.obtain(&request, &obtained, vec![chart]).await;
    let refused = twice.map(|_| ()).expect_err("it would never end");
    assert!(refused.to_string().ends_with("was needed twice"));
}
