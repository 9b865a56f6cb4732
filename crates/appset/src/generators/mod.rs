//! Generators: from their specification and answers of the outside to parameters.
//!
//! Main function: [`transform`]. One file for each kind; matrix and merge combine others.

pub(crate) mod clusters;
pub(crate) mod decision;
pub(crate) mod git;
pub(crate) mod list;
pub(crate) mod matrix;
pub(crate) mod merge;
pub(crate) mod plugin;
pub(crate) mod pull_request;
pub(crate) mod requeue;
pub(crate) mod scm;

use crate::error::{GenerateError, Place};
use crate::need::Facts;
use crate::params::{Param, Params, flat_labels};
use crate::render::{Renderer, literal};
use crate::selector::Selector;
use serde_json::Value as Json;
use std::{borrow::Cow, collections::BTreeMap};
use tiphys_api::application_set::generators::{
    self as api, ApplicationSetGenerator, ApplicationSetNestedGenerator,
    ApplicationSetTerminalGenerator,
};
use tiphys_api::application_set::hosts;
use tiphys_api::application_set::{ApplicationSet, ApplicationSetTemplate};

/// What every generator gets.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub set: &'a ApplicationSet,
    pub facts: &'a Facts,
    pub renderer: &'a Renderer<'a>,
}

/// What fails where `values` are appended, in Argo CD's words; each generator adds its own.
pub(crate) const NOT_APPENDED: &str = "failed to append templated values";
const NOT_RENDERED: &str = "failed to replace templated string: failed to replace templated string \
                            with rendered values";

impl Context<'_> {
    pub fn is_go(&self) -> bool {
        self.renderer.is_go()
    }

    /// Adds a generator's `values`, each rendered with the parameters of the generator alone.
    pub fn add_values(
        &self,
        params: &mut Params,
        values: &BTreeMap<String, String>,
    ) -> Result<(), GenerateError> {
        if values.is_empty() {
            return Ok(());
        }
        let mut rendered = BTreeMap::new();
        {
            let filled = self.renderer.with(params);
            for (key, value) in values {
                let text = filled
                    .text(value)
                    .map_err(|error| error.inside(format!("values.{key}")))
                    .at(NOT_RENDERED)?;
                rendered.insert(key.clone(), text);
            }
        }
        self.set_values(params, rendered);
        Ok(())
    }

    /// Adds `values` as they are.
    pub fn set_values(&self, params: &mut Params, mut values: BTreeMap<String, String>) {
        if values.is_empty() {
            return;
        }
        values.values_mut().for_each(literal::restore);
        if self.is_go() {
            params.insert("values".into(), Param::StringMap(values));
        } else {
            for (key, value) in values {
                params.insert(format!("values.{key}"), value.into());
            }
        }
    }
}

/// One kind of generator in an entry.
pub(crate) enum Kind<'g> {
    List(&'g api::ListGenerator),
    Clusters(&'g api::ClusterGenerator),
    Git(&'g api::GitGenerator),
    Scm(&'g hosts::SCMProviderGenerator),
    Decision(&'g api::DuckTypeGenerator),
    PullRequest(&'g hosts::PullRequestGenerator),
    Matrix(&'g api::MatrixGenerator),
    Merge(&'g api::MergeGenerator),
    Plugin(&'g api::PluginGenerator),
}

/// The kinds of an entry, in the order in which they run.
pub(crate) fn kinds(entry: &ApplicationSetGenerator) -> Vec<Kind<'_>> {
    [
        entry.list.as_deref().map(Kind::List),
        entry.clusters.as_deref().map(Kind::Clusters),
        entry.git.as_deref().map(Kind::Git),
        entry.scm_provider.as_deref().map(Kind::Scm),
        entry
            .cluster_decision_resource
            .as_deref()
            .map(Kind::Decision),
        entry.pull_request.as_deref().map(Kind::PullRequest),
        entry.matrix.as_deref().map(Kind::Matrix),
        entry.merge.as_deref().map(Kind::Merge),
        entry.plugin.as_deref().map(Kind::Plugin),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether an entry has a generator of a known kind.
pub fn has_generator(entry: &ApplicationSetGenerator) -> bool {
    !kinds(entry).is_empty()
}

impl<'g> Kind<'g> {
    /// As it stands in a set.
    pub fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Clusters(_) => "clusters",
            Self::Git(_) => "git",
            Self::Scm(_) => "scmProvider",
            Self::Decision(_) => "clusterDecisionResource",
            Self::PullRequest(_) => "pullRequest",
            Self::Matrix(_) => "matrix",
            Self::Merge(_) => "merge",
            Self::Plugin(_) => "plugin",
        }
    }

    /// The generator's own template.
    pub fn template(&self) -> &'g ApplicationSetTemplate {
        match self {
            Self::List(g) => &g.template,
            Self::Clusters(g) => &g.template,
            Self::Git(g) => &g.template,
            Self::Scm(g) => &g.template,
            Self::Decision(g) => &g.template,
            Self::PullRequest(g) => &g.template,
            Self::Matrix(g) => &g.template,
            Self::Merge(g) => &g.template,
            Self::Plugin(g) => &g.template,
        }
    }

    fn params(&self, context: Context<'_>) -> Result<Vec<Params>, GenerateError> {
        match self {
            Self::List(g) => list::params(g, context),
            Self::Clusters(g) => clusters::params(g, context),
            Self::Git(g) => git::params(g, context),
            Self::Scm(g) => scm::params(g, context),
            Self::Decision(g) => decision::params(g, context),
            Self::PullRequest(g) => pull_request::params(g, context),
            Self::Matrix(g) => matrix::params(g, context),
            Self::Merge(g) => merge::params(g, context),
            Self::Plugin(g) => plugin::params(g, context),
        }
    }
}

/// The parameters of each kind in an entry.
pub(crate) struct Transformed {
    /// The place of the kind in [`kinds`] of the entry.
    pub kind: usize,
    pub params: Vec<Params>,
}

/// Runs all kinds of an entry, rendered with `known` parameters of another generator first. The
/// first error is kept; the other kinds still run, so that all their needs are known.
pub(crate) fn transform(
    entry: &ApplicationSetGenerator,
    known: &Params,
    context: Context<'_>,
) -> Result<Vec<Transformed>, GenerateError> {
    let selector = match &entry.selector {
        Some(selector) => Some(Selector::new(selector).at("error parsing label selector")?),
        None => None,
    };
    let entry = match known.is_empty() {
        true => settled(entry)?,
        false => Cow::Owned(interpolate(entry, known, context.renderer)?),
    };
    let entry = entry.as_ref();
    let mut transformed = Vec::new();
    let mut first = None;
    for (index, kind) in kinds(entry).iter().enumerate() {
        match kind.params(context) {
            Ok(mut params) => {
                if let Some(selector) = &selector {
                    params.retain(|set| selector.matches(&flat_labels(set)));
                }
                transformed.push(Transformed {
                    kind: index,
                    params,
                });
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    match first {
        Some(error) => Err(error),
        None => Ok(transformed),
    }
}

/// Renders a generator with the parameters of another one.
pub(crate) fn interpolate(
    entry: &ApplicationSetGenerator,
    params: &Params,
    renderer: &Renderer<'_>,
) -> Result<ApplicationSetGenerator, GenerateError> {
    let document = serde_json::to_value(entry).map_err(unreadable)?;
    let protected = literal::protected(params);
    // The generator goes when its parameters are there, which are counted themselves.
    let mut rendered = renderer
        .passing(|| renderer.nested(&protected).generator(&document))
        .at("failed to replace parameters in generator")?;
    settle(&mut rendered);
    serde_json::from_value(rendered).map_err(unreadable)
}

/// A child of a matrix or merge that was rendered with it.
fn settled(
    entry: &ApplicationSetGenerator,
) -> Result<Cow<'_, ApplicationSetGenerator>, GenerateError> {
    let mut document = serde_json::to_value(entry).map_err(unreadable)?;
    if !literal::is_in(&document) {
        return Ok(Cow::Borrowed(entry));
    }
    settle(&mut document);
    Ok(Cow::Owned(
        serde_json::from_value(document).map_err(unreadable)?,
    ))
}

/// Restores the texts that are not rendered again: all but `values` and what is in a matrix or
/// merge, whose children are rendered with each other's parameters.
fn settle(entry: &mut Json) {
    let kinds = entry.as_object_mut().into_iter().flatten();
    for (_, kind) in kinds.filter(|(name, _)| !["matrix", "merge"].contains(&name.as_str())) {
        let members = kind.as_object_mut().into_iter().flatten();
        for (_, member) in members.filter(|(name, _)| *name != "values") {
            literal::restore_json(member);
        }
    }
}

#[allow(clippy::needless_pass_by_value)]
fn unreadable(error: serde_json::Error) -> GenerateError {
    GenerateError::content(error.to_string())
}

/// The parameters of a child of matrix or merge: exactly one kind.
pub(crate) fn child(
    child: &ApplicationSetNestedGenerator,
    known: &Params,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let entry = unnested(child)?;
    let mut transformed = transform(&entry, known, context)
        .at("child generator returned an error on parameter generation")?;
    if transformed.len() > 1 {
        return Err(GenerateError::spec(
            "found more than one generator in matrix.Generators",
        ));
    }
    match transformed.pop() {
        Some(only) => Ok(only.params),
        None => Err(GenerateError::spec(
            "child generator generated no parameters",
        )),
    }
}

/// A child as an entry. The children of a nested matrix or merge hold neither.
pub(crate) fn unnested(
    child: &ApplicationSetNestedGenerator,
) -> Result<ApplicationSetGenerator, GenerateError> {
    let matrix = match &child.matrix {
        Some(json) => {
            let nested: api::NestedMatrixGenerator =
                serde_json::from_slice(&json.raw).map_err(unreadable)?;
            Some(Box::new(api::MatrixGenerator {
                generators: nested.generators.into_iter().map(terminal).collect(),
                ..Default::default()
            }))
        }
        None => None,
    };
    let merge = match &child.merge {
        Some(json) => {
            let nested: api::NestedMergeGenerator =
                serde_json::from_slice(&json.raw).map_err(unreadable)?;
            Some(Box::new(api::MergeGenerator {
                generators: nested.generators.into_iter().map(terminal).collect(),
                merge_keys: nested.merge_keys,
                ..Default::default()
            }))
        }
        None => None,
    };
    let child = child.clone();
    Ok(ApplicationSetGenerator {
        list: child.list,
        clusters: child.clusters,
        git: child.git,
        scm_provider: child.scm_provider,
        cluster_decision_resource: child.cluster_decision_resource,
        pull_request: child.pull_request,
        matrix,
        merge,
        selector: child.selector,
        plugin: child.plugin,
    })
}

fn terminal(child: ApplicationSetTerminalGenerator) -> ApplicationSetNestedGenerator {
    ApplicationSetNestedGenerator {
        list: child.list,
        clusters: child.clusters,
        git: child.git,
        scm_provider: child.scm_provider,
        cluster_decision_resource: child.cluster_decision_resource,
        pull_request: child.pull_request,
        matrix: None,
        merge: None,
        selector: child.selector,
        plugin: child.plugin,
    }
}
