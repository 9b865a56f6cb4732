//! Impersonation: `Impersonate-*` headers, allowed by the roles of the requesting user.
//!
//! Main function: [`impersonate`]. There are four constrained modes (`impersonate:<mode>` together
//! with `impersonate-on:<mode>:<verb>`), and the legacy verb `impersonate`, which allows everything
//! that the impersonated user may do.

use crate::base::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo, account_groups, split_account,
};
use crate::rbac::attributes::{Attributes, quoted};
use crate::rbac::policy::Policy;
use crate::route::decode;
use crate::status::Status;
use http::HeaderMap;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";
/// With this many groups or extra values or more, the permission for all of them is checked first.
const MANY: usize = 4;
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user to impersonate, from the headers of the request.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, Status> {
    // A value that is not valid text must not be dropped: the request would then be carried out as
    // the requesting user.
    let text = |v: &http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    let texts = |name: &str| headers.get_all(name).iter().map(text).collect::<Vec<_>>();
    let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
    let mut user = UserInfo {
        name: first(USER),
        uid: first(UID),
        groups: texts(GROUP),
        extra: Default::default(),
    };
    for name in headers.keys().filter(|n| n.as_str().starts_with(EXTRA)) {
        user.extra
            .entry(decode(&name.as_str()[EXTRA.len()..]))
            .or_default()
            .extend(texts(name.as_str()));
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    let list = |l: &[String]| {
        format!(
            "[]string{{{}}}",
            l.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(", ")
        )
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        list(&user.groups)
    };
    let extra = user
        .extra
        .iter()
        .map(|(k, v)| format!("{}:{}", quoted(k), list(v)))
        .collect::<Vec<_>>()
        .join(", ");
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        format!("map[string][]string{{{extra}}}")
    };
    Err(Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}} without impersonating a user name",
        quoted(&user.uid)
    )))
}

/// The impersonated user of the request; none if it does not impersonate.
pub fn impersonate(
    policy: &Policy,
    user: &UserInfo,
    headers: &HeaderMap,
    asked: &Attributes,
) -> Result<Option<UserInfo>, Status> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(None);
    };
    let check = Check {
        policy,
        user,
        wanted: &wanted,
    };
    let mut refused = None;
    for way in ways(user, &wanted) {
        match check.by(way, asked) {
            Ok(found) => return Ok(Some(found)),
            Err(status) => refused = refused.or(Some(status)),
        }
    }
    Err(refused.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

fn node_of(name: &str) -> Option<&str> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    name.strip_prefix("system:node:")
        .filter(|n| !n.is_empty() && n.len() <= 253 && n.chars().all(allowed))
}

/// The applicable modes, most restricted first; the empty string is the legacy one.
fn ways(user: &UserInfo, wanted: &UserInfo) -> Vec<&'static str> {
    let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    let node = node_of(&wanted.name);
    let is_account = split_account(&wanted.name).is_some();
    let own_node = user
        .extra
        .get("authentication.kubernetes.io/node-name")
        .and_then(|l| {
            if let [n] = l.as_slice() {
                Some(n.as_str())
            } else {
                None
            }
        });
    let associated = node.is_some() && own_node == node && split_account(&user.name).is_some();
    let fits = [
        ("associated-node", only_name && associated),
        ("arbitrary-node", only_name && node.is_some()),
        ("serviceaccount", only_name && is_account),
        ("user-info", node.is_none() && !is_account),
        ("", true),
    ];
    fits.into_iter()
        .filter(|(_, fits)| *fits)
        .map(|(way, _)| way)
        .collect()
}

struct Check<'a> {
    policy: &'a Policy,
    user: &'a UserInfo,
    wanted: &'a UserInfo,
}

impl Check<'_> {
    fn ask(&self, asked: &Attributes) -> Result<(), Status> {
        let (allowed, reason) = self.policy.authorize(self.user, asked);
        if allowed {
            Ok(())
        } else {
            Err(asked.forbidden(&self.user.name, &reason))
        }
    }

    fn by(&self, way: &str, request: &Attributes) -> Result<UserInfo, Status> {
        let strict = !way.is_empty();
        if strict {
            self.ask(&Attributes {
                verb: format!("impersonate-on:{way}:{}", request.verb),
                ..request.clone()
            })?;
        }
        let verb = if strict {
            format!("impersonate:{way}")
        } else {
            "impersonate".to_owned()
        };
        let about = |group: &str, resource: &str, name: &str| Attributes {
            is_resource: true,
            verb: verb.clone(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        let group = if strict { AUTHENTICATION } else { "" };
        let mut found = self.wanted.clone();
        self.ask(&self.name(way, about(group, "users", &self.wanted.name), &mut found))?;
        if !self.wanted.uid.is_empty() {
            self.ask(&about(AUTHENTICATION, "uids", &self.wanted.uid))?;
        }
        self.groups(strict, about(group, "groups", ""))?;
        self.extra(strict, about(AUTHENTICATION, "userextras", ""))?;
        if found.name == ANONYMOUS {
            found.join(UNAUTHENTICATED);
        } else if !found.is_in(UNAUTHENTICATED) {
            found.join(AUTHENTICATED);
        }
        Ok(found)
    }

    /// Resolves the impersonated name; nodes and service accounts also get their groups.
    fn name(&self, way: &str, mut asked: Attributes, found: &mut UserInfo) -> Attributes {
        if let (Some(node), true) = (node_of(&self.wanted.name), way.ends_with("-node")) {
            asked.resource = "nodes".to_owned();
            asked.name = if way == "associated-node" {
                "*".to_owned()
            } else {
                node.to_owned()
            };
            found.groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, name)) = split_account(&self.wanted.name) {
            (asked.resource, asked.namespace, asked.name) = (
                "serviceaccounts".to_owned(),
                namespace.to_owned(),
                name.to_owned(),
            );
            if self.wanted.groups.is_empty() {
                found.groups = account_groups(namespace);
            }
        }
        asked
    }

    fn groups(&self, strict: bool, mut asked: Attributes) -> Result<(), Status> {
        let groups = &self.wanted.groups;
        if strict && groups.iter().any(String::is_empty) {
            return Err(asked.forbidden(
                &self.user.name,
                "impersonating the empty string group is not allowed",
            ));
        }
        if strict && groups.iter().any(|g| g == MASTERS) {
            asked.name = MASTERS.to_owned();
            return Err(asked.forbidden(
                &self.user.name,
                "impersonating the system:masters group is not allowed",
            ));
        }
        if strict
            && groups.len() >= MANY
            && self
                .ask(&Attributes {
                    name: "*".into(),
                    ..asked.clone()
                })
                .is_ok()
        {
            return Ok(());
        }
        groups.iter().try_for_each(|group| {
            self.ask(&Attributes {
                name: group.clone(),
                ..asked.clone()
            })
        })
    }

    fn extra(&self, strict: bool, asked: Attributes) -> Result<(), Status> {
        let extra = &self.wanted.extra;
        if let (true, Some(why)) = (
            strict,
            extra.iter().find_map(|(key, values)| unfit(key, values)),
        ) {
            return Err(asked.forbidden(&self.user.name, &why));
        }
        let of = |key: &str, name: &str| Attributes {
            subresource: key.to_owned(),
            name: name.to_owned(),
            ..asked.clone()
        };
        let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
        if strict && many && self.ask(&of("*", "*")).is_ok() {
            return Ok(());
        }
        extra
            .iter()
            .flat_map(|(key, values)| values.iter().map(move |v| (key, v)))
            .try_for_each(|(key, value)| self.ask(&of(key, value)))
    }
}

/// Why an extra field cannot be impersonated.
fn unfit(key: &str, values: &[String]) -> Option<String> {
    let domain_prefixed = key
        .split_once('/')
        .is_some_and(|(domain, path)| domain.contains('.') && !path.is_empty());
    if key.is_empty() {
        Some("impersonating the empty string key in extra is not allowed".to_owned())
    } else if !domain_prefixed {
        let why = format!(
            "Invalid value: {}: must be a domain-prefixed path (such as \"acme.io/foo\")",
            quoted(key)
        );
        Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: {why}"
        ))
    } else if values.iter().any(String::is_empty) {
        Some("impersonating the empty string value in extra is not allowed".to_owned())
    } else if values.is_empty() {
        Some("impersonating empty values in extra is not allowed".to_owned())
    } else {
        None
    }
}
