//! From a chart of the catalogue to a source of an Application, and to the source's next version.
//!
//! Main types: [`Chosen`] (a source that is a chart), [`Origin`] (the chart that it is from),
//! [`install::Install`] and [`upgrade::Plan`]. It knows Applications as values, and never where they
//! are.

mod applied;
mod chosen;
pub mod install;
pub mod merge;
mod origin;
mod render;
pub mod rollback;
pub mod schema;
mod text;
pub mod upgrade;

pub use applied::applied;
pub use chosen::Chosen;
pub use origin::{ANNOTATION, Origin, annotations};
pub use render::{Facts, Manifests, difference};

use crate::{CatalogError, repository::sha256};
use merge::Values;
use serde_json::Value;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// Reads values as Helm's users write them.
///
/// # Errors
/// It is no YAML, or no table.
pub fn parse_values(text: &str, what: &str) -> Result<Values, CatalogError> {
    let limits = Limits {
        bytes: 5 << 20,
        depth: 100,
        nodes: 500_000,
        aliases: 50_000,
        copied_bytes: 16 << 20,
        ..Limits::default()
    };
    let parsed = yaml::parse_document(text.as_bytes(), &limits, Duplicates::LastWins);
    match parsed.map_err(|e| CatalogError::Invalid(format!("{what}: {e}")))? {
        Value::Object(values) => Ok(values),
        Value::Null => Ok(Values::new()),
        _ => Err(CatalogError::Invalid(format!("{what} are no table"))),
    }
}

/// The digest that is known of an archive; if none is, what the archive has.
pub fn digest_of(known: &str, archive: &[u8]) -> String {
    match known {
        "" => sha256(archive),
        digest => digest.to_owned(),
    }
}
