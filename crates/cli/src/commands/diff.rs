//! `diff`: what an apply would change, as `kubectl diff` shows it. Main type: [`DiffCommand`].

mod external;

use super::apply::{
    ALL_KINDS, HintedError, finish,
    read::{self, Rules},
    source::FileArgs,
    warnings,
};
use crate::{
    client::Failure as Exit,
    kubectl::{failure::Trouble, kube::KubeArgs},
    output,
};
use external::{Folder, Program};
use serde_json::{Map, Value};
use similar::TextDiff;
use std::collections::{BTreeSet, HashSet};
use tiphys_apimachinery::Object;
use tiphys_cluster::{
    Discovery,
    apply::{Applier, CLIENT_SIDE_MANAGER, DryRun, SERVER_SIDE_MANAGER, Scope, Settings},
};

/// Show what applying manifests would change, as `kubectl diff` does
///
/// The server tries every object without storing it. Exit code 0: nothing differs; 1: something
/// does; more: it could not be found out.
#[derive(clap::Args)]
pub struct DiffCommand {
    #[command(flatten)]
    files: FileArgs,
    /// Only objects of the files with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Let the server merge, by the ownership of fields
    #[arg(long)]
    server_side: bool,
    /// Take over fields that other managers own; with --server-side
    #[arg(long)]
    force_conflicts: bool,
    /// Name under which fields are owned [default: kubectl-client-side-apply; with --server-side:
    /// kubectl]
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
    /// Compare managedFields too
    #[arg(long)]
    show_managed_fields: bool,
    /// Show the values of Secrets
    #[arg(long)]
    show_secrets: bool,
    /// Also show what `apply --prune` would delete: objects that were applied before and are not
    /// in the files, with -l only those with these labels
    #[arg(long)]
    prune: bool,
    /// Kinds to prune, as group/version/kind (can be repeated) [default: kubectl's list]
    #[arg(long, value_name = "KIND")]
    prune_allowlist: Vec<String>,
    /// Accepted as kubectl does (no effect)
    #[arg(long, value_name = "COUNT", default_value_t = 1, hide = true)]
    concurrency: i64,
    #[command(flatten)]
    kube: KubeArgs,
}

impl DiffCommand {
    pub async fn run(self) -> Result<(), Exit> {
        match self.compare().await {
            Ok(false) => Ok(()),
            Ok(true) => Err(Exit::exit(1)),
            Err(told) => finish(Err(told), 2),
        }
    }

    async fn compare(&self) -> Result<bool, HintedError> {
        self.files.check()?;
        if self.force_conflicts && !self.server_side {
            let problem = "--force-conflicts only works with --server-side";
            return Err(Trouble::text(problem).into());
        }
        let target = self.kube.connect().await?;
        let mut scope = self.scope(&target.discovery).await?;
        let applier = Applier::new(target.discovery.clone(), self.settings());
        let rules = Rules {
            validate: false,
            selector: self.selector.clone().unwrap_or_default(),
        };
        let found = read::read(&self.files, &target, &rules).await?;
        let mut troubles: Vec<Trouble> = found.trouble.into_iter().collect();
        let mut versions = Vec::new();
        let mut seen = HashSet::new();
        let mut namespaces = BTreeSet::new();
        for item in &found.items {
            if item.kind.namespaced {
                namespaces.insert(item.object.namespace().to_owned());
            }
            match applier.apply(item).await {
                Ok(applied) => {
                    seen.extend(applied.before.iter().map(|live| live.uid().to_owned()));
                    versions.push(self.versions(applied.before.as_ref(), &applied.live));
                }
                Err(failure) => troubles.push(failure.into()),
            }
        }
        // What could not be compared is in the files, and would seem to be gone from them.
        if let Some(scope) = scope.as_mut().filter(|_| troubles.is_empty()) {
            scope.namespaces = namespaces;
            match self.pruned(&target.discovery, scope, &seen).await {
                Ok(pruned) => versions.extend(pruned),
                Err(trouble) => troubles.push(trouble),
            }
        }
        // By name, whatever the order of the files, like the folders that kubectl compares.
        versions.sort_by(|a, b| a.name.cmp(&b.name));
        let differs = show(&versions).map_err(Trouble::text)?;
        if troubles.is_empty() {
            Ok(differs)
        } else {
            Err(HintedError {
                trouble: Trouble::Many(troubles).flat(),
                hints: found.hints,
            })
        }
    }

    fn manager(&self) -> &str {
        let usual = if self.server_side {
            SERVER_SIDE_MANAGER
        } else {
            CLIENT_SIDE_MANAGER
        };
        self.field_manager
            .as_deref()
            .filter(|name| !name.is_empty())
            .unwrap_or(usual)
    }

    fn settings(&self) -> Settings {
        Settings {
            server_side: self.server_side,
            force_conflicts: self.force_conflicts,
            dry_run: DryRun::Server,
            field_validation: "Warn",
            compare: true,
            // The explanation contains the previous object.
            explain: true,
            ..Settings::new(self.manager(), warnings())
        }
    }

    /// What is pruned, if anything is.
    async fn scope(&self, discovery: &Discovery) -> Result<Option<Scope>, HintedError> {
        if !self.prune {
            return Ok(None);
        }
        let selector = self.selector.as_deref().unwrap_or_default();
        let scope = Scope::new(discovery, &self.prune_allowlist, selector).await?;
        Ok(Some(scope))
    }

    /// The objects that pruning would delete.
    async fn pruned(
        &self,
        discovery: &Discovery,
        scope: &Scope,
        seen: &HashSet<String>,
    ) -> Result<Vec<Versions>, Trouble> {
        let warn = warnings();
        if self.prune_allowlist.is_empty() {
            warn(ALL_KINDS);
        }
        // Nothing is sent: the applier only tells what it would delete.
        let applier = Applier::new(
            discovery.clone(),
            Settings {
                dry_run: DryRun::Client,
                ..Settings::new(self.manager(), warn)
            },
        );
        let mut gone = Vec::new();
        let mut tell = |object: &Object| gone.push(object.clone());
        applier.prune(scope, seen, &mut tell).await.map_err(|e| {
            Trouble::text(format!(
                "pruning failed and could not be evaluated err: {e}"
            ))
        })?;
        let versions = |mut object: Object| {
            let name = name(&object);
            if is_secret(&object) && !self.show_secrets {
                hide(&mut object, &Map::new(), "before");
            }
            Versions {
                name,
                live: yaml(object),
                merged: None,
            }
        };
        Ok(gone.into_iter().map(versions).collect())
    }

    fn versions(&self, live: Option<&Object>, merged: &Object) -> Versions {
        let shown = |object: &Object| {
            let mut object = object.clone();
            if !self.show_managed_fields {
                object.metadata_mut().remove("managedFields");
            }
            object
        };
        let (mut old, mut new) = (live.map(shown), shown(merged));
        if is_secret(merged) && !self.show_secrets {
            mask(old.as_mut(), &mut new);
        }
        Versions {
            name: name(merged),
            live: old.map(yaml).unwrap_or_default(),
            merged: Some(yaml(new)),
        }
    }
}

fn is_secret(object: &Object) -> bool {
    object.kind() == "Secret" && object.group().is_empty()
}

fn yaml(object: Object) -> String {
    tiphys_gocompat::yaml::to_string(&object.into_value())
}

/// The file of an object in kubectl's folders: `apps.v1.Deployment.default.web`.
fn name(object: &Object) -> String {
    let gvk = object.gvk();
    let group = match object.group() {
        "" => String::new(),
        group => format!("{group}."),
    };
    format!(
        "{group}{}.{}.{}.{}",
        gvk.version,
        object.kind(),
        object.namespace(),
        object.name()
    )
}

/// An object as it is, and as it would be.
struct Versions {
    name: String,
    live: String,
    /// `None`: it would be deleted.
    merged: Option<String>,
}

impl Versions {
    /// A unified difference; `None` when they are the same.
    fn text(&self) -> Option<String> {
        let new = self.merged.as_deref().unwrap_or_default();
        if self.live == new {
            return None;
        }
        let (from, to) = (
            format!("LIVE/{}", self.name),
            format!("MERGED/{}", self.name),
        );
        let body = TextDiff::from_lines(self.live.as_str(), new)
            .unified_diff()
            .context_radius(3)
            .header(&from, &to)
            .to_string();
        Some(format!("diff -u -N {from} {to}\n{body}"))
    }
}

/// Shows the differences, or has another program show them; whether there are any.
fn show(all: &[Versions]) -> Result<bool, String> {
    if let Some(program) = Program::named() {
        let (live, merged) = (Folder::new("LIVE")?, Folder::new("MERGED")?);
        for versions in all {
            live.write(&versions.name, &versions.live)?;
            if let Some(text) = &versions.merged {
                merged.write(&versions.name, text)?;
            }
        }
        return program.run(live.path(), merged.path());
    }
    let texts: Vec<String> = all.iter().filter_map(Versions::text).collect();
    texts.iter().for_each(|text| output::print(text));
    Ok(!texts.is_empty())
}

/// Hides a Secret's values: equal values look equal, different ones only show that they differ.
fn mask(live: Option<&mut Object>, merged: &mut Object) {
    let data = |o: &Object| {
        o.0.get("data")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (old, new) = (live.as_deref().map(data).unwrap_or_default(), data(merged));
    if let Some(live) = live {
        hide(live, &new, "before");
    }
    hide(merged, &old, "after");
}

/// Hides the values of one version, and the annotation, which has them too.
fn hide(object: &mut Object, other: &Map<String, Value>, side: &str) {
    if let Some(Value::Object(values)) = object.0.get_mut("data") {
        for (key, value) in values.iter_mut() {
            let differs = other.get(key).is_some_and(|o| o != value);
            *value = if differs {
                format!("*** ({side})").into()
            } else {
                "***".into()
            };
        }
    }
    object.remove_annotation(tiphys_apimachinery::patch::last_applied::ANNOTATION);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_deleted_object_is_only_on_one_side() {
        let versions = Versions {
            name: "v1.Namespace..a".to_owned(),
            live: "kind: Namespace\n".to_owned(),
            merged: None,
        };
        assert_eq!(
            versions.text().as_deref(),
            Some(
                "diff -u -N LIVE/v1.Namespace..a MERGED/v1.Namespace..a\n--- LIVE/v1.Namespace..a\n\
                 +++ MERGED/v1.Namespace..a\n@@ -1 +0,0 @@\n-kind: Namespace\n"
            )
        );
    }

    #[test]
    fn secrets_stay_secret() {
        let secret = |v: &str| {
            Object::from_value(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": v, "same": "eA=="}}))
                .expect("a map")
        };
        let (mut old, mut new) = (secret("b2xk"), secret("bmV3"));
        mask(Some(&mut old), &mut new);
        assert_eq!(old.0["data"], json!({"k": "*** (before)", "same": "***"}));
        assert_eq!(new.0["data"], json!({"k": "*** (after)", "same": "***"}));
    }
}
