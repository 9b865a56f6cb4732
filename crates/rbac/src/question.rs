//! A question as people ask it on a command line: `can alice sync app guestbook`.
//!
//! Main function: [`resolve`].

/// Other words for resources.
const ALIASES: [(&str, &str); 20] = [
    ("account", "accounts"),
    ("app", "applications"),
    ("apps", "applications"),
    ("application", "applications"),
    ("cert", "certificates"),
    ("certs", "certificates"),
    ("certificate", "certificates"),
    ("cluster", "clusters"),
    ("extension", "extensions"),
    ("gpgkey", "gpgkeys"),
    ("key", "gpgkeys"),
    ("log", "logs"),
    ("logs", "logs"),
    ("exec", "exec"),
    ("proj", "projects"),
    ("projs", "projects"),
    ("project", "projects"),
    ("repo", "repositories"),
    ("repos", "repositories"),
    ("repository", "repositories"),
];

const CRUD: &[&str] = &["create", "get", "update", "delete"];
const CRD: &[&str] = &["create", "get", "delete"];

/// The actions of each resource that a strict question may be about.
const ACTIONS: [(&str, &[&str]); 11] = [
    ("accounts", &["create", "update"]),
    (
        "applications",
        &[
            "create", "get", "update", "delete", "action", "override", "sync", "rollback",
        ],
    ),
    ("applicationsets", CRUD),
    ("certificates", CRD),
    ("clusters", CRUD),
    ("extensions", &["invoke"]),
    ("gpgkeys", CRD),
    ("logs", &["get"]),
    ("exec", &["create"]),
    ("projects", CRUD),
    ("repositories", CRUD),
];

/// Actions of applications that may have a path behind them.
const WITH_PATHS: [&str; 3] = ["update", "delete", "action"];
const IN_PROJECTS: [&str; 6] = [
    "applications",
    "applicationsets",
    "logs",
    "exec",
    "clusters",
    "repositories",
];

/// The resource and the object that are meant.
///
/// # Errors
/// With `strict`, in Argo CD's words, a resource or an action that does not exist.
pub fn resolve<'a>(
    action: &str,
    resource: &'a str,
    object: &'a str,
    strict: bool,
) -> Result<(&'a str, &'a str), String> {
    let resource = ALIASES
        .iter()
        .find(|(alias, _)| *alias == resource)
        .map_or(resource, |(_, resource)| resource);
    if strict {
        let Some((_, actions)) = ACTIONS.iter().find(|(name, _)| *name == resource) else {
            return Err(format!("'{resource}' is not a valid resource name"));
        };
        let (verb, path) = action
            .split_once('/')
            .map_or((action, None), |(verb, path)| (verb, Some(path)));
        let may_have_path = resource == "applications" && WITH_PATHS.contains(&verb);
        if !actions.contains(&verb) || path.is_some() && !may_have_path {
            return Err(format!("'{action}' is not a valid action for {resource}"));
        }
    }
    let whole = IN_PROJECTS.contains(&resource) && matches!(object, "" | "*");
    Ok((resource, if whole { "*/*" } else { object }))
}

/// Whether a subject has permissions that the API never asks for: it looks like a group, and no
/// line makes it a member of a role.
pub fn is_unbound_group(subject: &str, is_member: bool) -> bool {
    subject.contains(':')
        && !is_member
        && !subject.starts_with("role:")
        && !subject.starts_with("proj:")
}
