//! Updates ownership after a change: an update, or an applied configuration.
//!
//! Main functions: [`record_update`], [`apply_owned`].

use super::{
    ApplyError, ApplyOptions, Conflict, UNOWNED,
    compare::{Comparison, compare, fields_of, with_named_parents},
    fieldset::{FieldSet, path_text},
    internal,
    managers::{Identity, Managers, Operation, Owned},
    merge,
    path::{self, PathElement},
    types::Ty,
    versions::Views,
};
use crate::object::Object;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

type Fields = Map<String, Value>;

fn reset_set(options: &ApplyOptions<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    for path in options.reset_fields {
        let path: Vec<PathElement> = path
            .split('.')
            .map(|f| PathElement::Field(f.to_owned()))
            .collect();
        set.insert(&path);
    }
    set
}

/// One change, as seen in the version of each manager.
struct Changes<'c> {
    old: &'c Fields,
    new: &'c Fields,
    options: &'c ApplyOptions<'c>,
    views: &'c Views<'c>,
    /// In the versions that were requested; None for a version that no longer exists.
    seen: BTreeMap<String, Option<Seen>>,
}

struct Seen {
    /// Changed or added.
    touched: FieldSet,
    removed: FieldSet,
}

impl<'c> Changes<'c> {
    fn new(
        old: &'c Fields,
        new: &'c Fields,
        options: &'c ApplyOptions<'c>,
        views: &'c Views<'c>,
    ) -> Result<Self, String> {
        let mut this = Self {
            old,
            new,
            options,
            views,
            seen: BTreeMap::new(),
        };
        let own = this.compare(old, new, views.ty, true)?;
        this.seen.insert(views.version.to_owned(), Some(own));
        Ok(this)
    }

    fn compare(
        &self,
        old: &Fields,
        new: &Fields,
        ty: Ty<'_>,
        resets: bool,
    ) -> Result<Seen, String> {
        let Comparison {
            mut added,
            mut modified,
            mut removed,
        } = compare(old, new, ty).map_err(|e| format!("failed to compare objects: {e}"))?;
        if resets && !self.options.reset_fields.is_empty() {
            let reset = reset_set(self.options);
            [&mut added, &mut modified, &mut removed]
                .into_iter()
                .for_each(|set| set.subtract_recursively(&reset));
        }
        modified.extend(added);
        Ok(Seen {
            touched: modified,
            removed,
        })
    }

    fn seen_in(&mut self, version: &str) -> Result<Option<&Seen>, String> {
        let version = if self.views.versions.is_none() {
            self.views.version
        } else {
            version
        };
        if !self.seen.contains_key(version) {
            let see = |object, which: &str| {
                self.views
                    .see(object, self.views.version, version)
                    .map_err(|e| format!("failed to convert {which} object: {e}"))
            };
            let seen = match (see(self.old, "old")?, see(self.new, "new")?) {
                (Some((old, ty)), Some((new, _))) => Some(self.compare(
                    &old,
                    &new,
                    ty,
                    self.views.versions.is_none_or(|v| v.reset_everywhere()),
                )?),
                _ => None,
            };
            self.seen.insert(version.to_owned(), seen);
        }
        Ok(self.seen[version].as_ref())
    }

    fn own(&self) -> Option<&Seen> {
        self.seen.get(self.views.version).and_then(Option::as_ref)
    }

    /// Removes changed and removed fields from every owner except `own`; owners whose version no
    /// longer exists are dropped.
    fn take_away(&mut self, owners: &mut Managers, own: Option<&Identity>) -> Result<(), String> {
        let mut gone = Vec::new();
        for (identity, owned) in owners
            .iter_mut()
            .filter(|(identity, _)| Some(*identity) != own)
        {
            match self.seen_in(&owned.api_version)? {
                Some(seen) => {
                    owned.fields.subtract(&seen.touched);
                    owned.fields.subtract(&seen.removed);
                }
                None => gone.push(identity.clone()),
            }
        }
        owners.retain(|identity, owned| !owned.fields.is_empty() && !gone.contains(identity));
        Ok(())
    }

    fn refuse_conflicts(
        &mut self,
        owners: &Managers,
        own: &Identity,
    ) -> Result<Vec<Conflict>, String> {
        let mut conflicts = Vec::new();
        for (identity, owned) in owners.iter().filter(|(other, _)| *other != own) {
            let Some(seen) = self.seen_in(&owned.api_version)? else {
                continue;
            };
            for path in owned.fields.intersection(&seen.touched).paths() {
                conflicts.push(Conflict {
                    manager: identity.manager.clone(),
                    operation: identity.operation.as_str().to_owned(),
                    api_version: owned.api_version.clone(),
                    subresource: identity.subresource.clone(),
                    field: path_text(&path),
                });
            }
        }
        Ok(conflicts)
    }
}

/// Every manager loses the fields that the update changed or removed; the updater gains those that
/// it changed or added.
pub(super) fn record_update(
    old: &Fields,
    new: &Fields,
    owners: &mut Managers,
    options: &ApplyOptions<'_>,
    views: &Views<'_>,
) -> Result<(), String> {
    views.reconcile(old, owners)?;
    let mut changes = Changes::new(old, new, options, views)?;
    changes.take_away(owners, None)?;
    let mut touched = changes
        .own()
        .map(|seen| seen.touched.clone())
        .unwrap_or_default();
    touched.subtract(&UNOWNED);
    if touched.is_empty() {
        return Ok(());
    }
    let identity = Identity::new(
        options.manager,
        Operation::Update,
        options.api_version,
        options.subresource,
    );
    let entry = owners.entry(identity).or_insert_with(|| Owned {
        fields: FieldSet::default(),
        api_version: String::new(),
        time: None,
    });
    entry.fields.extend(touched);
    entry.api_version = options.api_version.to_owned();
    options.stamp(entry);
    Ok(())
}

/// One attempt to apply: the merged object without managedFields, and the resulting ownership.
pub(super) fn apply_owned(
    live: &Object,
    config: &Object,
    mut owners: Managers,
    options: &ApplyOptions<'_>,
    views: &Views<'_>,
) -> Result<(Object, Managers), ApplyError> {
    let ty = views.ty;
    views
        .reconcile(&live.0, &mut owners)
        .map_err(ApplyError::Invalid)?;
    let mut merged = live.0.clone();
    for (key, value) in &config.0 {
        let value = match merged.get(key) {
            Some(old) => merge::merge(old, value, ty.field(key))
                .map_err(|e| internal(config, "merged object", &format!(".{key}{e}")))?,
            None => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    let mut fields = fields_of(&config.0, ty);
    if !options.reset_fields.is_empty() {
        fields.subtract_recursively(&reset_set(options));
    }
    let identity = Identity::new(options.manager, Operation::Apply, "", options.subresource);
    let last = owners.remove(&identity);
    let owned = Owned {
        fields,
        api_version: options.api_version.to_owned(),
        time: last.as_ref().and_then(|l| l.time.clone()),
    };
    owners.insert(identity.clone(), owned);
    let pruned = last.is_some();
    if let Some(last) = last {
        merged = prune(merged, &last, &owners, views)
            .map_err(|e| ApplyError::Invalid(format!("failed to prune fields: {e}")))?;
    }
    let mut merged = Object(merged);
    let changed = !path::equal_maps(&live.0, &merged.0);
    if changed {
        let mut changes =
            Changes::new(&live.0, &merged.0, options, views).map_err(ApplyError::Invalid)?;
        if !options.force {
            let conflicts = changes
                .refuse_conflicts(&owners, &identity)
                .map_err(ApplyError::Invalid)?;
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflicts(conflicts));
            }
        }
        changes
            .take_away(&mut owners, Some(&identity))
            .map_err(ApplyError::Invalid)?;
    }
    // An API server decodes a built-in object into a Go struct, which drops nulls; a custom
    // resource keeps them, and its schema may refuse them.
    if pruned && ty.is_built_in() {
        merge::drop_nulls(&mut merged.0, Some(&config.0), Some(&live.0));
    }
    if let Some(own) = owners.get_mut(&identity) {
        own.fields.subtract(&UNOWNED);
        if changed {
            options.stamp(own);
        }
    }
    owners.retain(|_, owned| !owned.fields.is_empty());
    Ok((merged, owners))
}

fn named_fields(object: &Fields, ty: Ty<'_>) -> FieldSet {
    with_named_parents(&fields_of(object, ty), ty)
}

/// Removes fields that this manager applied last time, no longer applies, and no one else owns.
fn prune(
    merged: Fields,
    last: &Owned,
    owners: &Managers,
    views: &Views<'_>,
) -> Result<Fields, String> {
    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for other in owners.values() {
        // The version of the last configuration comes first, before anything is converted.
        let version = if views.versions.is_none() {
            views.version
        } else {
            &other.api_version
        };
        owned
            .entry(version)
            .or_default()
            .extend(other.fields.clone());
    }
    let last_version = if views.versions.is_none() {
        views.version
    } else {
        &last.api_version
    };
    let nothing_goes = owned
        .get(last_version)
        .is_some_and(|owned| last.fields.difference(owned).is_empty());
    // Then the object need not be converted to another version, which might fail.
    if nothing_goes && last_version == views.version && owned.len() == 1 {
        return Ok(merged);
    }
    let seen = views
        .see(&merged, views.version, last_version)
        .map_err(|e| format!("failed to convert merged object to last applied version: {e}"))?;
    let Some((seen, ty)) = seen else {
        return Ok(merged);
    };
    let last_fields = with_named_parents(&last.fields, ty);
    // First without everything that was applied last time, then without the parts that have an
    // owner, then without those that never had an owner.
    let (mut whole, mut kept, mut version) = (
        seen.clone(),
        merge::map_without(&seen, &last_fields, ty),
        last_version,
    );
    let others: Vec<&str> = owned
        .keys()
        .copied()
        .filter(|v| *v != last_version)
        .collect();
    for next in owned
        .contains_key(last_version)
        .then_some(last_version)
        .into_iter()
        .chain(others)
    {
        let see = |object: &Fields, which: &str| {
            views
                .see(object, version, next)
                .map_err(|e| format!("failed add back owned items: failed to convert {which} object at version {next}: {e}"))
        };
        let (Some((all, ty)), Some((some, _))) = (see(&whole, "merged")?, see(&kept, "pruned")?)
        else {
            continue;
        };
        let owned = with_named_parents(&owned[next], ty);
        let ownerless = named_fields(&all, ty).difference(&named_fields(&some, ty).union(&owned));
        (kept, whole, version) = (merge::map_without(&all, &ownerless, ty), all, next);
    }
    let kept = views
        .see(&kept, version, last_version)
        .map_err(|e| format!("failed add back dangling items: failed to convert pruned object to last applied version: {e}"))?;
    let Some((kept, _)) = kept else {
        return Ok(merged);
    };
    let dangling = named_fields(&seen, ty)
        .difference(&named_fields(&kept, ty))
        .intersection(&last_fields);
    let pruned = merge::map_without(&seen, &dangling, ty);
    Ok(views
        .see(&pruned, last_version, views.version)?
        .map_or(merged, |(pruned, _)| pruned))
}
