//! ValidatingAdmissionPolicies, which reject a request or return a warning. Main function:
//! [`validate`].

use super::run::{Run, Stopped};
use super::{Policy, Validation, params, text};
use crate::admission::hooks::Bound;
use crate::admission::matching::matches;
use crate::admission::request::{Objects, Request};
use crate::admission::{Answers, refusal};
use crate::status::{Cause, Status};
use tiphys_apimachinery::Object;
use tiphys_kube_schema::cel::value::Value;

/// The maximum length of messages; longer ones are not used.
const MESSAGE_LIMIT: usize = 5 * 1024;

/// Why a policy denies a request.
struct Denial {
    message: String,
    reason: String,
    /// The binding to name in the error.
    binding: Option<String>,
    policy: String,
}

/// Evaluates the policies; the first denial is returned.
pub fn validate(
    policies: &[Bound],
    request: &Request<'_>,
    objects: Objects<'_>,
    answers: &mut Answers,
) -> Result<(), Status> {
    let mut denials = Vec::new();
    for bound in policies {
        one(bound, request, objects, &mut denials, answers);
    }
    let Some(first) = denials.into_iter().next() else {
        return Ok(());
    };
    let Denial {
        message,
        reason,
        binding,
        policy,
    } = first;
    let with = binding
        .map(|b| format!(" with binding '{b}'"))
        .unwrap_or_default();
    let message = format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
    let mut status = refusal(request, objects, &message);
    (status.code, status.reason) = match reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    Err(status.with_causes(vec![Cause {
        reason: "",
        message,
        field: String::new(),
    }]))
}

fn one(
    bound: &Bound,
    request: &Request<'_>,
    objects: Objects<'_>,
    denials: &mut Vec<Denial>,
    answers: &mut Answers,
) {
    let policy = &bound.policy;
    let mut misconfigured = |why: String, binding: Option<&Object>| {
        if policy.fails() {
            let what = if binding.is_some() {
                "binding"
            } else {
                "policy"
            };
            denials.push(Denial {
                message: format!("failed to configure {what}: {why}"),
                reason: String::new(),
                binding: binding.map(|b| b.name().to_owned()),
                policy: policy.name.clone(),
            });
        }
    };
    let matched = match matches(
        request,
        objects,
        &policy.spec["matchConstraints"],
        "resourceRules",
    ) {
        Err(why) => return misconfigured(why, None),
        Ok(None) => return,
        Ok(Some(matched)) => matched,
    };
    let kind = match params::kind(request, &policy.spec["paramKind"]) {
        Err(why) => return misconfigured(why, None),
        Ok(kind) => kind,
    };
    let seen = match request.convert_all(objects, &matched) {
        Err(status) => {
            return misconfigured(format!("failed to convert object version: {status}"), None);
        }
        Ok(seen) => seen,
    };
    let seen = Objects {
        new: seen[0].as_ref(),
        old: seen[1].as_ref(),
    };
    let mut results = Vec::new();
    for binding in &bound.bindings {
        let spec = binding.0.get("spec").cloned().unwrap_or_default();
        match matches(request, objects, &spec["matchResources"], "resourceRules") {
            Err(why) => misconfigured(why, Some(binding)),
            Ok(None) => {}
            Ok(Some(_)) => match params::collect(request, kind.as_ref(), &spec["paramRef"]) {
                Err(why) => misconfigured(why, Some(binding)),
                Ok(list) => {
                    for param in list {
                        let run = Run::new(policy, request, seen, &matched, param.as_deref());
                        results.extend(
                            judge(policy, &run)
                                .into_iter()
                                .map(|found| (binding, spec["validationActions"].clone(), found)),
                        );
                    }
                }
            },
        }
    }
    for (
        binding,
        actions,
        Found {
            message,
            reason,
            always,
        },
    ) in results
    {
        let has = |word: &str| actions.as_array().into_iter().flatten().any(|a| a == word);
        if has("Warn") && !always {
            let (policy, binding) = (&policy.name, binding.name());
            answers.warn(format!("Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {message}"));
        }
        if has("Deny") || always {
            denials.push(Denial {
                message,
                reason,
                binding: Some(binding.name().to_owned()),
                policy: policy.name.clone(),
            });
        }
    }
}

/// A failed validation or error of a run.
struct Found {
    message: String,
    reason: String,
    /// Denied regardless of the binding's actions.
    always: bool,
}

fn judge(policy: &Policy, run: &Run<'_>) -> Vec<Found> {
    // A failure denies the request only if the failure policy says so.
    let failed = |message: String| {
        let found = Found {
            message,
            reason: String::new(),
            always: false,
        };
        if policy.fails() {
            vec![found]
        } else {
            Vec::new()
        }
    };
    match run.is_meant() {
        Err(why) => return failed(why),
        Ok(false) => return Vec::new(),
        Ok(true) => {}
    }
    let mut found = Vec::new();
    for validation in &policy.validations {
        match run.evaluate(&validation.expression) {
            Ok(Value::Bool(true)) => {}
            Ok(_) => found.push((validation, None)),
            Err(Stopped::Budget) => return failed(Stopped::Budget.text()),
            Err(Stopped::Failed(why)) if policy.fails() => found.push((validation, Some(why))),
            Err(Stopped::Failed(_)) => {}
        }
    }
    let found = found.into_iter().map(|(validation, error)| match error {
        Some(message) => Found {
            message,
            reason: String::new(),
            always: false,
        },
        None => Found {
            message: message(validation, run),
            reason: validation.reason.clone(),
            always: false,
        },
    });
    let mut found: Vec<Found> = found.collect();
    // There is no audit log, but an annotation that cannot be evaluated denies the request.
    for (annotation, spec) in policy
        .annotations
        .iter()
        .zip(super::items(&policy.spec, "auditAnnotations"))
    {
        match run.evaluate(annotation) {
            Ok(Value::String(_) | Value::Null) => {}
            Ok(other) => {
                let (source, kind) = (text(spec, "valueExpression"), other.type_name());
                let message = format!(
                    "valueExpression '{source}' resulted in unsupported return type: {kind}. Return type must be either string or null."
                );
                found.push(Found {
                    message,
                    reason: String::new(),
                    always: true,
                });
            }
            Err(Stopped::Budget) => return failed(Stopped::Budget.text()),
            Err(Stopped::Failed(message)) if policy.fails() => found.push(Found {
                message,
                reason: String::new(),
                always: true,
            }),
            Err(Stopped::Failed(_)) => {}
        }
    }
    found
}

/// The message of the message expression, the fixed message, or the expression itself.
fn message(validation: &Validation, run: &Run<'_>) -> String {
    if let Some(expression) = &validation.message_expression {
        match run.evaluate(expression) {
            Ok(Value::String(text)) => {
                let text = text.trim();
                if !text.is_empty() && text.len() <= MESSAGE_LIMIT && !text.contains('\n') {
                    return text.to_owned();
                }
            }
            Err(Stopped::Budget) => {
                return format!("failed messageExpression: {}", Stopped::Budget.text());
            }
            _ => {}
        }
    }
    if validation.message.is_empty() {
        return format!("failed expression: {}", validation.expression.source.trim());
    }
    validation.message.clone()
}
