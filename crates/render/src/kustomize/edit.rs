//! What Argo CD has `kustomize edit` do to a kustomization before it builds it.
//!
//! Main type: [`Edit`]; main function: [`edit`]. Only what the file says in the end matters here; the
//! comments that the genuine command keeps are lost.

use super::fault::{Fault, Res, fail};
use super::kustomization::{Kustomization, NAMES};
use super::loader::inside;
use super::repospec::remote;
use crate::{FileKind, RenderError, SourceFiles, files::join};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_gocompat::yaml::{Duplicates, Limits, parse_document, to_string};
use tiphys_gocompat::{json::kind, path_match};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    NamePrefix(String),
    NameSuffix(String),
    /// As `name=new:tag` and the like.
    Images(Vec<String>),
    /// As `name=count`.
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
    /// A JSON list of what is added to `patches`.
    Patches(String),
    Components {
        paths: Vec<String>,
        ignore_missing: bool,
    },
}

/// The folder whose kustomization is changed.
struct Place<'a> {
    files: &'a dyn SourceFiles,
    folder: &'a str,
    limits: &'a Limits,
}

/// The kustomization of a folder after some steps; `None` if there are none.
///
/// # Errors
/// The words of `kustomize edit`, or of Argo CD.
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
    /// The command line, without what would be wrong to repeat.
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
    /// The same step without components that are not there, if these are to be left out. A folder
    /// without a kustomization is none; Argo CD fails at it.
    fn without_missing(&self, edit: &Edit) -> Result<Option<Edit>, RenderError> {
        let Edit::Components {
            paths,
            ignore_missing: true,
        } = edit
        else {
            return Ok(Some(edit.clone()));
        };
        let mut found = Vec::new();
        for path in paths {
            let Some(whole) = self.path(path) else {
                continue;
            };
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

    /// The text of the file. Where Argo CD itself looks for it, the first one counts.
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

    /// Argo CD's own step: the file is read as any YAML.
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

    /// The paths that a pattern means, one part after the other.
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

fn list_at<'m>(own: &'m mut Map<String, Value>, name: &str) -> &'m mut Vec<Value> {
    let list = own
        .entry(name.to_owned())
        .or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    match list {
        Value::Array(list) => list,
        _ => unreachable!("it has just been made one"),
    }
}

fn map_at<'m>(own: &'m mut Map<String, Value>, name: &str) -> &'m mut Map<String, Value> {
    let map = own
        .entry(name.to_owned())
        .or_insert_with(|| Value::Object(Map::new()));
    if !map.is_object() {
        *map = Value::Object(Map::new());
    }
    match map {
        Value::Object(map) => map,
        _ => unreachable!("it has just been made one"),
    }
}

/// The pairs as the command reads them: the first colon ends a name, and quotes around a value are
/// not part of it.
fn parsed(texts: &BTreeMap<String, String>, what: &str) -> Res<BTreeMap<String, String>> {
    let mut pairs = BTreeMap::new();
    for (name, text) in texts {
        let whole = format!("{name}:{text}");
        let (name, text) = whole.split_once(':').unwrap_or((&whole, ""));
        if name.is_empty() {
            return fail!("invalid {what}: '{whole}' (need k:v pair where v may be quoted)");
        }
        let inner = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        pairs.insert(name.to_owned(), inner.unwrap_or(text).to_owned());
    }
    Ok(pairs)
}

fn add_texts(
    map: &mut Map<String, Value>,
    texts: &BTreeMap<String, String>,
    force: bool,
    what: &str,
) -> Res<()> {
    for (name, text) in texts {
        if map.contains_key(name) && !force {
            return fail!("{what} {name} already in kustomization file. Use --force to override.");
        }
        map.insert(name.clone(), text.as_str().into());
    }
    Ok(())
}

/// Into the first entry of `labels` that is about the same fields, or into a new one.
fn add_labels(
    own: &mut Map<String, Value>,
    texts: &BTreeMap<String, String>,
    force: bool,
    templates: bool,
) -> Res<()> {
    let entries = list_at(own, "labels");
    let is = |entry: &Value, name: &str| entry.get(name) == Some(&Value::Bool(true));
    let at = entries.iter().position(|entry| {
        !is(entry, "includeSelectors") && is(entry, "includeTemplates") == templates
    });
    let at = at.unwrap_or_else(|| {
        entries.push(if templates {
            json!({ "includeTemplates": true })
        } else {
            json!({})
        });
        entries.len() - 1
    });
    match entries.get_mut(at) {
        Some(Value::Object(entry)) => add_texts(map_at(entry, "pairs"), texts, force, "label"),
        _ => fail!("labels must be a list of maps"),
    }
}

fn set_replicas(own: &mut Map<String, Value>, replicas: &[String]) -> Res<()> {
    let mut all = BTreeMap::new();
    for replica in replicas {
        let parts: Vec<&str> = replica.split('=').collect();
        let count = match parts.as_slice() {
            [name, count] => count.parse::<i64>().ok().map(|count| (*name, count)),
            _ => None,
        };
        let Some((name, count)) = count else {
            return fail!("invalid format of replica, use the following format: <name>=<count>");
        };
        all.insert(name.to_owned(), json!({ "name": name, "count": count }));
    }
    let list = list_at(own, "replicas");
    for replica in std::mem::take(list) {
        let name = replica
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        all.entry(name.to_owned()).or_insert(replica);
    }
    list.extend(all.into_values());
    Ok(())
}

/// An image as an argument says it; `*` stands for what the file has.
fn image_of(argument: &str) -> Res<[String; 4]> {
    let (key, value) = match argument.split_once('=') {
        Some((key, value)) => (key, value),
        None => ("", argument),
    };
    let (name, tag, digest) = super::transform::split_image(value);
    if name == argument {
        return fail!(
            "invalid format of image, use one of the following options:\n- <image>=<newimage>:<newtag>\n- <image>=<newimage>@<digest>\n- <image>=<newimage>:<newtag>@<digest>\n- <image>=<newimage>\n- <image>:<newtag>\n- <image>:<newtag>@<digest>\n- <image>@<digest>"
        );
    }
    let (name, new_name) = if key.is_empty() {
        (name, "")
    } else {
        (key, name)
    };
    Ok([name, new_name, tag, digest].map(str::to_owned))
}

const IMAGE_FIELDS: [&str; 4] = ["name", "newName", "newTag", "digest"];

fn set_images(own: &mut Map<String, Value>, images: &[String]) -> Res<()> {
    let mut new = BTreeMap::new();
    for image in images {
        let image = image_of(image)?;
        new.insert(image[0].clone(), image);
    }
    let old_names = own.remove("imageTags");
    let list = list_at(own, "images");
    let mut before = std::mem::take(list);
    if let Some(Value::Array(more)) = old_names {
        before.extend(more);
    }
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    for image in before {
        let text = |name| image.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        match new.get_mut(&name) {
            Some(new) => {
                for (new, field) in new.iter_mut().zip(IMAGE_FIELDS).skip(1) {
                    if new == "*" {
                        text(field).clone_into(new);
                    }
                }
            }
            None => {
                all.insert(name, image);
            }
        }
    }
    for (name, image) in new {
        let fields = image.into_iter().zip(IMAGE_FIELDS);
        let fields = fields.filter(|(text, _)| !text.is_empty() && text != "*");
        let image: Map<_, _> = fields
            .map(|(text, field)| (field.to_owned(), text.into()))
            .collect();
        all.insert(name, Value::Object(image));
    }
    list.extend(all.into_values());
    Ok(())
}
