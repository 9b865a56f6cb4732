//! The release that a chart is rendered for.
//!
//! Main type: [`Release`].

use super::HelmError;
use tiphys_gocompat::text::quote;

const LONGEST_NAME: usize = 53;

/// What `.Release` shows; its service is always `Helm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub name: String,
    pub namespace: String,
    pub is_upgrade: bool,
    pub revision: i64,
}

impl Default for Release {
    fn default() -> Self {
        Self { name: "release-name".into(), namespace: "default".into(), is_upgrade: false, revision: 1 }
    }
}

impl Release {
    pub(super) fn check(&self) -> Result<(), HelmError> {
        let why = match check_name(&self.name) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        Err(HelmError::chart(format!("release name check failed: release name {}: {why}", quote(&self.name))))
    }
}

/// Whether Helm takes this as the name of a release.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("no name provided");
    }
    let label = |label: &str| {
        let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(edge) && bytes.last().copied().is_some_and(edge) && bytes.iter().all(|b| edge(*b) || *b == b'-')
    };
    if name.len() <= LONGEST_NAME && name.split('.').all(label) {
        return Ok(());
    }
    Err(
        "invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53",
    )
}
