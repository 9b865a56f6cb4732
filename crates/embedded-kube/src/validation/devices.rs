//! ResourceClaims, their templates and device classes.
//!
//! Main functions: [`claim`], [`template`], [`class`].

use super::meta;
use super::pod::resources::is_extended;
use super::rules::{At, Check};
use super::slice_devices::EFFECTS;
use crate::base::Part;
use crate::status::Cause;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use tiphys_apimachinery::Object;
use tiphys_kube_schema::{cel, formats};

const MAX_ITEMS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const MAX_EXPRESSION: usize = 10 * 1024;
const MAX_PARAMETERS: usize = 10 * 1024;
const MAX_IDENTIFIER: usize = 32;
const MAX_DRIVER: usize = 63;
const ONE_REQUEST: &str = "exactly one of `exactly` or `firstAvailable` is required";
const ONE_ATTRIBUTE: &str = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
const REQUEST_NAME: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
const IMMUTABLE: &str = "field is immutable";

pub fn claim(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    match old {
        None => claim_spec(&spec, causes),
        Some(_) => causes.extend(
            spec.is_changed()
                .then(|| spec.invalid_struct("resource/v1.ResourceClaimSpec", IMMUTABLE)),
        ),
    }
}

pub fn template(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    meta::template(&spec.get("metadata"), causes);
    claim_spec(&spec.get("spec"), causes);
    if old.is_some() && spec.is_changed() {
        causes.push(spec.invalid_struct("resource/v1.ResourceClaimTemplateSpec", IMMUTABLE));
    }
}

pub fn class(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    selectors(&spec.get("selectors"), causes);
    each(&spec.get("config"), MAX_ITEMS, causes, configuration);
    let name = spec.get("extendedResourceName");
    if !name.is_null() && !is_extended(name.text()) {
        causes.push(name.invalid("must be a valid extended resource name"));
    }
}

/// Requests or results with admin access to devices, which not every namespace allows.
pub fn admin_access(
    table: &str,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Option<String> {
    let (list, shown, flag) = match (table, part, old) {
        ("resource.k8s.io/resourceclaims", Part::Status, _) => (
            "/status/allocation/devices/results",
            "status.allocation.devices.results",
            "/adminAccess",
        ),
        ("resource.k8s.io/resourceclaims", _, None) => (
            "/spec/devices/requests",
            "spec.devices.requests",
            "/exactly/adminAccess",
        ),
        ("resource.k8s.io/resourceclaimtemplates", _, None) => (
            "/spec/spec/devices/requests",
            "spec.devices.requests",
            "/exactly/adminAccess",
        ),
        _ => return None,
    };
    let asks = |object: &Object| {
        let all = object.pointer(list).and_then(Value::as_array)?;
        all.iter()
            .position(|one| one.pointer(flag) == Some(&Value::Bool(true)))
    };
    let at = asks(object).filter(|_| old.and_then(asks).is_none())?;
    Some(format!("{shown}[{at}].adminAccess"))
}

/// The errors of each element, unless there are too many elements.
pub fn each(
    list: &At<'_>,
    max: usize,
    causes: &mut Vec<Cause>,
    check: impl Fn(&At<'_>, &mut Vec<Cause>),
) {
    match list.len() > max {
        true => causes.push(list.too_many(max)),
        false => list.items().iter().for_each(|item| check(item, causes)),
    }
}

/// The same for elements that must be unique by `key`.
pub fn each_once<'v>(
    list: &At<'v>,
    max: usize,
    key: fn(&At<'v>) -> &'v Value,
    causes: &mut Vec<Cause>,
    check: impl Fn(&At<'_>, &mut Vec<Cause>),
) {
    each(list, max, causes, check);
    if list.len() <= max {
        let mut seen = HashSet::new();
        let again = list
            .items()
            .into_iter()
            .filter(|item| !seen.insert(key(item)));
        causes.extend(again.map(|item| At::new(key(&item), item.path.clone()).duplicate()));
    }
}

/// The names that constraints and configurations can refer to: requests, and their alternatives.
pub type Names<'v> = HashMap<&'v str, HashSet<&'v str>>;

fn alternatives<'v>(request: &At<'v>) -> HashSet<&'v str> {
    request
        .get("firstAvailable")
        .items()
        .iter()
        .map(|sub| sub.get("name").text())
        .collect()
}

pub fn requests_by_name<'v>(requests: &At<'v>) -> Names<'v> {
    requests
        .items()
        .iter()
        .map(|request| (request.get("name").text(), alternatives(request)))
        .collect()
}

fn claim_spec(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let devices = spec.get("devices");
    let requests = devices.get("requests");
    let names = requests_by_name(&requests);
    each_once(
        &requests,
        MAX_ITEMS,
        |request| request.get("name").value,
        causes,
        request,
    );
    each(
        &devices.get("constraints"),
        MAX_ITEMS,
        causes,
        |constraint, causes| self::constraint(constraint, &names, causes),
    );
    each(
        &devices.get("config"),
        MAX_ITEMS,
        causes,
        |config, causes| {
            request_names(&config.get("requests"), &names, causes);
            configuration(config, causes);
        },
    );
}

fn request(request: &At<'_>, causes: &mut Vec<Cause>) {
    request.get("name").form(formats::dns_label, causes);
    let (exactly, alternatives) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_null(), alternatives.is_empty()) {
        (true, true) => causes.push(request.required(ONE_REQUEST)),
        (false, false) => causes.push(request.invalid_as(
            Value::Null,
            &format!("{ONE_REQUEST}, but multiple fields are set"),
        )),
        (false, true) => wanted(&exactly, causes),
        (true, false) => each_once(
            &alternatives,
            MAX_ALTERNATIVES,
            |sub| sub.get("name").value,
            causes,
            |sub, causes| {
                sub.get("name").form(formats::dns_label, causes);
                wanted(sub, causes);
            },
        ),
    }
}

/// The class and number of devices.
fn wanted(devices: &At<'_>, causes: &mut Vec<Cause>) {
    devices.get("deviceClassName").check(
        &[Check::Required(""), Check::Form(formats::dns_subdomain)],
        causes,
    );
    selectors(&devices.get("selectors"), causes);
    let (mode, count) = (devices.get("allocationMode"), devices.get("count"));
    match (mode.text(), count.int().unwrap_or(0)) {
        ("All", 0) => {}
        ("All", _) => {
            causes.push(count.invalid("must not be specified when allocationMode is 'All'"))
        }
        ("ExactCount", n) if n <= 0 => {
            causes.push(count.invalid_as(n, "must be greater than zero"))
        }
        ("ExactCount", _) => {}
        _ => causes.push(mode.not_supported(&["All", "ExactCount"])),
    }
    devices
        .get("tolerations")
        .items()
        .iter()
        .for_each(|one| toleration(one, causes));
}

/// A toleration of device taints.
fn toleration(toleration: &At<'_>, causes: &mut Vec<Cause>) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| toleration.get(field));
    if !key.is_empty() {
        key.form(formats::qualified_name, causes);
    }
    match operator.text() {
        "Exists" if !value.is_empty() => {
            causes.push(value.invalid("must be empty for operator `Exists`"))
        }
        "Exists" => {}
        "Equal" => value.form(formats::label_value, causes),
        "" => causes.push(operator.required("")),
        _ => causes.push(operator.not_supported(&["Equal", "Exists"])),
    }
    effect.check(&[Check::OneOf(EFFECTS)], causes);
}

fn expression(expression: &At<'_>, causes: &mut Vec<Cause>) {
    match expression.len() > MAX_EXPRESSION {
        true => causes.push(expression.too_long(MAX_EXPRESSION)),
        false => causes
            .extend(cel::devices::check(expression.text()).map(|why| expression.invalid(&why))),
    }
}

fn selectors(list: &At<'_>, causes: &mut Vec<Cause>) {
    each(list, MAX_ITEMS, causes, |selector, causes| {
        let cel = selector.get("cel");
        match cel.is_null() {
            true => causes.push(cel.required("")),
            false => expression(&cel.get("expression"), causes),
        }
    });
}

fn constraint(constraint: &At<'_>, names: &Names<'_>, causes: &mut Vec<Cause>) {
    request_names(&constraint.get("requests"), names, causes);
    match ["matchAttribute", "distinctAttribute"]
        .map(|f| constraint.get(f))
        .iter()
        .find(|attribute| !attribute.is_null())
    {
        Some(attribute) => qualified_name(attribute, causes),
        None => causes.push(constraint.required(ONE_ATTRIBUTE)),
    }
}

pub fn request_names(list: &At<'_>, names: &Names<'_>, causes: &mut Vec<Cause>) {
    each_once(
        list,
        MAX_ITEMS,
        |name| name.value,
        causes,
        |name, causes| request_name(name, names, causes),
    );
}

/// A request, or one of its alternatives.
pub fn request_name(name: &At<'_>, names: &Names<'_>, causes: &mut Vec<Cause>) {
    let segments: Vec<&str> = name.text().split('/').collect();
    let known = match segments[..] {
        [request] => names.contains_key(request),
        [request, sub] => names.get(request).is_some_and(|subs| subs.contains(sub)),
        _ => return causes.push(name.invalid(REQUEST_NAME)),
    };
    for segment in segments {
        causes.extend(
            formats::dns_label(segment)
                .iter()
                .map(|problem| name.invalid_as(segment, problem)),
        );
    }
    causes.extend((!known).then(|| name.invalid(REQUEST_NAME)));
}

/// An identifier with the domain that it belongs to.
fn qualified_name(name: &At<'_>, causes: &mut Vec<Cause>) {
    qualified(name, name.text(), causes);
    if !name.text().contains('/') {
        causes.push(
            name.invalid("a fully qualified name must be a domain and a name separated by a slash"),
        );
    }
}

/// An identifier, with a domain or without.
pub fn qualified(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let identifier = |id: &str, causes: &mut Vec<Cause>| {
        causes.extend((id.len() > MAX_IDENTIFIER).then(|| at.too_long(MAX_IDENTIFIER)));
        causes.extend(
            formats::c_identifier(id)
                .iter()
                .map(|problem| at.invalid_as(id, problem)),
        );
    };
    match name.split('/').collect::<Vec<_>>()[..] {
        [id] => identifier(id, causes),
        [domain, id] => {
            match domain.is_empty() {
                true => causes.push(at.invalid_as("", "the domain must not be empty")),
                false => driver(at, domain, causes),
            }
            match id.is_empty() {
                true => causes.push(at.invalid_as("", "the name must not be empty")),
                false => identifier(id, causes),
            }
        }
        _ => {}
    }
}

pub fn driver(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        return causes.push(at.required(""));
    }
    causes.extend((name.len() > MAX_DRIVER).then(|| at.too_long(MAX_DRIVER)));
    causes.extend(
        formats::dns_subdomain(&name.to_lowercase())
            .iter()
            .map(|problem| at.invalid_as(name, problem)),
    );
}

pub fn configuration(config: &At<'_>, causes: &mut Vec<Cause>) {
    let opaque = config.get("opaque");
    if opaque.is_null() {
        return causes.push(opaque.required(""));
    }
    let (name, parameters) = (opaque.get("driver"), opaque.get("parameters"));
    driver(&name, name.text(), causes);
    match parameters.value {
        Value::Null => causes.push(parameters.required("")),
        value if value.to_string().len() > MAX_PARAMETERS => {
            causes.push(parameters.too_long(MAX_PARAMETERS))
        }
        Value::Object(_) => {}
        _ => causes.push(parameters.invalid_as("<value omitted>", "must be a valid JSON object")),
    }
}
