//! One question about many objects of projects, as a list asks it. What is the same for all objects
//! of a project is decided once for each project.
//!
//! Main type: [`Selection`].

use crate::{
    claims::{Projects, Rbac, project_of},
    policy::{Lines, Policy, Request, Said},
};
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::Arc};

/// Whether a caller may do something to each of many objects, whose names are `project/…`. It
/// answers as [`Rbac::permits`], and knows each project as it was when it was first asked about.
pub struct Selection<P> {
    rbac: Arc<Rbac>,
    projects: P,
    claims: Option<Arc<Map<String, Value>>>,
    resource: &'static str,
    action: String,
    known: HashMap<String, Ruling>,
}

/// What is known of the objects of a project.
enum Ruling {
    /// The same for all.
    All(bool),
    /// One of these must permit it.
    Any(Vec<(Arc<Policy>, Lines)>),
    /// The names of these objects are not divided.
    Unknown,
}

impl<P: Projects> Selection<P> {
    pub fn new(
        rbac: Arc<Rbac>,
        projects: P,
        claims: Option<Arc<Map<String, Value>>>,
        resource: &'static str,
        action: &str,
    ) -> Self {
        Self {
            rbac,
            projects,
            claims,
            resource,
            action: action.to_owned(),
            known: HashMap::new(),
        }
    }

    /// `object` is the whole name, which begins with that of the project and a slash.
    pub fn permits(&mut self, project: &str, object: impl FnOnce() -> String) -> bool {
        if !self.known.contains_key(project) {
            let ruling = self.ruling(project);
            self.known.insert(project.to_owned(), ruling);
        }
        match self.known.get(project) {
            Some(Ruling::All(answer)) => *answer,
            Some(Ruling::Any(lines)) => {
                let object = object();
                let mut lines = lines.iter();
                lines.any(|(policy, lines)| policy.decides(lines, &object))
            }
            Some(Ruling::Unknown) | None => {
                let object = object();
                let request = self.request(&object);
                let claims = self.claims.as_deref();
                self.rbac.permits(&self.projects, claims, request)
            }
        }
    }

    fn request<'a>(&'a self, object: &'a str) -> Request<'a> {
        Request {
            resource: self.resource,
            action: &self.action,
            object,
        }
    }

    fn ruling(&self, project: &str) -> Ruling {
        let beginning = format!("{project}/");
        let request = self.request(&beginning);
        // Another resource has its project at another place of the name.
        if project_of(request).is_some_and(|found| found == beginning) {
            return Ruling::Unknown;
        }
        let claims = self.claims.as_deref();
        let mut some = Vec::new();
        let ask = |policy: &Arc<Policy>, subject: &str| match policy.says(subject, request) {
            Said::Whole(answer) => answer,
            Said::Rest(lines) => {
                some.push((Arc::clone(policy), lines));
                false
            }
        };
        let projects = &self.projects;
        if self.rbac.any_who_counts(projects, claims, request, ask) {
            return Ruling::All(true);
        }
        match some.is_empty() {
            true => Ruling::All(false),
            false => Ruling::Any(some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policy::MatchMode, settings::Settings};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use tiphys_api::AppProject;

    /// Numbers that look random and are the same each time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).expect("31 bits") % end
        }

        fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
            all[self.below(all.len())]
        }
    }

    #[derive(Clone, Default)]
    struct Known(BTreeMap<String, Arc<AppProject>>);

    impl Projects for Known {
        fn project(&self, name: &str) -> Option<Arc<AppProject>> {
            self.0.get(name).cloned()
        }
    }

    const SUBJECTS: [&str; 7] = [
        "role:x",
        "role:y",
        "ann",
        "devs",
        "ops",
        "proj:p:dev",
        "proj:q:dev",
    ];
    const CALLERS: [&str; 6] = [
        "ann",
        "eve",
        "admin",
        "proj:p:dev",
        "proj:q:dev",
        "proj:gone:dev",
    ];
    const RESOURCES: [&str; 6] = [
        "applications",
        "applications",
        "*",
        "app*",
        "logs",
        "appl.*",
    ];
    const ACTIONS: [&str; 6] = ["get", "get", "*", "g*", "sync", ".*"];
    const OBJECTS: [&str; 22] = [
        "*",
        "*/*",
        "p/*",
        "q/*",
        "p/a",
        "p/ns/*",
        "p/n*/a*",
        "*/a",
        "{p}/*",
        "\"{p,q}/*\"",
        "?/a",
        "[pq]/*",
        "**",
        "p*",
        "[",
        ".*",
        ".*/.*",
        "^p/.*$",
        "p/(a|b)$",
        "",
        "p/\\*",
        "p/*/b",
    ];
    const EFFECTS: [&str; 5] = ["allow", "allow", "allow", "deny", "log"];

    fn permission(n: &mut Numbers, subject: &str) -> String {
        // A broken expression now and then refuses everything.
        let broken = n.below(40) == 0;
        let object = if broken { "(" } else { n.one_of(&OBJECTS) };
        let (resource, action) = (n.one_of(&RESOURCES), n.one_of(&ACTIONS));
        let effect = n.one_of(&EFFECTS);
        format!("p, {subject}, {resource}, {action}, {object}, {effect}")
    }

    fn project(n: &mut Numbers, name: &str) -> Arc<AppProject> {
        let subject = format!("proj:{name}:dev");
        let policies: Vec<String> = (0..n.below(3)).map(|_| permission(n, &subject)).collect();
        let groups: Vec<&str> = (0..n.below(2))
            .map(|_| n.one_of(&["devs", "ops"]))
            .collect();
        let project = json!({"metadata": {"name": name}, "spec": {
            "roles": [{"name": "dev", "policies": policies, "groups": groups}]}});
        let project: AppProject = serde_json::from_value(project).expect("a project");
        Arc::new(project)
    }

    fn rbac(n: &mut Numbers) -> Option<Rbac> {
        let mut lines: Vec<String> = (0..n.below(5))
            .map(|_| {
                let subject = n.one_of(&SUBJECTS);
                permission(n, subject)
            })
            .collect();
        for _ in 0..n.below(4) {
            let member = n.one_of(&SUBJECTS);
            let role = n.one_of(&["role:x", "role:y", "role:admin"]);
            lines.push(format!("g, {member}, {role}"));
        }
        let default = n.one_of(&["", "", "role:x", "role:readonly"]);
        let mode = n.one_of(&["glob", "glob", "regex"]);
        let data = [
            ("policy.csv", lines.join("\n")),
            ("policy.default", default.to_owned()),
            ("policy.matchMode", mode.to_owned()),
        ];
        let data: BTreeMap<String, String> =
            data.map(|(key, value)| (key.to_owned(), value)).into();
        let settings = Settings::new(&data).expect("settings");
        // The built-in roles are many expressions, and few of them can be read.
        let builtin = settings.mode == MatchMode::Glob && n.below(2) == 0;
        Rbac::new(builtin, settings).ok()
    }

    fn claims(n: &mut Numbers) -> Option<Arc<Map<String, Value>>> {
        let subject = n.one_of(&CALLERS);
        let groups: Vec<&str> = (0..n.below(3))
            .map(|_| n.one_of(&["devs", "ops", "none"]))
            .collect();
        match json!({"sub": subject, "groups": groups}) {
            Value::Object(claims) if n.below(8) > 0 => Some(Arc::new(claims)),
            _ => None,
        }
    }

    #[test]
    fn a_selection_answers_as_if_each_object_were_asked_about() {
        let mut n = Numbers(0x9e37_79b9_7f4a_7c15);
        let (mut answers, mut kinds) = ([0, 0], [0, 0, 0, 0]);
        for round in 0..3000 {
            let Some(rbac) = rbac(&mut n) else {
                continue;
            };
            let rbac = Arc::new(rbac);
            let mut known = Known::default();
            for name in ["p", "q"] {
                if n.below(4) > 0 {
                    known.0.insert(name.to_owned(), project(&mut n, name));
                }
            }
            let claims = claims(&mut n);
            let resource = ["applications", "applications", "logs", "projects"][n.below(4)];
            let action = n.one_of(&["get", "sync", "delete/apps/Pod"]);
            let shared = (Arc::clone(&rbac), known.clone(), claims.clone());
            let mut selection = Selection::new(shared.0, shared.1, shared.2, resource, action);
            for project in ["p", "q", "gone", "p/x", ""] {
                for name in ["a", "b", "ns/a", "ns/b", "n/a/b", "*", ""] {
                    let object = format!("{project}/{name}");
                    let request = Request {
                        resource,
                        action,
                        object: &object,
                    };
                    let wanted = rbac.permits(&known, claims.as_deref(), request);
                    let answer = selection.permits(project, || object.clone());
                    assert_eq!(
                        answer,
                        wanted,
                        "round {round}: {claims:?} {request:?} {:?} {:?}",
                        rbac.settings(),
                        known.0
                    );
                    answers[usize::from(answer)] += 1;
                }
            }
            for ruling in selection.known.values() {
                let kind = match ruling {
                    Ruling::All(answer) => usize::from(*answer),
                    Ruling::Any(_) => 2,
                    Ruling::Unknown => 3,
                };
                kinds[kind] += 1;
            }
        }
        assert!(answers.iter().all(|count| *count > 1000), "{answers:?}");
        assert!(kinds.iter().all(|count| *count > 200), "{kinds:?}");
    }

    #[test]
    fn a_project_without_finer_lines_is_decided_once() {
        let policy = "p, role:dev, applications, get, team/*, allow\n\
                      p, role:dev, applications, get, other/web, allow\n\
                      p, role:dev, applications, delete, team/web, deny\n\
                      g, ann, role:dev\n";
        let data = BTreeMap::from([("policy.csv".to_owned(), policy.to_owned())]);
        let settings = Settings::new(&data).expect("settings");
        let rbac = Arc::new(Rbac::new(true, settings).expect("a policy"));
        let Value::Object(claims) = json!({"sub": "ann"}) else {
            panic!("a map");
        };
        let claims = Some(Arc::new(claims));
        let nobody = Known::default();
        let mut selection = Selection::new(rbac, nobody, claims, "applications", "get");
        let unasked = || -> String { panic!("its name decides nothing") };
        assert!(selection.permits("team", unasked));
        assert!(!selection.permits("third", unasked));
        let mut asked = 0;
        for (name, wanted) in [("web", true), ("db", false)] {
            let name = || {
                asked += 1;
                format!("other/{name}")
            };
            assert_eq!(selection.permits("other", name), wanted);
        }
        assert_eq!(asked, 2);
    }
}
