//! `install`: the manifests of the folder `deploy`, printed or applied. Main type:
//! [`InstallCommand`].

use super::apply::{HintedError, finish, warnings};
use crate::{client::Failure, kubectl::kube::KubeArgs, output};
use serde_json::Value;
use tiphys_apimachinery::{Gvk, Object};
use tiphys_cluster::{
    apply::{Applier, Item, Settings},
    request::Call,
};
use tiphys_gocompat::yaml;

/// In the order of deploy/kustomization.yaml.
const MANIFESTS: [&str; 8] = [
    include_str!("../../../../deploy/namespace.yaml"),
    include_str!("../../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../../deploy/crds/applicationset-crd.yaml"),
    include_str!("../../../../deploy/crds/appproject-crd.yaml"),
    include_str!("../../../../deploy/crds/apprepository-crd.yaml"),
    include_str!("../../../../deploy/rbac.yaml"),
    include_str!("../../../../deploy/control-plane.yaml"),
    include_str!("../../../../deploy/network-policy.yaml"),
];
const NAMESPACE: &str = "argocd";
const IMAGE: &str = "tiphys:latest";
const MANAGER: &str = "tiphys-install";
const WITHOUT_NAMESPACE: [&str; 4] = [
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
];

/// Deleting these deletes the Applications.
const KEEPS_APPLICATIONS: [&str; 2] = ["Namespace", "CustomResourceDefinition"];
const WARNING: &str = "\
# To uninstall, do not `kubectl delete` this file: with the CRDs and the namespace every Application goes, and what those with a finalizer
# deployed. Delete what `tiphys install --print --without-crds` prints instead; see docs/guide/uninstall.md.
";

/// Install the control plane on a cluster
///
/// Applies the manifests of the folder deploy/, with the namespace and the image of the flags;
/// --print prints them instead. Settings, Secrets, Applications and projects that are there stay as
/// they are, and so do CRDs that something else installed, such as Argo CD.
///
/// Scale Argo CD's application controller to zero first: two controllers must not act on the same
/// Applications.
#[derive(clap::Args)]
pub struct InstallCommand {
    /// Print the manifests instead of applying them
    #[arg(long)]
    print: bool,
    /// Leave out the CRDs and the namespace: deleting what is printed then leaves every
    /// Application, project and setting
    #[arg(long)]
    without_crds: bool,
    /// Image of the control plane; deploy/Containerfile builds one
    #[arg(long, default_value = IMAGE, value_name = "IMAGE")]
    image: String,
    /// Take over fields that another tool owns, such as those of an installation made with kubectl
    #[arg(long)]
    force_conflicts: bool,
    #[command(flatten)]
    kube: KubeArgs,
}

impl InstallCommand {
    pub async fn run(self) -> Result<(), Failure> {
        let namespace = self.kube.namespace().unwrap_or(NAMESPACE);
        let mut objects = manifests(namespace, &self.image).map_err(Failure::error)?;
        if self.without_crds {
            objects.retain(|o| !KEEPS_APPLICATIONS.contains(&o.kind()));
        }
        if self.print {
            let texts: Vec<String> = objects
                .into_iter()
                .map(|o| yaml::to_string(&o.into_value()))
                .collect();
            let warning = if self.without_crds { "" } else { WARNING };
            output::print(&format!("{warning}{}", texts.join("---\n")));
            return Ok(());
        }
        finish(apply(&self.kube, objects, self.force_conflicts).await, 1)?;
        output::print(&format!(
            "\nThe control plane is coming up in namespace {namespace}. Its page, and the first password of admin:\n  \
             kubectl -n {namespace} port-forward service/tiphys 8080:443    # https://localhost:8080\n  \
             {} admin initial-password -n {namespace}\n",
            crate::program_name()
        ));
        Ok(())
    }
}

/// The manifests to install.
fn manifests(namespace: &str, image: &str) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for text in MANIFESTS {
        for document in
            yaml::parse_documents(text, &yaml::Limits::default()).map_err(|e| e.to_string())?
        {
            let mut value = document.value;
            if let Some(subjects) = value.get_mut("subjects").and_then(Value::as_array_mut) {
                subjects
                    .iter_mut()
                    .for_each(|s| s["namespace"] = namespace.into());
            }
            if let Some(containers) = value
                .pointer_mut("/spec/template/spec/containers")
                .and_then(Value::as_array_mut)
            {
                containers
                    .iter_mut()
                    .for_each(|c| c["image"] = image.into());
            }
            let mut object = Object::from_value(value).map_err(|e| e.to_string())?;
            match object.kind() {
                "Namespace" => object.set_name(namespace),
                kind if !WITHOUT_NAMESPACE.contains(&kind) => object.set_namespace(namespace),
                _ => {}
            }
            objects.push(object);
        }
    }
    Ok(objects)
}

async fn apply(
    kube: &KubeArgs,
    objects: Vec<Object>,
    force_conflicts: bool,
) -> Result<(), HintedError> {
    let target = kube.connect().await?;
    let applier = Applier::new(
        target.discovery.clone(),
        Settings {
            server_side: true,
            force_conflicts,
            ..Settings::new(MANAGER, warnings())
        },
    );
    for object in objects {
        let gvk = Gvk::from_api_version(object.api_version(), object.kind());
        let kind = target
            .discovery
            .resolve(&gvk)
            .await
            .map_err(tiphys_cluster::apply::Failure::from)?;
        let namespace = if kind.namespaced {
            object.namespace()
        } else {
            ""
        };
        let name = kind.print_name(object.name());
        if object.kind() == "CustomResourceDefinition" {
            let path = kind.object_path(namespace, object.name());
            let live = target
                .discovery
                .cluster()
                .http()
                .json::<Object>(&Call::get(path))
                .await;
            if live.is_ok_and(|live| !is_ours(&live)) {
                output::print(&format!(
                    "{name} left as it is: something else installed it\n"
                ));
                continue;
            }
        }
        let applied = applier
            .apply(&Item {
                kind,
                object,
                source: "deploy".to_owned(),
            })
            .await?;
        output::print(&format!("{name} {}\n", applied.verb));
    }
    Ok(())
}

/// Whether this command has applied an object before.
fn is_ours(live: &Object) -> bool {
    let managers = live.metadata("managedFields").and_then(Value::as_array);
    managers.is_some_and(|entries| entries.iter().any(|e| e["manager"] == MANAGER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_are_those_of_the_kustomization() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let read =
            |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of deploy/");
        let parse = |text: &str| {
            yaml::parse_documents(text, &yaml::Limits::default())
                .expect("valid")
                .remove(0)
                .value
        };
        let kustomization = parse(&read("kustomization.yaml"));
        let names: Vec<&str> = kustomization["resources"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let texts: Vec<String> = names.iter().map(|name| read(name)).collect();
        assert_eq!(texts, MANIFESTS);
        assert_eq!(kustomization["namespace"], NAMESPACE);
    }

    #[test]
    fn namespace_and_image_are_filled_in_wherever_they_are_named() {
        let objects = manifests("cd", "example.test/tiphys:1").expect("they can be read");
        let shown: Vec<String> = objects
            .iter()
            .map(|o| format!("{}/{}/{}", o.kind(), o.namespace(), o.name()))
            .collect();
        assert_eq!(
            shown,
            [
                "Namespace//cd",
                "CustomResourceDefinition//applications.argoproj.io",
                "CustomResourceDefinition//applicationsets.argoproj.io",
                "CustomResourceDefinition//appprojects.argoproj.io",
                "CustomResourceDefinition//apprepositories.kubeapps.com",
                "ServiceAccount/cd/tiphys",
                "ClusterRole//tiphys",
                "ClusterRoleBinding//tiphys",
                "Deployment/cd/tiphys",
                "Service/cd/tiphys",
                "Service/cd/tiphys-metrics",
                "NetworkPolicy/cd/tiphys"
            ]
        );
        let text: String = objects
            .into_iter()
            .map(|o| yaml::to_string(&o.into_value()))
            .collect();
        assert!(
            text.contains("image: example.test/tiphys:1") && !text.contains("namespace: argocd")
        );
    }
}
