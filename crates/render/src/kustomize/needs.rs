//! Collects all external sources of a kustomization, so that they can be fetched at once.
//!
//! Main function: [`gather`], which is called when a build finds that something is missing.

use super::Build;
use super::fault::{Cause, Res};
use super::helm::local_folder;
use super::loader::Loader;
use super::repospec::is_http;
use super::target::read;
use crate::SourceRef;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What is missing, and the kustomization file that names it first.
type Needed = BTreeMap<SourceRef, String>;

/// The sources that must be fetched before the build can continue, as far as is known.
pub(super) fn gather<'a>(build: &mut Build<'a>, loader: &Rc<Loader<'a>>) -> Needed {
    let mut needed = Needed::new();
    let mut seen = BTreeSet::new();
    // The build reports the same errors itself.
    let _ = visit(build, loader, &mut needed, &mut seen);
    needed
}

fn visit<'a>(
    build: &mut Build<'a>,
    loader: &Rc<Loader<'a>>,
    needed: &mut Needed,
    seen: &mut BTreeSet<(usize, String)>,
) -> Res<()> {
    if !seen.insert(loader.place()) {
        return Ok(());
    }
    let (own, name) = read(build, loader)?;
    let file = loader.located(name);
    let mut files: Vec<&String> = Vec::new();
    let patches = own.patches.iter().chain(&own.patches_json6902);
    files.extend(patches.map(|patch| &patch.path));
    files.extend(&own.patches_strategic_merge);
    files.extend(own.crds.iter().chain(&own.configurations));
    files.extend(own.openapi.get("path"));
    let generators = own.config_map_generator.iter().chain(&own.secret_generator);
    for generator in generators {
        files.extend(generator.envs.iter());
        let sources = generator.files.iter();
        for source in sources {
            let path = source
                .split_once('=')
                .map_or(source.as_str(), |(_, path)| path);
            note(needed, &file, loader.load_if_remote(build, path));
        }
    }
    for chart in &own.helm_charts {
        files.extend(chart.additional_values_files.iter());
        files.push(&chart.values_file);
    }
    for path in files {
        note(needed, &file, loader.load_if_remote(build, path));
    }
    if build.options.enable_helm {
        let globals = own.helm_globals.clone().unwrap_or_default();
        for chart in own
            .helm_charts
            .iter()
            .filter(|chart| !chart.repo.is_empty())
        {
            if local_folder(loader, &globals, chart)?.is_none() {
                let reference = super::helm::reference(chart);
                note(needed, &file, build.fetched(&reference).map(drop));
            }
        }
    }
    let entries = own
        .generators
        .iter()
        .chain(&own.transformers)
        .chain(&own.validators);
    let folders = own.resources.iter().chain(&own.components).chain(entries);
    for path in folders {
        if path.contains('\n') {
            continue;
        }
        if is_http(path) && loader.is_remote_file(path) {
            note(needed, &file, loader.load_if_remote(build, path));
            continue;
        }
        match loader.descend(build, path) {
            Ok(inner) => {
                let _ = visit(build, &inner, needed, seen);
            }
            Err(fault) => note(needed, &file, Err(fault)),
        }
    }
    Ok(())
}

fn note(needed: &mut Needed, file: &str, result: Res<()>) {
    if let Err(fault) = result
        && let Cause::Need(more) = fault.cause
    {
        for one in more {
            needed.entry(one).or_insert_with(|| file.to_owned());
        }
    }
}
