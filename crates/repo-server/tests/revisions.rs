//! What is told of repositories and revisions.

use crate::world::{World, text};
use tiphys_api::{
    Application, repository::Repository, rpc::repo_server::ResolveRevisionRequest,
    source::ApplicationSource,
};

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_resolved() {
    let world = World::plain().await;
    let (path, sha) = world.repository("repository", &[("a", "a")]);
    let client = world.client();
    let mut app = Application::default();
    app.spec.source = Some(ApplicationSource {
        repo_url: text(&path),
        path: "a".to_owned(),
        ..ApplicationSource::default()
    });
    let resolve = |revision: &str| ResolveRevisionRequest {
        repo: Some(Repository {
            repo: text(&path),
            ..Repository::default()
        }),
        app: Some(app.clone()),
        ambiguous_revision: revision.to_owned(),
        source_index: 0,
        no_revision_cache: true,
    };
    for revision in ["main", "HEAD", "", &sha] {
        let found = client
            .resolve(&resolve(revision))
            .await
            .expect("it is there");
        assert_eq!(found.revision, sha);
        assert_eq!(found.ambiguous_revision, format!("{revision} ({sha})"));
    }
    let e = client.resolve(&resolve("nope")).await.expect_err("missing");
    assert_eq!(
        e.to_string(),
        "rpc error: code = Unknown desc = unable to resolve 'nope' to a commit SHA: revision not found"
    );
}
