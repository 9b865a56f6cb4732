//! The `kustomize edit` steps that Argo CD applies to a kustomization before building it.
//!
//! Main type: [`Edit`]; main function: [`edit`]. Only the resulting values of the file matter;
//! comments, which the real command keeps, are lost.

use super::edit_fields::{
    add_labels, add_texts, list_at, map_at, parsed, set_images, set_replicas,
};
use super::fault::{Fault, Res, fail};
use super::kustomization::{Kustomization, NAMES};
use super::loader::inside;
use super::repospec::remote;
use crate::{FileKind, RenderError, SourceFiles, files::join};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_gocompat::yaml::{Duplicates, Limits, parse_document, to_string};
use tiphys_gocompat::{json::kind, path_match};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Edit {
    NamePrefix(String),
    NameSuffix(String),
    /// In forms such as `name=new:tag`.
    Images(Vec<String>),
    /// In the form `name=count`.
    Replicas(Vec<String>),
    Labels {
        texts: BTreeMap<String, String>,
        force: bool,
        without_selector: bool,
        include_templates: bool,
    },
    Annotations {
        texts: BTreeMap<String, String>,
        force: bool,
    },
    Namespace(String),
    /// A JSON list of the entries to add to `patches`.
    Patches(String),
    Components {
        paths: Vec<String>,
        ignore_missing: bool,
    },
}

/// The folder whose kustomization is edited.
struct Place<'a> {
    files: &'a dyn SourceFiles,
    folder: &'a str,
    limits: &'a Limits,
}

/// The kustomization of a folder after some steps; `None` if there are none.
///
/// # Errors
/// The error of `kustomize edit`, or of Argo CD.
pub fn edit(
    files: &dyn SourceFiles,
    folder: &str,
    edits: &[Edit],
    limits: &Limits,
) -> Result<Option<String>, RenderError> {
    let place = Place {
        files,
        folder,
        limits,
    };
    if !edits.is_empty() {
        files.expect(&[folder.to_owned()], &NAMES);
    }
    let mut text = None;
    for edit in edits {
        let Some(edit) = place.without_missing(edit)? else {
            continue;
        };
        let before = match text.take() {
            Some(text) => text,
            None => place
                .read(matches!(edit, Edit::Patches(_)))
                .map_err(|fault| edit.failed(fault))?,
        };
        let after = place.apply(&before, &edit);
        text = Some(after.map_err(|fault| edit.failed(fault))?);
    }
    Ok(text)
}

impl Edit {
    /// The command line for messages; empty for Argo CD's own step.
    fn command(&self) -> String {
        let listed = |texts: &BTreeMap<String, String>| {
            let texts = texts.iter().map(|(name, text)| format!("{name}:{text}"));
            texts.collect::<Vec<_>>().join(" ")
        };
        let flag = |set: bool, name: &str| {
            if set {
                format!("{name} ")
            } else {
                String::new()
            }
        };
        match self {
            Self::NamePrefix(text) => format!("set nameprefix -- {text}"),
            Self::NameSuffix(text) => format!("set namesuffix -- {text}"),
            Self::Namespace(text) => format!("set namespace -- {text}"),
            Self::Images(images) => format!("set image {}", images.join(" ")),
            Self::Replicas(replicas) => format!("set replicas {}", replicas.join(" ")),
            Self::Labels {
                texts,
                force,
                without_selector,
                include_templates,
            } => format!(
                "add label {}{}{}{}",
                flag(*force, "--force"),
                flag(*without_selector, "--without-selector"),
                flag(*include_templates, "--include-templates"),
                listed(texts)
            ),
            Self::Annotations { texts, force } => {
                format!(
                    "add annotation {}{}",
                    flag(*force, "--force"),
                    listed(texts)
                )
            }
            Self::Components { paths, .. } => format!("add component {}", paths.join(" ")),
            Self::Patches(_) => String::new(),
        }
    }

    fn failed(&self, fault: Fault) -> RenderError {
        if fault.is_final() || matches!(self, Self::Patches(_)) {
            return fault.into();
        }
        RenderError::Source(format!(
            "`kustomize edit {}` failed exit status 1: Error: {}",
            self.command(),
            fault.text
        ))
    }
}

impl Place<'_> {
    /// Removes missing components from the step if they are to be ignored. A folder without a
    /// kustomization counts as missing here, while Argo CD fails on it.
    fn without_missing(&self, edit: &Edit) -> Result<Option<Edit>, RenderError> {
        let Edit::Components {
            paths,
            ignore_missing,
        } = edit
        else {
            return Ok(Some(edit.clone()));
        };
        let local = paths.iter().filter(|path| remote(path).is_none());
        let local: Vec<String> = local.filter_map(|path| self.path(path)).collect();
        self.files.expect(&local, &NAMES);
        if !ignore_missing {
            return Ok(Some(edit.clone()));
        }
        let mut found = Vec::new();
        for path in paths {
            let Some(whole) = self.path(path) else {
                continue;
            };
            // Without a folder there is no need to look for its files.
            if self.files.kind(&whole)?.is_none() {
                continue;
            }
            let mut is_component = false;
            for name in NAMES {
                is_component |= self.files.kind(&join(&whole, name))?.is_some();
            }
            if is_component {
                found.push(path.clone());
            }
        }
        Ok((!found.is_empty()).then_some(Edit::Components {
            paths: found,
            ignore_missing: true,
        }))
    }

    fn path(&self, path: &str) -> Option<String> {
        inside(self.folder, path)
    }

    /// The text of the file. With `first`, the first file name found is used, as in Argo CD's own
    /// step.
    fn read(&self, first: bool) -> Res<String> {
        let mut found = Vec::new();
        for name in NAMES {
            if let Some(content) = self.files.read(&join(self.folder, name))? {
                found.push((name, content));
            }
        }
        let content = match found.as_slice() {
            [] if first => return fail!("kustomization file not found in the path"),
            [] => return fail!("Missing kustomization file 'kustomization.yaml'.\n"),
            [(_, content), rest @ ..] if first || rest.is_empty() => content,
            several => {
                let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
                return fail!("Found multiple kustomization file: [{}]\n", names.join(" "));
            }
        };
        Ok(String::from_utf8_lossy(content).into_owned())
    }

    fn apply(&self, text: &str, edit: &Edit) -> Res<String> {
        let mut own = match edit {
            Edit::Patches(patches) => return self.add_patches(text, patches),
            _ => Kustomization::fields(text.as_bytes(), self.limits)?,
        };
        let set = |own: &mut Map<String, Value>, name: &str, text: &str| {
            own.insert(name.to_owned(), text.into());
        };
        match edit {
            Edit::NamePrefix(text) => set(&mut own, "namePrefix", text),
            Edit::NameSuffix(text) => set(&mut own, "nameSuffix", text),
            Edit::Namespace(text) => set(&mut own, "namespace", text),
            Edit::Images(images) => set_images(&mut own, images)?,
            Edit::Replicas(replicas) => set_replicas(&mut own, replicas)?,
            Edit::Labels {
                texts,
                force,
                without_selector,
                include_templates,
            } => match (without_selector, include_templates) {
                (false, true) => {
                    return fail!(
                        "--without-selector flag must be specified for --include-templates to work"
                    );
                }
                (false, false) => {
                    let labels = map_at(&mut own, "commonLabels");
                    add_texts(labels, &parsed(texts, "label")?, *force, "label")?;
                }
                (true, templates) => {
                    add_labels(&mut own, &parsed(texts, "label")?, *force, *templates)?;
                }
            },
            Edit::Annotations { texts, force } => {
                let annotations = map_at(&mut own, "commonAnnotations");
                add_texts(
                    annotations,
                    &parsed(texts, "annotation")?,
                    *force,
                    "annotation",
                )?;
            }
            Edit::Components { paths, .. } => self.add_components(&mut own, paths)?,
            Edit::Patches(_) => {}
        }
        Ok(to_string(&Value::Object(own)))
    }

    /// Argo CD's own step: the file is read as generic YAML.
    fn add_patches(&self, text: &str, patches: &str) -> Res<String> {
        let value = parse_document(text, self.limits, Duplicates::LastWins).map_err(|error| {
            let text = error.json_text();
            Fault::new(format!("failed to unmarshal kustomization.yaml: {text}"))
        })?;
        let Value::Object(mut own) = value else {
            return fail!(
                "expected kustomization.yaml to be type map[string]any, but got map[string]interface {{}}"
            );
        };
        let new: Result<Vec<Value>, _> = serde_json::from_str(patches);
        let new = new.map_err(|error| Fault::new(error.to_string()))?;
        let patches = own
            .entry("patches")
            .or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = patches else {
            return fail!(
                "expected 'patches' field in kustomization.yaml to be []any, but got {}",
                kind(patches)
            );
        };
        list.extend(new);
        Ok(to_string(&Value::Object(own)))
    }

    fn add_components(&self, own: &mut Map<String, Value>, paths: &[String]) -> Res<()> {
        let mut found = Vec::new();
        for path in paths {
            let matches = self.glob(path)?;
            if !matches.is_empty() {
                found.extend(matches);
                continue;
            }
            if remote(path).is_none() {
                let shown = format!("/{}", self.path(path).unwrap_or_else(|| path.clone()));
                return fail!(
                    "{path} has no match: must build at directory: not a valid directory: evalsymlink failure on '{shown}' : lstat {shown}: no such file or directory"
                );
            }
            found.push(path.clone());
        }
        let components = list_at(own, "components");
        for path in found {
            let path = Value::String(path);
            if !components.contains(&path) {
                components.push(path);
            }
        }
        Ok(())
    }

    /// The paths that match a pattern, expanded one path component at a time.
    fn glob(&self, pattern: &str) -> Res<Vec<String>> {
        if pattern.starts_with('/') || remote(pattern).is_some() {
            return Ok(Vec::new());
        }
        if !pattern.contains(['*', '?', '[']) {
            let there = match self.path(pattern) {
                Some(whole) => self.files.kind(&whole)?.is_some(),
                None => false,
            };
            return Ok(there.then(|| pattern.to_owned()).into_iter().collect());
        }
        let mut found = vec![String::new()];
        for part in pattern.split('/') {
            let mut next = BTreeSet::new();
            for folder in &found {
                let whole = self.path(folder).unwrap_or_default();
                if !part.contains(['*', '?', '[']) {
                    next.insert(join(folder, part));
                    continue;
                }
                for entry in self.files.list(&whole)?.unwrap_or_default() {
                    let matches = path_match::matches(part, &entry.name);
                    if matches.map_err(|_| Fault::new("syntax error in pattern"))? {
                        next.insert(join(folder, &entry.name));
                    }
                }
            }
            found = next.into_iter().collect();
        }
        let mut there = Vec::new();
        for path in found {
            let kind = match self.path(&path) {
                Some(whole) => self.files.kind(&whole)?,
                None => None,
            };
            if matches!(kind, Some(FileKind::Dir | FileKind::File { .. })) {
                there.push(path);
            }
        }
        Ok(there)
    }
}
