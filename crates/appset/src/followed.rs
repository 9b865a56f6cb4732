//! What a set follows outside the cluster: for events that say that something there has changed.
//! Main function: [`follows`].

use crate::error::GenerateError;
use crate::generators::{Context, child, interpolate, matrix::combinations, unnested};
use crate::need::Facts;
use crate::params::Params;
use crate::render::Renderer;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::application_set::generators::{
    ApplicationSetGenerator, GitGenerator, MatrixGenerator, MergeGenerator,
};
use tiphys_api::application_set::hosts::PullRequestGenerator;
use tiphys_gocompat::sprig::Sources;

/// A generator that follows something outside, with the parameters of others filled in.
#[derive(Clone, Copy, Debug)]
pub enum Followed<'g> {
    Git(&'g GitGenerator),
    PullRequests(&'g PullRequestGenerator),
    /// Whatever a plugin looks at. It is not looked for in the first half of a matrix, and not in a
    /// merge.
    Plugin,
}

/// Whether `is_it` is true of one of the set's generators. If answers are missing, the facts name
/// them.
pub fn follows(
    set: &ApplicationSet,
    facts: &Facts,
    sources: &mut Sources,
    is_it: &dyn Fn(Followed<'_>) -> bool,
) -> Result<bool, GenerateError> {
    let spec = &set.spec;
    let renderer = Renderer::new(spec.go_template, &spec.go_template_options, sources);
    let walk = Walk {
        context: Context {
            set,
            facts,
            renderer: &renderer,
        },
        is_it,
    };
    facts.missing();
    walk.any(spec.generators.iter().map(|entry| walk.entry(entry, true)))
}

struct Walk<'a> {
    context: Context<'a>,
    is_it: &'a dyn Fn(Followed<'_>) -> bool,
}

impl Walk<'_> {
    /// Whether one is true; what is missing for others does not matter then.
    fn any(
        &self,
        all: impl Iterator<Item = Result<bool, GenerateError>>,
    ) -> Result<bool, GenerateError> {
        let mut missing = false;
        for one in all {
            match one {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.is_missing() => missing = true,
                Err(error) => return Err(error),
            }
        }
        match missing {
            true => Err(GenerateError::Missing),
            false => Ok(false),
        }
    }

    fn entry(
        &self,
        entry: &ApplicationSetGenerator,
        with_plugin: bool,
    ) -> Result<bool, GenerateError> {
        let git = entry.git.as_deref().map(Followed::Git);
        let pulls = entry.pull_request.as_deref().map(Followed::PullRequests);
        let plugin = entry.plugin.as_ref().map(|_| Followed::Plugin);
        let plugin = plugin.filter(|_| with_plugin);
        if [git, pulls, plugin].into_iter().flatten().any(self.is_it) {
            return Ok(true);
        }
        let matrix = entry.matrix.as_deref().map(|matrix| self.matrix(matrix));
        let merge = entry.merge.as_deref().map(|merge| self.merge(merge));
        self.any([matrix, merge].into_iter().flatten())
    }

    fn matrix(&self, matrix: &MatrixGenerator) -> Result<bool, GenerateError> {
        let [first, others @ ..] = matrix.generators.as_slice() else {
            return Ok(false);
        };
        if self.entry(&unnested(first)?, false)? {
            return Ok(true);
        }
        // The set's own reconcile says what fails; nothing is filled in then.
        let found = |sets: Result<Vec<Params>, GenerateError>| match sets {
            Err(error) if error.is_missing() => Err(error),
            sets => Ok(sets.unwrap_or_default()),
        };
        let mut before = found(child(first, &Params::new(), self.context))?;
        for (index, other) in others.iter().enumerate() {
            let entry = unnested(other)?;
            let is_one = match before.as_slice() {
                [] => self.entry(&entry, true)?,
                sets => self.any(sets.iter().map(|params| {
                    let filled = interpolate(&entry, params, self.context.renderer)?;
                    self.entry(&filled, true)
                }))?,
            };
            if is_one {
                return Ok(true);
            }
            if index + 1 < others.len() {
                before = found(combinations(&before, other, "next generator", self.context))?;
            }
        }
        Ok(false)
    }

    fn merge(&self, merge: &MergeGenerator) -> Result<bool, GenerateError> {
        self.any(
            merge
                .generators
                .iter()
                .map(|nested| self.entry(&unnested(nested)?, false)),
        )
    }
}
