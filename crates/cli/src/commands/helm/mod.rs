//! `helm template` and `helm lint`: Helm's commands of these names, in process. Main type:
//! [`HelmCommand`].
//!
//! Flags, output, messages and exit codes are Helm 4's; nothing is fetched and no cluster is asked.
//! [`values`] reads the user's values, [`excerpt`] shows the line that a message refers to.

mod excerpt;
mod lint;
mod template;
mod unused;
pub(super) mod values;

use super::files::LocalFiles;
use crate::client::Failure as Exit;
use rand::RngCore as _;
use std::path::Path;
use tiphys_render::helm::{
    HelmError, KubeVersion, Limits, Sources,
    chart::{Chart, Loaded},
    log,
};

#[derive(clap::Subcommand)]
pub enum HelmCommand {
    Template(Box<template::Template>),
    Lint(Box<lint::Lint>),
}

impl HelmCommand {
    pub fn run(self) -> Result<(), Exit> {
        match self {
            Self::Template(command) => command.run(),
            Self::Lint(command) => command.run(),
        }
    }
}

/// The flags that are accepted and change nothing, behind their commands.
#[cfg(test)]
pub fn flags_without_effect() -> Vec<String> {
    use unused::{OfCharts, OfHelm, OfInstall};
    fn of<A: clap::Args>(command: &str) -> Vec<String> {
        let flags = A::augment_args(clap::Command::default());
        let names = flags.get_arguments().filter_map(clap::Arg::get_long);
        names
            .map(|name| format!("helm {command} --{name}"))
            .collect()
    }
    [
        of::<OfInstall>("template"),
        of::<OfCharts>("template"),
        of::<OfHelm>("template"),
        of::<OfHelm>("lint"),
    ]
    .concat()
}

/// Reports an error like Helm, and returns its exit code.
fn failed(message: &str) -> Exit {
    if let Some(line) = log::failure(message) {
        eprintln!("{line}");
    }
    eprintln!("Error: {message}");
    Exit::exit(1)
}

fn warn(warnings: &[String]) {
    warnings
        .iter()
        .for_each(|warning| eprintln!("{}", log::line(warning)));
}

/// A chart from a folder or an archive.
fn load(path: &Path, limits: &Limits) -> Result<Loaded, HelmError> {
    if path.is_dir() {
        return Chart::from_folder(&LocalFiles::new(path), "", limits);
    }
    let unreadable = |e: std::io::Error| {
        HelmError::Chart(format!(
            "open {}: {}",
            path.display(),
            crate::client::reason(&e)
        ))
    };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    Chart::from_archive(&bytes, limits)
}

fn kube_version(text: &str) -> Result<KubeVersion, Exit> {
    KubeVersion::parse(text).map_err(|why| failed(&format!("invalid kube version '{text}': {why}")))
}

/// Helm would take the namespace from its own configuration; here it comes from a flag or a
/// variable.
fn namespace(flag: Option<&str>) -> String {
    let named = flag
        .map(str::to_owned)
        .or_else(|| std::env::var("HELM_NAMESPACE").ok());
    named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "default".to_owned())
}

/// Randomness and time of this machine.
pub(super) fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| rand::rng().fill_bytes(bytes)),
        now: jiff::Timestamp::now(),
        zone: jiff::tz::TimeZone::system,
    }
}
