//! Looks for what a policy that can be loaded hardly means.
//!
//! Main function: [`check`].

use crate::{
    lines::{self, Line, PolicyFault},
    policy::{MatchMode, Policy, Request},
    settings::Settings,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use std::{collections::HashSet, fmt};

/// How alike a role's name must be to be the one that was meant.
const ALIKE: f64 = 0.8;
const ADMIN: &str = "role:admin";

/// What is odd about a line, or about the policy as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line in [`Settings::policy`], from 1; none: the whole.
    pub number: Option<usize>,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A role with members and without permissions, and the role that has some and is called
    /// nearly so.
    NoPermissions {
        role: String,
        nearest: Option<String>,
    },
    /// What is denied to this role is denied to `role:admin` too, which has all of its lines.
    DenyReachesAdmin { role: String },
    /// The subject that Dex makes of a user; since 3.0 the user's own id counts.
    DexSubject { subject: String, user: String },
    /// Nobody may change projects. The built-in roles' patterns are no regular expressions, so who
    /// has them is denied everything where `policy.matchMode` is `regex`.
    NobodyIsAdmin { mode: MatchMode },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermissions { role, nearest } => {
                write!(f, "the role {role:?} has members and no permissions")?;
                match nearest {
                    Some(nearest) => write!(f, "; is {nearest:?} meant?"),
                    None => Ok(()),
                }
            }
            Self::DenyReachesAdmin { role } => write!(
                f,
                "role:admin has the lines of {role:?}, so this is denied to admins too; give a role \
                 of your own what it may do instead"
            ),
            Self::DexSubject { subject, user } => write!(
                f,
                "{subject:?} is the Dex-encoded subject of {user}; since 3.0 write {user}"
            ),
            Self::NobodyIsAdmin { mode } => {
                f.write_str("nobody may update projects any more: ")?;
                f.write_str(match mode {
                    MatchMode::Glob => "a deny reaches every admin",
                    MatchMode::Regex => {
                        "with matchMode regex, role:admin permits nothing, for its patterns are no \
                         regular expressions"
                    }
                })
            }
        }
    }
}

/// Checks a policy together with the built-in roles, in the order of its lines.
///
/// # Errors
/// A line cannot be read.
pub fn check(settings: &Settings) -> Result<Vec<Finding>, PolicyFault> {
    let policy = Policy::load(true, &[&settings.policy], settings.mode)?;
    let admins = policy.with_roles(ADMIN);
    let mut roles = HashSet::new();
    let mut findings = Vec::new();
    for (number, line) in lines::read(&settings.policy)? {
        let mut found = |problem| {
            findings.push(Finding {
                number: Some(number),
                problem,
            });
        };
        let subject = match line {
            Line::Permission([subject, _, _, _, effect]) => {
                if effect == "deny" && subject != ADMIN && admins.contains(subject.as_str()) {
                    found(Problem::DenyReachesAdmin {
                        role: subject.clone(),
                    });
                }
                subject
            }
            Line::Role(member, role) => {
                if !policy.has_permissions(&role) && roles.insert(role.clone()) {
                    found(Problem::NoPermissions {
                        nearest: nearest(&policy, &role),
                        role,
                    });
                }
                member
            }
        };
        if let Some(user) = dex_user(&subject) {
            found(Problem::DexSubject { subject, user });
        }
    }
    let update = Request {
        resource: "projects",
        action: "update",
        object: "default",
    };
    let mut subjects = policy.subjects().chain([settings.default_role.as_str()]);
    if !subjects.any(|subject| policy.permits(subject, update)) {
        findings.push(Finding {
            number: None,
            problem: Problem::NobodyIsAdmin {
                mode: settings.mode,
            },
        });
    }
    Ok(findings)
}

fn nearest(policy: &Policy, role: &str) -> Option<String> {
    let alike = |name: &&str| strsim::jaro_winkler(name, role);
    policy
        .subjects()
        .filter(|name| *name != role && name.starts_with("role:") && policy.has_permissions(name))
        .map(|name| (alike(&name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, name)| name.to_owned())
}

/// The user of a message `{1: user, 2: connector}` in base64, as Dex writes its subjects.
fn dex_user(subject: &str) -> Option<String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(subject).ok()?;
    let (user, rest) = field(&bytes, 0x0a)?;
    let (_, rest) = field(rest, 0x12)?;
    rest.is_empty().then(|| user.to_owned())
}

/// A text of less than 128 bytes behind its tag.
fn field(bytes: &[u8], tag: u8) -> Option<(&str, &[u8])> {
    let [first, length @ 1..=127, rest @ ..] = bytes else {
        return None;
    };
    let (text, rest) = rest.split_at_checked(usize::from(*length))?;
    let text = std::str::from_utf8(text).ok()?;
    let is_plain = *first == tag && !text.chars().any(char::is_control);
    is_plain.then_some((text, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(policy: &str) -> Vec<(Option<usize>, String)> {
        let settings = Settings {
            policy: policy.to_owned(),
            ..Settings::default()
        };
        let findings = check(&settings).expect("a policy");
        let text = |finding: Finding| (finding.number, finding.problem.to_string());
        findings.into_iter().map(text).collect()
    }

    #[test]
    fn roles_are_named_once_with_what_is_meant() {
        let policy = "g, a, role: admin\ng, b, role: admin\ng, c, role:readonly\n\
                      g, d, nothing\ng, e, role:Tester\np, role:tester, logs, get, */*, allow";
        let none = "has members and no permissions";
        assert_eq!(
            found(policy),
            [
                (
                    Some(1),
                    format!("the role \"role: admin\" {none}; is \"role:admin\" meant?")
                ),
                (Some(4), format!("the role \"nothing\" {none}")),
                (
                    Some(5),
                    format!("the role \"role:Tester\" {none}; is \"role:tester\" meant?")
                ),
            ]
        );
    }

    #[test]
    fn a_role_of_a_role_with_permissions_is_well() {
        assert!(found("g, a, role:mine\ng, role:mine, role:readonly").is_empty());
        assert!(found("").is_empty());
    }

    #[test]
    fn denials_that_reach_admins_are_found() {
        let reaches = |policy| {
            let found = found(policy);
            found.iter().any(|(_, text)| text.contains("to admins too"))
        };
        assert!(reaches("p, role:readonly, logs, get, */*, deny"));
        assert!(reaches(
            "g, role:admin, role:x\np, role:x, logs, get, */*, deny"
        ));
        assert!(!reaches("p, role:admin, logs, get, */*, deny"));
        assert!(!reaches(
            "g, role:x, role:admin\np, role:x, logs, get, */*, deny"
        ));
        assert!(!reaches("p, role:readonly, logs, get, */*, allow"));
    }

    #[test]
    fn a_lock_out_is_found() {
        let nobody = "nobody may update projects any more: a deny reaches every admin";
        let deny = "p, role:admin, *, *, *, deny";
        assert_eq!(found(deny), [(None, nobody.to_owned())]);
        assert!(found(&format!("{deny}\np, root, projects, *, *, allow")).is_empty());
    }

    #[test]
    fn built_in_admins_are_none_where_patterns_are_regular_expressions() {
        let found = |policy: &str| {
            let settings = Settings {
                policy: policy.to_owned(),
                mode: MatchMode::Regex,
                ..Settings::default()
            };
            check(&settings).expect("a policy that can be read")
        };
        let findings = found("p, role:a, applications, get, .*, allow");
        assert_eq!(findings.len(), 1);
        assert_eq!(
            findings[0].problem.to_string(),
            "nobody may update projects any more: with matchMode regex, role:admin permits nothing, \
             for its patterns are no regular expressions"
        );
        // Also where the policy gives it more: what cannot be compared denies.
        let findings = found("p, role:admin, .*, .*, .*, allow");
        assert_eq!(findings.len(), 1);
        assert!(found("p, root, projects, .*, .*, allow").is_empty());
    }

    #[test]
    fn only_subjects_of_dex_are_decoded() {
        let alice = "CgVhbGljZRIGZ2l0bGFi";
        let is = |subject: &str, user: Option<&str>| {
            assert_eq!(dex_user(subject).as_deref(), user, "{subject}");
        };
        is(alice, Some("alice"));
        for other in ["alice", "", "CgVhbGlj", "CgA", "deadbeef", &alice[..19]] {
            is(other, None);
        }
        let want =
            "\"CgVhbGljZRIGZ2l0bGFi\" is the Dex-encoded subject of alice; since 3.0 write alice";
        assert_eq!(
            found(&format!("g, {alice}, role:admin")),
            [(Some(1), want.to_owned())]
        );
    }
}
