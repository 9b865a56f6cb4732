//! Renders files of this machine, and fetches what they need from elsewhere: dependencies of charts,
//! bases, files of the web, sources with a `ref`. It has the access of whoever runs the command: the
//! API server shows nobody its credentials.
//!
//! Main type: [`LocalRender`].

use crate::{
    client::Failure,
    commands::{
        fetched::{Incomplete, complete},
        files::LocalFiles,
        helm,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
    sync::Arc,
};
use tiphys_render::{
    AppFacts, Budget, Charts, RenderError, RenderParams, Rendered, SourceFiles, SourceRef,
    SourceSet, Tool, helm::Sources, prepare, render,
};
use tiphys_repo::{ManifestRequest, Obtained, RepoError};

/// The sources with a `ref`, by that name. `None`: it is in the repository of the local files.
pub type Refs = BTreeMap<String, Option<SourceRef>>;

pub struct LocalRender {
    files: LocalFiles,
    params: RenderParams,
    request: ManifestRequest,
    refs: Refs,
}

impl LocalRender {
    /// `root`: the root of the local repository; `folder`: the one to render, in it.
    pub fn new(root: &Path, folder: String, request: ManifestRequest, refs: Refs) -> Self {
        let params = RenderParams {
            app: AppFacts {
                name: request.app_name.clone(),
                namespace: request.namespace.clone(),
                project: request.project.clone(),
                revision: request.source.target_revision.clone(),
            },
            folder: Some(folder),
            source: request.source.clone(),
            cluster_facts: request.cluster_facts.clone(),
        };
        Self {
            files: LocalFiles::new(root),
            params,
            request,
            refs,
        }
    }

    /// Renders, with everything that is needed from elsewhere.
    pub async fn run(&self) -> Result<Rendered, Failure> {
        let rendered = match self.attempt(&Obtained::default()) {
            Err(RenderError::Need(needed)) => {
                let attempt = |obtained: &Obtained| self.attempt(obtained);
                complete(&self.request, needed, attempt, |_, _| None).await
            }
            first => first.map_err(Incomplete::Render),
        };
        rendered.map_err(|incomplete| match incomplete {
            Incomplete::Render(e) => Failure::error(e.to_string()),
            Incomplete::Missing(missing) => unobtained(&missing.error),
            Incomplete::TooMuch(error) => unobtained(&error),
            Incomplete::Folder(e) => Failure::file(env::temp_dir(), &e),
        })
    }

    fn attempt(&self, obtained: &Obtained) -> Result<Rendered, RenderError> {
        let files = obtained.files();
        let mut fetched: BTreeMap<SourceRef, &dyn SourceFiles> = BTreeMap::new();
        for (needed, files) in &files {
            fetched.insert(needed.clone(), files.as_ref());
        }
        let mut refs: BTreeMap<String, &dyn SourceFiles> = BTreeMap::new();
        let mut missing = BTreeSet::new();
        for (name, place) in &self.refs {
            let files = match place {
                None => Some(&self.files as &dyn SourceFiles),
                Some(needed) => fetched.get(needed).copied(),
            };
            match files {
                Some(files) => {
                    refs.insert(name.clone(), files);
                }
                None => missing.extend(place.clone()),
            }
        }
        if !missing.is_empty() {
            return Err(RenderError::Need(missing.into_iter().collect()));
        }
        let sources = SourceSet {
            refs,
            fetched,
            several: self.request.several,
            ..SourceSet::new(&self.files)
        };
        let prepared = prepare(&sources, &self.params)?;
        let replaced = match &prepared.tool {
            Tool::Kustomize(options) => self.request.kustomize_versions.check(&options.version)?,
            _ => None,
        };
        let mut rendered = render(&sources, &prepared, &Here, &Budget::default())?;
        rendered.warnings.extend(replaced);
        Ok(rendered)
    }
}

/// Who has no access here can have the server fetch it.
fn unobtained(e: &RepoError) -> Failure {
    let failure = Failure::error(e.to_string());
    match e {
        RepoError::AuthFailed { .. } | RepoError::NotFound { .. } => failure.with_hint(
            "it was asked without credentials; app diff --local DIR --server-side-generate has the server fetch it",
        ),
        _ => failure,
    }
}

/// Charts with randomness and time of this machine.
struct Here;

impl Charts for Here {
    fn sources(&self) -> Arc<dyn Fn() -> Sources + Send + Sync> {
        Arc::new(helm::sources)
    }
}
