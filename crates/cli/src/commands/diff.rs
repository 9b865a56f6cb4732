//! `diff`: what an apply would change, as `kubectl diff` shows it. Main type: [`DiffCommand`].

use super::apply::{
    HintedError, finish,
    read::{self, Rules},
    source::FileArgs,
    warnings,
};
use crate::{
    client::Failure as Exit,
    kubectl::{failure::Trouble, kube::KubeArgs},
    output,
};
use serde_json::Value;
use similar::TextDiff;
use tiphys_apimachinery::Object;
use tiphys_cluster::apply::{Applier, CLIENT_SIDE_MANAGER, DryRun, SERVER_SIDE_MANAGER, Settings};

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
        let default_manager = if self.server_side {
            SERVER_SIDE_MANAGER
        } else {
            CLIENT_SIDE_MANAGER
        };
        let settings = Settings {
            server_side: self.server_side,
            force_conflicts: self.force_conflicts,
            dry_run: DryRun::Server,
            field_validation: "Warn",
            compare: true,
            // The explanation contains the previous object.
            explain: true,
            ..Settings::new(
                self.field_manager
                    .as_deref()
                    .filter(|name| !name.is_empty())
                    .unwrap_or(default_manager),
                warnings(),
            )
        };
        let target = self.kube.connect().await?;
        let applier = Applier::new(target.discovery.clone(), settings);
        let rules = Rules {
            validate: false,
            selector: self.selector.clone().unwrap_or_default(),
        };
        let found = read::read(&self.files, &target, &rules).await?;
        let mut troubles: Vec<Trouble> = found.trouble.into_iter().collect();
        let mut texts = Vec::new();
        for item in &found.items {
            match applier.apply(item).await {
                Ok(applied) => {
                    texts.extend(self.text(applied.before.as_ref(), &applied.live));
                }
                Err(failure) => troubles.push(failure.into()),
            }
        }
        // By name, whatever the order of the files, like the folders that kubectl compares.
        texts.sort();
        let differs = !texts.is_empty();
        texts.iter().for_each(|text| output::print(text));
        if troubles.is_empty() {
            Ok(differs)
        } else {
            Err(HintedError {
                trouble: Trouble::Many(troubles).flat(),
                hints: found.hints,
            })
        }
    }

    /// A unified difference; `None` when the objects are the same.
    fn text(&self, live: Option<&Object>, merged: &Object) -> Option<String> {
        let secret = merged.kind() == "Secret" && merged.group().is_empty();
        let shown = |object: &Object| {
            let mut object = object.clone();
            if !self.show_managed_fields {
                object.metadata_mut().remove("managedFields");
            }
            object
        };
        let (mut old, mut new) = (live.map(shown), shown(merged));
        if secret {
            mask(old.as_mut(), &mut new);
        }
        let old = old
            .map(|o| tiphys_gocompat::yaml::to_string(&o.into_value()))
            .unwrap_or_default();
        let gvk = merged.gvk();
        let name = [
            merged.group(),
            gvk.version.as_str(),
            merged.kind(),
            merged.namespace(),
            merged.name(),
        ];
        let name = name
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".");
        let new = tiphys_gocompat::yaml::to_string(&new.into_value());
        if old == new {
            return None;
        }
        let (from, to) = (format!("LIVE/{name}"), format!("MERGED/{name}"));
        let body = TextDiff::from_lines(&old, &new)
            .unified_diff()
            .context_radius(3)
            .header(&from, &to)
            .to_string();
        Some(format!("diff -u -N {from} {to}\n{body}"))
    }
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
    let hide = |object: &mut Object, other: &serde_json::Map<String, Value>, side: &str| {
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
    };
    if let Some(live) = live {
        hide(live, &new, "before");
    }
    hide(merged, &old, "after");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
