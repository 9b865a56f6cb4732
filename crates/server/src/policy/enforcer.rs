//! The policy decision, and the error returned to callers who are refused.
//!
//! Main traits: [`Enforcer`], and [`ObjectSelection`] for lists.

use super::{Ask, Resource};
use crate::{
    ApiError, Code,
    auth::{ADMIN, Claims},
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The question for the policy: `applications, sync, default/guestbook`.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub resource: Resource,
    /// With its path, such as `delete/apps/Deployment/n/web`.
    pub action: &'a str,
    /// The object's name in policies.
    pub object: &'a str,
}

/// Decides questions. It is called for each object of a list, so it must not block.
pub trait Enforcer: Send + Sync + 'static {
    /// `claims` are the claims of the caller's session; `None` if not logged in.
    fn permits(&self, claims: Option<&Claims>, question: Question<'_>) -> bool;

    /// Decides one question about many objects, as [`Self::permits`] decides each.
    fn selection<'a>(
        &'a self,
        claims: Option<&'a Claims>,
        ask: Ask,
    ) -> Box<dyn ObjectSelection + 'a> {
        Box::new(OneByOne {
            enforcer: self,
            claims,
            ask,
        })
    }

    /// The line of a policy that decides a question, for people to read; none: no line permits it.
    fn rule(&self, _: Option<&Claims>, _: Question<'_>) -> Option<String> {
        None
    }

    /// The groups by which policies know the caller.
    fn groups(&self, _: &Claims) -> Vec<String> {
        Vec::new()
    }

    /// How often the policy has changed. The roles of projects are not counted.
    fn revision(&self) -> u64 {
        0
    }

    /// Takes over the data of argocd-rbac-cm.
    fn update(&self, _data: &BTreeMap<String, String>) {}
}

/// One question about many objects.
pub trait ObjectSelection {
    /// `object` is the name in policies, which begins with that of the project and a slash.
    fn permits(&mut self, project: &str, object: &dyn Fn() -> String) -> bool;
}

struct OneByOne<'a, E: ?Sized> {
    enforcer: &'a E,
    claims: Option<&'a Claims>,
    ask: Ask,
}

impl<E: Enforcer + ?Sized> ObjectSelection for OneByOne<'_, E> {
    fn permits(&mut self, _: &str, object: &dyn Fn() -> String) -> bool {
        let question = Question {
            resource: self.ask.0,
            action: &self.ask.1.text(""),
            object: &object(),
        };
        self.enforcer.permits(self.claims, question)
    }
}

/// `admin` may do everything, and nobody else anything: for an API in one's own process.
pub struct AdminOnly;

impl Enforcer for AdminOnly {
    fn permits(&self, claims: Option<&Claims>, _: Question<'_>) -> bool {
        claims.is_some_and(|c| c.account() == ADMIN)
    }
}

/// Everybody may do everything, with or without a session (`--disable-auth`).
pub struct Everybody;

impl Enforcer for Everybody {
    fn permits(&self, _: Option<&Claims>, _: Question<'_>) -> bool {
        true
    }
}

/// Argo CD's message for a refusal. Where the message would reveal that something exists,
/// [`ApiError::denied`] is used instead.
pub(crate) fn refusal(claims: Option<&Claims>, question: Question<'_>) -> ApiError {
    let Question {
        resource,
        action,
        object,
    } = question;
    let mut text = format!("permission denied: {}, {action}, {object}", resource.word());
    if let Some(claims) = claims {
        text.push_str(&format!(", sub: {}", claims.account()));
        // Argo CD shows the server's time zone, which is UTC in its image.
        if let Ok(issued) = Timestamp::from_second(claims.iat) {
            text.push_str(&format!(", iat: {issued}"));
        }
    }
    ApiError::new(Code::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_argo_cds() {
        let issued = Timestamp::from_second(1_700_000_000).expect("a time");
        let claims = Claims::session("admin", 60, issued);
        let question = Question {
            resource: Resource::Applications,
            action: "sync",
            object: "default/guestbook",
        };
        let refused = refusal(Some(&claims), question);
        assert_eq!(refused.code, Code::PermissionDenied);
        assert_eq!(
            refused.message,
            "permission denied: applications, sync, default/guestbook, sub: admin, iat: 2023-11-14T22:13:20Z"
        );
        assert!(AdminOnly.permits(Some(&claims), question));
        assert!(!AdminOnly.permits(None, question));
    }
}
