//! Whether a chart of a registry is deprecated, which its newest version says.
//!
//! Main type: [`Deprecated`].

use super::pull::Metadata;
use crate::model::Chart;
use std::collections::HashMap;

/// What versions say of themselves, as far as they were read.
pub(super) struct Deprecated(HashMap<String, bool>);

impl Deprecated {
    /// `was`: what the newest version that is known said.
    pub fn new(before: &Chart, was: bool) -> Self {
        let newest = before.versions.first();
        Self(
            newest
                .map(|v| (v.version.clone(), was))
                .into_iter()
                .collect(),
        )
    }

    pub fn add(&mut self, read: &Metadata) {
        self.0.insert(read.version.clone(), read.deprecated);
    }

    pub fn is(&self, chart: &Chart) -> bool {
        let newest = chart.versions.first();
        newest.is_some_and(|v| self.0.get(&v.version) == Some(&true))
    }
}
