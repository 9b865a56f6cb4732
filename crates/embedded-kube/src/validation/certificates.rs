//! Certificate signing requests. Main function: [`request`].

use super::rules::{At, Check};
use crate::base::Part;
use crate::status::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::{formats, gotypes};

/// The usages of a certificate, in the order in which messages list them.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const LEGACY: &str = "kubernetes.io/legacy-unknown";
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// A request, and how `part` of it may change.
pub fn request(object: &Object, old: Option<&Object>, part: Part, causes: &mut Vec<Cause>) {
    let (spec, status) = (At::of(object, old, "spec"), At::of(object, old, "status"));
    let text = spec.get("request");
    if let Some(why) = request_error(&text) {
        causes.push(text.invalid_as(text.value.clone(), why));
    }
    usages(&spec.get("usages"), causes);
    let signer = spec.get("signerName");
    if signer.text() == LEGACY && signer.old.is_none_or(|was| was != LEGACY) {
        causes.push(signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        signer_name(&signer, causes);
    }
    let seconds = spec.get("expirationSeconds");
    if seconds.int().is_some_and(|n| n < 600) {
        causes
            .push(seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
    conditions(&status.get("conditions"), causes);
    let certificate = status.get("certificate");
    let why = certificate_error(&certificate)
        .filter(|_| certificate.old.is_none() || certificate.is_changed());
    causes.extend(why.map(|why| certificate.invalid_as("<certificate data>", &why)));
    if old.is_some() {
        changes(&status, part, causes);
    }
}

/// A block of a PEM text.
struct Block {
    kind: String,
    has_headers: bool,
    bytes: Vec<u8>,
}

fn pem_blocks(at: &At<'_>) -> Vec<Block> {
    let bytes = STANDARD.decode(at.text()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line
            .trim_end()
            .strip_prefix("-----BEGIN ")
            .and_then(|l| l.strip_suffix("-----"))
        else {
            continue;
        };
        let end = format!("-----END {kind}-----");
        let mut rest = lines.clone();
        let Some(length) = rest.position(|l| l.trim_end() == end) else {
            continue;
        };
        let body: Vec<&str> = lines.clone().take(length).collect();
        let has_headers = body.iter().any(|l| l.contains(':'));
        let content: String = body
            .iter()
            .filter(|l| !l.contains(':'))
            .flat_map(|l| l.split_whitespace())
            .collect();
        if let Ok(bytes) = STANDARD.decode(content) {
            blocks.push(Block {
                kind: kind.to_owned(),
                has_headers,
                bytes,
            });
            lines = rest;
        }
    }
    blocks
}

/// The request inside the PEM block is not parsed, because this server signs nothing.
fn request_error(at: &At<'_>) -> Option<&'static str> {
    let is_request = pem_blocks(at)
        .first()
        .is_some_and(|block| block.kind == "CERTIFICATE REQUEST");
    (!is_request).then_some("PEM block type must be CERTIFICATE REQUEST")
}

fn certificate_error(at: &At<'_>) -> Option<String> {
    if at.is_empty() {
        return None;
    }
    let blocks = pem_blocks(at);
    let one = blocks
        .iter()
        .find_map(|block| match (block.kind.as_str(), block.has_headers) {
            ("CERTIFICATE", false) => bytes_error(&block.bytes).map(str::to_owned),
            ("CERTIFICATE", true) => Some("no PEM block headers are permitted".to_owned()),
            (other, _) => Some(format!(
                "only CERTIFICATE PEM blocks are allowed, found {other:?}"
            )),
        });
    one.or_else(|| {
        blocks
            .is_empty()
            .then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
    })
}

/// A superficial check of the certificate, because nothing here relies on it.
fn bytes_error(bytes: &[u8]) -> Option<&'static str> {
    const SEQUENCE: u8 = 0x30;
    match bytes.first() {
        None => Some("found CERTIFICATE PEM block containing 0 certificates"),
        Some(first) => (*first != SEQUENCE).then_some("x509: malformed certificate"),
    }
}

fn usages(at: &At<'_>, causes: &mut Vec<Cause>) {
    let before: Vec<&str> = at
        .old
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    at.check(&[Check::Required("")], causes);
    let items = at.items();
    if before.iter().all(|usage| USAGES.contains(usage)) {
        let unknown = items.iter().filter(|usage| !USAGES.contains(&usage.text()));
        causes.extend(unknown.map(|usage| usage.not_supported(&USAGES)));
    }
    if before.iter().collect::<BTreeSet<_>>().len() == before.len() {
        at.check(&[Check::Distinct], causes);
    }
}

fn signer_name(at: &At<'_>, causes: &mut Vec<Cause>) {
    if at.is_empty() {
        return causes.push(at.required(""));
    }
    let Some((domain, path)) = at
        .text()
        .split_once('/')
        .filter(|(_, path)| !path.contains('/'))
    else {
        return causes.push(at.invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ));
    };
    if domain.len() > 253 {
        causes.push(at.too_long(253));
    }
    first_bad_label(at, domain, formats::simple_dns_label, causes);
    if !domain.contains('.') {
        causes.push(at.invalid_as(
            domain,
            "should be a domain with at least two segments separated by dots",
        ));
    }
    first_bad_label(at, path, formats::dns_subdomain, causes);
    if at.len() > 571 {
        causes.push(at.too_long(571));
    }
}

/// Reports the first dot-separated label that is invalid.
fn first_bad_label(at: &At<'_>, segment: &str, format: formats::Format, causes: &mut Vec<Cause>) {
    let problems = segment
        .split('.')
        .map(|label| (label, format(label)))
        .find(|(_, problems)| !problems.is_empty());
    let (label, problems) = problems.unwrap_or_default();
    causes.extend(
        problems.iter().map(|problem| {
            at.invalid_as(segment, &format!("validating label {label:?}: {problem}"))
        }),
    );
}

fn of_kind<'v>(list: Option<&'v Value>, kind: &str) -> Vec<&'v Value> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|c| c["type"] == kind)
        .collect()
}

fn conditions(at: &At<'_>, causes: &mut Vec<Cause>) {
    let was = |kind: &str| !of_kind(at.old, kind).is_empty();
    let old: Vec<&Value> = at
        .old
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let had_empty = old.iter().any(|c| c["type"] == "");
    let had_twice = old
        .iter()
        .enumerate()
        .any(|(i, c)| old[..i].iter().any(|o| o["type"] == c["type"]));
    let mut seen: Vec<&str> = Vec::new();
    for condition in at.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.is_empty() && !had_empty {
            causes.push(kind.required(""));
        }
        let allowed: &[&str] = if FINAL.contains(&kind.text()) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        status.check(&[Check::Required("")], causes);
        if !status.is_empty() && !allowed.contains(&status.text()) {
            causes.push(status.not_supported(allowed));
        }
        let other = DECISIONS
            .iter()
            .find(|d| **d != kind.text())
            .filter(|_| DECISIONS.contains(&kind.text()));
        if other.is_some_and(|other| seen.contains(other)) && !(was("Approved") && was("Denied")) {
            causes.push(at.invalid_as(
                kind.text(),
                "Approved and Denied conditions are mutually exclusive",
            ));
        }
        if seen.contains(&kind.text()) && !had_twice {
            causes.push(kind.duplicate());
        }
        seen.push(kind.text());
    }
}

/// Approvals are written through `approval` and certificates through `status`, and neither can be
/// removed.
fn changes(status: &At<'_>, part: Part, causes: &mut Vec<Cause>) {
    let conditions = status.get("conditions");
    let both = |kind: &str| {
        (
            of_kind(conditions.old, kind),
            of_kind(Some(conditions.value), kind),
        )
    };
    for kind in FINAL {
        let (before, now) = both(kind);
        if now.len() < before.len() {
            causes.push(conditions.forbidden(&format!(
                "updates may not remove a condition of type {kind:?}"
            )));
        }
    }
    for kind in DECISIONS.iter().filter(|_| part != Part::Approval) {
        let (before, now) = both(kind);
        if now.len() > before.len() {
            causes.push(
                conditions.forbidden(&format!("updates may not add a condition of type {kind:?}")),
            );
        } else if now.len() == before.len() && now != before {
            let list = |l: Vec<&Value>| Value::Array(l.into_iter().cloned().collect());
            let diff = gotypes::diff(
                &list(before),
                &list(now),
                "[]certificates/v1.CertificateSigningRequestCondition",
            );
            causes.push(conditions.forbidden(&format!(
                "updates may not modify a condition of type {kind:?}\n{diff}"
            )));
        }
    }
    let certificate = status.get("certificate");
    if certificate.is_changed() {
        if part != Part::Status {
            causes.push(certificate.forbidden("updates may not set certificate content"));
        } else if certificate
            .old
            .and_then(Value::as_str)
            .is_some_and(|c| !c.is_empty())
        {
            causes
                .push(certificate.forbidden("updates may not modify existing certificate content"));
        }
    }
}
