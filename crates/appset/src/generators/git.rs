//! Directories and files of a Git repository. Main function: [`params`].

use super::{Context, NOT_APPENDED};
use crate::error::{GenerateError, Place};
use crate::names::normalize;
use crate::need::{Answer, Need, Tree, unexpected};
use crate::params::{Param, Params, flat_params, params_of};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tiphys_api::application_set::generators::GitGenerator;
use tiphys_gocompat::path_match;
use tiphys_gocompat::yaml::{self, Duplicates};

pub fn params(
    generator: &GitGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let project = context.set.spec.template.spec.project.as_str();
    // The project is not known yet if it is a template: then only global credentials are used.
    let project = match project.contains("{{") {
        true => "",
        false => {
            context
                .facts
                .ask(Need::Project(project.to_owned()))
                .map_err(|e| e.at(format!("error getting project {project}")))?;
            project
        }
    };
    let tree = Tree {
        repo_url: generator.repo_url.clone(),
        revision: generator.revision.clone(),
        project: project.to_owned(),
    };
    if !generator.directories.is_empty() {
        directories(generator, tree, context).at("error generating params from git")
    } else if !generator.files.is_empty() {
        files(generator, tree, context).at("error generating params from git")
    } else {
        Err(GenerateError::spec("ApplicationSet is empty"))
    }
}

fn directories(
    generator: &GitGenerator,
    tree: Tree,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let paths = match context
        .facts
        .ask(Need::Directories(tree))
        .at("error getting directories from repo")?
    {
        Answer::Directories(paths) => paths,
        _ => return Err(unexpected()),
    };
    let matches = |excluded: bool, path: &str| {
        generator
            .directories
            .iter()
            .filter(|item| item.exclude == excluded)
            .any(|item| path_match::matches(&item.path, path).unwrap_or(false))
    };
    let mut sets = Vec::new();
    for path in paths {
        if matches(false, path) && !matches(true, path) {
            let mut params = Params::new();
            add_path(&mut params, generator, path, None, context.is_go());
            context
                .add_values(&mut params, &generator.values)
                .at(NOT_APPENDED)?;
            sets.push(params);
        }
    }
    Ok(sets)
}

fn files(
    generator: &GitGenerator,
    tree: Tree,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let mut missing = false;
    let mut chosen: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for excluded in [false, true] {
        for item in generator.files.iter().filter(|i| i.exclude == excluded) {
            let need = Need::Files {
                tree: tree.clone(),
                pattern: item.path.clone(),
            };
            match context.facts.ask(need) {
                Ok(Answer::Files(found)) if excluded => {
                    found.keys().for_each(|path| {
                        chosen.remove(path.as_str());
                    });
                }
                Ok(Answer::Files(found)) => {
                    chosen.extend(found.iter().map(|(path, c)| (path.as_str(), c.as_slice())));
                }
                Ok(_) => return Err(unexpected()),
                Err(error) if error.is_missing() => missing = true,
                Err(error) => return Err(error),
            }
        }
    }
    if missing {
        return Err(GenerateError::Missing);
    }
    let mut sets = Vec::new();
    for (path, content) in chosen {
        let of_file = file(generator, path, content, context).map_err(|e| {
            e.at(format!(
                "unable to process file '{path}' from repository '{}'",
                generator.repo_url
            ))
        })?;
        sets.extend(of_file);
    }
    Ok(sets)
}

fn file(
    generator: &GitGenerator,
    path: &str,
    content: &[u8],
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let (directory, filename) = path.rsplit_once('/').unwrap_or((".", path));
    let mut sets = Vec::new();
    for object in objects(content)? {
        let mut params = match context.is_go() {
            true => object,
            false => flat_params(&object),
        };
        add_path(
            &mut params,
            generator,
            directory,
            Some(filename),
            context.is_go(),
        );
        context
            .add_values(&mut params, &generator.values)
            .at(NOT_APPENDED)?;
        sets.push(params);
    }
    Ok(sets)
}

/// The parameter sets of a file: one for a map, one for each item of a list of maps.
fn objects(content: &[u8]) -> Result<Vec<Params>, GenerateError> {
    let unable = |why: String| GenerateError::content(format!("unable to parse file: {why}"));
    let document = yaml::parse_document(content, &crate::CONTENT, Duplicates::LastWins)
        .map_err(|e| unable(e.to_string()))?;
    let object = |json: &Json| match json {
        Json::Object(map) => Ok(params_of(map)),
        Json::Null => Ok(Params::new()),
        _ => Err(unable("it is neither a map nor a list of maps".into())),
    };
    match &document {
        Json::Array(items) => items.iter().map(object).collect(),
        other => Ok(vec![object(other)?]),
    }
}

/// Adds the parameters of a path; a file has a name, too.
fn add_path(
    params: &mut Params,
    generator: &GitGenerator,
    directory: &str,
    filename: Option<&str>,
    go: bool,
) {
    let prefix = &generator.path_param_prefix;
    let basename = directory.rsplit('/').next().unwrap_or_default();
    let mut parts = vec![
        ("basename", basename.to_owned()),
        ("basenameNormalized", normalize(basename)),
    ];
    if let Some(filename) = filename {
        parts.push(("filename", filename.to_owned()));
        parts.push(("filenameNormalized", normalize(filename)));
    }
    if go {
        let segments = directory.split('/').map(str::to_owned).collect();
        let mut path: Params = parts
            .into_iter()
            .map(|(part, text)| (part.to_owned(), text.into()))
            .collect();
        path.insert("path".into(), directory.into());
        path.insert("segments".into(), Param::Strings(segments));
        if prefix.is_empty() {
            params.insert("path".into(), Param::Map(path));
        } else {
            let inner = Params::from([("path".into(), Param::Map(path))]);
            params.insert(prefix.clone(), Param::Map(inner));
        }
        return;
    }
    let name = match prefix.is_empty() {
        true => "path".to_owned(),
        false => format!("{prefix}.path"),
    };
    for (part, text) in parts {
        params.insert(format!("{name}.{part}"), text.into());
    }
    for (index, segment) in directory.split('/').enumerate() {
        if !segment.is_empty() {
            params.insert(format!("{name}[{index}]"), segment.into());
        }
    }
    params.insert(name, directory.into());
}
