//! Every combination of the parameters of two generators, or more, which is ours. Main function:
//! [`params`].

use super::{Context, child};
use crate::error::{GenerateError, Place};
use crate::params::{Param, Params, memory, merge};
use crate::render::has_template;
use tiphys_api::application_set::generators::{ApplicationSetNestedGenerator, MatrixGenerator};

pub fn params(
    generator: &MatrixGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let [first, others @ ..] = generator.generators.as_slice() else {
        return Err(too_few());
    };
    if others.is_empty() {
        return Err(too_few());
    }
    let mut sets = child(first, &Params::new(), context)
        .at("error failed to get params for first generator in matrix generator")?;
    for (index, other) in others.iter().enumerate() {
        let place = match index {
            0 => "second generator".to_owned(),
            _ => format!("generator {} of {}", index + 2, generator.generators.len()),
        };
        sets = combinations(&sets, other, &place, context)?;
    }
    Ok(sets)
}

fn too_few() -> GenerateError {
    GenerateError::spec("found less than two generators, Matrix support only two")
}

/// Every set of the generators before with every one of the next, which is filled with it.
pub fn combinations(
    before: &[Params],
    next: &ApplicationSetNestedGenerator,
    place: &str,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let mut sets = Vec::new();
    let mut missing = false;
    let fixed = is_fixed(next);
    // Of a generator that is the same beside every element that has parameters.
    let mut known: Option<Vec<Params>> = None;
    for (index, a) in before.iter().enumerate() {
        let inner = match known.as_ref().filter(|_| !a.is_empty()) {
            Some(inner) => Ok(inner.clone()),
            None => child(next, a, context),
        };
        let inner = match inner {
            Ok(inner) => inner,
            // The needs of the other elements are asked for in the same round.
            Err(error) if error.is_missing() => {
                missing = true;
                continue;
            }
            Err(error) => {
                let element = format!("the {place} with element {} before it", index + 1);
                return Err(error.inside(element).at(format!(
                    "failed to get params for {place} in the matrix generator"
                )));
            }
        };
        if fixed && known.is_none() && !a.is_empty() {
            known = Some(inner.clone());
        }
        // Before they are copied.
        let own = memory(a).saturating_mul(inner.len());
        let made = inner.iter().map(memory).fold(own, usize::saturating_add);
        context.renderer.charge(made)?;
        for b in inner {
            sets.push(match context.is_go() {
                true => {
                    let mut both = b;
                    merge(&mut both, a).at("failed to merge params in the matrix generator")?;
                    both
                }
                false => combined(a, &b)?,
            });
        }
        crate::limit(sets.len())?;
    }
    match missing {
        true => Err(GenerateError::Missing),
        false => Ok(sets),
    }
}

/// Whether nothing in a generator depends on the elements before it, time or chance: it has no
/// template.
fn is_fixed(generator: &ApplicationSetNestedGenerator) -> bool {
    serde_json::to_value(generator).is_ok_and(|document| !has_template(&document))
}

/// Both sets as texts; a key in both must have one value.
fn combined(a: &Params, b: &Params) -> Result<Params, GenerateError> {
    let printed = |(key, param): (&String, &Param)| (key.clone(), param.printed());
    let mut texts: std::collections::BTreeMap<String, String> = a.iter().map(printed).collect();
    for (key, text) in b.iter().map(printed) {
        if let Some(old) = texts.get(&key).filter(|old| **old != text) {
            return Err(GenerateError::content(format!(
                "failed to combine string maps with merging params for the matrix generator: \
                 found duplicate key {key} with different value, a: {old} ,b: {text}"
            )));
        }
        texts.insert(key, text);
    }
    Ok(texts.into_iter().map(|(k, v)| (k, v.into())).collect())
}
