//! Repo-servers that share what they render.

use crate::world::{World, repo, request, text};
use futures::future::BoxFuture;
use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::{
    project::SourceIntegrity,
    repository::RevisionMetadata,
    rpc::repo_server::{ManifestRequest, RepoServerRevisionMetadataRequest},
};
use tiphys_repo_server::{Shared, SharedCache};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl SharedCache for Memory {
    fn get(&self, name: String) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move { self.0.lock().expect("no panic").get(&name).cloned() })
    }

    fn put(&self, name: String, json: Vec<u8>, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { drop(self.0.lock().expect("no panic").insert(name, json)) })
    }
}

impl Memory {
    fn shared(&self) -> Shared {
        Shared {
            cache: Arc::new(self.clone()),
            keep: Duration::from_secs(60),
        }
    }

    fn names(&self) -> Vec<String> {
        let kept = self.0.lock().expect("no panic");
        kept.keys().cloned().collect()
    }

    fn change(&self, from: &str, to: &str) {
        for value in self.0.lock().expect("no panic").values_mut() {
            let text = String::from_utf8(value.clone()).expect("JSON");
            *value = text.replace(from, to).into_bytes();
        }
    }
}

const FILES: &[(&str, &str)] = &[(
    "a/map.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {mark: <&>}\n",
)];

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_rendered_by_one_of_them() {
    let memory = Memory::default();
    let (first, second) = (
        World::sharing(memory.shared()).await,
        World::sharing(memory.shared()).await,
    );
    let (path, sha) = first.repository("r", FILES);
    let asked = request(&path, "a");
    let rendered = first.client().manifests(&asked).await.expect("rendered");
    let begin = format!("mfst|annotation:app.kubernetes.io/instance|web|{sha}|prod|");
    let names = memory.names();
    assert!(
        names.len() == 1 && names[0].starts_with(&begin),
        "{names:?}"
    );
    assert!(names[0].ends_with("|nil"), "{names:?}");

    // From now on nobody can render it.
    fs::remove_dir_all(&path).expect("gone");
    let at_commit = ManifestRequest {
        revision: sha.clone(),
        ..asked
    };
    let client = second.client();
    let found = client.manifests(&at_commit).await.expect("shared");
    assert_eq!(
        (&found.revision, &found.source_type),
        (&rendered.revision, &rendered.source_type)
    );
    assert_eq!(*found.objects, *rendered.objects);
    let demanding = SourceIntegrity::default();
    for (why, request) in [
        (
            "wanted anew",
            ManifestRequest {
                no_cache: true,
                ..at_commit.clone()
            },
        ),
        (
            "signatures are demanded",
            ManifestRequest {
                source_integrity: Some(demanding),
                ..at_commit.clone()
            },
        ),
        (
            "for another namespace",
            ManifestRequest {
                namespace: "other".to_owned(),
                ..at_commit.clone()
            },
        ),
    ] {
        assert!(client.manifests(&request).await.is_err(), "{why}");
    }
    memory.change("ConfigMap", "ConfigMop");
    let changed = client.manifests(&at_commit).await;
    assert!(changed.is_err(), "the hash is another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_of_a_commit_is_read_by_one_of_them() {
    let memory = Memory::default();
    let (first, second) = (
        World::sharing(memory.shared()).await,
        World::sharing(memory.shared()).await,
    );
    let (path, sha) = first.repository("r", FILES);
    let query = RepoServerRevisionMetadataRequest {
        repo: repo(&text(&path)),
        revision: sha.clone(),
        ..RepoServerRevisionMetadataRequest::default()
    };
    let ask = async |world: &World, query: &RepoServerRevisionMetadataRequest| {
        let found = world.ask::<_, RevisionMetadata>("GetRevisionMetadata", query);
        found.await
    };
    let read = ask(&first, &query).await.expect("read");
    assert_eq!(
        memory.names(),
        [format!("revisionmetadata|{}|{sha}", text(&path))]
    );
    fs::remove_dir_all(&path).expect("gone");
    assert_eq!(ask(&second, &query).await, Ok(read));
    let demanding = RepoServerRevisionMetadataRequest {
        source_integrity: Some(SourceIntegrity::default()),
        ..query
    };
    assert!(ask(&second, &demanding).await.is_err());
}
