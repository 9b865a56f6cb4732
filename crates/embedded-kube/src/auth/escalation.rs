//! Prevents privilege escalation: a user may not grant permissions that he does not have. Checked
//! on writes of roles and bindings.
//!
//! Main function: [`check`], called with the object as it would be stored and the object it
//! replaces.

use crate::base::user::UserInfo;
use crate::rbac::attributes::Attributes;
use crate::rbac::policy::{GROUP, Policy, together};
use crate::rbac::rules::{Rule, missing, quoted_list};
use crate::status::Status;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// A write of a role or binding.
pub struct Write {
    pub user: UserInfo,
    /// The plural name.
    pub resource: String,
    pub namespace: String,
    /// The name in the URL: empty for a create.
    pub name: String,
}

pub fn check(
    policy: &Policy,
    write: &Write,
    new: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    if write.user.is_master() || old.is_some_and(|old| only_collected(new, old)) {
        return Ok(());
    }
    if write.resource.ends_with("bindings") {
        check_binding(policy, write, new)
    } else {
        check_role(policy, write, new, old)
    }
}

/// Whether the change concerns only garbage collection fields.
fn only_collected(new: &Object, old: &Object) -> bool {
    let plain = |o: &Object| {
        let mut copy = o.clone();
        for field in [
            "ownerReferences",
            "finalizers",
            "managedFields",
            "resourceVersion",
            "selfLink",
        ] {
            copy.metadata_mut().remove(field);
        }
        copy
    };
    plain(new) == plain(old)
}

fn may(
    policy: &Policy,
    write: &Write,
    verb: &str,
    group: &str,
    resource: &str,
    name: &str,
) -> bool {
    let asked = Attributes {
        is_resource: true,
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        namespace: write.namespace.clone(),
        ..Attributes::default()
    };
    policy.authorize(&write.user, &asked).0
}

fn check_role(
    policy: &Policy,
    write: &Write,
    new: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    if may(
        policy,
        write,
        "escalate",
        GROUP,
        &write.resource,
        &write.name,
    ) {
        return Ok(());
    }
    let refuse = |why: String| Err(Status::forbidden(GROUP, &write.resource, new.name(), &why));
    if let Some(why) = not_held(policy, write, &Rule::list(new.pointer("/rules"))) {
        return refuse(why);
    }
    // The rules that are aggregated later are not limited.
    let gathers = |o: &Object| {
        o.pointer("/aggregationRule/clusterRoleSelectors")
            .and_then(Value::as_array)
            .is_some_and(|l| !l.is_empty())
    };
    if gathers(new) || old.is_some_and(gathers) {
        let star = || vec!["*".to_owned()];
        let everything = [
            Rule {
                verbs: star(),
                groups: star(),
                resources: star(),
                ..Rule::default()
            },
            Rule {
                verbs: star(),
                urls: star(),
                ..Rule::default()
            },
        ];
        if not_held(policy, write, &everything).is_some() {
            return refuse(
                "must have cluster-admin privileges to use the aggregationRule".to_owned(),
            );
        }
    }
    Ok(())
}

fn check_binding(policy: &Policy, write: &Write, new: &Object) -> Result<(), Status> {
    let (kind, name) = (new.str_at("/roleRef/kind"), new.str_at("/roleRef/name"));
    let group = if new.str_at("/roleRef/apiGroup").is_empty() {
        GROUP
    } else {
        new.str_at("/roleRef/apiGroup")
    };
    let resource = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        // Validation will reject it.
        other => {
            return Err(Status::new(
                500,
                "",
                format!("unsupported role reference kind: {other:?}"),
            ));
        }
    };
    if may(policy, write, "bind", group, resource, name) {
        return Ok(());
    }
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    // A missing role is reported with the kind given in the binding.
    let rules = policy
        .role(kind, name, &write.namespace)
        .map_err(|m| Status::not_found(GROUP, &write.resource, &m.name))?;
    match not_held(policy, write, rules) {
        Some(why) => Err(Status::forbidden(GROUP, &write.resource, new.name(), &why)),
        None => Ok(()),
    }
}

/// The permissions that the write would grant without the writer having them.
fn not_held(policy: &Policy, write: &Write, rules: &[Rule]) -> Option<String> {
    let (held, wrong) = policy.rules_for(&write.user, &write.namespace);
    let lines = missing(&held, rules);
    if lines.is_empty() {
        return None;
    }
    let (name, groups) = (
        crate::rbac::attributes::quoted(&write.user.name),
        quoted_list(&write.user.groups),
    );
    let mut text = format!(
        "user {name} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
        lines.join("\n")
    );
    if !wrong.is_empty() {
        text.push_str(&format!("; resolution errors: {}", together(&wrong)));
    }
    Some(text)
}
