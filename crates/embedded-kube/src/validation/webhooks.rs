//! Webhook configurations.

use super::rules::{self, At, Check};
use crate::status::Cause;
use crate::validation::url;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::cel::admission::{Returns, Scope};
use tiphys_kube_schema::formats;

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];

/// A validating or mutating webhook configuration.
pub fn configuration(
    object: &Object,
    old: Option<&Object>,
    mutating: bool,
    causes: &mut Vec<Cause>,
) {
    let hooks = At::of(object, old, "webhooks").items();
    for (i, hook) in hooks.iter().enumerate() {
        webhook(hook, mutating, causes);
        review_versions(&hook.get("admissionReviewVersions"), causes);
        let name = hook.get("name");
        if !name.is_empty()
            && hooks[..i]
                .iter()
                .any(|before| before.get("name").value == name.value)
        {
            causes.push(name.duplicate());
        }
    }
}

/// A field with a fixed set of values.
pub fn one_of(at: &At<'_>, allowed: &[&str], causes: &mut Vec<Cause>) {
    if !at.is_null() && !allowed.contains(&at.text()) {
        causes.push(at.not_supported(allowed));
    }
}

fn webhook(hook: &At<'_>, mutating: bool, causes: &mut Vec<Cause>) {
    let name = hook.get("name");
    let problems = formats::dns_subdomain(name.text());
    if name.is_empty() {
        causes.push(name.required(""));
    } else if !problems.is_empty() {
        causes.push(name.invalid(&problems.join(",")));
    } else if name.text().split('.').count() < 3 {
        causes.push(
            name.invalid("should be a domain with at least three segments separated by dots"),
        );
    }
    hook.get("rules")
        .items()
        .iter()
        .for_each(|one| rule(one, causes));
    one_of(&hook.get("failurePolicy"), &["Fail", "Ignore"], causes);
    one_of(&hook.get("matchPolicy"), &["Equivalent", "Exact"], causes);
    let effects = hook.get("sideEffects");
    if effects.is_null() {
        causes.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    one_of(&effects, &["None", "NoneOnDryRun"], causes);
    let timeout = hook.get("timeoutSeconds");
    if timeout.int().is_some_and(|n| !(1..=30).contains(&n)) {
        causes.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    rules::label_selector(&hook.get("namespaceSelector"), causes);
    rules::label_selector(&hook.get("objectSelector"), causes);
    if mutating {
        one_of(
            &hook.get("reinvocationPolicy"),
            &["IfNeeded", "Never"],
            causes,
        );
    }
    client(&hook.get("clientConfig"), causes);
    let changed = hook.old.is_none_or(|old| old != hook.value);
    conditions(&hook.get("matchConditions"), false, changed, causes);
}

fn client(config: &At<'_>, causes: &mut Vec<Cause>) {
    let (url, service) = (config.get("url"), config.get("service"));
    match (url.is_null(), service.is_null()) {
        (false, true) => webhook_url(&url, causes),
        (true, false) => webhook_service(&service, causes),
        _ => causes.push(config.required("exactly one of url or service is required")),
    }
}

fn webhook_url(at: &At<'_>, causes: &mut Vec<Cause>) {
    causes.extend(url::webhook_problems(at.text()).into_iter().map(
        |problem| match problem.value {
            Some(part) => at.invalid_as(part, &problem.detail),
            None => at.required(&problem.detail),
        },
    ));
}

pub fn webhook_service(service: &At<'_>, causes: &mut Vec<Cause>) {
    // The real server confuses the two.
    let (name, namespace, path, port) = (
        service.get("name"),
        service.get("namespace"),
        service.get("path"),
        service.get("port"),
    );
    if namespace.is_empty() {
        causes.push(name.required(""));
    }
    if name.is_empty() {
        causes.push(namespace.required(""));
    }
    let number = port.int().unwrap_or(0);
    causes.extend(
        formats::port_number(number)
            .map(|p| port.invalid_as(number, &format!("port is not valid: {p}"))),
    );
    let text = path.text();
    if matches!(text, "" | "/") {
        return;
    }
    if text == "//" {
        return causes.push(path.invalid("segment[0] may not be empty"));
    }
    if !text.starts_with('/') {
        causes.push(path.invalid("must start with a '/'"));
    }
    let inner = &text[text.chars().next().map_or(0, char::len_utf8)..];
    for (i, step) in inner
        .strip_suffix('/')
        .unwrap_or(inner)
        .split('/')
        .enumerate()
    {
        match step.is_empty() {
            true => causes.push(path.invalid(&format!("segment[{i}] may not be empty"))),
            false => causes.extend(
                formats::dns_subdomain(step)
                    .iter()
                    .map(|p| path.invalid(&format!("segment[{i}]: {p}"))),
            ),
        }
    }
}

fn review_versions(versions: &At<'_>, causes: &mut Vec<Cause>) {
    if versions.is_empty() {
        return causes.push(versions.required("must specify one of v1, v1beta1"));
    }
    let items = versions.items();
    for (i, version) in items.iter().enumerate() {
        match items[..i]
            .iter()
            .any(|before| before.value == version.value)
        {
            true => causes.push(version.invalid("duplicate version")),
            false => version.form(formats::dns1035_label, causes),
        }
    }
    if !items
        .iter()
        .any(|version| matches!(version.text(), "v1" | "v1beta1"))
    {
        causes.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

/// Match conditions of webhooks and policies; `params` says whether there are parameters.
pub fn conditions(all: &At<'_>, params: bool, changed: bool, causes: &mut Vec<Cause>) {
    if all.len() > 64 {
        causes.push(all.too_many(64));
    }
    let items = all.items();
    for (i, condition) in items.iter().enumerate() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        let source = expression.text().trim();
        if source.is_empty() {
            causes.push(expression.required(""));
        } else if changed {
            let scope = Scope {
                params,
                authorizer: true,
                ..Scope::default()
            };
            causes.extend(
                scope
                    .compile(source, Returns::Bool)
                    .err()
                    .map(|e| expression.invalid_as(source, &e)),
            );
        }
        name.check(
            &[Check::Required(""), Check::Form(formats::qualified_name)],
            causes,
        );
        if !name.is_empty()
            && items[..i]
                .iter()
                .any(|before| before.get("name").value == name.value)
        {
            causes.push(name.duplicate());
        }
    }
}

/// The requests that a rule matches.
pub fn rule(rule: &At<'_>, causes: &mut Vec<Cause>) {
    let [operations, groups, versions, resources] =
        ["operations", "apiGroups", "apiVersions", "resources"].map(|f| rule.get(f));
    let alone = |list: &At<'_>, what: &str, causes: &mut Vec<Cause>| {
        if list.is_empty() {
            causes.push(list.required(""));
        }
        if list.len() > 1 && list.items().iter().any(|one| one.text() == "*") {
            causes.push(list.invalid(&format!("if '*' is present, must not specify other {what}")));
        }
    };
    alone(&operations, "operations", causes);
    for operation in operations
        .items()
        .iter()
        .filter(|o| !OPERATIONS.contains(&o.text()))
    {
        causes.push(operation.not_supported(OPERATIONS));
    }
    alone(&groups, "API groups", causes);
    alone(&versions, "API versions", causes);
    causes.extend(
        versions
            .items()
            .iter()
            .filter(|v| v.is_empty())
            .map(|v| v.required("")),
    );
    rule_resources(&resources, causes);
    one_of(&rule.get("scope"), SCOPES, causes);
}

fn rule_resources(resources: &At<'_>, causes: &mut Vec<Cause>) {
    if resources.is_empty() {
        causes.push(resources.required(""));
    }
    let (mut whole, mut everywhere): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let (mut all, mut plain) = (false, false);
    for at in resources.items() {
        let text = at.text();
        if text.is_empty() {
            causes.push(at.required(""));
            continue;
        }
        all |= text == "*";
        let Some((resource, part)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if whole.contains(&resource) {
            causes.push(at.invalid(&format!(
                "if '{resource}/*' is present, must not specify {text}"
            )));
        }
        if everywhere.contains(&part) {
            causes.push(at.invalid(&format!(
                "if '*/{part}' is present, must not specify {text}"
            )));
        }
        whole.extend((part == "*").then_some(resource));
        everywhere.extend((resource == "*").then_some(part));
    }
    if resources.len() > 1 && resources.items().iter().any(|one| one.text() == "*/*") {
        causes.push(resources.invalid("if '*/*' is present, must not specify other resources"));
    }
    if all && plain {
        causes.push(
            resources.invalid(
                "if '*' is present, must not specify other resources without subresources",
            ),
        );
    }
}
