//! One text of a template: Go's text/template with sprig.
//!
//! Main type: [`Text`].

use crate::typed::{TypeError, Typed};
use jiff::{Timestamp, tz::TimeZone};
use std::sync::{Arc, OnceLock};
use tiphys_gocompat::{
    sprig::{self, Sources},
    template::{Budget, Functions, Limits, MissingKey, Options, TemplateSet, Value, execute},
};

/// The limits of all texts of one notification.
const LIMITS: Limits = Limits {
    steps: 20_000_000,
    output: 4 << 20,
    memory: 64 << 20,
};

/// A parsed text.
#[derive(Clone)]
pub(crate) struct Text {
    set: Arc<TemplateSet>,
    name: String,
}

/// Renders the texts of one notification.
pub(crate) struct Renderer {
    data: Value,
    sources: Sources,
    budget: Budget,
}

fn functions() -> Arc<Functions> {
    static ALL: OnceLock<Arc<Functions>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut functions = Functions::builtins();
        functions.extend(sprig::functions::<Sources>());
        Arc::new(functions)
    })
    .clone()
}

impl Text {
    /// # Errors
    /// If the text is not a template; it names the line.
    pub fn parse(name: &str, text: &str) -> Typed<Self> {
        let mut set = TemplateSet::new(name, functions());
        // A blank text defines no template, but it can be executed.
        let parsed =
            tiphys_gocompat::template::Parsed::parse(name, text.as_bytes(), set.functions())
                .map_err(|error| TypeError(error.to_string()))?;
        set.add_to_run(&parsed, name);
        Ok(Self {
            set: Arc::new(set),
            name: name.to_owned(),
        })
    }
}

impl Renderer {
    /// For a dot, a map of variables.
    pub fn new(data: Value, now: Timestamp, zone: fn() -> TimeZone, random: sprig::Random) -> Self {
        Self {
            data,
            sources: Sources { random, now, zone },
            budget: Budget::new(LIMITS),
        }
    }

    /// # Errors
    /// If a function or field fails; it names template and line.
    pub fn render(&mut self, text: &Text) -> Typed<String> {
        let mut out = Vec::new();
        let options = Options {
            missing_key: MissingKey::Invalid,
            budget: &self.budget,
            host: &mut self.sources,
        };
        execute(&text.set, &text.name, self.data.clone(), options, &mut out)
            .map_err(|error| TypeError(error.to_string()))?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}
