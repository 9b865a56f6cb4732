//! Where Applications of a project may come from and go to: its destinations with their service
//! accounts, its source repositories and its source namespaces.

use super::Change;
use crate::client::{ConnectArgs, Failure};
use tiphys_api::{
    application::ApplicationDestination,
    project::{AppProjectSpec, ApplicationDestinationServiceAccount},
    repo_url::canonical_pattern,
};

#[derive(clap::Subcommand)]
pub enum PlacesCommand {
    /// Add project destination
    AddDestination {
        /// The project
        #[arg(value_name = "PROJECT")]
        project: String,
        /// The cluster's API server, or its name with --name
        #[arg(value_name = "SERVER/NAME")]
        cluster: String,
        namespace: String,
        /// Use name as destination instead server
        #[arg(long = "name")]
        by_name: bool,
    },
    /// Remove project destination
    RemoveDestination {
        /// The project
        project: String,
        #[arg(value_name = "SERVER")]
        cluster: String,
        namespace: String,
    },
    /// Add project destination's default service account
    AddDestinationServiceAccount {
        #[command(flatten)]
        account: AccountArgs,
        /// Use service-account-namespace as namespace where the service account is present
        #[arg(
            long,
            default_value = "",
            hide_default_value = true,
            value_name = "NAMESPACE"
        )]
        service_account_namespace: String,
    },
    /// Remove default destination service account from the project
    RemoveDestinationServiceAccount {
        #[command(flatten)]
        account: AccountArgs,
    },
    /// Add project source repository
    AddSource {
        /// The project
        project: String,
        url: String,
    },
    /// Remove project source repository
    RemoveSource {
        /// The project
        project: String,
        url: String,
    },
    /// Add source namespace to the AppProject
    AddSourceNamespace {
        /// The project
        project: String,
        namespace: String,
    },
    /// Removes the source namespace from the AppProject
    RemoveSourceNamespace {
        /// The project
        project: String,
        namespace: String,
    },
}

#[derive(clap::Args)]
pub struct AccountArgs {
    /// The project
    project: String,
    #[arg(value_name = "SERVER")]
    cluster: String,
    namespace: String,
    #[arg(value_name = "SERVICE_ACCOUNT")]
    account: String,
}

impl AccountArgs {
    /// The project and the entry; the account as `namespace:name` if it has a namespace.
    fn split(self, namespace: &str) -> (String, ApplicationDestinationServiceAccount) {
        let account = if namespace.is_empty() {
            self.account
        } else {
            format!("{namespace}:{}", self.account)
        };
        let entry = ApplicationDestinationServiceAccount {
            server: self.cluster,
            namespace: self.namespace,
            default_service_account: account,
        };
        (self.project, entry)
    }
}

impl PlacesCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::AddDestination {
                project,
                cluster,
                namespace,
                by_name,
            } => {
                let (name, server) = match by_name {
                    true => (cluster, String::new()),
                    false => (String::new(), cluster),
                };
                let destination = ApplicationDestination {
                    server,
                    namespace,
                    name,
                };
                super::change(args, project, |p| add_destination(&mut p.spec, destination)).await
            }
            Self::RemoveDestination {
                project,
                cluster,
                namespace,
            } => {
                super::change(args, project, |p| {
                    remove_destination(&mut p.spec, &cluster, &namespace)
                })
                .await
            }
            Self::AddDestinationServiceAccount {
                account,
                service_account_namespace: namespace,
            } => {
                no_pattern("service-account-namespace", &namespace)?;
                no_pattern("ServiceAccount", &account.account)?;
                let (project, entry) = account.split(&namespace);
                super::change(args, project, |p| add_account(&mut p.spec, entry)).await
            }
            Self::RemoveDestinationServiceAccount { account } => {
                let (project, entry) = account.split("");
                super::change(args, project, |p| remove_account(&mut p.spec, &entry)).await
            }
            Self::AddSource { project, url } => {
                super::change(args, project, |p| Ok(add_source(&mut p.spec, url))).await
            }
            Self::RemoveSource { project, url } => {
                super::change(args, project, |p| Ok(remove_source(&mut p.spec, &url))).await
            }
            Self::AddSourceNamespace { project, namespace } => {
                super::change(args, project, |p| Ok(add_namespace(&mut p.spec, namespace))).await
            }
            Self::RemoveSourceNamespace { project, namespace } => {
                super::change(args, project, |p| {
                    Ok(remove_namespace(&mut p.spec, &namespace))
                })
                .await
            }
        }
    }
}

fn add_destination(
    spec: &mut AppProjectSpec,
    new: ApplicationDestination,
) -> Result<Change, Failure> {
    let is_same = |known: &ApplicationDestination| {
        known.namespace == new.namespace
            && ((!new.server.is_empty() && known.server == new.server)
                || (!new.name.is_empty() && known.name == new.name))
    };
    if spec.destinations.iter().any(is_same) {
        return Err(Failure::fatal(
            "Specified destination is already defined in project",
        ));
    }
    spec.destinations.push(new);
    Ok(Change::silent())
}

fn remove_destination(
    spec: &mut AppProjectSpec,
    server: &str,
    namespace: &str,
) -> Result<Change, Failure> {
    let list = &mut spec.destinations;
    let index = list
        .iter()
        .position(|d| d.server == server && d.namespace == namespace);
    let index =
        index.ok_or_else(|| Failure::fatal("Specified destination does not exist in project"))?;
    list.remove(index);
    Ok(Change::silent())
}

fn no_pattern(what: &str, text: &str) -> Result<(), Failure> {
    match text.contains('*') {
        true => Err(Failure::fatal(format!(
            "{what} for DestinationServiceAccount must not contain wildcards"
        ))),
        false => Ok(()),
    }
}

fn add_account(
    spec: &mut AppProjectSpec,
    new: ApplicationDestinationServiceAccount,
) -> Result<Change, Failure> {
    let is_set = !new.server.is_empty() && !new.default_service_account.is_empty();
    if is_set && spec.destination_service_accounts.contains(&new) {
        return Err(Failure::fatal(
            "Specified destination service account is already defined in project",
        ));
    }
    spec.destination_service_accounts.push(new);
    Ok(Change::silent())
}

fn remove_account(
    spec: &mut AppProjectSpec,
    old: &ApplicationDestinationServiceAccount,
) -> Result<Change, Failure> {
    let before = spec.destination_service_accounts.len();
    spec.destination_service_accounts
        .retain(|known| known != old);
    if spec.destination_service_accounts.len() == before {
        return Err(Failure::fatal(
            "Specified destination service account does not exist in project",
        ));
    }
    Ok(Change::silent())
}

fn add_source(spec: &mut AppProjectSpec, url: String) -> Change {
    let allowed = spec
        .source_repos
        .iter()
        .find(|known| *known == "*" || canonical_pattern(known) == canonical_pattern(&url));
    if let Some(known) = allowed {
        return Change::Keep(format!(
            "Source repository '{known}' already allowed in project\n"
        ));
    }
    spec.source_repos.push(url);
    Change::silent()
}

fn remove_source(spec: &mut AppProjectSpec, url: &str) -> Change {
    match spec.source_repos.iter().position(|known| known == url) {
        Some(index) => {
            spec.source_repos.remove(index);
            Change::silent()
        }
        None => Change::Keep(format!(
            "Source repository '{url}' does not exist in project\n"
        )),
    }
}

fn add_namespace(spec: &mut AppProjectSpec, namespace: String) -> Change {
    let list = &mut spec.source_namespaces;
    if list
        .iter()
        .any(|known| *known == "*" || *known == namespace)
    {
        // These are the words even for a namespace of its own.
        return Change::Keep("Source namespace '*' already allowed in project\n".to_owned());
    }
    list.push(namespace);
    Change::silent()
}

fn remove_namespace(spec: &mut AppProjectSpec, namespace: &str) -> Change {
    let list = &mut spec.source_namespaces;
    match list
        .iter()
        .position(|known| known == namespace && known != "*")
    {
        Some(index) => {
            list.remove(index);
            Change::silent()
        }
        None => Change::Keep(format!(
            "Source namespace '{namespace}' does not exist in project or cannot be removed\n"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<Change, Failure>) -> Option<(u8, String)> {
        result.err().map(|e| (e.code, e.message))
    }

    fn fatal(message: &str) -> Option<(u8, String)> {
        Some((1, message.to_owned()))
    }

    #[test]
    fn destinations_by_server_and_by_name() {
        let mut spec = AppProjectSpec::default();
        let to = |server: &str, name: &str| ApplicationDestination {
            server: server.into(),
            name: name.into(),
            namespace: "n".into(),
        };
        let twice = fatal("Specified destination is already defined in project");
        assert_eq!(refused(add_destination(&mut spec, to("s", ""))), None);
        assert_eq!(refused(add_destination(&mut spec, to("s", ""))), twice);
        assert_eq!(refused(add_destination(&mut spec, to("", "s"))), None);
        assert_eq!(refused(add_destination(&mut spec, to("", "s"))), twice);
        assert_eq!(spec.destinations, [to("s", ""), to("", "s")]);
        let unknown = fatal("Specified destination does not exist in project");
        assert_eq!(
            refused(remove_destination(&mut spec, "s", "other")),
            unknown
        );
        assert_eq!(refused(remove_destination(&mut spec, "s", "n")), None);
        assert_eq!(refused(remove_destination(&mut spec, "s", "n")), unknown);
        assert_eq!(spec.destinations, [to("", "s")]);
    }

    #[test]
    fn service_accounts() {
        let mut spec = AppProjectSpec::default();
        let entry = |namespace: &str| {
            AccountArgs {
                project: "p".into(),
                cluster: "s".into(),
                namespace: "n".into(),
                account: "sa".into(),
            }
            .split(namespace)
            .1
        };
        let twice = fatal("Specified destination service account is already defined in project");
        assert_eq!(refused(add_account(&mut spec, entry(""))), None);
        assert_eq!(refused(add_account(&mut spec, entry(""))), twice);
        assert_eq!(refused(add_account(&mut spec, entry("other"))), None);
        assert_eq!(
            spec.destination_service_accounts[1].default_service_account,
            "other:sa"
        );
        let unknown = fatal("Specified destination service account does not exist in project");
        assert_eq!(refused(remove_account(&mut spec, &entry(""))), None);
        assert_eq!(refused(remove_account(&mut spec, &entry(""))), unknown);
        assert_eq!(
            refused(no_pattern("ServiceAccount", "a*").map(|()| Change::silent())),
            fatal("ServiceAccount for DestinationServiceAccount must not contain wildcards")
        );
        assert!(no_pattern("ServiceAccount", "a").is_ok());
    }

    #[test]
    fn sources_are_compared_in_one_form() {
        let mut spec = AppProjectSpec::default();
        let mut add = |url: &str| add_source(&mut spec, url.to_owned());
        let known = "Source repository 'https://example.com/a.git' already allowed in project\n";
        assert_eq!(add("https://example.com/a.git"), Change::silent());
        assert_eq!(add("https://EXAMPLE.com/a"), Change::Keep(known.into()));
        assert_eq!(add("https://example.com/b"), Change::silent());
        assert_eq!(add("*"), Change::silent());
        assert_eq!(
            add("https://example.com/c"),
            Change::Keep("Source repository '*' already allowed in project\n".into())
        );
        assert_eq!(
            remove_source(&mut spec, "https://example.com/a"),
            Change::Keep(
                "Source repository 'https://example.com/a' does not exist in project\n".into()
            )
        );
        assert_eq!(
            remove_source(&mut spec, "https://example.com/a.git"),
            Change::silent()
        );
        assert_eq!(spec.source_repos, ["https://example.com/b", "*"]);
    }

    #[test]
    fn namespaces() {
        let mut spec = AppProjectSpec::default();
        let known = Change::Keep("Source namespace '*' already allowed in project\n".into());
        assert_eq!(add_namespace(&mut spec, "a".into()), Change::silent());
        assert_eq!(add_namespace(&mut spec, "a".into()), known);
        assert_eq!(add_namespace(&mut spec, "*".into()), Change::silent());
        assert_eq!(add_namespace(&mut spec, "b".into()), known);
        assert_eq!(remove_namespace(&mut spec, "a"), Change::silent());
        for kept in ["a", "*"] {
            assert_eq!(
                remove_namespace(&mut spec, kept),
                Change::Keep(format!(
                    "Source namespace '{kept}' does not exist in project or cannot be removed\n"
                ))
            );
        }
    }
}
