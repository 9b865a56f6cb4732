//! `app manifests`.

use super::{AppRef, diff::tracking, local::Local, positions};
use crate::{
    client::{Client, ConnectArgs, Failure},
    output,
};
use serde_json::Value;
use std::path::PathBuf;
use tiphys_api::{
    resource::ResourceDiff,
    rpc::{
        application::{ApplicationManifestQuery, ManagedResourcesResponse, ResourcesQuery},
        repository::ManifestResponse,
    },
};

#[derive(clap::Args)]
pub struct Manifests {
    /// The application
    app: String,
    /// Source of manifests. One of: live|git
    #[arg(long, default_value = "git")]
    source: String,
    /// Show manifests at a specific revision
    #[arg(long)]
    revision: Option<String>,
    #[command(flatten)]
    revisions: Revisions,
    /// If set, show locally-generated manifests: the path of the folder with them, or with the
    /// chart
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// Path to the local repository root. Used together with --local allows setting the repository
    /// root
    #[arg(long, value_name = "DIR", default_value = ".")]
    local_repo_root: PathBuf,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

/// Revisions of an Application with several sources.
#[derive(clap::Args, Clone, Default)]
pub struct Revisions {
    /// Show manifests at specific revisions for the source at position in source-positions
    #[arg(long)]
    pub revisions: Vec<String>,
    /// List of source positions. Counting starts at 1
    #[arg(long, value_delimiter = ',')]
    pub source_positions: Vec<i64>,
    /// List of source names
    #[arg(long)]
    pub source_names: Vec<String>,
}

impl Revisions {
    pub fn check(&self) -> Result<(), Failure> {
        let same_length = |flag: &str| {
            Failure::error(format!(
                "While using --revisions and --{flag}, length of values for both flags should be same."
            ))
        };
        if !self.source_names.is_empty() && !self.source_positions.is_empty() {
            return Err(Failure::error(
                "Only one of source-positions and source-names can be specified.",
            ));
        }
        if !self.source_positions.is_empty() && self.revisions.len() != self.source_positions.len()
        {
            return Err(same_length("source-positions"));
        }
        if !self.source_names.is_empty() && self.revisions.len() != self.source_names.len() {
            return Err(same_length("source-names"));
        }
        if self.source_positions.iter().any(|p| *p <= 0) {
            return Err(Failure::fatal(
                "source-position cannot be less than or equal to 0, Counting starts at 1",
            ));
        }
        Ok(())
    }

    /// Replaces names by positions.
    pub async fn resolve(&mut self, client: &Client, app: &AppRef) -> Result<(), Failure> {
        if !self.source_names.is_empty() {
            self.source_positions =
                positions(&super::get(client, app, None).await?, &self.source_names)?;
        }
        Ok(())
    }
}

/// The manifests in Git at a revision.
pub async fn render(
    client: &Client,
    app: &AppRef,
    revision: &str,
    several: &Revisions,
    fresh: bool,
) -> Result<Vec<Value>, Failure> {
    let query = ApplicationManifestQuery {
        name: app.name.clone(),
        revision: Some(revision.to_owned()),
        app_namespace: app.namespace(),
        revisions: several.revisions.clone(),
        source_positions: several.source_positions.clone(),
        no_cache: Some(fresh).filter(|f| *f),
        ..Default::default()
    };
    let response: ManifestResponse = client
        .unary("/application.ApplicationService/GetManifests", query)
        .await?;
    response
        .manifests
        .iter()
        .map(|text| object(text))
        .filter(|o| !matches!(o, Ok(Value::Null)))
        .collect()
}

/// The comparison of each of the Application's resources.
pub async fn managed(client: &Client, app: &AppRef) -> Result<Vec<ResourceDiff>, Failure> {
    let query = ResourcesQuery {
        application_name: app.name.clone(),
        app_namespace: app.namespace(),
        ..Default::default()
    };
    let response: ManagedResourcesResponse = client
        .unary("/application.ApplicationService/ManagedResources", query)
        .await?;
    Ok(response.items)
}

/// An object that the server sent as text; null for an empty text.
pub fn object(text: &str) -> Result<Value, Failure> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text)
        .map_err(|e| Failure::error(format!("the server sent a manifest that is not JSON: {e}")))
}

impl Manifests {
    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        self.revisions.check()?;
        if !matches!(self.source.as_str(), "git" | "live") {
            return Err(Failure::fatal(format!(
                "Unknown source type '{}'",
                self.source
            )));
        }
        let app = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        self.revisions.resolve(&client, &app).await?;
        let revision = self.revision.as_deref().unwrap_or_default();
        let several = !self.revisions.source_positions.is_empty();
        let objects = match &self.local {
            Some(folder) if self.source == "git" => {
                let app = super::get(&client, &app, None).await?;
                let tracking = tracking(&app, &super::settings(&client).await?);
                Local {
                    folder,
                    root: &self.local_repo_root,
                }
                .objects(&client, &app, &tracking)
                .await?
            }
            None if self.source == "git" && (several || !revision.is_empty()) => {
                render(&client, &app, revision, &self.revisions, false).await?
            }
            _ => {
                let resources = managed(&client, &app).await?;
                let states = resources.iter().map(|r| {
                    if self.source == "live" {
                        &r.live_state
                    } else {
                        &r.target_state
                    }
                });
                states.map(|text| object(text)).collect::<Result<_, _>>()?
            }
        };
        output::print(
            &objects
                .iter()
                .filter(|o| !o.is_null())
                .map(document)
                .collect::<Result<String, _>>()?,
        );
        Ok(())
    }
}

fn document(object: &Value) -> Result<String, Failure> {
    Ok(format!("---\n{}\n", output::yaml(object)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_belong_to_sources() {
        let r = |revisions: &[&str], positions: &[i64], names: &[&str]| Revisions {
            revisions: revisions.iter().map(|r| (*r).to_owned()).collect(),
            source_positions: positions.to_vec(),
            source_names: names.iter().map(|r| (*r).to_owned()).collect(),
        };
        assert!(r(&["a", "b"], &[1, 2], &[]).check().is_ok());
        assert!(r(&["a"], &[], &["x"]).check().is_ok());
        for bad in [
            r(&["a"], &[1], &["x"]),
            r(&["a"], &[1, 2], &[]),
            r(&["a"], &[], &["x", "y"]),
            r(&["a"], &[0], &[]),
        ] {
            assert!(bad.check().is_err());
        }
    }
}
