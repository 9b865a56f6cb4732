//! What the API server says of the settings and of the cluster that local files are rendered for.
//!
//! Main type: [`Facts`].

use crate::{
    client::{Client, Failure},
    commands::app::settings,
    output::log,
};
use tiphys_api::{
    Application,
    cluster::Cluster,
    repository::KustomizeVersion,
    rpc::{cluster::ClusterQuery, settings::Settings},
    source::ApplicationSource,
};
use tiphys_render::ClusterFacts;
use tiphys_repo::{KustomizeVersions, kustomize_build_options};

/// What `helm.valuesFileSchemes` is unless it is set. The API does not tell what it is set to.
const SCHEMES: [&str; 2] = ["https", "http"];

pub struct Facts {
    pub cluster: ClusterFacts,
    /// What `spec.source.kustomize.version` may name.
    pub kustomize_versions: KustomizeVersions,
}

impl Facts {
    /// For a source of an Application.
    pub async fn of(
        client: &Client,
        app: &Application,
        source: &ApplicationSource,
    ) -> Result<Self, Failure> {
        let destination = &app.spec.destination;
        let query = ClusterQuery {
            server: destination.server.clone(),
            name: destination.name.clone(),
            id: None,
        };
        let cluster: Cluster = client.unary("/cluster.ClusterService/Get", query).await?;
        if cluster.info.server_version.is_empty() {
            // Nothing has been deployed to it, or it does not answer: Argo CD says nothing then.
            log::info(&format!(
                "the version of cluster {} is not known: charts see Helm's default",
                cluster.server
            ));
        }
        let settings = settings(client).await?;
        Ok(Self::new(cluster, &settings, source))
    }

    /// The API does not tell which tools are disabled, either: all are enabled here.
    fn new(cluster: Cluster, settings: &Settings, source: &ApplicationSource) -> Self {
        let mut api_versions = cluster.info.api_versions;
        api_versions.sort();
        api_versions.dedup();
        let mut kustomize = settings.kustomize_options.clone().unwrap_or_default();
        let named = |name: &String| KustomizeVersion {
            name: Some(name.clone()),
            ..KustomizeVersion::default()
        };
        let names = settings.kustomize_versions.iter().map(named);
        kustomize.versions.extend(names);
        Self {
            cluster: ClusterFacts {
                kube_version: cluster.info.server_version,
                api_versions: api_versions.into(),
                value_file_schemes: SCHEMES.map(str::to_owned).into(),
                switched_off: Vec::new(),
                kustomize_build_options: kustomize_build_options(&kustomize, source),
            },
            kustomize_versions: KustomizeVersions::of(&kustomize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_servers_settings_and_the_clusters_versions_count() {
        let cluster: Cluster = serde_json::from_value(json!({
            "info": {"serverVersion": "v1.30.2", "apiVersions": ["v1", "apps/v1", "v1"]},
        }))
        .expect("a cluster");
        let settings: Settings = serde_json::from_value(json!({
            "kustomizeOptions": {"BuildOptions": "--enable-helm"},
            "kustomizeVersions": ["v4.5.7"],
        }))
        .expect("settings");
        let facts = Facts::new(cluster, &settings, &ApplicationSource::default());
        let expected = ClusterFacts {
            kube_version: "v1.30.2".to_owned(),
            api_versions: ["apps/v1".to_owned(), "v1".to_owned()].into(),
            value_file_schemes: vec!["https".to_owned(), "http".to_owned()],
            switched_off: Vec::new(),
            kustomize_build_options: "--enable-helm".to_owned(),
        };
        assert_eq!(facts.cluster, expected);
        let check = |name: &str| facts.kustomize_versions.check(name).map(|w| w.is_some());
        assert_eq!((check(""), check("v4.5.7")), (Ok(false), Ok(true)));
        assert!(check("v1.2.3").is_err());
    }
}
