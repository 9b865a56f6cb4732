//! The flags that describe the hydrator of an Application. Main type: [`HydratorOptions`].

use tiphys_api::source::{HydrateTo, SourceHydrator};

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct HydratorOptions {
    /// Repository URL of the app dry source
    #[arg(long)]
    dry_source_repo: Option<String>,
    /// Revision of the app dry source
    #[arg(long)]
    dry_source_revision: Option<String>,
    /// Path in repository to the app directory for the dry source
    #[arg(long)]
    dry_source_path: Option<String>,
    /// The branch from which the app will sync
    #[arg(long)]
    sync_source_branch: Option<String>,
    /// The path in the repository from which the app will sync
    #[arg(long)]
    sync_source_path: Option<String>,
    /// The branch to hydrate the app to; empty: the one from which it will sync
    #[arg(long)]
    hydrate_to_branch: Option<String>,
}

impl HydratorOptions {
    /// Changes what is set.
    pub fn apply(&self, hydrator: &mut SourceHydrator) {
        let (dry, sync) = (&mut hydrator.dry_source, &mut hydrator.sync_source);
        for (field, value) in [
            (&mut dry.repo_url, &self.dry_source_repo),
            (&mut dry.target_revision, &self.dry_source_revision),
            (&mut dry.path, &self.dry_source_path),
            (&mut sync.target_branch, &self.sync_source_branch),
            (&mut sync.path, &self.sync_source_path),
        ] {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        if let Some(branch) = &self.hydrate_to_branch {
            hydrator.hydrate_to = (!branch.is_empty()).then(|| HydrateTo {
                target_branch: branch.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_set_changes() {
        let options = HydratorOptions {
            dry_source_path: Some("src/web".to_owned()),
            hydrate_to_branch: Some("env/next".to_owned()),
            ..HydratorOptions::default()
        };
        let before = json!({
            "drySource": {"repoURL": "r", "path": "src", "targetRevision": "main"},
            "syncSource": {"targetBranch": "env/dev", "path": "web"},
        });
        let mut hydrator: SourceHydrator = serde_json::from_value(before).expect("a hydrator");
        options.apply(&mut hydrator);
        assert_eq!(
            serde_json::to_value(&hydrator).expect("a value"),
            json!({
                "drySource": {"repoURL": "r", "path": "src/web", "targetRevision": "main"},
                "syncSource": {"targetBranch": "env/dev", "path": "web"},
                "hydrateTo": {"targetBranch": "env/next"},
            })
        );
        let none = HydratorOptions {
            hydrate_to_branch: Some(String::new()),
            ..HydratorOptions::default()
        };
        none.apply(&mut hydrator);
        assert_eq!(hydrator.hydrate_to, None);
    }
}
