//! Parts of generating, one by one, for what shows them alone: the recorded cases of Argo CD's unit
//! tests. Main functions: [`replace`], [`application`], [`interpolate`] and [`params`].

pub use crate::params::{Param, Params};
pub use crate::render::Renderer;
pub use crate::template::application;

use crate::error::GenerateError;
use crate::generators::{Context, transform};
use crate::need::Facts;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::application_set::generators::ApplicationSetGenerator;
use tiphys_gocompat::sprig::Sources;

/// Renders one text.
pub fn replace(
    renderer: &Renderer<'_>,
    text: &str,
    params: &Params,
) -> Result<String, GenerateError> {
    renderer.with(params).text(text)
}

/// Renders the second generator of a matrix with parameters of the first.
pub fn interpolate(
    generator: &ApplicationSetGenerator,
    params: &Params,
    renderer: &Renderer<'_>,
) -> Result<ApplicationSetGenerator, GenerateError> {
    if params.is_empty() {
        return Ok(generator.clone());
    }
    crate::generators::interpolate(generator, params, renderer)
}

/// The parameters of all generators of a set. If answers are missing, the facts name them.
pub fn params(
    set: &ApplicationSet,
    facts: &Facts,
    sources: &mut Sources,
) -> Result<Vec<Params>, GenerateError> {
    let spec = &set.spec;
    let renderer = Renderer::new(spec.go_template, &spec.go_template_options, sources);
    let context = Context {
        set,
        facts,
        renderer: &renderer,
    };
    let mut sets = Vec::new();
    for entry in &spec.generators {
        for transformed in transform(entry, &Params::new(), context)? {
            sets.extend(transformed.params);
        }
    }
    Ok(sets)
}
