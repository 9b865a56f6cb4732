//! Commits and details of Applications, for the functions of `repo`.
//!
//! Main type: [`Repositories`].

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tiphys_api::source::ApplicationSource;
use tiphys_notify::{CommitMetadata, Lookup, Unavailable};
use tiphys_render::{Details, SourceKind};
use tiphys_repo::Since;
use tiphys_sources::{AppRequest, Before, SourceRequest, Sources};
use tokio::runtime::Handle;

/// Asks the repositories, from a thread that may wait.
pub(super) struct Repositories {
    pub sources: Sources,
    pub runtime: Handle,
}

impl Lookup for Repositories {
    fn commit(
        &self,
        repo_url: &str,
        sha: &str,
        project: &str,
    ) -> Result<CommitMetadata, Unavailable> {
        let repository = self.sources.repository(repo_url, project);
        let metadata = self
            .runtime
            .block_on(self.sources.metadata(&repository, sha))
            .map_err(|error| Unavailable(error.to_string()))?;
        let date = metadata.date.as_ref().map(|date| date.seconds);
        Ok(CommitMetadata {
            message: metadata.message,
            author: metadata.author,
            date: date
                .and_then(|seconds| Timestamp::from_second(seconds).ok())
                .unwrap_or_default(),
            tags: metadata.tags,
        })
    }

    fn details(&self, app: &Value) -> Result<Value, Unavailable> {
        let request = self.question(app)?;
        let details = self.runtime.block_on(async {
            let unknown = Before::default();
            let pinned = self.sources.pin(&request, &unknown, Since::Recently);
            let revision = pinned.await?;
            let request = SourceRequest {
                revision,
                ..request.clone()
            };
            self.sources.details(&request).await
        });
        let details = details.map_err(|error| Unavailable(error.to_string()))?;
        Ok(as_json(details, &request.source))
    }
}

impl Repositories {
    /// The source of an Application, the first one if it has several; the hydrated one if that is
    /// made.
    fn question(&self, app: &Value) -> Result<SourceRequest, Unavailable> {
        let text = |path: &str| {
            let found = app.pointer(path).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let several = app.pointer("/spec/sources/0");
        let hydrated = app.pointer("/spec/sourceHydrator").map(|_| {
            json!({
                "repoURL": text("/spec/sourceHydrator/drySource/repoURL"),
                "path": text("/spec/sourceHydrator/syncSource/path"),
                "targetRevision": text("/spec/sourceHydrator/syncSource/targetBranch"),
            })
        });
        let source = several
            .or(hydrated.as_ref())
            .or_else(|| app.pointer("/spec/source"));
        let source = source.ok_or_else(|| Unavailable("the Application has no source".into()))?;
        let source = ApplicationSource::deserialize(source)
            .map_err(|error| Unavailable(format!("the Application's source: {error}")))?;
        let project = text("/spec/project");
        let request = AppRequest {
            instance: text("/metadata/name"),
            namespace: text("/spec/destination/namespace"),
            several: several.is_some(),
            project,
            ..AppRequest::default()
        };
        Ok(SourceRequest {
            repository: self.sources.repository(&source.repo_url, &request.project),
            app: Arc::new(request),
            revision: source.target_revision.clone(),
            source,
        })
    }
}

/// As the repo-server words it.
fn as_json(details: Details, source: &ApplicationSource) -> Value {
    let mut shown = json!({ "Type": details.kind.as_str() });
    if let Some(helm) = details.helm {
        let set = source.helm.as_ref();
        let parameters = helm.parameters.iter();
        shown["Helm"] = json!({
            "name": "",
            "valueFiles": helm.value_files,
            "parameters": parameters
                .map(|(name, value)| json!({ "name": name, "value": value }))
                .collect::<Vec<_>>(),
            "values": helm.values,
            "fileParameters": set.map(|helm| &helm.file_parameters),
        });
    }
    match details.kind {
        SourceKind::Kustomize => shown["Kustomize"] = json!({ "images": details.images }),
        SourceKind::Directory => shown["Directory"] = json!({}),
        SourceKind::Helm | SourceKind::Plugin => {}
    }
    shown
}
