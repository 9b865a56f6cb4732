//! `cargo xtask parity`: what the real programs and we make of the same inputs, now, in numbers one likes.

mod helm;
mod jq;
pub mod template;

pub use helm::read_folder;

use clap::Subcommand;
use std::path::Path;

#[derive(Subcommand)]
pub enum Parity {
    /// Random templates, executed by Go's text/template and by ours
    Template(template::Args),
    /// Every chart below a folder, rendered by the real Helm and by ours
    Helm(Box<helm::Args>),
    /// Random jq programs, run by gojq and by ours
    Jq(jq::Args),
}

pub fn run(root: &Path, parity: &Parity) -> anyhow::Result<()> {
    match parity {
        Parity::Template(args) => template::run(root, args),
        Parity::Helm(args) => helm::run(root, args),
        Parity::Jq(args) => jq::run(root, args),
    }
}
