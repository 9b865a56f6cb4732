//! Sets of templates that can call each other by name.
//!
//! Main type: [`TemplateSet`]. A set can be layered on another one, which is not changed: this is
//! how `tpl` sees everything its caller sees and adds to it. Complete sets can be shared between
//! threads and renders.

use super::code::Template;
use super::error::Error;
use super::function::Functions;
use super::parse;
use hashbrown::HashMap;
use std::sync::Arc;

/// Templates, by name.
pub struct TemplateSet {
    root: String,
    functions: Arc<Functions>,
    below: Option<Arc<TemplateSet>>,
    /// hashbrown's, because its hashes are computed faster than those of std's: a render looks up
    /// names very often.
    own: HashMap<String, Arc<Template>>,
}

/// The templates of one text, to be added to sets.
#[derive(Clone)]
pub struct Parsed(Vec<Arc<Template>>);

impl Parsed {
    /// Parses a text. Its own template has this name; those that it defines have theirs.
    pub fn parse(name: &str, text: &[u8], functions: &Functions) -> Result<Self, Error> {
        parse::parse(name, text, functions).map(Self)
    }
}

impl TemplateSet {
    /// An empty set. The name is that of Go's first template (`gotpl` in Helm), which error texts
    /// mention.
    pub fn new(root: &str, functions: Arc<Functions>) -> Self {
        Self {
            root: root.to_owned(),
            functions,
            below: None,
            own: HashMap::new(),
        }
    }

    /// A set layered on another one.
    pub fn on(below: &Arc<TemplateSet>) -> Self {
        Self {
            root: below.root.clone(),
            functions: below.functions.clone(),
            below: Some(below.clone()),
            own: HashMap::new(),
        }
    }

    /// Parses a text and adds its templates.
    pub fn parse(&mut self, name: &str, text: &[u8]) -> Result<(), Error> {
        let parsed = Parsed::parse(name, text, &self.functions)?;
        self.add(&parsed);
        Ok(())
    }

    /// Adds templates, the first of which, the text's own, will be executed by its name even if it
    /// is blank.
    pub fn add_to_run(&mut self, parsed: &Parsed, name: &str) {
        self.add(parsed);
        if let Some(own) = parsed.0.iter().find(|t| t.name == name) {
            self.own.insert(own.name.clone(), own.clone());
        }
    }

    /// Adds templates; one with the same name is replaced, but not by a blank one. They must be
    /// parsed with the functions of this set.
    pub fn add(&mut self, parsed: &Parsed) {
        for template in &parsed.0 {
            if !(template.blank && self.get(&template.name).is_some()) {
                self.own.insert(template.name.clone(), template.clone());
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Template>> {
        let mut set = self;
        loop {
            match (set.own.get(name), &set.below) {
                (Some(template), _) => return Some(template),
                (None, Some(below)) => set = below,
                (None, None) => return None,
            }
        }
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    pub fn functions(&self) -> &Arc<Functions> {
        &self.functions
    }
}
