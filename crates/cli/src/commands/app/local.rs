//! `--local`: the manifests of a local folder for an Application, rendered here as the API server
//! renders its source in Git.
//!
//! Main type: [`Local`].

mod facts;
mod fetching;

use crate::{
    client::{Client, Failure},
    output::{log, summary},
};
use facts::Facts;
use fetching::{LocalRender, Refs};
use serde_json::Value;
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};
use tiphys_api::{Application, access::same_repository, source::ApplicationSource};
use tiphys_apimachinery::Object;
use tiphys_engine::{spec, track, types::Tracking};
use tiphys_render::SourceRef;
use tiphys_repo::{ManifestRequest, RepoAccess, net::reason};
use tiphys_sources::is_only_referred_to;

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
    /// The objects with the Application's tracking metadata. One source defines how they are
    /// rendered; the API server provides the settings and the cluster's versions.
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
        let (source, others) = source(app);
        if others > 0 {
            log::warn(&format!(
                "the folder is rendered in place of the source of {}; sources left out: {others}",
                source.repo_url
            ));
        }
        let facts = Facts::of(client, app, &source).await?;
        let Place { root, folder, file } = self.place()?;
        let source = match &file {
            Some(name) => self.only_file(source, name)?,
            None => source,
        };
        let namespace = &app.spec.destination.namespace;
        let request = ManifestRequest {
            access: RepoAccess::public(source.repo_url.clone()),
            source,
            app_name: tracking.app_name.clone(),
            namespace: namespace.clone(),
            project: spec::project_name(app).to_owned(),
            cluster_facts: facts.cluster,
            kustomize_versions: facts.kustomize_versions,
            several: summary::has_many_sources(app),
            ..ManifestRequest::default()
        };
        let refs = refs(app, &request);
        let local = LocalRender::new(&root, folder, request, refs);
        let rendered = local.run().await?;
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

    /// Where the manifests are. A folder outside of the root becomes its own root.
    fn place(&self) -> Result<Place, Failure> {
        let folder = self.folder.canonicalize().map_err(|e| {
            // As the `argocd` command says it, whose search for the kind of source finds it first.
            const FAILED: &str = "error getting app source type";
            let (folder, why) = (self.folder.display(), reason(&e));
            Failure::error(format!("{FAILED}: {FAILED}: lstat {folder}: {why}"))
        })?;
        let root = self.root.canonicalize();
        let root = root.map_err(|e| Failure::file(self.root, &e))?;
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                Failure::error(format!("{}: the name is not UTF-8", folder.display()))
            })
        };
        let (folder, file) = match (folder.is_file(), folder.parent(), folder.file_name()) {
            (true, Some(parent), Some(name)) => (parent, Some(text(Path::new(name))?)),
            _ => (folder.as_path(), None),
        };
        let (root, folder) = match folder.strip_prefix(&root) {
            Ok(inner) => (root.clone(), text(inner)?),
            Err(_) => (folder.to_owned(), String::new()),
        };
        Ok(Place { root, folder, file })
    }

    /// The source for a single file with manifests, which the `argocd` command takes too. The files
    /// of charts and kustomizations are in folders.
    fn only_file(
        &self,
        mut source: ApplicationSource,
        name: &str,
    ) -> Result<ApplicationSource, Failure> {
        let in_folder = name.ends_with("Chart.yaml")
            || ["kustomization.yaml", "kustomization.yml", "Kustomization"].contains(&name);
        if in_folder
            || source.helm.is_some()
            || source.kustomize.is_some()
            || source.plugin.is_some()
        {
            return Err(Failure::error(format!(
                "{}: app path is not a directory",
                self.folder.display()
            )));
        }
        let directory = source.directory.get_or_insert_default();
        directory.recurse = false;
        directory.exclude = String::new();
        directory.include = String::new();
        for c in name.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
                directory.include.push('\\');
            }
            directory.include.push(c);
        }
        Ok(source)
    }
}

/// What is rendered.
struct Place {
    root: PathBuf,
    /// In the root.
    folder: String,
    /// The only file of the folder that is meant, if there is one.
    file: Option<String>,
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

/// The source that the folder is in place of, and how many others make manifests: the first one
/// that does. Argo CD takes the first of all, even if it only has files for others.
fn source(app: &Application) -> (ApplicationSource, usize) {
    if let Some(hydrator) = &app.spec.source_hydrator {
        return (spec::dry_source(hydrator), 0);
    }
    let sources = spec::sources(&app.spec);
    let mut making = sources.iter().filter(|source| !is_only_referred_to(source));
    let first = making.next().or(sources.first());
    let source = first.cloned().map(Cow::into_owned).unwrap_or_default();
    (source, making.count())
}

/// The sources whose files the rendered one may read. What is in its own repository is read from
/// the local copy.
fn refs(app: &Application, request: &ManifestRequest) -> Refs {
    if !request.refers() {
        return Refs::new();
    }
    let named = app.spec.sources.iter();
    // A chart has no files to refer to.
    let named = named.filter(|source| !source.ref_.is_empty() && source.chart.is_empty());
    let place = |source: &ApplicationSource| {
        let is_here = same_repository(&source.repo_url, &request.source.repo_url);
        let needed = (!is_here).then(|| SourceRef::Git {
            url: source.repo_url.clone(),
            revision: source.target_revision.clone(),
            submodules: true,
        });
        (source.ref_.clone(), needed)
    };
    named.map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(sources: Value) -> Application {
        let app = json!({"spec": {"project": "default", "destination": {}, "sources": sources}});
        serde_json::from_value(app).expect("an Application")
    }

    #[test]
    fn the_first_source_that_makes_manifests_is_rendered() {
        let values = json!({"repoURL": "https://h/values", "ref": "values"});
        let web = json!({"repoURL": "https://h/web", "path": "web"});
        let more = json!({"repoURL": "https://h/more", "path": "more"});
        for (sources, url, others) in [
            (json!([]), "", 0),
            (json!([values]), "https://h/values", 0),
            (json!([values, web]), "https://h/web", 0),
            (json!([web, values]), "https://h/web", 0),
            (json!([values, more, web]), "https://h/more", 1),
        ] {
            let (source, left) = source(&app(sources));
            assert_eq!((source.repo_url.as_str(), left), (url, others));
        }
    }

    #[test]
    fn a_file_is_its_folder_without_the_other_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a[1].yaml");
        std::fs::write(&file, "").expect("written");
        let local = Local {
            folder: &file,
            root: Path::new("/"),
        };
        let place = local.place().map_err(|e| e.message).expect("a place");
        let parent = folder.path().canonicalize().expect("it is there");
        assert_eq!(place.root.join(&place.folder), parent);
        assert_eq!(place.file.as_deref(), Some("a[1].yaml"));
        let only = |source: ApplicationSource| {
            let source = local.only_file(source, "a[1].yaml");
            source.map_err(|e| e.message)
        };
        let source = only(ApplicationSource::default()).expect("a source");
        let directory = source.directory.expect("a directory");
        assert_eq!(directory.include, "a\\[1\\].yaml");
        let chart = ApplicationSource {
            helm: Some(Box::default()),
            ..ApplicationSource::default()
        };
        assert_eq!(
            only(chart),
            Err(format!("{}: app path is not a directory", file.display()))
        );
    }

    #[test]
    fn sources_of_the_same_repository_are_here() {
        let request = |files: Value| ManifestRequest {
            source: serde_json::from_value(json!({
                "repoURL": "https://h/web", "path": "web", "helm": {"valueFiles": files},
            }))
            .expect("a source"),
            ..ManifestRequest::default()
        };
        let app = app(json!([
            {"repoURL": "https://h/web.git", "ref": "own"},
            {"repoURL": "https://h/values", "targetRevision": "v1", "ref": "values"},
            {"repoURL": "https://h/charts", "chart": "web", "ref": "chart"},
            {"repoURL": "https://h/web", "path": "web"},
        ]));
        let elsewhere = SourceRef::Git {
            url: "https://h/values".to_owned(),
            revision: "v1".to_owned(),
            submodules: true,
        };
        let found = refs(&app, &request(json!(["$values/a.yaml"])));
        let expected = [("own", None), ("values", Some(elsewhere))];
        let expected = expected.map(|(name, place)| (name.to_owned(), place));
        assert_eq!(found, Refs::from(expected));
        assert_eq!(refs(&app, &request(json!(["a.yaml"]))), Refs::new());
    }
}
