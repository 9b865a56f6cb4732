//! Suite `rbac`: recorded verdicts of casbin with Argo CD's model, and what surrounds them.
//!
//! Main function: [`run`].

use super::{Difference, Verdict};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tiphys_api::AppProject;
use tiphys_gocompat::{glob::Glob, patterns};
use tiphys_rbac::{
    Problem, Projects, Rbac, Request, Settings, check, policies, policy_text, role_fault,
};

/// Cases where gobwas does not do what a pattern says, and ours does; the last one is of a check that
/// does not know the built-in roles.
const INTENDED: [&str; 4] = [
    // An alternative with a star behind a text matches nothing.
    "rbac/edge/0105",
    // A star directly behind a question mark's rune of several bytes.
    "rbac/glob/0043",
    // Three stars want at least one character.
    "rbac/glob/0113",
    // A role that has the lines of role:readonly has permissions.
    "rbac/validate/0052",
];

/// Why a case may differ.
pub fn excuse(id: &str) -> Option<&'static str> {
    let is_known = INTENDED.contains(&id);
    is_known.then_some("a pattern or a role is taken by its word")
}

pub fn run(case: &Value) -> Result<(), Difference> {
    verdict(case).map_err(|why| match excuse(text(&case["id"])) {
        Some(reason) => Difference::Intended(format!("{reason}: {why}")),
        None => Difference::Wrong(why),
    })
}

fn verdict(case: &Value) -> Verdict {
    match text(&case["kind"]) {
        "enforce" => enforce(case),
        "claims" => claims(case),
        "validate" => validate(case),
        "policy_csv" => same("csv", policy_text(&map(&case["data"])), &case["csv"]),
        "project_validate" => project(case),
        "rbac_name" => name(case),
        "glob" => glob(case),
        "list_match" => list(case),
        kind => Err(format!("nothing can run {kind:?} yet")),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn map(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), text(value).to_owned()))
        .collect()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn same(what: &str, got: impl Into<Value>, want: &Value) -> Verdict {
    let got = got.into();
    if got == *want {
        Ok(())
    } else {
        Err(format!("{what}: {got} instead of {want}"))
    }
}

/// `None`: it does not load, so everything is refused.
fn loaded(case: &Value) -> Option<Rbac> {
    let settings = Settings::new(&map(&case["configmap"])).ok()?;
    Rbac::new(case["builtin"] == true, settings).ok()
}

fn enforce(case: &Value) -> Verdict {
    let rbac = loaded(case);
    if rbac.is_none() && case["load_error"].is_null() {
        return Err("it does not load".to_owned());
    }
    for question in items(&case["questions"]) {
        let [subject, resource, action, object, answer] = items(question) else {
            return Err("not a question".to_owned());
        };
        let request = Request {
            resource: text(resource),
            action: text(action),
            object: text(object),
        };
        let got = rbac
            .as_ref()
            .is_some_and(|rbac| rbac.permits_subject(text(subject), request));
        // Where the program panics, any refusal is right.
        let want = *answer == true;
        if got != want {
            return Err(format!("{question}: {got}"));
        }
    }
    Ok(())
}

struct Recorded(HashMap<String, Arc<AppProject>>);

impl Projects for Recorded {
    fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.0.get(name).cloned()
    }
}

fn claims(case: &Value) -> Verdict {
    let rbac = loaded(case);
    let projects = items(&case["projects"]).iter().filter_map(|project| {
        let project: AppProject = serde_json::from_value(project.clone()).ok()?;
        Some((project.metadata.name.clone(), Arc::new(project)))
    });
    let projects = Recorded(projects.collect());
    for question in items(&case["questions"]) {
        let [resource, action, object] = items(&question["request"]) else {
            return Err("not a question".to_owned());
        };
        let request = Request {
            resource: text(resource),
            action: text(action),
            object: text(object),
        };
        let claims: Option<&Map<String, Value>> = question["claims"].as_object();
        let got = rbac
            .as_ref()
            .is_some_and(|rbac| rbac.permits(&projects, claims, request));
        if got != (question["allow"] == true) {
            return Err(format!("{question}: {got}"));
        }
    }
    Ok(())
}

fn validate(case: &Value) -> Verdict {
    let policy = text(&case["policy"]);
    let settings = Settings {
        policy: policy.to_owned(),
        ..Settings::default()
    };
    match check(&settings) {
        Err(fault) => {
            same("valid", false, &case["valid"])?;
            same(
                "error",
                format!("policy syntax error: {policy}"),
                &case["error"],
            )?;
            let set = format!(
                "error loading RBAC policy: error creating casbin enforcer: error loading policy line: {fault}"
            );
            same("set_error", set, &case["set_error"])
        }
        Ok(findings) => {
            same("valid", true, &case["valid"])?;
            const ARE_UNKNOWN: &str = "user defined roles not found in policies: ";
            // The recorded one does not know the built-in roles here.
            let builtin = ["role:admin", "role:readonly"];
            let wanted: Vec<&str> = items(&case["warnings"])
                .iter()
                .flat_map(|warning| text(warning).strip_prefix(ARE_UNKNOWN))
                .flat_map(|roles| roles.split(','))
                .filter(|role| !builtin.contains(role))
                .collect();
            let roles: Vec<&str> = findings
                .iter()
                .filter_map(|finding| match &finding.problem {
                    Problem::NoPermissions { role, .. } => Some(role.as_str()),
                    _ => None,
                })
                .collect();
            if roles == wanted {
                Ok(())
            } else {
                Err(format!("{roles:?} instead of {wanted:?}"))
            }
        }
    }
}

fn project(case: &Value) -> Verdict {
    let project: AppProject =
        serde_json::from_value(case["project"].clone()).map_err(|e| e.to_string())?;
    let error = role_fault(&project).map(|(twice, message)| {
        let code = if twice {
            "AlreadyExists"
        } else {
            "InvalidArgument"
        };
        format!("rpc error: code = {code} desc = {message}")
    });
    same("error", error, &case["error"])?;
    same("policies", policies(&project), &case["policies_string"])
}

fn name(case: &Value) -> Verdict {
    let (project, namespace, name) = (
        text(&case["project"]),
        text(&case["namespace"]),
        text(&case["name"]),
    );
    let ours = text(&case["default_namespace"]);
    let got = tiphys_rbac::app_name(project, namespace, name, ours);
    same("name", got, &case["expected"])
}

fn glob(case: &Value) -> Verdict {
    let separators: Vec<char> = text(&case["separators"]).chars().collect();
    let glob = Glob::new(text(&case["pattern"]), &separators);
    if !case["error"].is_null() {
        return glob.map_or(Ok(()), |_| Err("it is accepted".to_owned()));
    }
    let glob = glob.map_err(|e| e.to_string())?;
    for (list, want) in [(&case["match"], true), (&case["no_match"], false)] {
        for item in items(list) {
            if glob.matches(text(item)) != want {
                return Err(format!("{item}: {}", !want));
            }
        }
    }
    Ok(())
}

fn list(case: &Value) -> Verdict {
    let list: Vec<String> = items(&case["list"])
        .iter()
        .map(|item| text(item).to_owned())
        .collect();
    for item in items(&case["items"]) {
        let [name, answer] = items(item) else {
            return Err("not an item".to_owned());
        };
        let name = text(name);
        let got = match text(&case["mode"]) {
            "exact" => list.iter().any(|entry| entry == name),
            "glob" => list
                .iter()
                .any(|entry| Glob::new(entry, &[]).is_ok_and(|glob| glob.matches(name))),
            _ => patterns::any(&list, name),
        };
        if got != (*answer == true) {
            return Err(format!("{name:?}: {got}"));
        }
    }
    Ok(())
}
