//! The sources of an Application with a hydrator: what is rendered into a branch, where to, and what
//! is synced from there.

use std::borrow::Cow;
use tiphys_api::{
    application::ApplicationSpec,
    source::{ApplicationSource, SourceHydrator},
};

/// What is rendered.
pub fn dry_source(hydrator: &SourceHydrator) -> ApplicationSource {
    let dry = hydrator.dry_source.clone();
    ApplicationSource {
        repo_url: dry.repo_url,
        path: dry.path,
        target_revision: dry.target_revision,
        helm: dry.helm,
        kustomize: dry.kustomize,
        directory: dry.directory,
        plugin: dry.plugin,
        ..ApplicationSource::default()
    }
}

/// What is synced.
pub fn sync_source(hydrator: &SourceHydrator) -> ApplicationSource {
    let (dry, sync) = (&hydrator.dry_source, &hydrator.sync_source);
    let url = match sync.repo_url.as_str() {
        "" => &dry.repo_url,
        url => url,
    };
    ApplicationSource {
        repo_url: url.to_owned(),
        path: sync.path.clone(),
        target_revision: sync.target_branch.clone(),
        ..ApplicationSource::default()
    }
}

/// Where manifests are written to: the branch that is synced, unless another one is before it.
pub fn hydrate_to(hydrator: &SourceHydrator) -> ApplicationSource {
    let mut source = sync_source(hydrator);
    if let Some(to) = &hydrator.hydrate_to {
        source.target_revision.clone_from(&to.target_branch);
    }
    source
}

/// A spec whose only source is what is synced.
pub fn synced(spec: &ApplicationSpec) -> Cow<'_, ApplicationSpec> {
    let Some(hydrator) = &spec.source_hydrator else {
        return Cow::Borrowed(spec);
    };
    Cow::Owned(ApplicationSpec {
        source: Some(sync_source(hydrator)),
        sources: Vec::new(),
        ..spec.clone()
    })
}

/// Whether there may be several sources, even if there is only one.
pub fn has_several(spec: &ApplicationSpec) -> bool {
    spec.source_hydrator.is_none() && !spec.sources.is_empty()
}

/// What is missing in a hydrator, each as the message of a condition.
pub(super) fn incomplete(hydrator: &SourceHydrator) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if hydrator.dry_source.repo_url.is_empty() {
        missing.push("spec.sourceHydrator.drySource.repoURL is required");
    }
    if hydrator.sync_source.target_branch.is_empty() {
        missing.push("spec.sourceHydrator.syncSource.targetBranch is required");
    }
    let to = hydrator.hydrate_to.as_ref();
    if to.is_some_and(|to| to.target_branch.is_empty()) {
        missing.push(
            "when spec.sourceHydrator.hydrateTo is set, spec.sourceHydrator.hydrateTo.targetBranch is required",
        );
    }
    missing
}
