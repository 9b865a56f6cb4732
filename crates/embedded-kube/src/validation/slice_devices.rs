//! One device of a ResourceSlice: its attributes, capacities, counters, taints and conditions. Main
//! function: [`device`].

use super::devices::{each, each_once, qualified};
use super::rules::At;
use super::slices::{exactly_one, flag, node_name, node_selector};
use super::volumes::quantity;
use crate::status::Cause;
use regex::Regex;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::LazyLock;
use tiphys_kube_schema::formats;

const MAX_ATTRIBUTES: usize = 32;
const MAX_VALUES: usize = 48;
const MAX_VALUE: usize = 64;
const MAX_KEY: usize = 96;
const MAX_COUNTER_KEY: usize = 63;
const MAX_TAINTS: usize = 16;
const MAX_CONSUMED: usize = 2;
const MAX_COUNTERS: usize = 32;
const MAX_CONDITIONS: usize = 4;
const MAX_OPTIONS: usize = 10;
pub const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];
const ONE_OF_NODES: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NO_NODES: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const ONE_VALUE: &str = "exactly one value must be specified";

/// Version numbers without leading zeros, with optional suffixes.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    let number = "(0|[1-9][0-9]*)";
    let before = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)";
    let build = "[0-9a-zA-Z-]+";
    let form = format!(
        r"\A{number}\.{number}\.{number}(-{before}(\.{before})*)?(\+{build}(\.{build})*)?\z"
    );
    Regex::new(&form).expect("a fixed expression")
});

/// `by_device`: each device has its own node selection.
pub fn device(device: &At<'_>, before: Option<&At<'_>>, by_device: bool, causes: &mut Vec<Cause>) {
    device.get("name").form(formats::dns_label, causes);
    let (attributes, capacity) = (device.get("attributes"), device.get("capacity"));
    let (all, values) = (attributes.len() + capacity.len(), attributes.len());
    if all > MAX_ATTRIBUTES {
        causes.push(device.invalid_as(
            all,
            &format!(
                "the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
            ),
        ));
    }
    if values > MAX_VALUES {
        causes.push(device.invalid_as(
            values,
            &format!("the total number of attribute values must not exceed {MAX_VALUES}"),
        ));
    }
    by_name(&attributes, MAX_KEY, qualified, attribute, causes);
    let shared = device.get("allowMultipleAllocations").is_true();
    by_name(
        &capacity,
        MAX_KEY,
        qualified,
        |amount, causes| self::capacity(amount, shared, causes),
        causes,
    );
    let taints = device.get("taints");
    let same = |before: &At<'_>| before.get("taints").value == taints.value;
    if !before.is_some_and(same) {
        each(&taints, MAX_TAINTS, causes, taint);
    }
    each_once(
        &device.get("consumesCounters"),
        MAX_CONSUMED,
        |set| set.get("counterSet").value,
        causes,
        |set, causes| counters(set, "counterSet", causes),
    );
    nodes(device, by_device, causes);
    binding_conditions(device, causes);
}

/// The elements of a map; an error in a key is reported for the map.
fn by_name(
    map: &At<'_>,
    longest: usize,
    key: fn(&At<'_>, &str, &mut Vec<Cause>),
    check: impl Fn(&At<'_>, &mut Vec<Cause>),
    causes: &mut Vec<Cause>,
) {
    for (name, mut item) in map.entries() {
        key(map, name, causes);
        item.path = format!("{}[{}]", map.path, shortened(name, longest));
        check(&item, causes);
    }
}

/// Truncates a long text in the middle, with three dots.
fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let left = longest - 3;
    let bytes = [
        &text.as_bytes()[..left.div_ceil(2)],
        b"...",
        &text.as_bytes()[text.len() - left / 2..],
    ]
    .concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn attribute(attribute: &At<'_>, causes: &mut Vec<Cause>) {
    let (text, version) = (attribute.get("string"), attribute.get("version"));
    let long = |value: &At<'_>| (value.len() > MAX_VALUE).then(|| value.too_long(MAX_VALUE));
    causes.extend(long(&text));
    if !version.is_null() && !VERSION.is_match(version.text()) {
        causes.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    causes.extend(long(&version));
    match ["bool", "int", "string", "version"]
        .iter()
        .filter(|value| !attribute.get(value).is_null())
        .count()
    {
        0 => causes.push(attribute.invalid_as("", ONE_VALUE)),
        1 => {}
        _ => causes.push(attribute.invalid_struct("resource/v1.DeviceAttribute", ONE_VALUE)),
    }
}

fn capacity(capacity: &At<'_>, shared: bool, causes: &mut Vec<Cause>) {
    let policy = capacity.get("requestPolicy");
    if policy.is_null() {
        return;
    }
    if !shared {
        return causes.push(policy.forbidden("allowMultipleAllocations must be true"));
    }
    let (values, range, default) = (
        policy.get("validValues"),
        policy.get("validRange"),
        policy.get("default"),
    );
    let max = capacity.get("value");
    match (values.is_empty(), range.is_null()) {
        (true, true) => {}
        (false, false) => {
            let both = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            causes.push(policy.forbidden(both));
        }
        (false, true) if default.is_null() => {
            causes.push(default.required("required when validValues is defined"))
        }
        (true, false) if default.is_null() => {
            causes.push(default.required("required when validRange is defined"))
        }
        (false, true) => options(&values, &default, &max, causes),
        (true, false) => self::range(&range, &default, &max, causes),
    }
}

fn options(values: &At<'_>, default: &At<'_>, max: &At<'_>, causes: &mut Vec<Cause>) {
    let amounts: Vec<_> = values.items().iter().map(quantity).collect();
    for (at, pair) in amounts.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let later = &values.items()[at + 1];
            causes.push(later.invalid_as(
                pair[1].to_string(),
                "values must be sorted in ascending order",
            ));
        }
    }
    each(values, MAX_OPTIONS, causes, |option, causes| {
        if quantity(option) > quantity(max) {
            let detail = format!("option is larger than capacity value: {}", quantity(max));
            causes.push(option.invalid_as(quantity(option).to_string(), &detail));
        }
    });
    let known = amounts.len() <= MAX_OPTIONS;
    if known {
        let mut seen = HashSet::new();
        for option in values
            .items()
            .into_iter()
            .filter(|option| !seen.insert(quantity(option).value()))
        {
            causes.push(Cause::duplicate(
                &option.path,
                &quantity(&option).value().to_string().into(),
            ));
        }
    }
    if !known || !amounts.contains(&quantity(default)) {
        causes.push(values.invalid_as(
            quantity(default).to_string(),
            "default value is not valid according to the requestPolicy",
        ));
    }
}

fn range(range: &At<'_>, default: &At<'_>, capacity: &At<'_>, causes: &mut Vec<Cause>) {
    let (min, max, step) = (range.get("min"), range.get("max"), range.get("step"));
    if min.is_null() {
        return causes.push(min.required("required when validRange is defined"));
    }
    let (least, most, all, usual) = (
        quantity(&min),
        quantity(&max),
        quantity(capacity),
        quantity(default),
    );
    let mut refuse = |wrong: bool, at: &At<'_>, value: String, detail: String| {
        if wrong {
            causes.push(at.invalid_as(value, &detail));
        }
    };
    refuse(
        least > all,
        &min,
        least.to_string(),
        format!("min is larger than capacity value: {all}"),
    );
    refuse(
        usual < least,
        &min,
        usual.to_string(),
        format!("default is less than min: {least}"),
    );
    if !max.is_null() {
        refuse(
            least > most,
            &max,
            least.to_string(),
            format!("min is larger than max: {most}"),
        );
        refuse(
            most > all,
            &max,
            most.to_string(),
            format!("max is larger than capacity value: {all}"),
        );
        refuse(
            usual > most,
            &max,
            usual.to_string(),
            format!("default is more than max: {most}"),
        );
    }
    if step.is_null() {
        return;
    }
    let by = quantity(&step);
    let next = least.plus(&by);
    refuse(
        next > all,
        &step,
        by.to_string(),
        format!("one step {next} is larger than capacity value: {all}"),
    );
    for value in [Some(usual), (!max.is_null()).then_some(most)]
        .into_iter()
        .flatten()
    {
        let off = value
            .value()
            .wrapping_sub(least.value())
            .checked_rem(by.value())
            .is_some_and(|rest| rest != 0);
        refuse(
            off,
            &step,
            value.to_string(),
            format!("value is not a multiple of a given step ({by}) from ({least})"),
        );
    }
}

/// A named set of counters; `name` is the field with its name.
pub fn counters(set: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let (name, counters) = (set.get(name), set.get("counters"));
    match name.is_empty() {
        true => causes.push(name.required("")),
        false => name.form(formats::dns_label, causes),
    }
    let key = |at: &At<'_>, key: &str, causes: &mut Vec<Cause>| {
        causes.extend(
            formats::dns_label(key)
                .iter()
                .map(|problem| at.invalid_as(key, problem)),
        );
    };
    match counters.len() {
        0 => causes.push(counters.required("")),
        many if many > MAX_COUNTERS => causes.push(counters.too_many(MAX_COUNTERS)),
        _ => by_name(&counters, MAX_COUNTER_KEY, key, |_, _| {}, causes),
    }
}

fn taint(taint: &At<'_>, causes: &mut Vec<Cause>) {
    let (value, effect) = (taint.get("value"), taint.get("effect"));
    taint.get("key").form(formats::qualified_name, causes);
    if !value.is_empty() {
        value.form(formats::label_value, causes);
    }
    match effect.text() {
        "" => causes.push(effect.required("")),
        known if EFFECTS.contains(&known) => {}
        _ => causes.push(effect.not_supported(EFFECTS)),
    }
}

fn nodes(device: &At<'_>, by_device: bool, causes: &mut Vec<Cause>) {
    let (name, selector, all) = (
        device.get("nodeName"),
        device.get("nodeSelector"),
        device.get("allNodes"),
    );
    if !by_device {
        let any = [&name, &selector, &all].iter().any(|said| !said.is_null());
        return causes.extend(any.then(|| device.invalid_as(Value::Null, NO_NODES)));
    }
    let mut said = Vec::new();
    said.extend(node_name(&name, "must not be empty", causes));
    said.extend(node_selector(&selector, causes));
    said.extend(flag(&all, "`allNodes`", causes));
    exactly_one(device, &said, (ONE_OF_NODES, ONE_OF_NODES), causes);
}

/// Conditions that must be true before a pod is bound, and those that abort the binding.
pub fn binding_conditions(device: &At<'_>, causes: &mut Vec<Cause>) {
    let [binding, failure] =
        ["bindingConditions", "bindingFailureConditions"].map(|list| device.get(list));
    for list in [&binding, &failure] {
        each(list, MAX_CONDITIONS, causes, |condition, causes| {
            condition.form(formats::qualified_name, causes)
        });
    }
    let mut wanted = HashSet::new();
    causes.extend(
        binding
            .items()
            .iter()
            .filter(|condition| !wanted.insert(condition.text()))
            .map(At::duplicate),
    );
    let mut seen = HashSet::new();
    for condition in failure.items() {
        causes.extend((!seen.insert(condition.text())).then(|| condition.duplicate()));
        let overlap = "bindingFailureConditions must not overlap with bindingConditions";
        causes.extend(
            wanted
                .contains(condition.text())
                .then(|| condition.invalid(overlap)),
        );
    }
    let mut need = |one: &At<'_>, other: &At<'_>, detail: &str| {
        let alone = one.is_empty() && !other.is_empty();
        causes.extend(alone.then(|| one.invalid_as(one.value.clone(), detail)));
    };
    need(
        &binding,
        &failure,
        "bindingConditions are required to use bindingFailureConditions",
    );
    need(
        &failure,
        &binding,
        "bindingFailureConditions are required to use bindingConditions",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        let good = [
            "0.0.0",
            "1.2.3",
            "1.2.3-alpha.1",
            "1.2.3-0a.b-c+build.01",
            "10.0.0+x",
        ];
        let bad = [
            "", "1", "1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "v1.2.3", "1.2.3\n",
        ];
        assert!(good.iter().all(|text| VERSION.is_match(text)));
        assert!(bad.iter().all(|text| !VERSION.is_match(text)));
    }

    #[test]
    fn long_keys_lose_their_middle() {
        assert_eq!(shortened(&"x".repeat(96), 96).len(), 96);
        let short = shortened(&format!("{}{}", "a".repeat(60), "b".repeat(60)), 96);
        assert_eq!(short, format!("{}...{}", "a".repeat(47), "b".repeat(46)));
    }
}
