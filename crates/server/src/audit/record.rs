//! What is written of a call. Main type: [`Record`].

use crate::{Code, auth::Claims};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allowed,
    /// By a permission, or because nobody is signed in.
    Denied,
    /// It was allowed, and went wrong.
    Failed,
    /// The log was opened.
    Opened,
}

impl Verdict {
    pub(super) fn of(code: Option<Code>) -> Self {
        match code {
            None => Self::Allowed,
            Some(Code::PermissionDenied | Code::Unauthenticated) => Self::Denied,
            Some(_) => Self::Failed,
        }
    }
}

/// A permission that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub resource: String,
    pub action: String,
    pub object: String,
    pub permitted: bool,
    /// The line of a policy that decided; none: no line permits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// A value before and after. Secrets are not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Names of fields with dots between them.
    pub path: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub from: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub to: Value,
}

/// What was done to one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// `created`, `updated` or `deleted`; of a terminal `opened`.
    pub done: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<Difference>,
}

/// Who called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Who {
    /// The subject of policies; empty: nobody known.
    pub user: String,
    /// `session`, `token`, `project token`, `provider`, `password`, or `none`.
    pub how: String,
    /// The issuer, if that is an identity provider.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issuer: String,
    /// The id of the token, which is no secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The address of the client.
    pub from: String,
}

impl Who {
    pub(super) fn of(claims: Option<&Claims>, from: String) -> Self {
        let Some(claims) = claims else {
            return Self {
                how: "none".to_owned(),
                from,
                ..Self::default()
            };
        };
        let how = match (claims.is_local(), claims.project_role().is_some()) {
            (false, _) => "provider",
            (true, true) => "project token",
            (true, false) if claims.capability() == "apiKey" => "token",
            (true, false) => "session",
        };
        let issuer = if claims.is_local() {
            String::new()
        } else {
            claims.iss.clone()
        };
        Self {
            user: claims.account().to_owned(),
            how: how.to_owned(),
            issuer,
            token: claims.jti.clone(),
            from,
        }
    }
}

/// One line of the log, without its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// From 1, without gaps.
    pub seq: u64,
    /// RFC 3339, UTC.
    pub time: String,
    #[serde(flatten)]
    pub who: Who,
    /// The method of gRPC, or a path.
    pub call: String,
    pub verdict: Verdict,
    /// The name of gRPC's code.
    pub code: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Refusals of the same client before, of which there are no records.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suppressed: u64,
    /// The SHA-256 of an unfinished line before this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub torn: String,
    /// The hash of the record before; zeros for the first.
    pub prev: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Record {
    /// A record whose place in the log is not known yet.
    pub(super) fn new(who: Who, call: &str, verdict: Verdict) -> Self {
        Self {
            seq: 0,
            time: String::new(),
            who,
            call: call.to_owned(),
            verdict,
            code: "OK".to_owned(),
            message: String::new(),
            asked: Vec::new(),
            changes: Vec::new(),
            suppressed: 0,
            torn: String::new(),
            prev: String::new(),
        }
    }
}
