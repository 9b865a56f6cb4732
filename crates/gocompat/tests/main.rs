//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod expr;
mod go_baseline;
mod jq;
mod mutations;
mod semver;
mod sprig;
mod strvals_baseline;
mod template;
mod yaml;
mod yaml_baseline;
mod yaml_copies;
