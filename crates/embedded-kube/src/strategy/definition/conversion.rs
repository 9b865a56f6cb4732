//! Validates the conversion settings of a definition. Main function: [`check`].

use super::spec::{Problems, one_of, text};
use crate::outbound;
use crate::validation::url;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_kube_schema::formats;
use tiphys_kube_schema::structural::problem::Problem;

/// `any_bundle`: the CA bundle of the webhook need not be readable.
pub fn check(spec: &Value, any_bundle: bool, problems: &mut Problems) {
    let Some(conversion) = spec.get("conversion").filter(|c| c.is_object()) else {
        return;
    };
    let strategy = text(conversion, "strategy");
    if strategy != "None" && spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        let detail = "must be None if spec.preserveUnknownFields is true";
        problems.push(Problem::invalid(
            "spec.conversion.strategy",
            &strategy.into(),
            detail,
        ));
    }
    one_of(
        "spec.conversion.strategy",
        strategy,
        &["None", "Webhook"],
        problems,
    );
    let client = conversion
        .pointer("/webhook/clientConfig")
        .filter(|c| !c.is_null());
    let empty = Vec::new();
    let reviews = conversion
        .pointer("/webhook/conversionReviewVersions")
        .and_then(Value::as_array)
        .unwrap_or(&empty);
    if strategy != "Webhook" {
        const ONLY: &str = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            problems.push(Problem::forbidden(
                "spec.conversion.webhookClientConfig",
                ONLY,
            ));
        }
        if !reviews.is_empty() {
            problems.push(Problem::forbidden(
                "spec.conversion.conversionReviewVersions",
                ONLY,
            ));
        }
        return;
    }
    match client {
        None => problems.push(Problem::required(
            "spec.conversion.webhookClientConfig",
            "required when strategy is set to Webhook",
        )),
        Some(client) => {
            webhook_client(client, problems);
            let bundle = text(client, "caBundle");
            if let Some(why) = outbound::unreadable(bundle).filter(|_| !any_bundle) {
                problems.push(Problem::invalid(
                    "spec.conversion.webhookClientConfig.caBundle",
                    &bundle.into(),
                    &why,
                ));
            }
        }
    }
    review_versions(reviews, problems);
}

fn webhook_client(client: &Value, problems: &mut Problems) {
    let at = |key: &str| format!("spec.conversion.webhookClientConfig{key}");
    let (url, service) = (
        client.get("url").and_then(Value::as_str),
        client.get("service").filter(|s| !s.is_null()),
    );
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => problems.push(Problem::required(
            &at(""),
            "exactly one of url or service is required",
        )),
        (Some(url), None) => webhook_url(url, &at(".url"), problems),
        (None, Some(service)) => {
            // The real server confuses the two.
            for (key, named) in [("namespace", "name"), ("name", "namespace")] {
                if text(service, key).is_empty() {
                    problems.push(Problem::required(&at(&format!(".service.{named}")), ""));
                }
            }
            let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
            if !(1..=65535).contains(&port) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                problems.push(Problem::invalid(&at(".service.port"), &port.into(), detail));
            }
            service_path(text(service, "path"), &at(".service.path"), problems);
        }
    }
}

fn webhook_url(text: &str, field: &str, problems: &mut Problems) {
    problems.extend(
        url::webhook_problems(text)
            .into_iter()
            .map(|problem| match problem.value {
                Some(part) => Problem::invalid(field, &part.into(), &problem.detail),
                None => Problem::required(field, &problem.detail),
            }),
    );
}

fn service_path(path: &str, field: &str, problems: &mut Problems) {
    let mut bad = |detail: String| problems.push(Problem::invalid(field, &path.into(), &detail));
    if path.is_empty() || path == "/" {
        return;
    }
    if path == "//" {
        bad("segment[0] may not be empty".to_owned());
        return;
    }
    if !path.starts_with('/') {
        bad("must start with a '/'".to_owned());
    }
    // The first character is removed, whatever it is.
    let inner = path.get(1..).unwrap_or("");
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (i, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            bad(format!("segment[{i}] may not be empty"));
            continue;
        }
        for error in formats::dns_subdomain(segment) {
            bad(format!("segment[{i}]: {error}"));
        }
    }
}

fn review_versions(reviews: &[Value], problems: &mut Problems) {
    const FIELD: &str = "spec.conversion.conversionReviewVersions";
    if reviews.is_empty() {
        problems.push(Problem::required(FIELD, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, version) in reviews.iter().enumerate() {
        let name = version.as_str().unwrap_or("");
        if !seen.insert(name) {
            problems.push(Problem::invalid(
                &format!("{FIELD}[{i}]"),
                version,
                "duplicate version",
            ));
            continue;
        }
        for error in formats::dns1035_label(name) {
            problems.push(Problem::invalid(&format!("{FIELD}[{i}]"), version, &error));
        }
    }
    if !seen.contains("v1") && !seen.contains("v1beta1") {
        problems.push(Problem::invalid(
            FIELD,
            &reviews.to_vec().into(),
            "must include at least one of v1, v1beta1",
        ));
    }
}
