//! An Application of a chart's version, before it exists. Main type: [`Install`].

use super::{
    Facts, Manifests, Origin, annotations, digest_of, merge::Values, render::objects, schema,
};
use crate::{CatalogError, blocking, model::ChartVersion, sync::CatalogSync};
use serde_json::{Value, json};
use tiphys_api::{
    Application,
    constants::{API_VERSION, IN_CLUSTER},
};

/// How a chart is installed.
#[derive(Clone, Debug, Default)]
pub struct Install {
    /// Of the Application and the release; empty: the chart's name.
    pub name: String,
    /// Empty: `default`.
    pub project: String,
    /// Empty: the cluster of the control plane.
    pub dest_server: String,
    /// Empty: the name.
    pub dest_namespace: String,
    pub values: Values,
    pub auto_sync: bool,
}

/// What an install would write, and what that would apply.
pub struct Preview {
    pub application: Application,
    pub manifests: Manifests,
    /// What these show, with the values of Secrets.
    pub objects: Vec<Value>,
    /// What is worth to know.
    pub notes: Vec<String>,
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

impl Install {
    /// As it would be committed to Git. `repository` is what users call it.
    pub fn application(
        &self,
        origin: &Origin,
        repository: &str,
        version: &ChartVersion,
        digest: &str,
    ) -> Value {
        let name = or(&self.name, &origin.chart.name);
        let mut helm = json!({"releaseName": name});
        if !self.values.is_empty() {
            helm["valuesObject"] = self.values.clone().into();
        }
        let (url, chart) = origin.place();
        let revision = origin.revision(version);
        let mut policy = json!({"syncOptions": ["CreateNamespace=true"]});
        if self.auto_sync {
            policy["automated"] = json!({});
        }
        let mut annotations = annotations(repository, &chart, revision, digest);
        annotations.retain(|_, value| !value.is_empty());
        json!({
            "apiVersion": API_VERSION,
            "kind": "Application",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "project": or(&self.project, "default"),
                "source": {
                    "repoURL": url,
                    "chart": chart,
                    "targetRevision": revision,
                    "helm": helm,
                },
                "destination": {
                    "server": or(&self.dest_server, IN_CLUSTER),
                    "namespace": or(&self.dest_namespace, name),
                },
                "syncPolicy": policy,
            },
        })
    }

    /// The Application and what it would apply. The archive must be the one that the catalogue
    /// knows, and the values must fit the chart's schema.
    ///
    /// # Errors
    /// It is another one, or does not render.
    pub async fn preview(
        &self,
        visitor: &CatalogSync,
        origin: &Origin,
        (repository, version): (&str, &ChartVersion),
    ) -> Result<Preview, CatalogError> {
        let archive = visitor.archive(&origin.chart, version).await?;
        let digest = digest_of(&version.digest, &archive);
        let application = self.application(origin, repository, version, &digest);
        let mut application: Application = serde_json::from_value(application)?;
        let source = application.spec.source.clone().unwrap_or_default();
        let facts = Facts {
            name: application.metadata.name.clone(),
            namespace: application.spec.destination.namespace.clone(),
            project: application.spec.project.clone(),
            now: jiff::Timestamp::now(),
        };
        let rendered = blocking(move || {
            let (objects, unknown) = objects(&archive, &source, &facts)?;
            Ok((Manifests::of(objects.clone()), objects, unknown))
        });
        let (manifests, objects, unknown) = rendered.await?;
        if let Some(source) = application
            .spec
            .source
            .as_mut()
            .filter(|_| !unknown.is_empty())
        {
            // Else nobody could render it.
            source.helm.get_or_insert_default().skip_schema_validation = true;
        }
        Ok(Preview {
            application,
            manifests,
            objects,
            notes: unknown
                .iter()
                .map(|reference| schema::note(reference))
                .collect(),
        })
    }
}
