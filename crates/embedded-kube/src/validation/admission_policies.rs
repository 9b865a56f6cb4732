//! Admission policies and their bindings; expressions are compiled the same way as when they run.

use super::nodes;
use super::rules::{self, At, Check};
use super::webhooks::{conditions, one_of, rule};
use crate::status::Cause;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::cel::admission::{Returns, Scope};
use tiphys_kube_schema::cel::declare::is_reserved;
use tiphys_kube_schema::formats;
use tiphys_kube_schema::formats::Format;

const MAX_ANNOTATIONS: usize = 20;
const MAX_ANNOTATION_BYTES: usize = 5 * 1024;

fn match_resources(at: &At<'_>, causes: &mut Vec<Cause>) {
    let policy = at.get("matchPolicy");
    match policy.is_null() {
        true => causes.push(policy.required("")),
        false => one_of(&policy, &["Equivalent", "Exact"], causes),
    }
    for selector in ["namespaceSelector", "objectSelector"].map(|f| at.get(f)) {
        match selector.is_null() {
            true => causes.push(selector.required("")),
            false => rules::label_selector(&selector, causes),
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for one in at.get(list).items() {
            let names = one.get("resourceNames").items();
            for (i, name) in names.iter().enumerate() {
                name.form(formats::path_segment, causes);
                causes.extend(
                    names[..i]
                        .iter()
                        .any(|before| before.value == name.value)
                        .then(|| name.duplicate()),
                );
            }
            rule(&one, causes);
        }
    }
}

/// A validating or mutating policy.
pub fn policy(object: &Object, old: Option<&Object>, mutating: bool, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    one_of(&spec.get("failurePolicy"), &["Fail", "Ignore"], causes);
    let (kind, constraints) = (spec.get("paramKind"), spec.get("matchConstraints"));
    if !kind.is_null() {
        param_kind(&kind, causes);
    }
    match constraints.is_null() {
        true => causes.push(constraints.required("")),
        false => {
            match_resources(&constraints, causes);
            let rules = constraints.get("resourceRules");
            rules.check(&[Check::Required("")], causes);
            if mutating {
                operations(&rules, causes);
            }
        }
    }
    let params = !kind.is_null();
    let scope = variables(&spec, params, mutating, causes);
    if mutating {
        return mutations(&spec, &scope, causes);
    }
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        return causes.extend([validations.required(detail), annotations.required(detail)]);
    }
    validations
        .items()
        .iter()
        .for_each(|one| validation(one, &scope, causes));
    if annotations.len() > MAX_ANNOTATIONS {
        causes.push(annotations.invalid_struct(
            "[]admissionregistration/v1.AuditAnnotation",
            &format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations"),
        ));
    }
    let items = annotations.items();
    for (i, annotation) in items.iter().enumerate() {
        let (key, value) = (annotation.get("key"), annotation.get("valueExpression"));
        let full = format!("{}/{}", object.name(), key.text());
        causes.extend(
            formats::qualified_name(&full)
                .iter()
                .map(|p| key.invalid_as(full.as_str(), p)),
        );
        let text = value.text().trim();
        if text.is_empty() {
            causes.push(value.required("valueExpression is not specified"));
        } else if text.len() > MAX_ANNOTATION_BYTES {
            causes.push(value.required(&format!(
                "must not exceed {MAX_ANNOTATION_BYTES} bytes in length"
            )));
        } else {
            causes.extend(
                scope
                    .compile(text, Returns::TextOrNull)
                    .err()
                    .map(|e| value.invalid(&e)),
            );
        }
        causes.extend(
            items[..i]
                .iter()
                .any(|before| before.get("key").value == key.value)
                .then(|| key.duplicate()),
        );
    }
}

/// The status with the results of the type check of a policy's expressions.
pub fn policy_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    for found in status.get("typeChecking.expressionWarnings").items() {
        let missing = ["warning", "fieldRef"]
            .map(|field| found.get(field))
            .into_iter()
            .filter(|field| field.text().trim().is_empty());
        causes.extend(missing.map(|field| field.required("")));
    }
    nodes::conditions(&status.get("conditions"), causes);
}

fn validation(at: &At<'_>, scope: &Scope, causes: &mut Vec<Cause>) {
    let [expression, message_expression, message, reason] =
        ["expression", "messageExpression", "message", "reason"].map(|f| at.get(f));
    if expression.text().trim().is_empty() {
        causes.push(expression.required("expression is not specified"));
    } else {
        causes.extend(
            scope
                .compile(expression.text(), Returns::Bool)
                .err()
                .map(|e| expression.invalid(&e)),
        );
    }
    for text in [&message_expression, &message] {
        if !text.is_empty() && text.text().trim().is_empty() {
            causes.push(text.invalid("must be non-empty if specified"));
        } else if !text.is_empty() && text.path == message_expression.path {
            let scope = Scope {
                authorizer: false,
                ..scope.clone()
            };
            causes.extend(
                scope
                    .compile(text.text(), Returns::Text)
                    .err()
                    .map(|e| text.invalid(&e)),
            );
        }
    }
    if message.text().trim().contains(['\n', '\r']) {
        causes.push(message.invalid("must not contain line breaks"));
    }
    one_of(
        &reason,
        &["Forbidden", "Invalid", "RequestEntityTooLarge"],
        causes,
    );
}

/// The variables of a policy, in order.
fn variables(spec: &At<'_>, params: bool, mutating: bool, causes: &mut Vec<Cause>) -> Scope {
    conditions(&spec.get("matchConditions"), params, true, causes);
    let list = spec.get("variables").items();
    let mut scope = Scope {
        params,
        authorizer: true,
        composes: mutating || !list.is_empty(),
        ..Scope::default()
    };
    for variable in list {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        match name.text().trim().is_empty() {
            true => causes.push(name.required("name is not specified")),
            false if is_reserved(name.text()) || !formats::c_identifier(name.text()).is_empty() => {
                causes.push(name.invalid("must be a valid CEL identifier"))
            }
            false => {}
        }
        if expression.text().trim().is_empty() {
            causes.push(expression.required("expression is not specified"));
            continue;
        }
        let compiled = scope.compile(expression.text(), Returns::Anything);
        scope.define(name.text(), compiled.as_ref().ok().map(|p| &p.ty));
        causes.extend(compiled.err().map(|e| expression.invalid(&e)));
    }
    scope
}

/// A mutating policy cannot apply to deletes.
fn operations(rules: &At<'_>, causes: &mut Vec<Cause>) {
    const SUPPORTED: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
    let path = format!("{}.operations", rules.path);
    for rule in rules.items() {
        for operation in rule
            .get("operations")
            .items()
            .iter()
            .filter(|o| !SUPPORTED.contains(&o.text()))
        {
            causes.push(Cause::not_supported(&path, operation.value, SUPPORTED));
        }
    }
}

fn mutations(spec: &At<'_>, scope: &Scope, causes: &mut Vec<Cause>) {
    let scope = Scope {
        patches: true,
        ..scope.clone()
    };
    let all = spec.get("mutations");
    if all.is_empty() {
        causes.push(all.required("mutations must contain at least one item"));
    }
    for mutation in all.items() {
        let [kind, patch, apply] =
            ["patchType", "jsonPatch", "applyConfiguration"].map(|f| mutation.get(f));
        let (own, other, returns) = match kind.text() {
            "" => {
                causes.push(kind.required(""));
                continue;
            }
            "JSONPatch" => (patch, apply, Returns::Patches),
            "ApplyConfiguration" => (apply, patch, Returns::Object),
            _ => {
                causes.push(kind.not_supported(&["ApplyConfiguration", "JSONPatch"]));
                continue;
            }
        };
        let expression = own.get("expression");
        let source = expression.text().trim();
        if own.is_null() {
            causes.push(own.required(&format!(
                "must be specified when patchType is {}",
                kind.text()
            )));
        } else if source.is_empty() {
            causes.push(expression.required(""));
        } else {
            causes.extend(
                scope
                    .compile(source, returns)
                    .err()
                    .map(|e| expression.invalid_as(source, &e)),
            );
        }
        if !other.is_null() {
            let field = other.path.rsplit('.').next().unwrap_or("");
            causes.push(other.invalid_as(
                format!("{{{field}}}"),
                &format!("must not be specified when patchType is {}", kind.text()),
            ));
        }
    }
    spec.get("reinvocationPolicy").check(
        &[Check::Required(""), Check::OneOf(&["IfNeeded", "Never"])],
        causes,
    );
}

fn param_kind(kind: &At<'_>, causes: &mut Vec<Cause>) {
    let (api_version, name) = (kind.get("apiVersion"), kind.get("kind"));
    let joined =
        |at: &At<'_>, text: &str, format: Format, prefix: &str, causes: &mut Vec<Cause>| {
            let problems = format(text);
            causes.extend(
                (!problems.is_empty())
                    .then(|| at.invalid_as(text, &format!("{prefix}{}", problems.join(",")))),
            );
        };
    match api_version.text().split('/').collect::<Vec<_>>()[..] {
        [""] => causes.push(api_version.required("")),
        [version] => joined(&api_version, version, formats::dns1035_label, "", causes),
        [group, version] => {
            if !group.is_empty() {
                joined(&api_version, group, formats::dns_subdomain, "", causes);
            }
            match version.is_empty() {
                true => causes.push(api_version.invalid("version must be specified")),
                false => joined(&api_version, version, formats::dns1035_label, "", causes),
            }
        }
        _ => causes.push(api_version.invalid(&format!(
            "unexpected GroupVersion string: {}",
            api_version.text()
        ))),
    }
    let problems = formats::dns1035_label(&name.text().to_lowercase());
    if name.is_empty() {
        causes.push(name.required(""));
    } else if !problems.is_empty() {
        causes.push(name.invalid(&format!(
            "may have mixed case, but should otherwise match: {}",
            problems.join(",")
        )));
    }
}

pub fn policy_binding(
    object: &Object,
    old: Option<&Object>,
    validating: bool,
    causes: &mut Vec<Cause>,
) {
    let spec = At::of(object, old, "spec");
    spec.get("policyName").check(
        &[Check::Required(""), Check::Form(formats::dns_subdomain)],
        causes,
    );
    let (parameters, matched) = (spec.get("paramRef"), spec.get("matchResources"));
    if !parameters.is_null() {
        let [name, selector, action] =
            ["name", "selector", "parameterNotFoundAction"].map(|f| parameters.get(f));
        let both = !name.is_empty() && !selector.is_null();
        let exclusive = "name and selector are mutually exclusive";
        name.check(&[Check::Form(formats::path_segment)], causes);
        causes.extend(both.then(|| name.forbidden(exclusive)));
        rules::label_selector(&selector, causes);
        causes.extend(both.then(|| selector.forbidden(exclusive)));
        if name.is_empty() && selector.is_null() {
            causes.push(parameters.required("one of name or selector must be specified"));
        }
        action.check(
            &[Check::Required(""), Check::OneOf(&["Deny", "Allow"])],
            causes,
        );
    }
    if !matched.is_null() {
        match_resources(&matched, causes);
    }
    if !validating {
        return operations(&matched.get("resourceRules"), causes);
    }
    let actions = spec.get("validationActions");
    let items = actions.items();
    for (i, action) in items.iter().enumerate() {
        one_of(action, &["Audit", "Deny", "Warn"], causes);
        causes.extend(
            items[..i]
                .iter()
                .any(|before| before.value == action.value)
                .then(|| action.duplicate()),
        );
    }
    let has = |word: &str| items.iter().any(|action| action.text() == word);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and \
                      headers serves no purpose)";
        causes.push(actions.invalid(detail));
    }
    actions.check(
        &[Check::Required(
            "at least one validation action is required",
        )],
        causes,
    );
}
