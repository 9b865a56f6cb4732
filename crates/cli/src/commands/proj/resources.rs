//! The kinds that a project allows and denies, and those that do not count as orphaned.

use super::Change;
use crate::client::{ConnectArgs, Failure};
use tiphys_api::{
    meta::GroupKind,
    project::{AppProjectSpec, ClusterResourceRestrictionItem, OrphanedResourceKey},
};

#[derive(clap::Subcommand)]
pub enum ResourcesCommand {
    /// Adds a cluster-scoped API resource to the allow list and removes it from deny list
    AllowClusterResource {
        #[command(flatten)]
        kind: ClusterKindArgs,
    },
    /// Removes a cluster-scoped API resource from the allow list and adds it to deny list
    DenyClusterResource {
        #[command(flatten)]
        kind: ClusterKindArgs,
    },
    /// Removes a namespaced API resource from the deny list or add a namespaced API resource to the
    /// allow list
    AllowNamespaceResource {
        #[command(flatten)]
        kind: NamespacedKindArgs,
    },
    /// Adds a namespaced API resource to the deny list or removes a namespaced API resource from
    /// the allow list
    DenyNamespaceResource {
        #[command(flatten)]
        kind: NamespacedKindArgs,
    },
    /// Add a resource to orphaned ignore list
    AddOrphanedIgnore {
        #[command(flatten)]
        key: OrphanArgs,
    },
    /// Remove a resource from orphaned ignore list
    RemoveOrphanedIgnore {
        #[command(flatten)]
        key: OrphanArgs,
    },
}

#[derive(clap::Args)]
pub struct ClusterKindArgs {
    /// The project
    project: String,
    group: String,
    kind: String,
    /// Name or pattern of names of the objects
    #[arg(default_value = "", hide_default_value = true)]
    name: String,
    /// Use deny list or allow list. This can only be 'allow' or 'deny'
    #[arg(long, short, default_value = "allow", value_name = "LIST")]
    list: String,
}

#[derive(clap::Args)]
pub struct NamespacedKindArgs {
    /// The project
    project: String,
    group: String,
    kind: String,
    /// Use deny list or allow list. This can only be 'allow' or 'deny'
    #[arg(long, short, default_value = "deny", value_name = "LIST")]
    list: String,
}

#[derive(clap::Args)]
pub struct OrphanArgs {
    /// The project
    project: String,
    group: String,
    kind: String,
    /// Resource name pattern
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
}

impl ResourcesCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::AllowClusterResource { kind } => of_cluster(args, kind, true).await,
            Self::DenyClusterResource { kind } => of_cluster(args, kind, false).await,
            Self::AllowNamespaceResource { kind } => of_namespace(args, kind, true).await,
            Self::DenyNamespaceResource { kind } => of_namespace(args, kind, false).await,
            Self::AddOrphanedIgnore { key } => {
                let (project, key) = key.split();
                super::change(args, project, |p| add_orphan(&mut p.spec, key)).await
            }
            Self::RemoveOrphanedIgnore { key } => {
                let (project, key) = key.split();
                super::change(args, project, |p| remove_orphan(&mut p.spec, &key)).await
            }
        }
    }
}

/// Which of two lists a verb changes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    allow_list: bool,
    add: bool,
}

impl Target {
    /// To allow a kind is to add it to the allowed ones, or to remove it from the denied ones.
    fn new(list: &str, allow: bool) -> Self {
        let allow_list = matches!(list, "allow" | "white");
        Self {
            allow_list,
            add: allow == allow_list,
        }
    }

    /// Changes a list; false if it was so already.
    fn apply<T: PartialEq>(self, list: &mut Vec<T>, item: T) -> bool {
        match list.iter().position(|known| *known == item) {
            None if self.add => list.push(item),
            Some(index) if !self.add => drop(list.remove(index)),
            _ => return false,
        }
        true
    }

    /// Whether a change took the last kind from the list of allowed ones. Without the list every
    /// kind is allowed: the contrary of what `deny` says.
    fn opens(self, spec: &AppProjectSpec) -> bool {
        self.allow_list && !self.add && spec.namespace_resource_whitelist.is_none()
    }

    /// `added to allowed`, and so on.
    fn done(self) -> String {
        format!(
            "{} {}",
            if self.add { "added to" } else { "removed from" },
            if self.allow_list { "allowed" } else { "denied" }
        )
    }
}

/// Says what is done, on standard error as Argo CD's command line does, before it is saved.
fn saved(text: Option<String>) -> Change {
    match text {
        Some(text) => {
            eprintln!("{text}");
            Change::silent()
        }
        None => Change::Keep(String::new()),
    }
}

async fn of_cluster(args: &ConnectArgs, kind: ClusterKindArgs, allow: bool) -> Result<(), Failure> {
    let target = Target::new(&kind.list, allow);
    let item = ClusterResourceRestrictionItem {
        group: kind.group,
        kind: kind.kind,
        name: kind.name,
    };
    super::change(args, kind.project, |p| {
        Ok(saved(change_cluster(&mut p.spec, target, item)))
    })
    .await
}

fn change_cluster(
    spec: &mut AppProjectSpec,
    target: Target,
    item: ClusterResourceRestrictionItem,
) -> Option<String> {
    let list = match target.allow_list {
        true => &mut spec.cluster_resource_whitelist,
        false => &mut spec.cluster_resource_blacklist,
    };
    let text = format!(
        "Group '{}', kind '{}', and name '{}' is {} cluster resources",
        item.group,
        item.kind,
        item.name,
        target.done()
    );
    target.apply(list, item).then_some(text)
}

async fn of_namespace(
    args: &ConnectArgs,
    kind: NamespacedKindArgs,
    allow: bool,
) -> Result<(), Failure> {
    let target = Target::new(&kind.list, allow);
    let item = GroupKind {
        group: kind.group,
        kind: kind.kind,
    };
    super::change(args, kind.project, |p| {
        let text = change_namespaced(&mut p.spec, target, item);
        let is_open = text.is_some() && target.opens(&p.spec);
        let change = saved(text);
        if is_open {
            eprintln!(
                "Warning: the list of allowed kinds is empty, so every namespaced kind is allowed"
            );
        }
        Ok(change)
    })
    .await
}

fn change_namespaced(spec: &mut AppProjectSpec, target: Target, item: GroupKind) -> Option<String> {
    let text = format!(
        "Group '{}' and kind '{}' is {} namespaced resources",
        item.group,
        item.kind,
        target.done()
    );
    if !target.allow_list {
        let list = &mut spec.namespace_resource_blacklist;
        return target.apply(list, item).then_some(text);
    }
    let mut list = spec
        .namespace_resource_whitelist
        .clone()
        .unwrap_or_default();
    if !target.apply(&mut list.0, item) {
        return None;
    }
    // Without its last kind there is no list any more, as in Argo CD.
    spec.namespace_resource_whitelist = (!list.0.is_empty()).then_some(list);
    Some(text)
}

impl OrphanArgs {
    fn split(self) -> (String, OrphanedResourceKey) {
        let key = OrphanedResourceKey {
            group: self.group,
            kind: self.kind,
            name: self.name,
        };
        (self.project, key)
    }
}

fn add_orphan(spec: &mut AppProjectSpec, key: OrphanedResourceKey) -> Result<Change, Failure> {
    let settings = spec.orphaned_resources.get_or_insert_default();
    if settings.ignore.contains(&key) {
        return Err(Failure::fatal(
            "Specified resource is already defined in the orphaned ignore list of project",
        ));
    }
    settings.ignore.push(key);
    Ok(Change::silent())
}

fn remove_orphan(spec: &mut AppProjectSpec, key: &OrphanedResourceKey) -> Result<Change, Failure> {
    let unknown =
        |list: &str| Failure::fatal(format!("Specified resource does not exist in the {list}"));
    let settings = spec
        .orphaned_resources
        .as_mut()
        .ok_or_else(|| unknown("orphaned ignore list of project"))?;
    let index = settings.ignore.iter().position(|known| known == key);
    let index = index.ok_or_else(|| unknown("orphaned ignore of project"))?;
    settings.ignore.remove(index);
    Ok(Change::silent())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_list_is_changed_and_how() {
        for (list, allow, allow_list, add) in [
            ("allow", true, true, true),
            ("white", true, true, true),
            ("allow", false, true, false),
            ("deny", true, false, false),
            ("deny", false, false, true),
            ("black", false, false, true),
            ("nope", true, false, false),
        ] {
            assert_eq!(
                Target::new(list, allow),
                Target { allow_list, add },
                "{list} {allow}"
            );
        }
    }

    #[test]
    fn cluster_kinds_with_and_without_names() {
        let mut spec = AppProjectSpec::default();
        let mut change = |list: &str, allow: bool, name: &str| {
            let item = ClusterResourceRestrictionItem {
                group: String::new(),
                kind: "Namespace".into(),
                name: name.into(),
            };
            change_cluster(&mut spec, Target::new(list, allow), item)
        };
        let text = |name: &str, done: &str| {
            Some(format!(
                "Group '', kind 'Namespace', and name '{name}' is {done} cluster resources"
            ))
        };
        assert_eq!(change("allow", true, ""), text("", "added to allowed"));
        assert_eq!(change("allow", true, ""), None);
        assert_eq!(
            change("allow", true, "team-a"),
            text("team-a", "added to allowed")
        );
        assert_eq!(change("allow", false, ""), text("", "removed from allowed"));
        assert_eq!(change("allow", false, ""), None);
        assert_eq!(change("deny", false, ""), text("", "added to denied"));
        assert_eq!(change("deny", true, ""), text("", "removed from denied"));
        assert_eq!(change("deny", true, ""), None);
        assert_eq!(spec.cluster_resource_whitelist.len(), 1);
        assert!(spec.cluster_resource_blacklist.is_empty());
    }

    #[test]
    fn without_its_last_kind_there_is_no_list_of_allowed_ones() {
        let mut spec = AppProjectSpec::default();
        let opens = |spec: &mut AppProjectSpec, list: &str, allow: bool, kind: &str| {
            let item = GroupKind {
                group: String::new(),
                kind: kind.into(),
            };
            let target = Target::new(list, allow);
            change_namespaced(spec, target, item).is_some() && target.opens(spec)
        };
        assert!(!opens(&mut spec, "allow", true, "Pod"));
        assert!(!opens(&mut spec, "allow", true, "Service"));
        assert!(!opens(&mut spec, "allow", false, "Pod"));
        assert!(opens(&mut spec, "allow", false, "Service"));
        assert!(!opens(&mut spec, "allow", false, "Service"));
        assert!(!opens(&mut spec, "deny", false, "Pod"));
        assert!(!opens(&mut spec, "deny", true, "Pod"));
    }

    #[test]
    fn namespaced_kinds() {
        let mut spec = AppProjectSpec::default();
        let mut change = |list: &str, allow: bool| {
            let item = GroupKind {
                group: "apps".into(),
                kind: "Deployment".into(),
            };
            change_namespaced(&mut spec, Target::new(list, allow), item)
        };
        let text = |done: &str| {
            Some(format!(
                "Group 'apps' and kind 'Deployment' is {done} namespaced resources"
            ))
        };
        assert_eq!(change("deny", false), text("added to denied"));
        assert_eq!(change("deny", false), None);
        assert_eq!(change("deny", true), text("removed from denied"));
        assert_eq!(change("allow", true), text("added to allowed"));
        assert_eq!(change("allow", false), text("removed from allowed"));
        assert_eq!(spec, AppProjectSpec::default());
    }

    #[test]
    fn orphans_that_are_ignored() {
        let mut spec = AppProjectSpec::default();
        let key = |name: &str| OrphanedResourceKey {
            kind: "ConfigMap".into(),
            name: name.into(),
            ..Default::default()
        };
        let message = |result: Result<Change, Failure>| result.err().map(|e| (e.code, e.message));
        let not_on = |list: &str| {
            Some((
                1,
                format!("Specified resource does not exist in the {list}"),
            ))
        };
        assert_eq!(
            message(remove_orphan(&mut spec, &key(""))),
            not_on("orphaned ignore list of project")
        );
        assert_eq!(message(add_orphan(&mut spec, key(""))), None);
        assert_eq!(message(add_orphan(&mut spec, key("x"))), None);
        assert_eq!(
            message(add_orphan(&mut spec, key("x"))),
            Some((
                1,
                "Specified resource is already defined in the orphaned ignore list of project"
                    .to_owned()
            ))
        );
        assert_eq!(message(remove_orphan(&mut spec, &key("x"))), None);
        assert_eq!(
            message(remove_orphan(&mut spec, &key("x"))),
            not_on("orphaned ignore of project")
        );
        let left = spec.orphaned_resources.expect("monitoring stays enabled");
        assert_eq!(left.ignore, [key("")]);
    }
}
