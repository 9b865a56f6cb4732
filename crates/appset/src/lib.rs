//! ApplicationSets: generators × templates → Applications, and what a set does to existing ones.
//! Pure.
//!
//! Main function: [`generate`]. What generators ask of the outside are [`Need`]s; the caller adds
//! the answers to [`Facts`] and runs it again. An error is never "no Applications". It must not know
//! where answers come from and how Applications are written.

mod condition;
pub mod deleted_set;
mod error;
mod field_names;
mod followed;
mod generate;
mod generators;
mod ignored;
mod names;
mod need;
mod params;
pub mod reconcile;
mod render;
pub mod rolling;
mod selector;
mod template;
pub mod tombstone;
pub mod unit;

pub use error::{GenerateError, NeedError};
pub use followed::{Followed, follows};
pub use generate::{Failure, Generated, Outcome, Reason, generate, requeue_after};
pub use generators::has_generator;
pub use generators::plugin::{Endpoint, PATH as PLUGIN_PATH};
pub use generators::requeue::DEFAULT as DEFAULT_REQUEUE;
pub use names::{normalize, slugify};
pub use need::{
    Answer, ClusterSecret, Decisions, Facts, Need, Provider, PullRequest, Repository, RepositoryId,
    Tree, permitted,
};
pub use template::{RESOURCES_FINALIZER, apply_patch};

use tiphys_gocompat::yaml::{self, Chunk, Duplicates, YamlError};

/// The limits for one file, patch or answer.
pub(crate) const CONTENT: yaml::Limits = yaml::Limits {
    bytes: 8 << 20,
    depth: 100,
    nodes: 400_000,
    aliases: 40_000,
    copied_bytes: 16 << 20,
    documents: 1,
};

/// The first document of a text. What its anchors and aliases copy is added to `copied`, in bytes, also
/// after an error: a short text may have much copied, and there may be one for each Application.
pub(crate) fn document(text: &str, copied: &mut usize) -> Result<serde_json::Value, YamlError> {
    let mut budget = CONTENT;
    let text = yaml::decode_text(text.as_bytes(), &budget)?;
    let parsed = yaml::parse_chunk(&Chunk { text, line: 1 }, &mut budget, Duplicates::LastWins);
    *copied += CONTENT.copied_bytes.saturating_sub(budget.copied_bytes);
    parsed.map(|(document, _)| document)
}

/// The most parameter sets of one generator, and Applications of one set.
const MOST: usize = 100_000;

/// Refuses more parameter sets than can be meant.
pub(crate) fn limit(count: usize) -> Result<(), GenerateError> {
    match count > MOST {
        true => Err(GenerateError::spec(format!(
            "more than {MOST} Applications would be generated"
        ))),
        false => Ok(()),
    }
}
