//! The release that a chart is rendered for.
//!
//! Main type: [`Release`].

use super::HelmError;
use std::sync::Arc;
use tiphys_gocompat::sprig::{self, Sources};
use tiphys_gocompat::template::{
    Budget, Functions, MissingKey, Options, TemplateSet, Value, execute,
};
use tiphys_gocompat::text::quote;

const LONGEST_NAME: usize = 53;

/// `.Release`; its service is always `Helm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub name: String,
    pub namespace: String,
    pub is_upgrade: bool,
    pub revision: i64,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            name: "release-name".into(),
            namespace: "default".into(),
            is_upgrade: false,
            revision: 1,
        }
    }
}

impl Release {
    pub(super) fn check(&self) -> Result<(), HelmError> {
        let why = match check_name(&self.name) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        Err(HelmError::chart(format!(
            "release name check failed: release name {}: {why}",
            quote(&self.name)
        )))
    }
}

/// Whether Helm accepts this as the name of a release.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("no name provided");
    }
    let label = |label: &str| {
        let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(edge)
            && bytes.last().copied().is_some_and(edge)
            && bytes.iter().all(|b| edge(*b) || *b == b'-')
    };
    if name.len() <= LONGEST_NAME && name.split('.').all(label) {
        return Ok(());
    }
    Err(
        "invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53",
    )
}

/// The name that `--name-template` renders to, with sprig's functions and without values.
pub fn release_name(template: &str, mut sources: Sources) -> Result<String, HelmError> {
    const NAME: &str = "name-template";
    let failed = |e| HelmError::chart(format!("{e}"));
    let mut functions = Functions::builtins();
    functions.extend(sprig::functions::<Sources>());
    let mut set = TemplateSet::new(NAME, Arc::new(functions));
    set.parse(NAME, template.as_bytes()).map_err(failed)?;
    let budget = Budget::new(Default::default());
    let options = Options {
        missing_key: MissingKey::Invalid,
        budget: &budget,
        host: &mut sources,
    };
    let mut out = Vec::new();
    execute(&Arc::new(set), NAME, Value::Nil, options, &mut out).map_err(failed)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
