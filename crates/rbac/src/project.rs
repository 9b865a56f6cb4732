//! The roles of an AppProject.

use std::{cmp::Reverse, collections::BTreeMap};
use tiphys_api::{
    AppProject,
    project::{JWTToken, JWTTokens, ProjectRole},
};

/// The resources that a project's role may be about.
const RESOURCES: [&str; 6] = [
    "applications",
    "applicationsets",
    "repositories",
    "clusters",
    "exec",
    "logs",
];
const ACTIONS: [&str; 8] = [
    "get", "create", "update", "delete", "sync", "override", "rollback", "*",
];
/// Anywhere in the text of an action.
const PATHS: [&str; 3] = ["action/", "update/", "delete/"];

/// A project's roles as policy text: members see the project, and have what its policies say.
pub fn policies(project: &AppProject) -> String {
    let name = &project.metadata.name;
    let mut lines = Vec::new();
    for role in &project.spec.roles {
        let subject = format!("proj:{name}:{}", role.name);
        lines.push(format!("p, {subject}, projects, get, {name}, allow"));
        lines.extend(role.policies.iter().cloned());
        lines.extend(
            role.groups
                .iter()
                .map(|group| format!("g, {group}, {subject}")),
        );
    }
    lines.join("\n")
}

/// An Application's name in policies: `project/name`, with the namespace between them when it is not
/// the control plane's.
pub fn app_name(project: &str, namespace: &str, name: &str, ours: &str) -> String {
    if namespace.is_empty() || namespace == ours {
        format!("{project}/{name}")
    } else {
        format!("{project}/{namespace}/{name}")
    }
}

/// The tokens that a role has, in the status and in the specification, where older versions put them.
pub fn tokens<'a>(project: &'a AppProject, role: &'a str) -> impl Iterator<Item = &'a JWTToken> {
    let stored = project.status.jwt_tokens_by_role.get(role);
    let own = project.spec.roles.iter().filter(move |r| r.name == role);
    stored
        .into_iter()
        .flat_map(|tokens| &tokens.items)
        .chain(own.flat_map(|role| &role.jwt_tokens))
}

/// Puts the tokens of every role into the status and into the specification, newest first: readers
/// look in either. Those of roles that are gone are dropped, and one without an id gets the time it
/// was issued at, in seconds.
pub fn normalize_tokens(project: &mut AppProject) {
    let mut by_role = BTreeMap::new();
    for index in 0..project.spec.roles.len() {
        let role = project.spec.roles[index].name.clone();
        let mut found: BTreeMap<String, JWTToken> = BTreeMap::new();
        for token in tokens(project, &role) {
            let id = match token.id.as_str() {
                "" => token.iat.to_string(),
                id => id.to_owned(),
            };
            let token = JWTToken {
                id: id.clone(),
                ..token.clone()
            };
            found.insert(id, token);
        }
        let mut items: Vec<JWTToken> = found.into_values().collect();
        items.sort_by_key(|token| Reverse(token.iat));
        project.spec.roles[index].jwt_tokens.clone_from(&items);
        by_role.insert(role, JWTTokens { items });
    }
    project.status.jwt_tokens_by_role = by_role;
}

/// The first fault of the roles, in Argo CD's words. `true`: a name or a line occurs twice.
pub fn role_fault(project: &AppProject) -> Option<(bool, String)> {
    let roles = &project.spec.roles;
    roles.iter().enumerate().find_map(|(index, role)| {
        if roles[..index].iter().any(|other| other.name == role.name) {
            return Some((true, format!("role '{}' already exists", role.name)));
        }
        fault_of(&project.metadata.name, role)
    })
}

fn fault_of(project: &str, role: &ProjectRole) -> Option<(bool, String)> {
    let invalid = |message: String| Some((false, message));
    if !is_role_name(&role.name) {
        return invalid(format!(
            "invalid role name '{}'. Must consist of alphanumeric characters, '-' or '_', and must \
             start and end with an alphanumeric character",
            role.name
        ));
    }
    for (index, policy) in role.policies.iter().enumerate() {
        if role.policies[..index].contains(policy) {
            let message = format!("policy '{policy}' already exists for role '{}'", role.name);
            return Some((true, message));
        }
        if let Some(why) = policy_fault(project, &role.name, policy) {
            return invalid(format!("invalid policy rule '{policy}': {why}"));
        }
    }
    for (index, group) in role.groups.iter().enumerate() {
        if role.groups[..index].contains(group) {
            let message = format!("group '{group}' already exists for role '{}'", role.name);
            return Some((true, message));
        }
        if let Some(message) = group_fault(group) {
            return invalid(message);
        }
    }
    None
}

fn is_role_name(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(name.chars().next())
        && edge(name.chars().next_back())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Argo CD takes the line apart at each comma, and knows no quotes here.
fn policy_fault(project: &str, role: &str, policy: &str) -> Option<String> {
    let parts: Vec<&str> = policy
        .split(',')
        .map(|part| part.trim_matches(' '))
        .collect();
    let ["p", subject, resource, action, object, effect] = parts[..] else {
        return Some("must be of the form: 'p, sub, res, act, obj, eft'".to_owned());
    };
    let expected = format!("proj:{project}:{role}");
    if subject != expected {
        return Some(format!(
            "policy subject must be: '{expected}', not '{subject}'"
        ));
    }
    if !RESOURCES.contains(&resource) {
        return Some(format!(
            "project resource must be: 'applications', 'applicationsets', 'repositories', 'exec', \
             'logs' or 'clusters', not '{resource}'"
        ));
    }
    if !ACTIONS.contains(&action) && !PATHS.iter().any(|path| action.contains(path)) {
        return Some(format!("invalid action '{action}'"));
    }
    if !is_object(project, object) {
        return Some(format!(
            "object must be of form '{project}/*', '{project}[/<NAMESPACE>]/<APPNAME>' or \
             '{project}/<APPNAME>', not '{object}'"
        ));
    }
    (!matches!(effect, "allow" | "deny")).then(|| "effect must be: 'allow' or 'deny'".to_owned())
}

/// `project/name` or `project/namespace/name`.
fn is_object(project: &str, object: &str) -> bool {
    let Some(rest) = object
        .strip_prefix(project)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return false;
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '*' | '_' | '-' | '.'))
    };
    let parts: Vec<&str> = rest.split('/').collect();
    parts.len() <= 2 && parts.into_iter().all(is_part)
}

fn group_fault(group: &str) -> Option<String> {
    let trimmed = group.trim();
    let quoted = trimmed
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let name = quoted.unwrap_or(trimmed);
    let letters: Vec<char> = group.chars().collect();
    let is_space = |c: Option<&char>| letters.len() > 1 && c.is_some_and(|c| c.is_whitespace());
    let why = if quoted.is_none() && trimmed.contains(',') {
        "must be quoted"
    } else if name.is_empty() {
        "is empty"
    } else if name.contains(['"', '\n', '\r', '\t']) {
        "contains invalid characters"
    } else if is_space(letters.first()) {
        "contains a leading space"
    } else if is_space(letters.last()) {
        "contains a trailing space"
    } else {
        return None;
    };
    Some(format!("group '{name}' {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_are_in_the_status_and_in_the_specification() {
        let mut project: AppProject = serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"roles": [
                {"name": "a", "jwtTokens": [{"iat": 5}, {"iat": 7, "id": "both"}]},
                {"name": "b"},
                {"name": "c"},
            ]},
            "status": {"jwtTokensByRole": {
                "a": {"items": [{"iat": 7, "id": "both"}, {"iat": 9, "id": "new"}]},
                "b": {"items": [{"iat": 1, "id": "one"}]},
                "gone": {"items": [{"iat": 1, "id": "old"}]},
            }},
        }))
        .expect("a project");
        normalize_tokens(&mut project);
        let of = |name: &str| {
            let role = project.spec.roles.iter().find(|role| role.name == name);
            let own = role.map(|role| role.jwt_tokens.clone()).unwrap_or_default();
            let stored = project.status.jwt_tokens_by_role.get(name);
            let stored = stored
                .map(|tokens| tokens.items.clone())
                .unwrap_or_default();
            assert_eq!(own, stored, "{name}");
            own.into_iter().map(|token| token.id).collect::<Vec<_>>()
        };
        assert_eq!(of("a"), ["new", "both", "5"]);
        assert_eq!(of("b"), ["one"]);
        assert!(of("c").is_empty() && of("gone").is_empty());
        // A role without tokens is there as well, as from Argo CD.
        let roles: Vec<&String> = project.status.jwt_tokens_by_role.keys().collect();
        assert_eq!(roles, ["a", "b", "c"]);
        let again = project.clone();
        normalize_tokens(&mut project);
        assert_eq!(project, again);
    }
}
