//! `admin proj update-role-policy` and `generate-allow-list`: policies of many roles, and the kinds
//! that a ClusterRole lets somebody create. Main types: [`UpdatePolicy`] and [`AllowList`].

use super::overrides::document;
use crate::{
    client::Failure,
    commands::{app::difference, apply::HintedError},
    kubectl::kube::KubeArgs,
    output,
};
use http::Method;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tiphys_cluster::{
    apply,
    discovery::Kinds,
    request::{Call, JSON},
};
use tiphys_gocompat::glob;

/// Implement bulk project role update
///
/// Back-fills policies of existing projects, or removes actions that are not there any more.
#[derive(clap::Args)]
pub struct UpdatePolicy {
    /// Glob for the names of projects
    project_glob: String,
    /// `set` or `remove`
    modification: String,
    /// The action that the policies are about
    action: String,
    /// Resource e.g. 'applications'
    #[arg(long, default_value = "", hide_default_value = true)]
    resource: String,
    /// Resource scope e.g. '*'
    #[arg(long, default_value = "", hide_default_value = true)]
    scope: String,
    /// Role name pattern e.g. '*deployer*'
    #[arg(long, default_value = "*")]
    role: String,
    /// Action permission
    #[arg(long, default_value = "", hide_default_value = true)]
    permission: String,
    /// Only print what would change
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    dry_run: bool,
    #[command(flatten)]
    kube: KubeArgs,
}

/// Generates project allow list from the specified clusterRole file
#[derive(clap::Args)]
pub struct AllowList {
    /// File with a ClusterRole
    #[arg(value_name = "CLUSTERROLE_PATH")]
    path: PathBuf,
    /// Name of the project
    #[arg(value_name = "PROJ_NAME")]
    name: String,
    /// Output to the specified file instead of stdout
    #[arg(long, short = 'o', default_value = "-", value_name = "FILE")]
    out: String,
    #[command(flatten)]
    kube: KubeArgs,
}

/// What becomes of a policy.
enum Change {
    Set {
        resource: String,
        scope: String,
        permission: String,
    },
    Remove,
}

fn why(e: tiphys_cluster::Error) -> String {
    super::failed(&HintedError::from(apply::Failure::from(e))).message
}

impl UpdatePolicy {
    pub async fn run(self) -> Result<(), Failure> {
        let target = super::connect(&self.kube)
            .await
            .map_err(|e| super::failed(&e))?;
        let change = self.change()?;
        let namespace = super::backup::namespace(&self.kube, &target);
        let place = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/appprojects");
        let http = target.discovery.cluster().http();
        let list: Result<Value, _> = http.json(&Call::get(&place)).await;
        let list =
            list.map_err(|e| Failure::error(format!("error listing the projects: {}", why(e))))?;
        for project in list["items"].as_array().into_iter().flatten() {
            let name = project["metadata"]["name"].as_str().unwrap_or_default();
            if !glob::matches(&self.project_glob, name, &['/']) {
                continue;
            }
            let Some(updated) = updated(project, &self.role, &self.action, &change) else {
                continue;
            };
            let shown = difference(project, &updated)?;
            output::print(&format!("===== {name} ======\n{shown}"));
            if self.dry_run {
                continue;
            }
            let call = Call::new(Method::PUT, format!("{place}/{name}"));
            let stored: Result<Value, _> =
                http.json(&call.with_body(JSON, updated.to_string())).await;
            stored.map_err(|e| {
                let why = why(e);
                let text =
                    format!("error saving the project: error while updating project:  {why}");
                Failure::error(text)
            })?;
        }
        Ok(())
    }

    fn change(&self) -> Result<Change, Failure> {
        let needed = |flag: &str| {
            let text = format!("flag {flag} cannot be empty if permission should be set in role");
            Err(Failure::error(text))
        };
        match self.modification.as_str() {
            // Argo CD's message has a name that the flag never had.
            "set" if self.scope.is_empty() => needed("--scope"),
            "set" if self.permission.is_empty() => needed("--permission"),
            "set" => Ok(Change::Set {
                resource: self.resource.clone(),
                scope: self.scope.clone(),
                permission: self.permission.clone(),
            }),
            "remove" => Ok(Change::Remove),
            other => Err(Failure::error(format!(
                "modification {other} is not supported"
            ))),
        }
    }
}

/// The project with changed roles; `None`: it stays as it is.
fn updated(project: &Value, roles: &str, action: &str, change: &Change) -> Option<Value> {
    let mut new = project.clone();
    let name = project["metadata"]["name"].as_str().unwrap_or_default();
    for role in new["spec"]["roles"].as_array_mut().into_iter().flatten() {
        let role_name = role["name"].as_str().unwrap_or_default().to_owned();
        if !glob::matches(roles, &role_name, &['/']) {
            continue;
        }
        let mut policies = role["policies"].as_array().cloned().unwrap_or_default();
        let is_meant = |policy: &Value| {
            let parts: Vec<_> = policy.as_str().unwrap_or_default().split(',').collect();
            parts.len() == 6 && parts[3].trim() == action
        };
        let at = policies.iter().position(is_meant);
        match (change, at) {
            (
                Change::Set {
                    resource,
                    scope,
                    permission,
                },
                at,
            ) => {
                let policy = Value::from(format!(
                    "p, proj:{name}:{role_name}, {resource}, {action}, {name}/{scope}, {permission}"
                ));
                match at {
                    Some(at) => policies[at] = policy,
                    None => policies.push(policy),
                }
            }
            (Change::Remove, Some(at)) => drop(policies.remove(at)),
            (Change::Remove, None) => continue,
        }
        role["policies"] = policies.into();
    }
    (new != *project).then_some(new)
}

impl AllowList {
    pub async fn run(self) -> Result<(), Failure> {
        let target = super::connect(&self.kube).await.map_err(|e| {
            let why = super::failed(&e).message;
            Failure::error(format!("error while creating client config: {why}"))
        })?;
        let role = document(&self.path).map_err(|e| {
            Failure::error(format!("error reading cluster role file: {}", e.message))
        })?;
        let kinds = creatable(&role, &target.discovery.kinds());
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {"name": self.name},
            "spec": {"namespaceResourceWhitelist": kinds},
            "status": {},
        });
        let text = output::yaml(&project)?;
        if self.out == "-" {
            output::print(&text);
            return Ok(());
        }
        fs::write(&self.out, text).map_err(|e| Failure::file(&self.out, &e))
    }
}

/// Group and kind of what the rules let somebody create, in the order of the rules. As in Argo CD,
/// a rule is about its first group.
fn creatable(role: &Value, known: &Kinds) -> Vec<Value> {
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|text| text.as_str().map(str::to_owned))
            .collect()
    };
    let mut found = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let groups = texts(&rule["apiGroups"]);
        let can_create = texts(&rule["verbs"])
            .iter()
            .any(|v| v.eq_ignore_ascii_case("create"));
        let Some(group) = groups.first().filter(|_| can_create) else {
            continue;
        };
        for resource in texts(&rule["resources"]) {
            let meant = known
                .preferred_kinds()
                .filter(|kind| kind.gvk.group == *group && kind.resource == resource);
            found.extend(meant.map(|kind| json!({"group": group, "kind": kind.gvk.kind})));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(permission: &str) -> Change {
        Change::Set {
            resource: "applications".to_owned(),
            scope: "*".to_owned(),
            permission: permission.to_owned(),
        }
    }

    #[test]
    fn policies_are_set_replaced_and_removed() {
        let project = |policies: Value| {
            json!({"metadata": {"name": "p"}, "spec": {"roles": [
                {"name": "deployer", "policies": policies}, {"name": "viewer"}]}})
        };
        let allow = "p, proj:p:deployer, applications, action/*, p/*, allow";
        let other = "p, proj:p:deployer, applications, sync, p/*, allow";
        let policies =
            |project: Option<Value>| project.map(|p| p["spec"]["roles"][0]["policies"].clone());
        let change = |policies_before: Value, change: &Change| {
            policies(updated(
                &project(policies_before),
                "*deploy*",
                "action/*",
                change,
            ))
        };
        assert_eq!(
            change(json!([other]), &set("allow")),
            Some(json!([other, allow]))
        );
        assert_eq!(
            change(json!([allow, other]), &set("deny")),
            Some(json!([allow.replace("allow", "deny"), other]))
        );
        assert_eq!(change(json!([allow]), &set("allow")), None, "it is there");
        assert_eq!(
            change(json!([other, allow]), &Change::Remove),
            Some(json!([other]))
        );
        assert_eq!(change(json!([other]), &Change::Remove), None);
        let all = updated(&project(json!([])), "*", "action/*", &set("allow")).expect("changed");
        assert_eq!(
            all["spec"]["roles"][1]["policies"],
            json!(["p, proj:p:viewer, applications, action/*, p/*, allow"])
        );
    }
}
