//! `--local`: the manifests of a local folder for an Application, rendered here as the API server
//! renders its source in Git.
//!
//! Main type: [`Local`].

use super::super::{files::LocalFiles, helm};
use crate::{
    client::{Client, Failure},
    output::log,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_api::{Application, cluster::Cluster, rpc::cluster::ClusterQuery};
use tiphys_apimachinery::Object;
use tiphys_engine::{spec, track, types::Tracking};
use tiphys_render::{
    AppFacts, Budget, Charts, ClusterFacts, RenderParams, SourceSet, helm::Sources, prepare, render,
};

/// A folder with the manifests or the chart of an Application, and the root of the repository that
/// contains it.
pub struct Local<'a> {
    pub folder: &'a Path,
    pub root: &'a Path,
}

/// Values of Secrets are not compared with local ones, because the API server does not reveal them.
pub fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

impl Local<'_> {
    /// The objects with the Application's tracking metadata. The first source defines how they are
    /// rendered; the API server provides the cluster's versions.
    pub async fn objects(
        &self,
        client: &Client,
        app: &Application,
        tracking: &Tracking,
    ) -> Result<Vec<Value>, Failure> {
        let objects = self.all(client, app, tracking).await?;
        let shown = objects.into_iter().filter(is_shown);
        Ok(shown.map(Object::into_value).collect())
    }

    /// The same with Secrets.
    pub async fn all(
        &self,
        client: &Client,
        app: &Application,
        tracking: &Tracking,
    ) -> Result<Vec<Object>, Failure> {
        let destination = &app.spec.destination;
        let query = ClusterQuery {
            server: destination.server.clone(),
            name: destination.name.clone(),
            id: None,
        };
        let cluster: Cluster = client.unary("/cluster.ClusterService/Get", query).await?;
        let cluster_facts = ClusterFacts {
            kube_version: cluster.info.server_version,
            api_versions: cluster.info.api_versions.into(),
            ..ClusterFacts::default()
        };
        self.render(app, cluster_facts, tracking)
    }

    fn render(
        &self,
        app: &Application,
        cluster_facts: ClusterFacts,
        tracking: &Tracking,
    ) -> Result<Vec<Object>, Failure> {
        let source = match &app.spec.source_hydrator {
            Some(hydrator) => Some(spec::dry_source(hydrator)),
            None => spec::sources(&app.spec)
                .into_iter()
                .next()
                .map(Cow::into_owned),
        };
        let source = source.unwrap_or_default();
        let namespace = &app.spec.destination.namespace;
        let (root, folder) = self.place()?;
        let params = RenderParams {
            app: AppFacts {
                name: tracking.app_name.clone(),
                namespace: namespace.clone(),
                project: spec::project_name(app).to_owned(),
                revision: source.target_revision.clone(),
            },
            folder: Some(folder),
            source,
            cluster_facts,
        };
        let files = LocalFiles::new(&root);
        let sources = SourceSet::new(&files);
        let rendered = prepare(&sources, &params)
            .and_then(|prepared| render(&sources, &prepared, &Here, &Budget::default()));
        let rendered = rendered.map_err(|e| Failure::error(e.to_string()))?;
        if !rendered.errors.is_empty() {
            let errors: Vec<String> = rendered.errors.iter().map(ToString::to_string).collect();
            return Err(Failure::error(errors.join("; ")));
        }
        rendered
            .warnings
            .iter()
            .for_each(|warning| log::warn(warning));
        let marked = |mut object: Object| {
            track::set(&mut object, tracking, namespace);
            object
        };
        Ok(rendered.objects.into_iter().map(marked).collect())
    }

    /// The root and the folder in it. A folder outside of the root becomes its own root.
    fn place(&self) -> Result<(PathBuf, String), Failure> {
        let real = |path: &Path| path.canonicalize().map_err(|e| Failure::file(path, &e));
        let (folder, root) = (real(self.folder)?, real(self.root)?);
        let Ok(inner) = folder.strip_prefix(&root) else {
            return Ok((folder, String::new()));
        };
        let inner = inner.to_str().ok_or_else(|| {
            Failure::error(format!("{}: the name is not UTF-8", folder.display()))
        })?;
        Ok((root, inner.to_owned()))
    }
}

fn is_shown(object: &Object) -> bool {
    let secret = is_secret(object.group(), object.kind());
    if secret {
        eprintln!(
            "Warning: Secret {}/{} is not supported in local diff and will be ignored",
            object.namespace(),
            object.name()
        );
    }
    !secret
}

/// Charts with randomness and time of this machine.
struct Here;

impl Charts for Here {
    fn sources(&self) -> Arc<dyn Fn() -> Sources + Send + Sync> {
        Arc::new(helm::sources)
    }
}
