//! Helm's template engine: executes every template of a chart and its subcharts with the values in
//! its scope.
//!
//! Main type: [`ParsedTemplates`], which keeps parsed templates so that a chart can be rendered
//! again without parsing it; main function: [`ParsedTemplates::render`]. It must not know what the
//! rendered files are used for.

mod capabilities;
mod durations;
mod error;
mod files;
mod formats;
mod functions;
mod scope;
mod table;

use super::chart::{Chart, File};
use super::{HelmError, RenderOptions};
use functions::RenderHost;
use scope::{Renderable, Scopes};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tiphys_gocompat::template::{self, Budget, MissingKey, Parsed, TemplateSet};

/// The name of the set of all templates in error texts.
const ROOT: &str = "gotpl";

/// The parsed templates of a chart.
#[derive(Default)]
pub struct ParsedTemplates(Mutex<State>);

#[derive(Default)]
struct State {
    /// By name, each with its text.
    known: HashMap<String, Known>,
    /// All those of the last render, because the next one usually has the same.
    complete: Option<Complete>,
}

struct Known {
    text: Arc<[u8]>,
    parsed: Parsed,
}

/// A set and the names and texts it was made of, in this order.
struct Complete {
    texts: Vec<(String, Arc<[u8]>)>,
    set: Arc<TemplateSet>,
}

impl Complete {
    fn is_of(&self, templates: &[Renderable<'_>]) -> bool {
        let same = |((name, text), template): (&(String, Arc<[u8]>), &Renderable<'_>)| {
            *name == template.name && is_same(text, &template.file.data)
        };
        self.texts.len() == templates.len() && self.texts.iter().zip(templates).all(same)
    }
}

fn is_same(a: &Arc<[u8]>, b: &Arc<[u8]>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Rendered files by name, and warnings.
type Rendered = (BTreeMap<String, String>, Vec<String>);

impl ParsedTemplates {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The set of these templates. Later definitions replace earlier ones.
    fn set(&self, templates: &[Renderable<'_>]) -> Result<Arc<TemplateSet>, HelmError> {
        if let Some(complete) = &self.state().complete
            && complete.is_of(templates)
        {
            return Ok(complete.set.clone());
        }
        let mut set = TemplateSet::new(ROOT, functions::TABLE.clone());
        for template in templates {
            set.add(&self.parse(&template.name, template.file)?);
        }
        let set = Arc::new(set);
        let texts = templates
            .iter()
            .map(|template| (template.name.clone(), template.file.data.clone()));
        self.state().complete = Some(Complete {
            texts: texts.collect(),
            set: set.clone(),
        });
        Ok(set)
    }

    fn parse(&self, name: &str, file: &File) -> Result<Parsed, HelmError> {
        if let Some(known) = self.state().known.get(name)
            && is_same(&known.text, &file.data)
        {
            return Ok(known.parsed.clone());
        }
        let parsed = Parsed::parse(name, &file.data, &functions::TABLE)
            .map_err(|e| error::parse(name, &e))?;
        self.state().known.insert(
            name.to_owned(),
            Known {
                text: file.data.clone(),
                parsed: parsed.clone(),
            },
        );
        Ok(parsed)
    }

    /// Parses the templates of a chart from the last that a render parses to the first, until there
    /// is no need for more. The render tells what is wrong with them.
    pub(super) fn parse_ahead(&self, chart: &Chart, is_over: &dyn Fn() -> bool) {
        let mut templates = scope::templates(chart);
        templates.sort_by(|(a, _), (b, _)| order(a).cmp(&order(b)));
        for (name, file) in templates {
            if is_over() {
                return;
            }
            let _ = self.parse(&name, file);
        }
    }

    /// Executes every template except the partials. `values` are the coalesced ones.
    pub(super) fn render(
        &self,
        chart: &Chart,
        values: &super::values::Values,
        options: &RenderOptions,
        limits: &template::Limits,
    ) -> Result<Rendered, HelmError> {
        let mut templates = Scopes::new(options).collect(chart, values);
        templates.sort_by(|a, b| order(&b.name).cmp(&order(&a.name)));
        self.execute(&templates, options, limits)
    }

    /// Parses the templates and executes them, in this order.
    fn execute(
        &self,
        templates: &[Renderable<'_>],
        options: &RenderOptions,
        limits: &template::Limits,
    ) -> Result<Rendered, HelmError> {
        let set = self.set(templates)?;
        let budget = Budget::new(*limits).until(options.deadline.clone());
        let mut host = RenderHost::new(options);
        let missing_key = if options.strict {
            MissingKey::Error
        } else {
            MissingKey::Zero
        };
        let mut rendered = BTreeMap::new();
        for template in templates.iter().filter(|t| !t.is_partial()) {
            let mut out = Vec::new();
            let execution = template::Options {
                missing_key,
                budget: &budget,
                host: &mut host,
            };
            let done = template::execute(&set, &template.name, template.dot(), execution, &mut out);
            done.map_err(|e| error::execute(&template.name, &e))?;
            rendered.insert(template.name.clone(), functions::without_no_value(out));
        }
        Ok((rendered, host.warnings))
    }
}

/// A template that belongs to no chart, with its dot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LooseTemplate {
    pub name: String,
    pub text: String,
    pub base_path: String,
    pub dot: super::values::Values,
}

/// Executes templates that belong to no chart. They can include each other.
pub fn render_templates(
    templates: &[LooseTemplate],
    options: &RenderOptions,
    limits: &template::Limits,
) -> Result<BTreeMap<String, String>, HelmError> {
    let files: Vec<File> = templates
        .iter()
        .map(|t| File {
            name: t.name.clone(),
            data: t.text.as_bytes().into(),
        })
        .collect();
    let mut renderables: Vec<Renderable<'_>> = templates
        .iter()
        .zip(&files)
        .map(|(t, file)| Renderable::loose(t, file))
        .collect();
    renderables.sort_by(|a, b| order(&b.name).cmp(&order(&a.name)));
    ParsedTemplates::default()
        .execute(&renderables, options, limits)
        .map(|(rendered, _)| rendered)
}

/// Deeper templates come first, and later names before earlier ones.
fn order(name: &str) -> (usize, &str) {
    (name.bytes().filter(|b| *b == b'/').count(), name)
}
