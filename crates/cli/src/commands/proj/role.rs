//! `proj role`: the roles of a project, their policies and their groups. Main type:
//! [`RoleCommand`].

use super::{Change, tokens};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{connect, list_document},
    output::{
        self,
        sort::{Field, SortBy},
        table, time,
    },
};
use jiff::Timestamp;
use tiphys_api::project::{AppProject, JWTToken, ProjectRole};

#[derive(clap::Subcommand)]
pub enum RoleCommand {
    /// List all the roles in a project
    List {
        /// The project
        project: String,
        /// Output format. One of: json|yaml|wide|name
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Get the details of a specific role
    Get {
        #[command(flatten)]
        of: RoleArgs,
    },
    /// Create a project role
    Create {
        #[command(flatten)]
        of: RoleArgs,
        /// Role description
        #[arg(long, default_value = "", hide_default_value = true)]
        description: String,
    },
    /// Delete a project role
    Delete {
        #[command(flatten)]
        of: RoleArgs,
    },
    /// Add a policy to a project role
    AddPolicy {
        #[command(flatten)]
        of: RoleArgs,
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Remove a policy from a role within a project
    RemovePolicy {
        #[command(flatten)]
        of: RoleArgs,
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Add a group claim to a project role
    AddGroup {
        #[command(flatten)]
        of: RoleArgs,
        #[arg(value_name = "GROUP-CLAIM")]
        group: String,
    },
    /// Remove a group claim from a role within a project
    RemoveGroup {
        #[command(flatten)]
        of: RoleArgs,
        #[arg(value_name = "GROUP-CLAIM")]
        group: String,
    },
    #[command(flatten)]
    Tokens(tokens::TokensCommand),
}

#[derive(clap::Args, Clone, Debug)]
pub struct RoleArgs {
    /// The project
    pub(super) project: String,
    /// The role
    #[arg(value_name = "ROLE-NAME")]
    pub(super) role: String,
}

/// The resources that a project's role may be about.
const RESOURCES: [&str; 6] = [
    "applications",
    "applicationsets",
    "logs",
    "exec",
    "clusters",
    "repositories",
];

#[derive(clap::Args)]
pub struct PolicyArgs {
    /// Action to grant/deny permission on (e.g. get, create, list, update, delete)
    #[arg(long, short, default_value = "", hide_default_value = true)]
    action: String,
    /// Whether to allow or deny access to object with the action. This can only be 'allow' or
    /// 'deny'
    #[arg(long, short, default_value = "allow")]
    permission: String,
    /// Object within the project to grant/deny access. Use '*' for a wildcard. Will want access to
    /// '<project>/<object>'
    #[arg(long, short, default_value = "", hide_default_value = true)]
    object: String,
    /// Resource e.g. 'applications', 'applicationsets', 'logs', 'exec', etc.
    #[arg(long, short, default_value = "applications", value_parser = RESOURCES)]
    resource: String,
}

impl PolicyArgs {
    fn line(&self, project: &str, role: &str) -> String {
        format!(
            "p, proj:{project}:{role}, {}, {}, {project}/{}, {}",
            self.resource, self.action, self.object, self.permission
        )
    }
}

impl RoleCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::List {
                project,
                output,
                sort_by,
            } => {
                let mut project = super::get(&connect(args).await?, project).await?;
                sort_by.sort(&mut project.spec.roles, FIELDS)?;
                output::print(&list(&project.spec.roles, &output)?);
                Ok(())
            }
            Self::Get { of } => {
                let project = super::get(&connect(args).await?, of.project).await?;
                output::print(&details(&project, &of.role, Timestamp::now())?);
                Ok(())
            }
            Self::Create { of, description } => {
                super::change(args, of.project, |p| Ok(create(p, of.role, description))).await
            }
            Self::Delete { of } => {
                super::change(args, of.project, |p| Ok(delete(p, &of.role))).await
            }
            Self::AddPolicy { of, policy } => {
                super::change(args, of.project, |p| add_policy(p, &of.role, &policy)).await
            }
            Self::RemovePolicy { of, policy } => {
                super::change(args, of.project, |p| remove_policy(p, &of.role, &policy)).await
            }
            Self::AddGroup { of, group } => {
                super::change(args, of.project, |p| add_group(p, &of.role, group)).await
            }
            Self::RemoveGroup { of, group } => {
                super::change(args, of.project, |p| remove_group(p, &of.role, &group)).await
            }
            Self::Tokens(c) => c.run(args).await,
        }
    }
}

const FIELDS: &[Field<ProjectRole>] = &[
    ("name", |role| role.name.as_str().into()),
    ("description", |role| role.description.as_str().into()),
];

fn list(roles: &[ProjectRole], format: &str) -> Result<String, Failure> {
    match format {
        "json" | "yaml" => list_document(roles, format),
        "name" => Ok(roles.iter().map(|r| r.name.clone() + "\n").collect()),
        "wide" | "" => {
            let rows = roles
                .iter()
                .map(|r| vec![r.name.clone(), r.description.clone()]);
            Ok(table::table(&["ROLE-NAME", "DESCRIPTION"], rows))
        }
        other => Err(output::unknown_format(other)),
    }
}

/// The role with a name.
pub(super) fn find<'a>(project: &'a AppProject, name: &str) -> Result<&'a ProjectRole, Failure> {
    let found = project.spec.roles.iter().find(|role| role.name == name);
    found.ok_or_else(|| unknown(project, name))
}

fn find_mut<'a>(project: &'a mut AppProject, name: &str) -> Result<&'a mut ProjectRole, Failure> {
    match project.spec.roles.iter().position(|role| role.name == name) {
        Some(index) => Ok(&mut project.spec.roles[index]),
        None => Err(unknown(project, name)),
    }
}

fn unknown(project: &AppProject, role: &str) -> Failure {
    Failure::error(format!(
        "role '{role}' does not exist in project '{}'",
        project.metadata.name
    ))
}

/// The policies shown are those of all roles, as in the `argocd` command.
fn details(project: &AppProject, name: &str, now: Timestamp) -> Result<String, Failure> {
    let role = find(project, name)?;
    let mut out = format!(
        "{:<15}{name}\n{:<15}{}\nPolicies:\n{}\nGroups:\n",
        "Role Name:",
        "Description:",
        role.description,
        tiphys_rbac::policies(project)
    );
    if role.groups.is_empty() {
        out.push_str("<none>\n");
    }
    for group in &role.groups {
        out.push_str(&format!("  - {group}\n"));
    }
    out.push_str("JWT Tokens:\n");
    let at = |second: i64| {
        Timestamp::from_second(second).map_or_else(
            |_| second.to_string(),
            |t| format!("{} ({})", time::rfc3339(t), time::distance(second, now)),
        )
    };
    let row = |token: JWTToken| {
        let expires = if token.exp > 0 {
            at(token.exp)
        } else {
            "<none>".to_owned()
        };
        vec![token.iat.to_string(), at(token.iat), expires]
    };
    let rows = tokens::of(project, name).into_iter().map(row);
    Ok(out + &table::table(&["ID", "ISSUED-AT", "EXPIRES-AT"], rows))
}

fn create(project: &mut AppProject, name: String, description: String) -> Change {
    if find(project, &name).is_ok() {
        return Change::Keep(format!("Role '{name}' already exists\n"));
    }
    let done = format!("Role '{name}' created\n");
    project.spec.roles.push(ProjectRole {
        name,
        description,
        ..Default::default()
    });
    Change::Save(done)
}

/// The last role takes the place of the deleted one, as in the `argocd` command.
fn delete(project: &mut AppProject, name: &str) -> Change {
    let roles = &mut project.spec.roles;
    let Some(index) = roles.iter().position(|role| role.name == name) else {
        return Change::Keep(format!("Role '{name}' does not exist in project\n"));
    };
    roles.swap_remove(index);
    Change::Confirm {
        question: format!("Are you sure you want to delete '{name}' role? [y/n]"),
        done: format!("Role '{name}' deleted\n"),
        cancelled: format!("The command to delete role '{name}' was cancelled.\n"),
    }
}

fn add_policy(
    project: &mut AppProject,
    name: &str,
    policy: &PolicyArgs,
) -> Result<Change, Failure> {
    let line = policy.line(&project.metadata.name, name);
    find_mut(project, name)?.policies.push(line);
    Ok(Change::silent())
}

fn remove_policy(
    project: &mut AppProject,
    name: &str,
    policy: &PolicyArgs,
) -> Result<Change, Failure> {
    let line = policy.line(&project.metadata.name, name);
    let role = find_mut(project, name)?;
    let Some(index) = role.policies.iter().position(|known| *known == line) else {
        return Ok(Change::Keep(String::new()));
    };
    role.policies.swap_remove(index);
    Ok(Change::Confirm {
        question: format!("Are you sure you want to delete '{line}' policy? [y/n]"),
        done: String::new(),
        cancelled: format!("The command to delete policy '{line}' was cancelled.\n"),
    })
}

fn add_group(project: &mut AppProject, name: &str, group: String) -> Result<Change, Failure> {
    let role = find_mut(project, name)?;
    if role.groups.contains(&group) {
        return Ok(Change::Keep(format!(
            "Group '{group}' already present in role '{name}'\n"
        )));
    }
    let done = format!("Group '{group}' added to role '{name}'\n");
    role.groups.push(group);
    Ok(Change::Save(done))
}

fn remove_group(project: &mut AppProject, name: &str, group: &str) -> Result<Change, Failure> {
    let role = find_mut(project, name)?;
    let Some(index) = role.groups.iter().position(|known| known == group) else {
        return Ok(Change::Keep(format!(
            "Group '{group}' not present in role '{name}'\n"
        )));
    };
    role.groups.remove(index);
    Ok(Change::Confirm {
        question: format!(
            "Are you sure you want to remove '{group}' group from role '{name}'? [y/n]"
        ),
        done: format!("Group '{group}' removed from role '{name}'\n"),
        cancelled: format!(
            "The command to remove group '{group}' from role '{name}' was cancelled.\n"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn project(roles: serde_json::Value) -> AppProject {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"roles": roles}}))
            .expect("a project")
    }

    fn names(project: &AppProject) -> Vec<&str> {
        let roles = project.spec.roles.iter();
        roles.map(|r| r.name.as_str()).collect()
    }

    fn get_policy() -> PolicyArgs {
        PolicyArgs {
            action: "get".into(),
            permission: "allow".into(),
            object: "*".into(),
            resource: "applications".into(),
        }
    }

    const LINE: &str = "p, proj:p:dev, applications, get, p/*, allow";

    #[test]
    fn roles_are_created_and_deleted() {
        let mut p = project(json!([]));
        let mut make = |name: &str| create(&mut p, name.into(), "Developers".into());
        assert_eq!(make("dev"), Change::Save("Role 'dev' created\n".into()));
        assert_eq!(
            make("dev"),
            Change::Keep("Role 'dev' already exists\n".into())
        );
        make("ops");
        make("ci");
        let unknown = Change::Keep("Role 'nope' does not exist in project\n".into());
        assert_eq!(delete(&mut p, "nope"), unknown);
        let deleted = Change::Confirm {
            question: "Are you sure you want to delete 'dev' role? [y/n]".into(),
            done: "Role 'dev' deleted\n".into(),
            cancelled: "The command to delete role 'dev' was cancelled.\n".into(),
        };
        assert_eq!(delete(&mut p, "dev"), deleted);
        assert_eq!(names(&p), ["ci", "ops"]);
    }

    #[test]
    fn policies_are_added_and_removed() {
        let mut p = project(json!([{"name": "dev", "policies": ["a", "b"]}]));
        let policies = |p: &AppProject| p.spec.roles[0].policies.clone();
        let added = add_policy(&mut p, "dev", &get_policy());
        assert_eq!(added.ok(), Some(Change::silent()));
        assert_eq!(policies(&p), ["a", "b", LINE]);
        let other = PolicyArgs {
            action: "sync".into(),
            ..get_policy()
        };
        let kept = remove_policy(&mut p, "dev", &other);
        assert_eq!(kept.ok(), Some(Change::Keep(String::new())));
        let removed = Change::Confirm {
            question: format!("Are you sure you want to delete '{LINE}' policy? [y/n]"),
            done: String::new(),
            cancelled: format!("The command to delete policy '{LINE}' was cancelled.\n"),
        };
        let change = remove_policy(&mut p, "dev", &get_policy());
        assert_eq!((change.ok(), policies(&p).len()), (Some(removed), 2));
        let message = "role 'nope' does not exist in project 'p'".to_owned();
        let refused = add_policy(&mut p, "nope", &get_policy()).map_err(|e| (e.code, e.message));
        assert_eq!(refused, Err((20, message)));
    }

    #[test]
    fn groups_are_added_and_removed() {
        let mut p = project(json!([{"name": "dev"}]));
        let text = |text: &str| text.replace('_', "Group 'g'") + " role 'dev'\n";
        assert_eq!(
            add_group(&mut p, "dev", "g".into()).ok(),
            Some(Change::Save(text("_ added to")))
        );
        assert_eq!(
            add_group(&mut p, "dev", "g".into()).ok(),
            Some(Change::Keep(text("_ already present in")))
        );
        let removed = remove_group(&mut p, "dev", "g").ok();
        assert!(
            matches!(&removed, Some(Change::Confirm { done, .. }) if *done == text("_ removed from")),
            "{removed:?}"
        );
        assert_eq!(
            remove_group(&mut p, "dev", "g").ok(),
            Some(Change::Keep(text("_ not present in")))
        );
        assert!(add_group(&mut p, "nope", "g".into()).is_err());
        assert!(remove_group(&mut p, "nope", "g").is_err());
    }

    #[test]
    fn a_role_in_lines() {
        let mut p = project(json!([
            {"name": "dev", "description": "Developers", "policies": [LINE]},
            {"name": "ops", "groups": ["team:ops"]},
        ]));
        let policies = format!(
            "p, proj:p:dev, projects, get, p, allow\n{LINE}\n\
             p, proj:p:ops, projects, get, p, allow\ng, team:ops, proj:p:ops\n"
        );
        let now = Timestamp::from_second(1_700_000_000).expect("a time");
        let show = |p: &AppProject, role| details(p, role, now).map_err(|e| e.message);
        let expected = format!(
            "Role Name:     dev\nDescription:   Developers\nPolicies:\n{policies}Groups:\n<none>\n\
             JWT Tokens:\nID  ISSUED-AT  EXPIRES-AT\n"
        );
        assert_eq!(show(&p, "dev"), Ok(expected));
        p.status.jwt_tokens_by_role = serde_json::from_value(json!({"ops": {"items": [
            {"iat": 1_699_990_000, "id": "a"}, {"iat": 1_699_999_000, "exp": 1_700_090_000, "id": "b"}
        ]}}))
        .expect("tokens");
        let shown = show(&p, "ops").expect("it is there");
        assert!(
            shown.contains("Groups:\n  - team:ops\nJWT Tokens:\n"),
            "{shown}"
        );
        assert!(shown.contains("(2 hours ago)     <none>\n"), "{shown}");
        assert!(shown.contains("(1 day from now)\n"), "{shown}");
        assert!(show(&p, "nope").is_err());
    }

    #[test]
    fn roles_in_a_table_and_by_name() {
        let p = project(json!([{"name": "dev", "description": "Developers"}]));
        let show = |format| list(&p.spec.roles, format).map_err(|e| (e.code, e.message));
        let rows = "ROLE-NAME  DESCRIPTION\ndev        Developers\n";
        assert_eq!(show("wide"), Ok(rows.to_owned()));
        assert_eq!(show("name"), Ok("dev\n".to_owned()));
        assert_eq!(
            show("yaml"),
            Ok("- description: Developers\n  name: dev\n".to_owned())
        );
        assert_eq!(
            show("bad"),
            Err((20, "unknown output format: bad".to_owned()))
        );
    }
}
