//! Policies of a Job: when its pods count as failed, and when enough of them have succeeded.

use super::*;
use std::collections::HashSet;
use tiphys_kube_schema::formats::qualified_name;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// Go's way of printing a list of strings in a sentence.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

/// A cause that does not show the value.
pub fn invalid_without_value(at: &At<'_>, detail: &str) -> Cause {
    Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {detail}"),
        field: at.path.clone(),
    }
}

/// `podFailurePolicy`.
pub fn failure(spec: &At<'_>, policy: &At<'_>, causes: &mut Vec<Cause>) {
    let containers =
        ["containers", "initContainers"].map(|list| spec.get("template.spec").get(list).items());
    let names: HashSet<&str> = containers
        .iter()
        .flatten()
        .map(|c| c.get("name").text())
        .collect();
    policy.get("rules").check(&[Check::MaxItems(20)], causes);
    for rule in policy.get("rules").items() {
        let [action, codes, conditions] =
            ["action", "onExitCodes", "onPodConditions"].map(|field| rule.get(field));
        match action.text() {
            "" => causes.push(action.required(&listed(&ACTIONS))),
            "FailIndex" if spec.get("backoffLimitPerIndex").is_null() => {
                causes.push(action.invalid("requires the backoffLimitPerIndex to be set"));
            }
            word if !ACTIONS.contains(&word) => causes.push(action.not_supported(&ACTIONS)),
            _ => {}
        }
        if !codes.is_null() {
            exit_codes(&codes, &names, causes);
        }
        pod_conditions(&conditions, causes);
        match (codes.is_null(), conditions.is_empty()) {
            (false, false) => {
                causes.push(invalid_without_value(
                    &rule,
                    "specifying both OnExitCodes and OnPodConditions is not supported",
                ));
            }
            (true, true) => {
                causes.push(invalid_without_value(
                    &rule,
                    "specifying one of OnExitCodes and OnPodConditions is required",
                ));
            }
            _ => {}
        }
    }
}

fn needed(at: &At<'_>, allowed: &[&str], causes: &mut Vec<Cause>) {
    if at.is_empty() {
        causes.push(at.required(&listed(allowed)));
    } else if !allowed.contains(&at.text()) {
        causes.push(at.not_supported(allowed));
    }
}

fn exit_codes(at: &At<'_>, names: &HashSet<&str>, causes: &mut Vec<Cause>) {
    let [operator, container, values] =
        ["operator", "containerName", "values"].map(|field| at.get(field));
    needed(&operator, &["In", "NotIn"], causes);
    if !container.is_null() && !names.contains(container.text()) {
        causes
            .push(container.invalid(
                "must be one of the container or initContainer names in the pod template",
            ));
    }
    let shown = || {
        if values.is_null() {
            Value::Null
        } else {
            values.value.clone()
        }
    };
    if values.is_empty() {
        causes.push(values.invalid_as(shown(), "at least one value is required"));
    }
    values.check(&[Check::MaxItems(255)], causes);
    let mut seen = HashSet::new();
    let items = values.items();
    for code in &items {
        if operator.text() == "In" && code.int() == Some(0) {
            causes.push(code.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(code.int()) {
            causes.push(code.duplicate());
        }
    }
    if items.windows(2).any(|pair| pair[0].int() > pair[1].int()) {
        causes.push(values.invalid_as(shown(), "must be ordered"));
    }
}

fn pod_conditions(all: &At<'_>, causes: &mut Vec<Cause>) {
    all.check(&[Check::MaxItems(20)], causes);
    for pattern in all.items() {
        pattern.get("type").form(qualified_name, causes);
        needed(
            &pattern.get("status"),
            &["False", "True", "Unknown"],
            causes,
        );
    }
}

/// `successPolicy` of an indexed Job.
pub fn success(spec: &At<'_>, policy: &At<'_>, causes: &mut Vec<Cause>) {
    let rules = policy.get("rules");
    rules.check(
        &[
            Check::Required(
                "at least one rules must be specified when the successPolicy is specified",
            ),
            Check::MaxItems(20),
        ],
        causes,
    );
    let completions = spec.get("completions").int().unwrap_or(0);
    for rule in rules.items() {
        let (count, indexes) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        if count.is_null() && indexes.is_null() {
            causes.push(
                rule.required(
                    "at least one of succeededCount or succeededIndexes must be specified",
                ),
            );
        }
        let mut total = 0;
        if !indexes.is_null() {
            indexes.check(&[Check::MaxBytes(64 * 1024)], causes);
            match count_indexes(indexes.text(), completions) {
                Ok(n) => total = n,
                Err(why) => {
                    causes.push(indexes.invalid(&format!("error parsing succeededIndexes: {why}")))
                }
            }
        }
        let Some(n) = count.int() else { continue };
        count.check(AT_LEAST_0, causes);
        let at_most = |limit: i64, of: &str| {
            count.invalid(&format!(
                "must be less than or equal to {limit} (the number of {of})"
            ))
        };
        if n > completions {
            causes.push(at_most(completions, "specified completions"));
        }
        if !indexes.is_null() && n > total {
            causes.push(at_most(
                total,
                "indexes in the specified succeededIndexes field",
            ));
        }
    }
}

/// The number of indexes in `0-2,5`; all must be below `completions`.
pub fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (from, to) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= from) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {from}"
            ));
        }
        total += to - from + 1;
        last = Some(to);
    }
    Ok(total)
}

/// The first and the last index of `0-2`, or of `5`.
pub fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |word: &str| match word.parse::<i64>() {
        Err(_) => Err(format!(
            "cannot convert string to integer for index: \"{word}\""
        )),
        Ok(n) if n >= completions => Err(format!("too large index: \"{word}\"")),
        Ok(n) => Ok(n),
    };
    match text.split('-').collect::<Vec<_>>()[..] {
        [one] => index(one).map(|n| (n, n)),
        [from, to] => {
            let (from, to) = (index(from)?, index(to)?);
            if from >= to {
                return Err(format!(
                    "non-increasing order, previous: {from}, current: {to}"
                ));
            }
            Ok((from, to))
        }
        _ => Err(format!(
            "the fragment \"{text}\" violates the requirement that an index interval can have at most two parts separated by '-'"
        )),
    }
}
