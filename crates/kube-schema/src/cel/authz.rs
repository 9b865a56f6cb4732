//! Authorization checks in expressions:
//! `authorizer.group('apps').resource('deployments').check('get').allowed()`.
//!
//! Main types: [`Asking`], a check under construction, and [`Judge`], which answers it. It knows no
//! roles.

use super::eval::{Evaluated, failed};
use super::kinds::Opaque;
use super::types::Type;
use super::value::Value;
use std::fmt;
use std::sync::Arc;

pub const AUTHORIZER: Type = Type::Opaque("kubernetes.authorization.Authorizer");
pub const RESOURCE_CHECK: Type = Type::Opaque("kubernetes.authorization.ResourceCheck");

/// The cost of one check.
pub const CHECK_COST: u64 = 350_000;

/// A question about a resource, or, with a path, about a URL.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub path: String,
}

/// Answers for a user, or for a service account (namespace and name): whether it is allowed, and
/// why.
#[derive(Clone)]
pub struct Judge(Arc<Answers>);

type Answers = dyn Fn(Option<(&str, &str)>, &Question) -> (bool, String) + Send + Sync;

impl Judge {
    pub fn new(
        answers: impl Fn(Option<(&str, &str)>, &Question) -> (bool, String) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(answers))
    }

    pub fn authorizer(&self) -> Value {
        Value::opaque(Opaque::Authz(Asking::Authorizer(Whom {
            judge: self.clone(),
            account: None,
        })))
    }

    /// The check of the request itself.
    pub fn of_request(&self, question: Question) -> Value {
        Value::opaque(Opaque::Authz(Asking::Resource(
            Whom {
                judge: self.clone(),
                account: None,
            },
            question,
        )))
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

/// The subject of a check.
#[derive(Clone, Debug)]
pub struct Whom {
    judge: Judge,
    account: Option<(String, String)>,
}

impl Whom {
    fn ask(&self, question: &Question) -> Asking {
        let account = self
            .account
            .as_ref()
            .map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let (allowed, reason) = (self.judge.0)(account, question);
        Asking::Decision { allowed, reason }
    }
}

#[derive(Clone, Debug)]
pub enum Asking {
    Authorizer(Whom),
    Group(Whom, String),
    Resource(Whom, Question),
    Path(Whom, String),
    Decision { allowed: bool, reason: String },
}

impl Asking {
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Self::Group(..) => "kubernetes.authorization.GroupCheck",
            Self::Resource(..) => "kubernetes.authorization.ResourceCheck",
            Self::Path(..) => "kubernetes.authorization.PathCheck",
            Self::Decision { .. } => "kubernetes.authorization.Decision",
        }
    }
}

pub fn call(function: &str, args: &[Value]) -> Option<Evaluated> {
    let (Value::Opaque(target), rest) = args.split_first()? else {
        return None;
    };
    let Opaque::Authz(asking) = &**target else {
        return None;
    };
    let texts: Vec<&str> = rest
        .iter()
        .map(|v| if let Value::String(s) = v { s } else { "" })
        .collect();
    let next = match (function, asking, texts.as_slice()) {
        ("path", Asking::Authorizer(_), [path]) if path.trim().is_empty() => {
            return Some(failed("path must not be empty"));
        }
        ("path", Asking::Authorizer(whom), [path]) => {
            Asking::Path(whom.clone(), (*path).to_owned())
        }
        ("group", Asking::Authorizer(whom), [group]) => {
            Asking::Group(whom.clone(), (*group).to_owned())
        }
        ("serviceAccount", Asking::Authorizer(whom), [namespace, name]) => {
            Asking::Authorizer(Whom {
                account: Some(((*namespace).to_owned(), (*name).to_owned())),
                ..whom.clone()
            })
        }
        ("resource", Asking::Group(..), [resource]) if resource.trim().is_empty() => {
            return Some(failed("resource must not be empty"));
        }
        ("resource", Asking::Group(whom, group), [resource]) => {
            let question = Question {
                group: group.clone(),
                resource: (*resource).to_owned(),
                ..Question::default()
            };
            Asking::Resource(whom.clone(), question)
        }
        ("subresource" | "namespace" | "name", Asking::Resource(whom, question), [text]) => {
            let mut question = question.clone();
            let field = match function {
                "subresource" => &mut question.subresource,
                "namespace" => &mut question.namespace,
                _ => &mut question.name,
            };
            (*text).clone_into(field);
            Asking::Resource(whom.clone(), question)
        }
        // Roles ignore selectors.
        ("fieldSelector" | "labelSelector", Asking::Resource(..), [_]) => asking.clone(),
        ("check", Asking::Resource(whom, question), [verb]) => whom.ask(&Question {
            verb: (*verb).to_owned(),
            ..question.clone()
        }),
        ("check", Asking::Path(whom, path), [verb]) => whom.ask(&Question {
            verb: (*verb).to_owned(),
            path: path.clone(),
            ..Question::default()
        }),
        ("allowed", Asking::Decision { allowed, .. }, []) => {
            return Some(Ok(Value::Bool(*allowed)));
        }
        ("reason", Asking::Decision { reason, .. }, []) => return Some(Ok(reason.as_str().into())),
        ("errored", Asking::Decision { .. }, []) => return Some(Ok(Value::Bool(false))),
        ("error", Asking::Decision { .. }, []) => return Some(Ok("".into())),
        _ => return None,
    };
    Some(Ok(Value::opaque(Opaque::Authz(next))))
}
