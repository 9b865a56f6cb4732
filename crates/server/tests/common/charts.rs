//! A catalogue with one repository, `team/r`, that has two versions of the chart `web`.

use async_trait::async_trait;
use std::sync::{Arc, Mutex, OnceLock};
use tiphys_catalog::{
    CatalogError, RepoId, RepoSpec, Store, apprepository::NewRepository, model::RepoRef,
    store::RepoStatus, sync::CatalogSync,
};
use tiphys_server::ports::Catalog;
use tiphys_testkit::charts::{FileServer, index, plain_chart};

/// An object without a name and one of a kind that the cluster does not have, if the values want
/// them.
const UNNAMED: &str = "\
{{- if .Values.unnamed }}
apiVersion: v1
kind: Pod
metadata:
  generateName: test-
---
apiVersion: example.com/v1
kind: Unknown
metadata:
  name: shop-web
{{- end }}
";

#[derive(Default)]
pub struct FakeCatalog {
    known: OnceLock<(FileServer, Arc<Store>)>,
    /// Repositories whose sync was asked for.
    pub resynced: Mutex<Vec<RepoId>>,
    pub made: Mutex<Vec<NewRepository>>,
    pub deleted: Mutex<Vec<RepoId>>,
}

impl FakeCatalog {
    /// What was asked of the repository since the last time.
    pub fn asked(&self) -> Vec<String> {
        let known = self.known.get();
        known.map(|(server, _)| server.paths()).unwrap_or_default()
    }

    /// Reads the repository, and returns its URL.
    pub async fn fill(&self) -> String {
        let server = FileServer::start();
        let url = format!("{}/charts", server.url());
        for (version, colour) in [("1.0.0", "red"), ("1.1.0", "green")] {
            let values = format!("colour: {colour}\n");
            let readme = format!("# web {version}\n");
            let files = [
                ("values.yaml", &*values),
                ("README.md", &*readme),
                ("templates/unnamed.yaml", UNNAMED),
            ];
            let path = format!("/charts/web-{version}.tgz");
            server.serve(&path, plain_chart("web", version, &files));
        }
        let entries = [
            ("web", "1.1.0", "web-1.1.0.tgz", ""),
            ("web", "1.0.0", "web-1.0.0.tgz", ""),
        ];
        server.serve("/charts/index.yaml", index(&entries).as_str());
        let store = Arc::new(Store::in_memory().expect("a database"));
        let id = RepoId::new("team", "r");
        let spec = RepoSpec {
            url: url.clone(),
            ..RepoSpec::default()
        };
        let spec = spec.text().expect("it is valid");
        store.put_spec(&id, &url, &spec).expect("stored");
        let status = store.repo(&id).expect("the database").expect("it is there");
        let sync = RepoSpec::sync(Arc::clone(&store), &status).expect("it opens");
        sync.run().await.expect("it is read");
        assert!(self.known.set((server, store)).is_ok(), "filled once");
        url
    }
}

#[async_trait]
impl Catalog for FakeCatalog {
    fn store(&self) -> Option<Arc<Store>> {
        self.known.get().map(|(_, store)| Arc::clone(store))
    }

    async fn visitor(&self, id: &RepoId, of: &RepoRef) -> Result<CatalogSync, CatalogError> {
        let store = self.store().expect("it is filled");
        let status: RepoStatus = store.repo(id)?.unwrap_or_default();
        RepoSpec::visitor(store, &status, of)
    }

    async fn create(&self, wanted: &NewRepository) -> Result<(), CatalogError> {
        wanted.objects()?;
        self.made.lock().expect("not poisoned").push(wanted.clone());
        Ok(())
    }

    async fn delete(&self, id: &RepoId) -> Result<(), CatalogError> {
        self.deleted.lock().expect("not poisoned").push(id.clone());
        Ok(())
    }

    async fn resync(&self, id: &RepoId) -> Result<(), CatalogError> {
        self.resynced.lock().expect("not poisoned").push(id.clone());
        Ok(())
    }
}
