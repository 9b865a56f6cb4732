//! The flags that describe a project, and projects in files. Main type: [`ProjectOptions`].

use super::keys::short_id;
use crate::client::{Failure, exit};
use tiphys_api::{
    application::ApplicationDestination,
    constants::API_VERSION,
    meta::GroupKind,
    project::{
        AppProject, AppProjectSpec, ApplicationDestinationServiceAccount,
        ClusterResourceRestrictionItem, KindList, OrphanedResourcesMonitorSettings, SignatureKey,
    },
};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// A list that is given replaces the project's.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct ProjectOptions {
    /// Project description
    #[arg(long)]
    description: Option<String>,
    /// Permitted destination server and namespace (e.g. https://192.168.99.100:8443,default)
    #[arg(long = "dest", short = 'd', value_name = "SERVER,NAMESPACE")]
    dest: Option<Vec<String>>,
    /// Permitted source repository URL
    #[arg(long = "src", short = 's', value_name = "URL")]
    src: Option<Vec<String>>,
    /// GnuPG public key IDs for commit signature verification
    #[arg(long, value_delimiter = ',', value_name = "KEY-ID")]
    signature_keys: Option<Vec<String>>,
    /// Enables orphaned resources monitoring
    #[arg(long)]
    orphaned_resources: Option<bool>,
    /// Specifies if applications should have a warning condition when orphaned resources detected
    #[arg(long)]
    orphaned_resources_warn: Option<bool>,
    /// List of allowed cluster level resources, optionally with group and name (e.g. ClusterRole,
    /// apiextensions.k8s.io/CustomResourceDefinition, /Namespace/team1-*)
    #[arg(long, value_name = "KIND")]
    allow_cluster_resource: Option<Vec<String>>,
    /// List of denied cluster level resources, optionally with group and name (e.g. ClusterRole,
    /// apiextensions.k8s.io/CustomResourceDefinition, /Namespace/kube-*)
    #[arg(long, value_name = "KIND")]
    deny_cluster_resource: Option<Vec<String>>,
    /// List of allowed namespaced resources
    #[arg(long, value_name = "KIND")]
    allow_namespaced_resource: Option<Vec<String>>,
    /// List of denied namespaced resources
    #[arg(long, value_name = "KIND")]
    deny_namespaced_resource: Option<Vec<String>>,
    /// List of source namespaces for applications
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    source_namespaces: Option<Vec<String>>,
    /// Destination server, namespace and target service account (e.g.
    /// https://192.168.99.100:8443,default,default-sa)
    #[arg(long, value_name = "SERVER,NAMESPACE,ACCOUNT")]
    dest_service_accounts: Option<Vec<String>>,
}

/// Ends the program as Go's standard logger does, whose messages are not those of the log.
fn ended(message: &str) -> Failure {
    let now = jiff::Zoned::now();
    eprintln!("{} {message}", now.strftime("%Y/%m/%d %H:%M:%S"));
    Failure::exit(exit::FAILED)
}

impl ProjectOptions {
    /// Whether no flag would change a project.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Changes a project as the flags say.
    pub fn apply(&self, spec: &mut AppProjectSpec) -> Result<(), Failure> {
        self.check().map_err(|message| ended(&message))?;
        if let Some(text) = &self.description {
            spec.description.clone_from(text);
        }
        set(&mut spec.destinations, &self.dest, destination);
        set(&mut spec.source_repos, &self.src, |url| {
            Some(url.to_owned())
        });
        set(&mut spec.signature_keys, &self.signature_keys, |key| {
            let key_id = Some(short_id(key).ok()?.to_owned());
            Some(SignatureKey { key_id })
        });
        let items = [
            (
                &mut spec.cluster_resource_whitelist,
                &self.allow_cluster_resource,
            ),
            (
                &mut spec.cluster_resource_blacklist,
                &self.deny_cluster_resource,
            ),
        ];
        for (list, flag) in items {
            set(list, flag, cluster_kind);
        }
        if self.allow_namespaced_resource.is_some() {
            let mut allowed = Vec::new();
            set(&mut allowed, &self.allow_namespaced_resource, kind);
            // As in Argo CD, values that name no kind are no list.
            spec.namespace_resource_whitelist = (!allowed.is_empty()).then_some(KindList(allowed));
        }
        set(
            &mut spec.namespace_resource_blacklist,
            &self.deny_namespaced_resource,
            kind,
        );
        set(&mut spec.source_namespaces, &self.source_namespaces, |n| {
            Some(n.to_owned())
        });
        set(
            &mut spec.destination_service_accounts,
            &self.dest_service_accounts,
            service_account,
        );
        self.apply_orphaned(spec);
        Ok(())
    }

    /// A value that cannot be read stops everything.
    fn check(&self) -> Result<(), String> {
        for text in self.dest.iter().flatten() {
            destination(text).ok_or_else(|| {
                format!("Expected destination of the form: server,namespace. Received: {text}")
            })?;
        }
        for text in self.dest_service_accounts.iter().flatten() {
            service_account(text).ok_or_else(|| {
                format!(
                    "Expected destination service account of the form: server,namespace, \
                     defaultServiceAccount. Received: {text}"
                )
            })?;
        }
        let mut keys = self.signature_keys.iter().flatten();
        keys.try_for_each(|key| short_id(key).map(drop))
    }

    /// The two flags together replace the settings: `--orphaned-resources=false` alone disables
    /// the monitoring.
    fn apply_orphaned(&self, spec: &mut AppProjectSpec) {
        let (enabled, warn) = (self.orphaned_resources, self.orphaned_resources_warn);
        if enabled.is_none() && warn.is_none() {
            return;
        }
        let settings = OrphanedResourcesMonitorSettings {
            warn,
            ignore: Vec::new(),
        };
        let is_on = enabled == Some(true) || warn.is_some();
        spec.orphaned_resources = is_on.then_some(settings);
    }
}

fn set<T>(list: &mut Vec<T>, flag: &Option<Vec<String>>, read: impl Fn(&str) -> Option<T>) {
    if let Some(texts) = flag {
        *list = texts.iter().filter_map(|text| read(text)).collect();
    }
}

fn destination(text: &str) -> Option<ApplicationDestination> {
    let [server, namespace] = text.split(',').collect::<Vec<_>>()[..] else {
        return None;
    };
    Some(ApplicationDestination {
        server: server.to_owned(),
        namespace: namespace.to_owned(),
        name: String::new(),
    })
}

fn service_account(text: &str) -> Option<ApplicationDestinationServiceAccount> {
    let [server, namespace, account] = text.split(',').collect::<Vec<_>>()[..] else {
        return None;
    };
    Some(ApplicationDestinationServiceAccount {
        server: server.to_owned(),
        namespace: namespace.to_owned(),
        default_service_account: account.to_owned(),
    })
}

/// `kind`, `group/kind` or `group/kind/name`; anything longer is left out, as upstream does.
fn cluster_kind(text: &str) -> Option<ClusterResourceRestrictionItem> {
    let (group, kind, name) = match text.split('/').collect::<Vec<_>>()[..] {
        [kind] => ("", kind, ""),
        [group, kind] => (group, kind, ""),
        [group, kind, name] => (group, kind, name),
        _ => return None,
    };
    Some(ClusterResourceRestrictionItem {
        group: group.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    })
}

/// `kind` or `group/kind`.
fn kind(text: &str) -> Option<GroupKind> {
    let (group, kind) = match text.split('/').collect::<Vec<_>>()[..] {
        [kind] => ("", kind),
        [group, kind] => (group, kind),
        _ => return None,
    };
    Some(GroupKind {
        group: group.to_owned(),
        kind: kind.to_owned(),
    })
}

/// The project that a verb creates: from a file, a URL or standard input (`-`), or new with a name;
/// then with what the flags say.
pub async fn project(
    names: &[String],
    file: Option<&str>,
    options: &ProjectOptions,
) -> Result<AppProject, Failure> {
    let mut project = match (file.filter(|f| !f.is_empty()), names) {
        (Some("-"), _) => parse(
            &read("-")
                .await
                .map_err(|e| Failure::error(format!("unable to read manifest from stdin: {e}")))?,
        )
        .map_err(|e| Failure::error(format!("unable to read manifest from stdin: {e}")))?,
        (Some(file), names) => {
            let failed = |e: String| Failure::error(format!("error reading proj from uri: {e}"));
            let project = parse(&read(file).await.map_err(failed)?).map_err(failed)?;
            if let [name] = names
                && *name != project.metadata.name
            {
                return Err(Failure::error(format!(
                    "project name '{name}' does not match project spec metadata.name '{}'",
                    project.metadata.name
                )));
            }
            project
        }
        (None, [name, ..]) => {
            let mut project = AppProject::default();
            project.metadata.name.clone_from(name);
            project
        }
        (None, []) => {
            return Err(Failure::misuse());
        }
    };
    API_VERSION.clone_into(&mut project.api_version);
    "AppProject".clone_into(&mut project.kind);
    options.apply(&mut project.spec)?;
    Ok(project)
}

async fn read(name: &str) -> Result<Vec<u8>, String> {
    crate::commands::apply::source::read_one(name).await
}

fn parse(bytes: &[u8]) -> Result<AppProject, String> {
    let value = yaml::parse_document(bytes, &Limits::default(), Duplicates::LastWins)
        .map_err(|e| e.to_string())?;
    if value.is_null() {
        return Ok(AppProject::default());
    }
    serde_json::from_value(value).map_err(|e| format!("not a valid AppProject: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};
    use serde_json::json;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        options: ProjectOptions,
    }

    fn options(words: &[&str]) -> ProjectOptions {
        let matches = crate::flags::adapt(Program::command())
            .try_get_matches_from([&["set"], words].concat())
            .expect("valid flags");
        Program::from_arg_matches(&matches)
            .expect("valid values")
            .options
    }

    /// The spec that flags make of another one.
    fn applied(spec: serde_json::Value, words: &[&str]) -> serde_json::Value {
        let mut spec: AppProjectSpec = serde_json::from_value(spec).expect("a spec");
        options(words).apply(&mut spec).expect("valid values");
        serde_json::to_value(spec).expect("a value")
    }

    #[test]
    fn flags_replace_what_they_name() {
        let before = json!({"description": "old", "sourceRepos": ["a"], "sourceNamespaces": ["x"]});
        for (words, after) in [
            (
                &["--description", ""][..],
                json!({"sourceRepos": ["a"], "sourceNamespaces": ["x"]}),
            ),
            (
                &["-s", "b", "--src", "c,d"],
                json!({"description": "old", "sourceRepos": ["b", "c,d"],
                    "sourceNamespaces": ["x"]}),
            ),
            (
                &["--source-namespaces", "y,z"],
                json!({"description": "old", "sourceRepos": ["a"],
                    "sourceNamespaces": ["y", "z"]}),
            ),
        ] {
            assert_eq!(applied(before.clone(), words), after, "{words:?}");
        }
    }

    #[test]
    fn values_of_several_parts() {
        let words = [
            "-d",
            "https://x,y",
            "--dest-service-accounts",
            "https://x,y,sa",
            "--allow-cluster-resource",
            "*/*",
            "--allow-cluster-resource",
            "/Namespace/team-*",
            "--deny-cluster-resource",
            "ClusterRole",
            "--allow-namespaced-resource",
            "apps/Deployment",
            "--deny-namespaced-resource",
            "/Secret",
            "--deny-namespaced-resource",
            "a/b/c/d",
            "--signature-keys",
            "ABCDEF0123456789,0123456789ABCDEF012345671234567890ABCDEF",
        ];
        let expected = json!({
            "destinations": [{"server": "https://x", "namespace": "y"}],
            "destinationServiceAccounts": [
                {"server": "https://x", "namespace": "y", "defaultServiceAccount": "sa"}],
            "clusterResourceWhitelist": [
                {"group": "*", "kind": "*"},
                {"group": "", "kind": "Namespace", "name": "team-*"}],
            "clusterResourceBlacklist": [{"group": "", "kind": "ClusterRole"}],
            "namespaceResourceWhitelist": [{"group": "apps", "kind": "Deployment"}],
            "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
            "signatureKeys": [{"keyID": "ABCDEF0123456789"}, {"keyID": "1234567890ABCDEF"}],
        });
        assert_eq!(applied(json!({}), &words), expected);
    }

    #[test]
    fn orphaned_resources_are_one_setting_of_two_flags() {
        let ignored = json!({"orphanedResources": {"ignore": [{"kind": "Secret"}]}});
        for (words, after) in [
            (
                &["--orphaned-resources"][..],
                json!({"orphanedResources": {}}),
            ),
            (&["--orphaned-resources=false"], json!({})),
            (
                &["--orphaned-resources-warn"],
                json!({"orphanedResources": {"warn": true}}),
            ),
            (
                &["--orphaned-resources-warn=false"],
                json!({"orphanedResources": {"warn": false}}),
            ),
            (
                &["--src", "a"],
                json!({"sourceRepos": ["a"],
                "orphanedResources": {"ignore": [{"kind": "Secret"}]}}),
            ),
        ] {
            assert_eq!(applied(ignored.clone(), words), after, "{words:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_changes_nothing() {
        for (words, message) in [
            (
                &["-d", "bad"][..],
                "Expected destination of the form: server,namespace. Received: bad",
            ),
            (
                &["--dest-service-accounts", "a,b"],
                "Expected destination service account of the form: server,namespace, \
                 defaultServiceAccount. Received: a,b",
            ),
            (
                &["--signature-keys", "ABCDEF0123456789,x"],
                "'x' is not a valid GnuPG key ID",
            ),
        ] {
            let words = [&["--description", "d"], words].concat();
            assert_eq!(options(&words).check(), Err(message.to_owned()));
            let mut spec = AppProjectSpec::default();
            let code = options(&words).apply(&mut spec).map_err(|e| e.code);
            assert_eq!((code, spec), (Err(1), AppProjectSpec::default()));
        }
    }

    #[test]
    fn no_flag_is_no_change() {
        assert!(options(&[]).is_empty());
        assert!(!options(&["--orphaned-resources=false"]).is_empty());
    }

    #[tokio::test]
    async fn projects_in_files() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = folder.path().join("p.yaml");
        let file = path.to_str().expect("a plain name");
        std::fs::write(&path, "metadata: {name: p}\nspec: {sourceRepos: ['*']}\n")
            .expect("it can be written");
        let none = ProjectOptions::default();
        let of = async |names: &[&str], file: Option<&str>| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            project(&names, file, &none).await
        };
        let read = of(&[], Some(file)).await.expect("a project");
        assert_eq!(
            (read.metadata.name.as_str(), read.kind.as_str()),
            ("p", "AppProject")
        );
        assert_eq!(read.spec.source_repos, ["*"]);
        assert!(of(&["p"], Some(file)).await.is_ok());
        let message = of(&["q"], Some(file))
            .await
            .map_err(|e| (e.code, e.message));
        let text = "project name 'q' does not match project spec metadata.name 'p'";
        assert_eq!(message.err(), Some((20, text.to_owned())));
        let missing = format!("{file}.no");
        let message = of(&[], Some(&missing)).await.map_err(|e| e.message);
        let text =
            format!("error reading proj from uri: open {missing}: no such file or directory");
        assert_eq!(message.err(), Some(text));
        std::fs::write(&path, "spec: [").expect("it can be written");
        assert!(of(&[], Some(file)).await.is_err());
        let named = of(&["n", "ignored"], None).await.expect("a project");
        assert_eq!(named.metadata.name, "n");
        assert_eq!(of(&[], None).await.map_err(|e| e.code).err(), Some(1));
    }
}
