//! Updates fields that refer to other objects by name.
//!
//! Main function: [`fix_references`]. The referenced object is searched among those that ever had
//! the name, first by kind and namespace, then by the prefixes and suffixes that both got.

use super::config::{BackReference, FieldSpec};
use super::fault::{Res, fail};
use super::fields::Fields;
use super::ids::{Gvk, NO_NAMESPACE, ResId};
use super::resmap::ResMap;
use super::resource::{Object, PREFIXES, SUFFIXES};
use super::tree::{Id, Kind, Tag, Tree};
use std::collections::{BTreeSet, HashMap};

/// Cached data of an object while references are fixed; it does not change.
struct Known {
    object: Object,
    now: ResId,
    previous: Vec<ResId>,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
    /// The current namespace; [`NO_NAMESPACE`] for cluster-scoped objects.
    namespace: String,
}

impl Known {
    fn original(&self) -> &ResId {
        self.previous.first().unwrap_or(&self.now)
    }

    /// Whether both have the same last prefixes and suffixes; with `loose`, also if either has
    /// none.
    fn is_of_same_copy(&self, other: &Self, loose: bool) -> bool {
        let same = |own: &[String], other: &[String]| {
            let either_empty = own.is_empty() || other.is_empty();
            loose && either_empty || same_ending(own, other)
        };
        same(&self.prefixes, &other.prefixes) && same(&self.suffixes, &other.suffixes)
    }
}

fn same_ending(left: &[String], right: &[String]) -> bool {
    let (short, long) = if left.len() > right.len() {
        (right, left)
    } else {
        (left, right)
    };
    if short.is_empty() {
        return long.is_empty();
    }
    long.ends_with(short)
}

pub(super) fn fix_references(
    tree: &mut Tree,
    map: &ResMap,
    references: &[BackReference],
) -> Res<()> {
    let mut all = Vec::new();
    for (_, object) in map.objects() {
        tree.clock.spend(1)?;
        let now = object.id(tree);
        all.push(Known {
            object,
            namespace: now.effective_namespace().to_owned(),
            now,
            previous: object.previous_ids(tree)?,
            prefixes: object.listed(tree, PREFIXES),
            suffixes: object.listed(tree, SUFFIXES),
        });
    }
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, known) in all.iter().enumerate() {
        let names: BTreeSet<&str> = known.previous.iter().map(|id| id.name.as_str()).collect();
        for name in names {
            by_name.entry(name).or_default().push(index);
        }
    }
    let count: usize = references.iter().map(|r| r.referrers.len()).sum();
    for referrer in 0..all.len() {
        tree.clock.spend(1 + count / 16)?;
        let specs = references.iter().flat_map(|reference| {
            let own = reference.referrers.iter();
            let own = own.filter(|spec| all[referrer].original().gvk.is_selected(&spec.gvk()));
            own.map(move |spec| (reference, spec))
        });
        let specs: Vec<_> = specs.collect();
        if specs.is_empty() {
            continue;
        }
        let accounts = account_namespaces(tree, all[referrer].object)?;
        for (reference, spec) in specs {
            let fixer = Fixer {
                all: &all,
                by_name: &by_name,
                accounts: &accounts,
                referrer: &all[referrer],
                target: reference.gvk(),
                spec,
            };
            fixer.run(tree)?;
        }
    }
    Ok(())
}

/// The namespaces of the service accounts in a role binding.
fn account_namespaces(tree: &Tree, object: Object) -> Res<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    if tree.field_text(object.0, "kind") != "RoleBinding" {
        return Ok(found);
    }
    let subjects = tree.field(object.0, "subjects");
    for subject in subjects.into_iter().flat_map(|id| tree.elements(id)) {
        if tree.field_text(subject, "kind") != "ServiceAccount" {
            continue;
        }
        let Some(namespace) = tree.field(subject, "namespace") else {
            continue;
        };
        if !tree.json_value(namespace)?.is_string() {
            let id = object.id(tree);
            return fail!("Invalid Input: namespace is blank for resource \"{id}\"\n");
        }
        found.insert(tree.text(namespace).to_owned());
    }
    Ok(found)
}

struct Fixer<'f> {
    all: &'f [Known],
    by_name: &'f HashMap<&'f str, Vec<usize>>,
    /// The namespaces of the service accounts in a role binding.
    accounts: &'f BTreeSet<String>,
    referrer: &'f Known,
    target: Gvk,
    spec: &'f FieldSpec,
}

impl Fixer<'_> {
    fn run(&self, tree: &mut Tree) -> Res<()> {
        let root = self.referrer.object.0;
        // The kind may have changed since it was checked.
        let gvk = self.referrer.object.gvk(tree);
        let spec = FieldSpec {
            group: gvk.group,
            version: gvk.version,
            kind: gvk.kind,
            path: self.spec.path.clone(),
            create: self.spec.create,
        };
        let fixed =
            Fields::EXISTING.apply(tree, root, &spec, &mut |tree, field| self.set(tree, field));
        fixed.map_err(|fault| {
            let id = &self.referrer.now;
            fault.within(format!(
                "updating name reference in '{}' field of '{id}'",
                self.spec.path
            ))
        })
    }

    fn set(&self, tree: &mut Tree, field: Id) -> Res<()> {
        if tree.is_null(field) {
            return Ok(());
        }
        match tree.kind(field) {
            Kind::Scalar => self.set_scalar(tree, field),
            Kind::Map => self.set_map(tree, field),
            Kind::List => {
                for element in tree.elements(field) {
                    match tree.kind(element) {
                        _ if tree.is_null(element) => {}
                        Kind::Scalar => self.set_scalar(tree, element)?,
                        Kind::Map => self.set_map(tree, element)?,
                        _ => {
                            return fail!(
                                "{} is expected to be either a string or a map of string",
                                tree.shown(element)
                            );
                        }
                    }
                }
                Ok(())
            }
            Kind::None => fail!("node must be a scalar, sequence or map"),
        }
    }

    fn set_scalar(&self, tree: &mut Tree, field: Id) -> Res<()> {
        let old = tree.text(field).to_owned();
        let Some(found) = self.find(tree, &old, None)? else {
            return Ok(());
        };
        let new = found.now.name.clone();
        if new == old {
            return Ok(());
        }
        tree.set_scalar_text(field, &new, Tag::Open)
    }

    /// Sets a map with a name and possibly a namespace.
    fn set_map(&self, tree: &mut Tree, field: Id) -> Res<()> {
        let Some(name) = tree.field(field, "name") else {
            return fail!("path config error; no 'name' field in node");
        };
        let old = tree.text(name).to_owned();
        let namespace = tree
            .field(field, "namespace")
            .map(|id| tree.text(id).to_owned());
        let Some(found) = self.find(tree, &old, Some(namespace.as_deref()))? else {
            return Ok(());
        };
        let (name, namespace) = (found.now.name.clone(), found.now.namespace.clone());
        if name == old && namespace.is_empty() {
            return Ok(());
        }
        let value = tree.scalar(name, Tag::Open);
        tree.set_field(field, "name", Some(value))?;
        if namespace.is_empty() {
            return Ok(());
        }
        let value = tree.scalar(namespace, Tag::Open);
        tree.set_field(field, "namespace", Some(value))
    }

    /// Filters the candidates by the map's namespace; those whose original namespace matches take
    /// precedence.
    fn in_namespace(&self, candidates: &mut Vec<usize>, namespace: &str) {
        let all = self.all.iter().enumerate();
        let mut reachable = all.filter(|(index, _)| self.is_reachable(*index));
        let first = |known: &Known| {
            let found = known.original().effective_namespace();
            found != NO_NAMESPACE && found == namespace
        };
        if reachable.any(|(_, known)| first(known)) {
            candidates.retain(|index| first(&self.all[*index]));
        } else {
            candidates.retain(|index| {
                let found = &self.all[*index].namespace;
                found != NO_NAMESPACE && found == namespace
            });
        }
    }

    /// Whether the object's namespace allows the reference.
    fn is_reachable(&self, index: usize) -> bool {
        let known = &self.all[index];
        self.referrer.namespace == NO_NAMESPACE
            || known.namespace == NO_NAMESPACE
            || known.namespace == self.referrer.namespace
            || self.accounts.contains(&known.now.namespace)
    }

    /// Finds the referenced object. `map`: the name is in a map with this namespace.
    fn find(&self, tree: &Tree, name: &str, map: Option<Option<&str>>) -> Res<Option<&Known>> {
        let Some(candidates) = self.by_name.get(name) else {
            return Ok(None);
        };
        tree.clock.spend(1 + candidates.len() / 16)?;
        let candidates = candidates.iter().copied();
        let mut candidates: Vec<usize> = candidates
            .filter(|index| self.is_reachable(*index))
            .collect();
        if let Some(Some(namespace)) = map {
            tree.clock.spend(1 + self.all.len() / 16)?;
            self.in_namespace(&mut candidates, namespace);
        }
        let role = self.role(tree);
        candidates.retain(|index| {
            let known = &self.all[*index];
            let once = |gvk: &Gvk| known.previous.iter().any(|id| id.gvk.is_selected(gvk));
            once(&self.target) && role.as_ref().is_none_or(once) && self.is_near(known)
        });
        let candidates = self.narrowed(candidates);
        let Some(first) = candidates.first().map(|index| &self.all[*index]) else {
            return Ok(None);
        };
        let alike = candidates.iter().map(|index| &self.all[*index].now);
        let mut alike = alike.filter(|now| {
            now.name != first.now.name || map.is_some() && now.namespace != first.now.namespace
        });
        if candidates.len() == 1 || alike.next().is_none() {
            return Ok(Some(first));
        }
        let ids: Vec<String> = candidates
            .iter()
            .map(|index| self.all[*index].now.to_string())
            .collect();
        fail!("found multiple possible referrals: {}", ids.join(", "))
    }

    fn narrowed(&self, mut candidates: Vec<usize>) -> Vec<usize> {
        if candidates.len() == 1 {
            return candidates;
        }
        candidates.retain(|index| self.all[*index].is_of_same_copy(self.referrer, true));
        if candidates.len() > 1 {
            candidates.retain(|index| self.all[*index].is_of_same_copy(self.referrer, false));
        }
        candidates
    }

    fn is_near(&self, known: &Known) -> bool {
        let referrer = &self.referrer.namespace;
        referrer == NO_NAMESPACE
            || known.namespace == NO_NAMESPACE
            || known.now.gvk.kind == "ServiceAccount"
            || known.namespace == *referrer
    }

    /// The kind of role that a role binding refers to.
    fn role(&self, tree: &Tree) -> Option<Gvk> {
        if !self.spec.path.ends_with("roleRef/name") {
            return None;
        }
        let reference = tree.field(self.referrer.object.0, "roleRef")?;
        let group = tree.field(reference, "apiGroup")?;
        let kind = tree.field(reference, "kind")?;
        Some(Gvk::new(tree.text(group), "", tree.text(kind)))
    }
}
