//! The parameters of one generator, overridden by those of others with the same keys. Main
//! function: [`params`].

use super::{Context, child};
use crate::error::{GenerateError, Place};
use crate::params::{Param, Params, merge};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::application_set::generators::MergeGenerator;
use tiphys_gocompat::json;

pub fn params(
    generator: &MergeGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let count = generator.generators.len();
    if count < 2 {
        return Err(GenerateError::spec(
            "found less than two generators, Merge requires two or more",
        ));
    }
    let mut missing = false;
    let mut by_generator = Vec::with_capacity(count);
    for (index, nested) in generator.generators.iter().enumerate() {
        match child(nested, &Params::new(), context) {
            Ok(sets) => by_generator.push(sets),
            Err(error) if error.is_missing() => missing = true,
            Err(error) => {
                return Err(error.at(format!(
                    "error getting param sets from generators: error getting params from \
                     generator {} of {count}",
                    index + 1
                )));
            }
        }
    }
    if missing {
        return Err(GenerateError::Missing);
    }
    let place = "error getting param sets by merge key";
    let mut keyed = by_generator
        .into_iter()
        .map(|sets| by_key(&generator.merge_keys, sets).at(place));
    let mut merged = keyed.next().transpose()?.unwrap_or_default();
    for overrides in keyed {
        let overrides = overrides?;
        for (key, base) in &mut merged {
            let Some(new) = overrides.get(key) else {
                continue;
            };
            match context.is_go() {
                true => {
                    merge(base, new).at("error merging base param set with override param set")?
                }
                false => base.extend(new.clone()),
            }
        }
    }
    Ok(merged.into_values().collect())
}

/// The sets by the JSON of the named parameters; a missing one counts as null.
fn by_key(keys: &[String], sets: Vec<Params>) -> Result<BTreeMap<String, Params>, GenerateError> {
    let keys: BTreeSet<&String> = keys.iter().collect();
    if keys.is_empty() {
        return Err(GenerateError::spec(
            "no merge keys were specified, Merge requires at least one",
        ));
    }
    let mut keyed = BTreeMap::new();
    for set in sets {
        let key: serde_json::Map<_, _> = keys
            .iter()
            .map(|key| {
                let value = set.get(*key).map(Param::to_json).unwrap_or_default();
                ((*key).clone(), value)
            })
            .collect();
        let key = json::to_string(&key.into());
        if keyed.contains_key(&key) {
            return Err(GenerateError::content(format!(
                "the parameters from a generator were not unique by the given mergeKeys, \
                 Merge requires all param sets to be unique. Duplicate key was {key}"
            )));
        }
        keyed.insert(key, set);
    }
    Ok(keyed)
}
