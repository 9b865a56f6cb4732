//! The changes with their own fields in a kustomization: names, namespaces, labels, annotations,
//! images and replicas.

use super::config::FieldSpec;
use super::fault::{Res, fail};
use super::fields::Fields;
use super::ids::ResId;
use super::kustomization::{Image, Replica};
use super::resmap::ResMap;
use super::resource::{HELM_GENERATED, Object, PREFIXES, SUFFIXES, Texts};
use super::tree::{DEEPEST, Id, Kind, Tag, Tree, too_deep};
use std::collections::HashMap;
use tiphys_gocompat::regex::Regex;

/// Whether text is added before or after a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affix {
    Prefix,
    Suffix,
}

/// Objects whose names are fixed, because others depend on them.
const NEVER_RENAMED: &[(&str, &str)] = &[
    ("", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("", "Namespace"),
];

fn is_never_renamed(id: &ResId) -> bool {
    let mut kinds = NEVER_RENAMED.iter();
    kinds.any(|(group, kind)| *kind == id.gvk.kind && (group.is_empty() || *group == id.gvk.group))
}

pub(super) fn rename(
    tree: &mut Tree,
    map: &ResMap,
    affix: Affix,
    text: &str,
    specs: &[FieldSpec],
) -> Res<()> {
    let fields = Fields {
        create: Kind::Scalar,
        tag: Tag::Str,
    };
    for (_, object) in map.objects() {
        tree.clock.spend(1)?;
        let id = object.original_id(tree)?;
        if is_never_renamed(&id) {
            continue;
        }
        for spec in specs.iter().filter(|spec| id.gvk.is_selected(&spec.gvk())) {
            if spec.path == "metadata/name" {
                let name = match affix {
                    Affix::Prefix => PREFIXES,
                    Affix::Suffix => SUFFIXES,
                };
                object.append(tree, name, text)?;
                if !text.is_empty() {
                    object.remember_id(tree)?;
                }
            }
            fields.apply(tree, object.0, spec, &mut |tree, field| {
                let new = match affix {
                    Affix::Prefix => format!("{text}{}", tree.text(field)),
                    Affix::Suffix => format!("{}{text}", tree.text(field)),
                };
                tree.set_scalar_text(field, &new, Tag::Open)
            })?;
        }
    }
    Ok(())
}

/// Which subjects of role bindings get the namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Subjects {
    #[default]
    NamedDefault,
    ServiceAccounts,
    None,
}

#[derive(Clone, Debug)]
pub(super) struct Namespace {
    pub name: String,
    pub specs: Vec<FieldSpec>,
    pub unset_only: bool,
    pub subjects: Subjects,
}

impl Namespace {
    pub fn apply(&self, tree: &mut Tree, map: &ResMap) -> Res<()> {
        if self.name.is_empty() {
            return Ok(());
        }
        let mut counts: HashMap<_, usize> = HashMap::new();
        for (_, object) in map.objects() {
            *counts.entry(object.id(tree).key()).or_default() += 1;
        }
        for (_, object) in map.objects() {
            if tree.is_empty(object.0) || object.annotation(tree, HELM_GENERATED) == Some("true") {
                continue;
            }
            let before = object.id(tree).key();
            object.remember_id(tree)?;
            self.apply_to(tree, object)?;
            if let Some(count) = counts.get_mut(&before) {
                *count -= 1;
            }
            let id = object.id(tree);
            let count = counts.entry(id.key()).or_default();
            *count += 1;
            if *count != 1 {
                return fail!("namespace transformation produces ID conflict: {id}");
            }
        }
        Ok(())
    }

    pub fn apply_to(&self, tree: &mut Tree, object: Object) -> Res<()> {
        let gvk = object.gvk(tree);
        let is_core = tree.field_text(object.0, "apiVersion") == "v1";
        let mut created = Fields {
            create: Kind::Scalar,
            tag: Tag::Open,
        };
        if !gvk.is_cluster_scoped() {
            let spec = FieldSpec::created("metadata/namespace");
            created.apply(tree, object.0, &spec, &mut |tree, field| {
                self.set(tree, field)
            })?;
        }
        let is_binding = matches!(gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
        if is_binding {
            self.set_subjects(tree, object)
                .map_err(|f| f.within("setting namespace on (cluster)role binding subjects"))?;
        }
        created.tag = Tag::Str;
        for spec in &self.specs {
            let of_binding = matches!(spec.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
            let handled = spec.path == "metadata/namespace"
                || !is_core && spec.path == "metadata/name"
                || is_binding && of_binding && spec.path == "subjects/namespace";
            if !handled {
                let set = &mut |tree: &mut Tree, field: Id| self.set(tree, field);
                let done = created.apply(tree, object.0, spec, set);
                done.map_err(|fault| fault.within("namespace transformation failed"))?;
            }
        }
        Ok(())
    }

    fn set(&self, tree: &mut Tree, field: Id) -> Res<()> {
        if self.unset_only && !tree.is_empty(field) && !tree.text(field).is_empty() {
            return Ok(());
        }
        tree.set_scalar_text(field, &self.name, Tag::Str)
    }

    fn set_subjects(&self, tree: &mut Tree, object: Object) -> Res<()> {
        let (field, wanted) = match self.subjects {
            Subjects::None => return Ok(()),
            Subjects::NamedDefault => ("name", "default"),
            Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
        };
        let Some(subjects) = tree.get(object.0, "subjects")? else {
            return Ok(());
        };
        tree.expect(subjects, Kind::List)?;
        for subject in tree.elements(subjects) {
            let Some(value) = tree.get(subject, field)? else {
                continue;
            };
            if tree.is_null(value) || tree.text(value) != wanted {
                continue;
            }
            if let Some(id) = tree.lookup_or_create(subject, &["namespace"], Kind::Scalar)? {
                self.set(tree, id)?;
            }
        }
        Ok(())
    }
}

/// Sets labels or annotations, which work the same way.
pub(super) fn set_texts(
    tree: &mut Tree,
    map: &ResMap,
    texts: &Texts,
    specs: &[FieldSpec],
) -> Res<()> {
    let fields = Fields {
        create: Kind::Map,
        tag: Tag::Map,
    };
    for (_, object) in map.objects() {
        for (name, text) in texts {
            tree.clock.spend(1)?;
            // All fields share one node.
            let value = tree.scalar(text, Tag::Str);
            for spec in specs {
                fields.apply(tree, object.0, spec, &mut |tree, field| {
                    tree.set_field(field, name, Some(value))
                })?;
            }
        }
        tree.check()?;
    }
    Ok(())
}

pub(super) fn set_image(
    tree: &mut Tree,
    map: &ResMap,
    image: &Image,
    specs: &[FieldSpec],
) -> Res<()> {
    let expression = format!(
        "^{}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$",
        image.name
    );
    // An invalid expression matches no image.
    let Ok(expression) = Regex::new(&expression) else {
        return Ok(());
    };
    let mut set = |tree: &mut Tree, field: Id| set_image_at(tree, field, image, &expression);
    for (_, object) in map.objects() {
        if tree.field_text(object.0, "kind") == "CustomResourceDefinition" {
            continue;
        }
        containers(tree, object.0, 0, &mut set)?;
        for spec in specs {
            Fields::EXISTING.apply(tree, object.0, spec, &mut set)?;
        }
    }
    Ok(())
}

type Set<'s> = &'s mut dyn FnMut(&mut Tree, Id) -> Res<()>;

/// Finds lists of containers at any depth.
fn containers(tree: &mut Tree, id: Id, depth: usize, set: Set<'_>) -> Res<()> {
    if depth > DEEPEST {
        return Err(too_deep());
    }
    match tree.kind(id) {
        Kind::Map => {
            let names: Vec<String> = tree
                .entries(id)
                .map(|(key, _)| tree.text(key).to_owned())
                .collect();
            // Each name is searched among all.
            let step = 1 + names.len() / 16;
            for name in names {
                tree.clock.spend(step)?;
                let Some(value) = tree.field(id, &name) else {
                    continue;
                };
                containers(tree, value, depth + 1, set)?;
                if name == "containers" || name == "initContainers" {
                    for container in tree.elements(value) {
                        if let Some(image) = tree.get(container, "image")? {
                            set(tree, image)?;
                        }
                    }
                }
            }
        }
        Kind::List => {
            for element in tree.elements(id) {
                tree.clock.spend(1)?;
                containers(tree, element, depth + 1, set)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn set_image_at(tree: &mut Tree, field: Id, image: &Image, expression: &Regex) -> Res<()> {
    tree.expect(field, Kind::Scalar)?;
    let value = tree.text(field);
    if !expression.is_match(value) {
        return Ok(());
    }
    let (name, mut tag, mut digest) = split_image(value);
    let suffixed;
    match (&*image.new_tag, &*image.digest, &*image.tag_suffix) {
        ("", "", "") => {}
        ("", "", suffix) => {
            suffixed = format!("{tag}{suffix}");
            (tag, digest) = (suffixed.as_str(), "");
        }
        (new_tag, new_digest, _) => (tag, digest) = (new_tag, new_digest),
    }
    let name = if image.new_name.is_empty() {
        name
    } else {
        &image.new_name
    };
    let mut new = name.to_owned();
    for (separator, part) in [(':', tag), ('@', digest)] {
        if !part.is_empty() {
            new.push(separator);
            new.push_str(part);
        }
    }
    tree.set_scalar_text(field, &new, Tag::Open)
}

/// Name, tag and digest of an image; a colon before the first slash is part of the host.
pub(super) fn split_image(image: &str) -> (&str, &str, &str) {
    let start = image.find('/').unwrap_or(0);
    let find = |c| image[start..].find(c).map(|at| at + start);
    match (find(':'), find('@')) {
        (None, None) => (image, "", ""),
        (None, Some(at)) => (&image[..at], "", &image[at + 1..]),
        (Some(colon), Some(at)) if at < colon => (&image[..at], "", &image[at + 1..]),
        (Some(colon), Some(at)) => (&image[..colon], &image[colon + 1..at], &image[at + 1..]),
        (Some(colon), None) => (&image[..colon], &image[colon + 1..], ""),
    }
}

pub(super) fn set_replicas(
    tree: &mut Tree,
    map: &ResMap,
    replica: &Replica,
    specs: &[FieldSpec],
) -> Res<()> {
    let fields = Fields {
        create: Kind::Scalar,
        tag: Tag::Int,
    };
    let mut found = false;
    for spec in specs {
        let matches = |id: &ResId| id.name == replica.name && id.gvk.is_selected(&spec.gvk());
        for index in map.by_any_id(tree, Some(&replica.name), matches)? {
            found = true;
            if let Some(object) = map.list[index].object() {
                fields.apply(tree, object.0, spec, &mut |tree, field| {
                    tree.set_scalar_text(field, &replica.count.to_string(), Tag::Int)
                })?;
            }
        }
    }
    if found {
        return Ok(());
    }
    let kinds: Vec<String> = specs.iter().map(|spec| spec.gvk().to_string()).collect();
    fail!(
        "resource with name {} does not match a config with the following GVK [{}]",
        replica.name,
        kinds.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::split_image;

    #[test]
    fn images_are_taken_apart() {
        for (image, want) in [
            ("nginx", ("nginx", "", "")),
            ("nginx:1", ("nginx", "1", "")),
            ("host:5000/nginx", ("host:5000/nginx", "", "")),
            (
                "host:5000/a/nginx:1@sha256:x",
                ("host:5000/a/nginx", "1", "sha256:x"),
            ),
            ("nginx@sha256:x", ("nginx", "", "sha256:x")),
        ] {
            assert_eq!(split_image(image), want);
        }
    }
}
