//! Resolves the values files of an Application, in order: paths, patterns, files of other sources.
//! No path may leave its source.
//!
//! Main function: [`resolve`]. The texts of errors are Argo CD's.

use super::{Environment, SourceSet};
use crate::{FileError, RenderError, SourceFiles, SourceRef, files::join};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_gocompat::doublestar::{self, Entry, GlobError};

/// How many files a pattern may match.
const MAX_FILES: usize = 1000;
/// How many folders a pattern may search.
const MAX_FOLDERS: usize = 10_000;

/// A values file as an Application names it, with the build environment filled in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Named {
    /// As written in the spec.
    pub raw: String,
    /// The source it is in, by its `ref`; `None`: the Application's own.
    pub reference: Option<String>,
    /// Relative to the Application's folder, or to the root of the source if it starts with `/`.
    /// May be a pattern or a URL.
    pub path: String,
}

impl Named {
    /// `$name/path` is a file of another source if a source has that `ref`. With several sources an
    /// unknown name is an error.
    pub fn new(
        raw: &str,
        environment: &Environment,
        sources: &SourceSet<'_>,
    ) -> Result<Self, RenderError> {
        let name = raw
            .strip_prefix('$')
            .map(|rest| rest.split('/').next().unwrap_or(rest));
        if let Some(name) = name {
            if sources.refs.contains_key(name) {
                let path = environment.expand(&raw[1 + name.len()..]);
                return Ok(Self {
                    raw: raw.to_owned(),
                    reference: Some(name.to_owned()),
                    path,
                });
            }
            if sources.several {
                return Err(unknown(name, sources));
            }
        }
        Ok(Self {
            raw: raw.to_owned(),
            reference: None,
            path: environment.expand(raw),
        })
    }

    /// The files of the source that it is in.
    pub fn files<'a>(&self, sources: &SourceSet<'a>) -> Result<&'a dyn SourceFiles, RenderError> {
        match &self.reference {
            None => Ok(sources.files),
            Some(name) => sources
                .refs
                .get(name)
                .copied()
                .ok_or_else(|| unknown(name, sources)),
        }
    }

    /// Its path in the source that it is in; `folder` is the Application's.
    pub fn place(&self, folder: &str, schemes: &[String]) -> Result<Place, String> {
        if let Some(scheme) = scheme(&self.path) {
            if !schemes.iter().any(|s| s.eq_ignore_ascii_case(&scheme)) {
                return Err(format!("the URL scheme '{scheme}' is not allowed"));
            }
            if !matches!(scheme.as_str(), "http" | "https") {
                return Err(format!(
                    "{}: only http and https URLs can be fetched",
                    self.path
                ));
            }
            return Ok(Place {
                root: Root::Web,
                path: self.path.clone(),
            });
        }
        let from = if self.reference.is_none() && !self.path.starts_with('/') {
            folder
        } else {
            ""
        };
        let outside = || format!("file '{}' resolved to outside repository root", self.path);
        let mut parts: Vec<&str> = from.split('/').filter(|p| !p.is_empty()).collect();
        for part in self.path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(outside)?;
                }
                part => parts.push(part),
            }
        }
        if parts.is_empty() {
            return Err(format!(
                "file '{}' is the root of the repository",
                self.path
            ));
        }
        let own = || Root::Own;
        Ok(Place {
            root: self.reference.clone().map_or_else(own, Root::Ref),
            path: parts.join("/"),
        })
    }
}

fn unknown(name: &str, sources: &SourceSet<'_>) -> RenderError {
    if sources.refs.is_empty() {
        return RenderError::Source(format!(
            "source referenced \"${name}\", but no source has a 'ref' field defined"
        ));
    }
    let names: Vec<String> = sources.refs.keys().map(|n| format!("${n}")).collect();
    RenderError::Source(format!(
        "source referenced \"${name}\", which is not one of the available sources ({})",
        names.join(", ")
    ))
}

/// The scheme of a URL, as Go parses it; empty means none.
fn scheme(text: &str) -> Option<String> {
    let (scheme, _) = text.split_once(':')?;
    let mut chars = scheme.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    (begins && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
        .then(|| scheme.to_ascii_lowercase())
}

/// What a path is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    Own,
    /// Another source, by its `ref`.
    Ref(String),
    /// The path is a URL.
    Web,
}

/// A values file to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub root: Root,
    pub path: String,
}

impl Place {
    /// What must have been fetched before the file can be read.
    pub fn needed(&self) -> Option<SourceRef> {
        (self.root == Root::Web).then(|| SourceRef::File {
            url: self.path.clone(),
        })
    }

    /// The content of the file, or Go's error message for a missing one.
    pub fn read(&self, sources: &SourceSet<'_>) -> Result<Vec<u8>, String> {
        let path = self.path.as_str();
        let (files, name) = match &self.root {
            Root::Own => (Some(sources.files), path),
            Root::Ref(name) => (sources.refs.get(name).copied(), path),
            Root::Web => {
                let needed = self.needed();
                let fetched = needed.and_then(|needed| sources.fetched.get(&needed).copied());
                (fetched, SourceRef::FILE)
            }
        };
        let files = files.ok_or_else(|| format!("open {path}: its source is not known"))?;
        match files.read(name) {
            Ok(Some(content)) => Ok(content),
            Ok(None) => Err(format!("open {path}: no such file or directory")),
            Err(e) => Err(e.to_string()),
        }
    }
}

/// Announces the files whose paths are known.
pub fn expect<'n>(
    sources: &SourceSet<'_>,
    folder: &str,
    named: impl IntoIterator<Item = &'n Named>,
    schemes: &[String],
) {
    let mut expected: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for file in named {
        let place = file.place(folder, schemes);
        // What is wrong with it is said in its turn.
        let Ok(place) = place else { continue };
        if place.root != Root::Web && !is_pattern(&place.path) {
            let of_source = expected.entry(file.reference.as_deref()).or_default();
            of_source.push(place.path);
        }
    }
    for (reference, paths) in expected {
        let files = match reference {
            None => Some(sources.files),
            Some(name) => sources.refs.get(name).copied(),
        };
        if let Some(files) = files {
            files.expect(&paths, &[]);
        }
    }
}

/// Ends the render if files of the web have to be fetched first.
pub fn need<'a>(
    sources: &SourceSet<'_>,
    places: impl IntoIterator<Item = &'a Place>,
) -> Result<(), RenderError> {
    let needed = places.into_iter().filter_map(Place::needed);
    let missing: Vec<SourceRef> = needed
        .filter(|needed| !sources.fetched.contains_key(needed))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(RenderError::Need(missing))
}

/// The files in the order in which they are merged.
pub fn resolve(
    sources: &SourceSet<'_>,
    folder: &str,
    named: &[Named],
    schemes: &[String],
    ignore_missing: bool,
) -> Result<Vec<Place>, RenderError> {
    let failed =
        |why: String| RenderError::Source(format!("error resolving helm value files: {why}"));
    let place = |file: &Named| file.place(folder, schemes);
    // A file that is named explicitly keeps its position, even if a pattern earlier in the list
    // matches it.
    let explicit: BTreeSet<Place> = named
        .iter()
        .filter_map(|f| place(f).ok())
        .filter(|p| p.root == Root::Web || !is_pattern(&p.path))
        .collect();
    let mut found: Vec<Place> = Vec::new();
    for file in named {
        let place =
            place(file).map_err(|e| failed(format!("error resolving value file path: {e}")))?;
        let files = file.files(sources)?;
        let places = if place.root == Root::Web {
            vec![place]
        } else if is_pattern(&place.path) {
            let matches = expand(files, &place.path, &file.raw).map_err(failed)?;
            if matches.is_empty() && !ignore_missing {
                return Err(RenderError::NoValuesFile(file.raw.clone()));
            }
            let matches = matches.into_iter().map(|path| Place {
                root: place.root.clone(),
                path,
            });
            matches.filter(|p| !explicit.contains(p)).collect()
        } else {
            match files.kind(&place.path) {
                Ok(None) if ignore_missing => Vec::new(),
                // Any other missing file is reported when it is read.
                Ok(_) => vec![place],
                Err(FileError::OutsideLink(_)) => {
                    return Err(failed(format!(
                        "error resolving value file path: file '{}' resolved to outside repository root",
                        file.path
                    )));
                }
                Err(e) => return Err(e.into()),
            }
        };
        for place in places {
            if !found.contains(&place) {
                found.push(place);
            }
        }
        if found.len() > MAX_FILES {
            return Err(RenderError::OverBudget {
                what: "the number of values files".to_owned(),
                limit: MAX_FILES as u64,
            });
        }
    }
    need(sources, &found)?;
    Ok(found)
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The files that a pattern matches, checked for links that leave the source.
fn expand(files: &dyn SourceFiles, pattern: &str, raw: &str) -> Result<Vec<String>, String> {
    let mut folders = 0;
    let mut list = |folder: &str| -> Result<Option<Vec<Entry>>, String> {
        folders += 1;
        if folders > MAX_FOLDERS {
            return Err(format!("it looks into more than {MAX_FOLDERS} folders"));
        }
        let entries = files.list(folder).map_err(|e| e.to_string())?;
        let Some(entries) = entries else {
            return Ok(None);
        };
        let entry = |e: crate::FileEntry| {
            let is_dir = match e.kind {
                crate::FileKind::Dir => true,
                crate::FileKind::Symlink => matches!(
                    files.kind(&join(folder, &e.name)),
                    Ok(Some(crate::FileKind::Dir))
                ),
                _ => false,
            };
            Entry {
                name: e.name,
                is_dir,
            }
        };
        Ok(Some(entries.into_iter().map(entry).collect()))
    };
    let matches = doublestar::glob(pattern, &mut list).map_err(|e| match e {
        GlobError::Pattern(e) => format!("error expanding glob pattern {raw:?}: {e}"),
        GlobError::List(e) => format!("error expanding glob pattern {raw:?}: {e}"),
    })?;
    for path in &matches {
        match files.kind(path) {
            Ok(Some(_)) => {}
            Ok(None) => {
                return Err(format!(
                    "glob pattern {raw:?}: error resolving symlink for glob match {path:?}: no such file or directory"
                ));
            }
            Err(FileError::OutsideLink(_)) => {
                return Err(format!(
                    "glob pattern {raw:?}: glob match {path:?} resolved to outside repository root"
                ));
            }
            Err(e) => return Err(format!("glob pattern {raw:?}: {e}")),
        }
    }
    Ok(matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryFiles;

    fn found(named: &[&str], ignore_missing: bool) -> Result<String, String> {
        let own = MemoryFiles::new([
            ("apps/web/values.yaml", ""),
            ("apps/web/values-a.yaml", ""),
            ("apps/web/values-b.yaml", ""),
            ("apps/web/env/prod.yaml", ""),
            ("shared/all.yaml", ""),
        ]);
        let other = MemoryFiles::new([("web/prod.yaml", ""), ("web/test.yaml", "")]);
        let mut sources = SourceSet::new(&own);
        sources.refs.insert("vals".to_owned(), &other);
        sources.several = true;
        let app = super::super::AppFacts {
            name: "prod".into(),
            ..Default::default()
        };
        let environment = Environment::new(&app, &Default::default());
        let schemes = ["https".to_owned()];
        let named: Result<Vec<Named>, RenderError> = named
            .iter()
            .map(|raw| Named::new(raw, &environment, &sources))
            .collect();
        let places =
            named.and_then(|named| resolve(&sources, "apps/web", &named, &schemes, ignore_missing));
        let shown = |p: &Place| match &p.root {
            Root::Ref(name) => format!("${name}:{}", p.path),
            Root::Own | Root::Web => p.path.clone(),
        };
        places
            .map(|places| places.iter().map(shown).collect::<Vec<_>>().join(" "))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn files_are_found_in_their_order() {
        for (named, want) in [
            (
                &["values-b.yaml", "values-a.yaml", "values-b.yaml"][..],
                "apps/web/values-b.yaml apps/web/values-a.yaml",
            ),
            (
                &[
                    "../../shared/all.yaml",
                    "/shared/all.yaml",
                    "env/$ARGOCD_APP_NAME.yaml",
                ],
                "shared/all.yaml apps/web/env/prod.yaml",
            ),
            (
                &["values-*.yaml", "values-a.yaml"],
                "apps/web/values-b.yaml apps/web/values-a.yaml",
            ),
            (
                &["values-a.yaml", "values-*.yaml"],
                "apps/web/values-a.yaml apps/web/values-b.yaml",
            ),
            (
                &["$vals/web/prod.yaml", "$vals/web/../web/*.yaml"],
                "$vals:web/prod.yaml $vals:web/test.yaml",
            ),
            (
                &["$vals/web/${ARGOCD_APP_NAME}.yaml"],
                "$vals:web/prod.yaml",
            ),
            (&["missing.yaml"], "apps/web/missing.yaml"),
        ] {
            assert_eq!(found(named, false).as_deref(), Ok(want), "{named:?}");
        }
        assert_eq!(
            found(
                &[
                    "missing.yaml",
                    "no/*.yaml",
                    "$vals/none.yaml",
                    "values-a.yaml"
                ],
                true
            )
            .as_deref(),
            Ok("apps/web/values-a.yaml")
        );
    }

    #[test]
    fn what_is_wrong_is_told_as_argo_cd_does() {
        let path = "error resolving helm value files: error resolving value file path:";
        for (named, want) in [
            ("../../../etc/passwd", format!("{path} file '../../../etc/passwd' resolved to outside repository root")),
            ("/../x", format!("{path} file '/../x' resolved to outside repository root")),
            ("$vals/../x.yaml", format!("{path} file '/../x.yaml' resolved to outside repository root")),
            ("ftp://x/values.yaml", format!("{path} the URL scheme 'ftp' is not allowed")),
            ("FILE:///etc/passwd", format!("{path} the URL scheme 'file' is not allowed")),
            ("HTTPS://x/v[1].yaml", "HTTPS://x/v[1].yaml cannot be fetched here".to_owned()),
            ("../..", format!("{path} file '../..' is the root of the repository")),
            ("no/*.yaml", "error resolving helm value files: values file glob \"no/*.yaml\" matched no files".to_owned()),
            ("[", "error resolving helm value files: error expanding glob pattern \"[\": syntax error in pattern".to_owned()),
            ("$nope/x.yaml", "source referenced \"$nope\", which is not one of the available sources ($vals)".to_owned()),
        ] {
            assert_eq!(found(&[named], false), Err(want), "{named}");
        }
    }
}
