//! Sets the fields listed in a table.
//!
//! Main function: [`Fields::apply`]. Paths pass through lists implicitly.

use super::config::FieldSpec;
use super::edit_nodes::split_path;
use super::fault::{Fault, Res, fail};
use super::ids::ResId;
use super::tree::{Id, Kind, Tag, Tree};
use tiphys_apimachinery::gvk::split_api_version;

type Setter<'s> = &'s mut dyn FnMut(&mut Tree, Id) -> Res<()>;

/// What to create for a missing last part of a path.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// `None` creates nothing.
    pub create: Kind,
    pub tag: Tag,
}

impl Fields {
    pub const EXISTING: Self = Self {
        create: Kind::None,
        tag: Tag::Open,
    };

    /// Sets the field of one spec if the object is of its kind.
    pub fn apply(&self, tree: &mut Tree, root: Id, spec: &FieldSpec, set: Setter<'_>) -> Res<()> {
        tree.clock.spend(1)?;
        if !is_of_kind(tree, root, spec) {
            return Ok(());
        }
        let path = split_path(&spec.path, '/');
        let walked = self.walk(tree, root, spec, &path, set);
        walked.map_err(|fault| {
            let id = ResId::of(tree, root);
            fault.within(format!("considering field '{}' of object {id}", spec.path))
        })
    }

    fn walk(
        &self,
        tree: &mut Tree,
        at: Id,
        spec: &FieldSpec,
        path: &[String],
        set: Setter<'_>,
    ) -> Res<()> {
        tree.clock.spend(1)?;
        let Some((part, rest)) = path.split_first() else {
            return set(tree, at);
        };
        if tree.is_null(at) {
            return Ok(());
        }
        match tree.kind(at) {
            Kind::List => {
                for element in tree.elements(at) {
                    self.walk(tree, element, spec, path, set).map_err(|fault| {
                        let shown = path.join(" ");
                        fault.within(format!("visit traversal on path: [{shown}]"))
                    })?;
                }
                Ok(())
            }
            Kind::Map => {
                let Some(field) = self.field(tree, at, spec, part, rest.is_empty())? else {
                    return Ok(());
                };
                self.walk(tree, field, spec, rest, set)
            }
            _ => fail!("expected sequence or mapping node"),
        }
    }

    fn field(
        &self,
        tree: &mut Tree,
        map: Id,
        spec: &FieldSpec,
        part: &str,
        last: bool,
    ) -> Res<Option<Id>> {
        let (name, list) = match part.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (part, false),
        };
        if name.is_empty() {
            return Err(Fault::new("cannot set or create an empty field name"));
        }
        let within = |fault: Fault| fault.within(format!("fieldName: {name}"));
        let (found, kind, tag) = if !spec.create || self.create == Kind::None || list {
            let kind = if list { Kind::List } else { Kind::None };
            (tree.lookup(map, &[name]), kind, Tag::Open)
        } else {
            let (kind, tag) = if last {
                (self.create, self.tag.clone())
            } else {
                (Kind::Map, Tag::Map)
            };
            (tree.lookup_or_create(map, &[name], kind), kind, tag)
        };
        let found = found.map_err(within)?;
        if let Some(field) = found
            && tree.is_null(field)
            && kind != Kind::None
        {
            let node = tree.at_mut(field);
            (node.kind, node.tag) = (kind, tag);
        }
        Ok(found)
    }
}

/// Whether a spec applies to the object's kind.
fn is_of_kind(tree: &Tree, root: Id, spec: &FieldSpec) -> bool {
    if !spec.kind.is_empty() && spec.kind != tree.field_text(root, "kind") {
        return false;
    }
    let (group, version) = split_api_version(tree.field_text(root, "apiVersion"));
    (spec.group.is_empty() || spec.group == group)
        && (spec.version.is_empty() || spec.version == version)
}
