//! From an ApplicationSet to its Applications. Main function: [`generate`].

use crate::error::GenerateError;
use crate::generators::{Context, Kind, kinds, requeue, transform};
use crate::need::{Facts, Need};
use crate::params::Params;
use crate::render::Renderer;
use crate::template::{application, merged, patched};
use std::time::Duration;
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::application_set::generators::ApplicationSetGenerator;
use tiphys_gocompat::sprig::Sources;

/// What a run of [`generate`] came to.
#[derive(Debug)]
pub enum Outcome {
    /// Answers are missing: add them to the facts and run again.
    Needs(Vec<Need>),
    Done(Generated),
}

/// The Applications of a set.
#[derive(Debug, Default)]
pub struct Generated {
    /// In the order of the generators. With a failure these are only what could still be made, and
    /// nothing may be created, updated or deleted because of them.
    pub applications: Vec<Application>,
    pub failure: Option<Failure>,
}

impl Generated {
    /// No Applications, because nothing is known about them.
    pub fn failed(message: String) -> Self {
        Self {
            applications: Vec::new(),
            failure: Some(Failure {
                reason: Reason::Generator,
                error: GenerateError::Content(message),
            }),
        }
    }
}

/// The first error of a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    pub reason: Reason,
    pub error: GenerateError,
}

/// Which part failed; the name is that of the condition's reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Generator,
    Template,
}

impl Reason {
    /// As it stands in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generator => "ApplicationGenerationFromParamsError",
            Self::Template => "RenderTemplateParamsError",
        }
    }
}

/// Makes the Applications of a set from the answers known so far.
pub fn generate(set: &ApplicationSet, facts: &Facts, sources: &mut Sources) -> Outcome {
    let spec = &set.spec;
    let renderer = Renderer::new(spec.go_template, &spec.go_template_options, sources);
    let context = Context {
        set,
        facts,
        renderer: &renderer,
    };
    let mut generated = Generated::default();
    facts.missing();
    for (index, entry) in spec.generators.iter().enumerate() {
        let place = place(index, entry);
        if let Err(error) = add_entry(&mut generated, entry, &place, context) {
            let error = error.inside(place);
            let reason = Reason::Generator;
            generated.failure.get_or_insert(Failure { reason, error });
        }
        if renderer.is_full() {
            break;
        }
    }
    match facts.missing() {
        needs if needs.is_empty() => Outcome::Done(generated),
        needs => Outcome::Needs(needs),
    }
}

/// How errors name a generator of a set.
fn place(index: usize, entry: &ApplicationSetGenerator) -> String {
    let kind = kinds(entry).first().map(Kind::name);
    format!("generators[{index}] ({})", kind.unwrap_or("empty"))
}

fn add_entry(
    generated: &mut Generated,
    entry: &ApplicationSetGenerator,
    place: &str,
    context: Context<'_>,
) -> Result<(), GenerateError> {
    let spec = &context.set.spec;
    for transformed in transform(entry, &Params::new(), context)? {
        let kinds = kinds(entry);
        let Some(kind) = kinds.get(transformed.kind) else {
            continue;
        };
        let template = merged(kind.template(), &spec.template)?;
        crate::limit(generated.applications.len() + transformed.params.len())?;
        for (index, params) in transformed.params.iter().enumerate() {
            let app = application(
                &template,
                params,
                context.renderer,
                spec.sync_policy.as_ref(),
            )
            .and_then(|app| match &spec.template_patch {
                Some(patch) => patched(app, patch, params, context.renderer),
                None => Ok(app),
            });
            match app {
                Ok(mut app) => {
                    app.metadata.namespace = context.set.metadata.namespace.clone();
                    generated.applications.push(app);
                }
                Err(error) => {
                    let reason = Reason::Template;
                    let (element, all) = (index + 1, transformed.params.len());
                    let error = error.inside(format!(
                        "the template for element {element} of {all} of {place}"
                    ));
                    generated.failure.get_or_insert(Failure { reason, error });
                    // None of the others would be made.
                    if context.renderer.is_full() {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// When the answers of the outside are to be asked again; `None`: not by time.
pub fn requeue_after(set: &ApplicationSet, default: Duration) -> Option<Duration> {
    requeue::after(&set.spec.generators, default)
}
