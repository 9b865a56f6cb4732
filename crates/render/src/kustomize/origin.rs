//! The origin of objects, for `buildMetadata`.
//!
//! Main type: [`Origin`].

use super::fault::Res;
use super::ids::ResId;
use super::repospec::{RepoSpec, clean};
use super::resmap::ResMap;
use super::resource::{ORIGIN, Object, TRANSFORMATIONS};
use super::tree::Tree;
use tiphys_gocompat::{document::Document, yaml::to_string_v3};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub path: String,
    pub repo: String,
    pub revision: String,
    pub configured_in: String,
    pub configured_by: By,
}

/// The object or kustomization field that generated something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct By {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

impl Origin {
    /// The origin extended by a path.
    pub fn append(&self, path: &str) -> Self {
        let mut next = self.clone();
        let mut path = path.to_owned();
        if let Ok(spec) = RepoSpec::parse(&path) {
            next.repo = spec.clone;
            next.revision = spec.revision;
            next.path = String::new();
            // The root of a repository is named after the folder it would be cloned to.
            path = match clean(&spec.folder).as_str() {
                "." => "notCloned".to_owned(),
                folder => folder.to_owned(),
            };
        }
        next.path = joined(&next.path, &path);
        next
    }

    /// The origin of objects generated or changed by a kustomization field.
    pub fn of_field(&self, file: &str, kind: &str) -> Self {
        Self {
            repo: self.repo.clone(),
            revision: self.revision.clone(),
            configured_in: joined(&self.path, file),
            configured_by: By {
                api_version: "builtin".to_owned(),
                kind: kind.to_owned(),
                ..By::default()
            },
            path: String::new(),
        }
    }

    /// The origin of objects generated or changed by an object in `transformers` or `generators`.
    pub fn of_plugin(tree: &Tree, object: Object) -> Option<Self> {
        let text = object.annotation(tree, ORIGIN)?;
        let line = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(": "));
            let mut values = lines.filter(|(key, _)| *key == name);
            values.next().map_or(String::new(), |(_, value)| {
                value.trim_matches(['"', '\'']).to_owned()
            })
        };
        let id: ResId = object.id(tree);
        Some(Self {
            repo: line("repo"),
            revision: line("ref"),
            configured_in: line("path"),
            configured_by: By {
                api_version: id.gvk.api_version(),
                kind: id.gvk.kind,
                name: id.name,
                namespace: id.namespace,
            },
            path: String::new(),
        })
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let line = |out: &mut String, name: &str, value: &str| {
            if !value.is_empty() {
                out.push_str(&format!(
                    "{name}: {}",
                    to_string_v3(&Document::Text(value.into()))
                ));
            }
        };
        line(&mut out, "path", &self.path);
        line(&mut out, "repo", &self.repo);
        line(&mut out, "ref", &self.revision);
        line(&mut out, "configuredIn", &self.configured_in);
        let by = &self.configured_by;
        if *by != By::default() {
            out.push_str("configuredBy:\n");
            line(&mut out, "  apiVersion", &by.api_version);
            line(&mut out, "  kind", &by.kind);
            line(&mut out, "  name", &by.name);
            line(&mut out, "  namespace", &by.namespace);
        }
        if out.is_empty() {
            out.push_str("{}\n");
        }
        out
    }

    /// Records on all objects that they were changed, or generated if they have no origin yet.
    pub fn note_change(&self, tree: &mut Tree, map: &ResMap) -> Res<()> {
        for (_, object) in map.objects() {
            // What is noted grows with each change.
            tree.clock.look()?;
            let mut annotations = object.annotations(tree);
            if annotations.contains_key(ORIGIN) {
                let item = self.text().replace('\n', "\n  ");
                let item = format!("- {}\n", item.trim_end());
                annotations
                    .entry(TRANSFORMATIONS.to_owned())
                    .or_default()
                    .push_str(&item);
            } else {
                annotations.insert(ORIGIN.to_owned(), self.text());
            }
            object.set_annotations(tree, &annotations)?;
        }
        Ok(())
    }
}

fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() && path.is_empty() {
        return String::new();
    }
    clean(&match folder {
        "" => path.to_owned(),
        folder => format!("{folder}/{path}"),
    })
}
