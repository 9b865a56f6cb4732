//! Decisions about a caller: the default role, the account, its groups, and the roles of the
//! project that the request is about.
//!
//! Main type: [`Rbac`].

use crate::{
    lines::PolicyFault,
    policy::{Policy, Request},
    project::policies,
    settings::Settings,
};
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tiphys_api::AppProject;

/// Projects whose policies are remembered.
const PROJECTS: usize = 10_000;

/// Finds projects.
pub trait Projects {
    fn project(&self, name: &str) -> Option<Arc<AppProject>>;
}

/// The installation's policy, and those of its projects.
#[derive(Debug)]
pub struct Rbac {
    builtin: bool,
    settings: Settings,
    global: Arc<Policy>,
    /// By name, with the text that was loaded.
    projects: Mutex<HashMap<String, (String, Arc<Policy>)>>,
}

impl Rbac {
    /// # Errors
    /// The policy of the settings cannot be loaded.
    pub fn new(builtin: bool, settings: Settings) -> Result<Self, PolicyFault> {
        let global = Policy::load(builtin, &[&settings.policy], settings.mode)?;
        Ok(Self {
            builtin,
            settings,
            global: Arc::new(global),
            projects: Mutex::default(),
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the policy makes the subject a member of a role.
    pub fn is_member(&self, subject: &str) -> bool {
        self.global.is_member(subject)
    }

    /// Whether a subject of the policy may do it: a user, or a role.
    pub fn permits_subject(&self, subject: &str, request: Request<'_>) -> bool {
        let default = &self.settings.default_role;
        (!default.is_empty() && self.global.permits(default, request))
            || self.global.permits(subject, request)
    }

    /// Whether a caller with these claims may do it; `None`: not signed in.
    pub fn permits(
        &self,
        projects: &dyn Projects,
        claims: Option<&Map<String, Value>>,
        request: Request<'_>,
    ) -> bool {
        self.any_who_counts(projects, claims, request, |policy, subject| {
            policy.permits(subject, request)
        })
    }

    /// Asks about the subjects of which one must be permitted, each with the policy that decides,
    /// until the answer is yes. They are the same for all objects that begin like this request's,
    /// which has the whole name of a project.
    pub(crate) fn any_who_counts(
        &self,
        projects: &dyn Projects,
        claims: Option<&Map<String, Value>>,
        request: Request<'_>,
        mut is_one: impl FnMut(&Arc<Policy>, &str) -> bool,
    ) -> bool {
        let default = Some(self.settings.default_role.as_str()).filter(|role| !role.is_empty());
        if default.is_some_and(|role| is_one(&self.global, role)) || is_one(&self.global, "") {
            return true;
        }
        let Some(claims) = claims else {
            return false;
        };
        let subject = user_id(claims);
        let project = project_of(request).and_then(|name| projects.project(name));
        let token_of = project_of_token(subject);
        if let (Some(project), Some(named)) = (&project, token_of)
            && named != project.metadata.name
        {
            return false;
        }
        // A project's token is for this project, and its groups do not count.
        let has_groups = project.is_none() || token_of.is_none();
        let policy = match &project {
            Some(project) => self.of_project(project),
            None => Arc::clone(&self.global),
        };
        default.is_some_and(|role| is_one(&policy, role))
            || is_one(&policy, subject)
            || has_groups
                && groups(claims, &self.settings.scopes)
                    .into_iter()
                    .any(|group| policy.is_member(group) && is_one(&policy, group))
    }

    /// The line that decides what [`Self::permits`] answers; none: there is no line for it.
    pub fn rule(
        &self,
        projects: &dyn Projects,
        claims: Option<&Map<String, Value>>,
        request: Request<'_>,
    ) -> Option<String> {
        let project = project_of(request).and_then(|name| projects.project(name));
        let policy = match (&project, claims) {
            (Some(project), Some(_)) => self.of_project(project),
            _ => Arc::clone(&self.global),
        };
        let mut subjects = vec![self.settings.default_role.as_str()];
        if let Some(claims) = claims {
            let subject = user_id(claims);
            let named = project_of_token(subject);
            let is_its = |project: &AppProject| named == Some(project.metadata.name.as_str());
            match &project {
                Some(project) if named.is_some() && !is_its(project) => {}
                Some(_) if named.is_some() => subjects.push(subject),
                _ => {
                    subjects.push(subject);
                    let groups = groups(claims, &self.settings.scopes);
                    subjects.extend(groups.into_iter().filter(|group| policy.is_member(group)));
                }
            }
        }
        // Nobody's permissions are everybody's.
        let default = subjects.remove(0);
        let subjects: Vec<&str> = std::iter::once(default)
            .filter(|default| !default.is_empty())
            .chain(subjects)
            .chain([""])
            .collect();
        let permits = |subject: &&&str| policy.permits(subject, request);
        let rule = |subject: &&str| policy.rule(subject, request);
        match subjects.iter().find(permits) {
            Some(subject) => rule(subject),
            None => subjects.iter().find_map(rule),
        }
    }

    /// The global policy with the project's roles; without a member that cannot be read, such as a
    /// group with a comma in its name. If a permission cannot be read, it may be one that denies, and
    /// the project's roles have none.
    fn of_project(&self, project: &AppProject) -> Arc<Policy> {
        let text = policies(project);
        if text.is_empty() {
            return Arc::clone(&self.global);
        }
        let name = &project.metadata.name;
        let mut known = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((loaded, policy)) = known.get(name)
            && *loaded == text
        {
            return Arc::clone(policy);
        }
        let load = |own: &str| {
            let texts = [self.settings.policy.as_str(), own];
            Policy::load(self.builtin, &texts, self.settings.mode)
        };
        let sound = || {
            let is_sound = |line: &&str| {
                !line.trim_start().starts_with('g')
                    || Policy::load(false, &[line], self.settings.mode).is_ok()
            };
            let lines: Vec<&str> = text.lines().filter(is_sound).collect();
            load(&lines.join("\n"))
        };
        let policy = load(&text)
            .or_else(|_| sound())
            .map_or_else(|_| Arc::clone(&self.global), Arc::new);
        if known.len() >= PROJECTS {
            known.clear();
        }
        known.insert(name.clone(), (text, Arc::clone(&policy)));
        policy
    }
}

/// The name of the project that a request is about.
pub(crate) fn project_of(request: Request<'_>) -> Option<&str> {
    match request.resource {
        "applications" | "applicationsets" | "repositories" | "clusters" | "logs" | "exec" => {
            request.object.split_once('/').map(|(project, _)| project)
        }
        // Members of a project's roles see the project itself.
        "projects" => Some(request.object),
        _ => None,
    }
}

/// The project in `proj:<project>:<role>`.
fn project_of_token(subject: &str) -> Option<&str> {
    let (project, role) = subject.strip_prefix("proj:")?.split_once(':')?;
    (!role.contains(':')).then_some(project)
}

/// Dex puts the user's own id beside an opaque subject.
pub fn user_id(claims: &Map<String, Value>) -> &str {
    claims
        .get("federated_claims")
        .and_then(|claims| claims.get("user_id")?.as_str())
        .filter(|id| !id.is_empty())
        .or_else(|| claims.get("sub")?.as_str())
        .unwrap_or_default()
}

/// The groups that these claims name.
pub fn groups<'a>(claims: &'a Map<String, Value>, scopes: &[String]) -> Vec<&'a str> {
    let mut groups = Vec::new();
    for claim in scopes.iter().filter_map(|scope| claims.get(scope)) {
        match claim {
            Value::String(group) => groups.push(group.as_str()),
            Value::Array(items) => groups.extend(items.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    struct Nothing;

    impl Projects for Nothing {
        fn project(&self, _: &str) -> Option<Arc<AppProject>> {
            None
        }
    }

    struct One(Arc<AppProject>);
    impl Projects for One {
        fn project(&self, name: &str) -> Option<Arc<AppProject>> {
            (name == self.0.metadata.name).then(|| self.0.clone())
        }
    }

    #[test]
    fn a_group_that_cannot_be_read_takes_nothing_from_other_roles() {
        let project = |broken: Value| -> AppProject {
            let roles = json!([
                {"name": "viewer", "policies": ["p, proj:team:viewer, applications, get, team/*, allow"], "groups": ["viewers"]},
                broken,
            ]);
            serde_json::from_value(json!({"metadata": {"name": "team"}, "spec": {"roles": roles}}))
                .expect("a project")
        };
        let permits = |project: &AppProject, group: &str| {
            let settings = Settings::new(&BTreeMap::new()).expect("settings");
            let rbac = Rbac::new(true, settings).expect("a policy");
            let Value::Object(claims) = json!({"sub": "ann", "groups": [group]}) else {
                return false;
            };
            let request = Request {
                resource: "applications",
                action: "get",
                object: "team/web",
            };
            rbac.permits(&One(project.clone().into()), Some(&claims), request)
        };
        let comma = project(json!({"name": "other", "groups": ["Sales, EMEA", "fine"]}));
        assert!(permits(&comma, "viewers"));
        assert!(!permits(&comma, "Sales"));
        // It might be one that denies.
        let permission = project(
            json!({"name": "other", "policies": ["p, proj:team:other, a,b, deny, x, y, z"]}),
        );
        assert!(!permits(&permission, "viewers"));
    }

    #[test]
    fn a_projects_token_is_for_its_project_and_has_no_groups_there() {
        let policy = "p, proj:team:ci, applications, get, */*, allow\n\
                      p, proj:other:ci, applications, get, */*, allow\n\
                      p, role:dev, applications, get, */*, allow\n\
                      g, devs, role:dev\n";
        let data = BTreeMap::from([("policy.csv".to_owned(), policy.to_owned())]);
        let settings = Settings::new(&data).expect("settings");
        let rbac = Rbac::new(false, settings).expect("a policy");
        let team: AppProject =
            serde_json::from_value(json!({"metadata": {"name": "team"}})).expect("a project");
        let team = One(Arc::new(team));
        for (subject, group, object, permitted) in [
            ("proj:team:ci", "none", "team/web", true),
            ("proj:other:ci", "none", "team/web", false),
            ("proj:team:none", "devs", "team/web", false),
            ("proj:team:none", "devs", "unknown/web", true),
            ("ann", "devs", "team/web", true),
            ("ann", "none", "team/web", false),
        ] {
            let claims = json!({"sub": subject, "groups": [group]});
            let request = Request {
                resource: "applications",
                action: "get",
                object,
            };
            let found = rbac.permits(&team, claims.as_object(), request);
            assert_eq!(found, permitted, "{subject} {group} {object}");
        }
    }

    #[test]
    fn the_rule_is_the_line_that_decides() {
        let policy = "p, role:dev, applications, *, */*, allow\n\
                      p, role:dev, applications, delete, prod/*, deny\n\
                      p, eve, applications, get, a/*, allow\n\
                      g, devs, role:dev\n";
        let data = BTreeMap::from([("policy.csv".to_owned(), policy.to_owned())]);
        let settings = Settings::new(&data).expect("settings");
        let rbac = Rbac::new(true, settings).expect("a policy");
        let claims = |sub: &str, groups: &[&str]| match json!({"sub": sub, "groups": groups}) {
            Value::Object(claims) => claims,
            _ => Map::new(),
        };
        let (ann, eve) = (claims("ann", &["devs"]), claims("eve", &[]));
        for (claims, action, object, permitted, line) in [
            (&ann, "sync", "prod/x", true, Some("*, */*, allow")),
            (
                &ann,
                "delete",
                "prod/x",
                false,
                Some("delete, prod/*, deny"),
            ),
            (&eve, "get", "a/x", true, Some("get, a/*, allow")),
            (&eve, "get", "b/x", false, None),
        ] {
            let resource = "applications";
            let request = Request {
                resource,
                action,
                object,
            };
            let found = rbac.rule(&Nothing, Some(claims), request);
            let is_it = |wanted: &str| found.as_ref().is_some_and(|f| f.ends_with(wanted));
            assert_eq!(rbac.permits(&Nothing, Some(claims), request), permitted);
            assert_eq!(line.map(is_it), line.map(|_| true), "{found:?}");
            assert_eq!(found.is_none(), line.is_none(), "{found:?}");
        }
    }
}
