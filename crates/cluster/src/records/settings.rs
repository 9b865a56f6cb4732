//! The settings that live in ConfigMaps and Secrets of the control plane's namespace, as one
//! immutable snapshot.
//!
//! Main type: [`Settings`]. A broken entry becomes a problem with the name of its object and field
//! and never hides the others.

use super::{
    Meta, Record, RecordChange, Store,
    clusters::{destinations, local_names, one_per_server},
    config::Config,
    secrets::read_secret,
};
use crate::connect::ClusterSecret;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};
use tiphys_api::{
    access::{best_template, same_repository},
    constants,
    repository::{RepoCreds, Repository},
};
use tiphys_apimachinery::{Object, quantity::Quantity};
use tiphys_engine::customize::{self, Customizations};
use tiphys_engine::project::GlobalProject;
use tiphys_engine::spec::{BrokenCluster, Destination};
use tiphys_engine::types::{DEFAULT_LABEL_KEY, Tracking, TrackingMethod};
use tokio::sync::{mpsc, oneshot, watch};

/// Changes within this time are handled together.
const SETTLE: Duration = Duration::from_millis(20);

pub(super) type Texts = BTreeMap<String, String>;

/// Overrides of argocd-cm (`config`) and argocd-cmd-params-cm (`params`), given when the process
/// started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsOverrides {
    pub config: BTreeMap<String, String>,
    pub params: BTreeMap<String, String>,
}

/// A secret value: it cannot be printed or serialized by accident.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(Vec<u8>);

impl SecretText {
    /// The value itself.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The value as text; `None` when it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

/// A repository or credential-template Secret.
#[derive(Clone)]
pub struct RepoSecret<T> {
    pub secret_name: String,
    /// `managed-by: argocd.argoproj.io`: created through the API, which may also change and delete
    /// it.
    pub managed: bool,
    pub value: T,
}

/// A credential template whose Secret cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultyTemplate {
    pub url: String,
    /// `None`: this is what cannot be read.
    pub type_: Option<String>,
    pub fault: String,
}

/// A snapshot of all settings. It contains secrets, so it has no Debug.
#[derive(Clone, Default)]
pub struct Settings {
    /// Everything was read at least once.
    pub complete: bool,
    pub config: Config,
    /// argocd-rbac-cm.
    pub rbac: Texts,
    /// argocd-cmd-params-cm.
    pub params: Texts,
    /// argocd-ssh-known-hosts-cm, argocd-tls-certs-cm, argocd-gpg-keys-cm.
    pub known_hosts: String,
    pub tls_certificates: Texts,
    pub gpg_keys: Texts,
    /// argocd-secret.
    pub secret: BTreeMap<String, SecretText>,
    /// resourceVersions, to detect changes.
    pub config_version: String,
    pub secret_version: String,
    pub repositories: Vec<RepoSecret<Repository>>,
    pub repo_creds: Vec<RepoSecret<RepoCreds>>,
    /// Templates whose Secrets cannot be read.
    pub faulty_creds: Vec<FaultyTemplate>,
    pub faulty_write_creds: Vec<FaultyTemplate>,
    /// Only for pushing: `repository-write` and `repo-write-creds`.
    pub write_repositories: Vec<RepoSecret<Repository>>,
    pub write_creds: Vec<RepoSecret<RepoCreds>>,
    pub clusters: Vec<ClusterSecret>,
    /// Cluster Secrets that cannot be parsed.
    pub broken_clusters: Vec<BrokenCluster>,
    /// The clusters that an Application may use, the control plane's own first.
    pub destinations: Arc<[Destination]>,
    /// The names of the control plane's own cluster, also while it is disabled.
    pub local_names: Arc<[String]>,
    /// `resource.customizations`, and its split keys.
    pub customizations: Arc<Customizations>,
    /// `globalProjects`.
    pub global_projects: Vec<GlobalProject>,
    /// Errors, each with object and field.
    pub problems: Vec<String>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Settings(config {}, secret {})",
            self.config_version, self.secret_version
        )
    }
}

impl Settings {
    /// Settings with only an argocd-cm.
    pub fn of_config(config: Texts) -> Self {
        Self {
            config: config.into(),
            ..Self::default()
        }
    }

    /// Adds a Secret: a repository, a credential template or a cluster, by its label.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add_secret(&mut self, secret: &Object) -> Result<(), String> {
        match secret.label(constants::SECRET_TYPE_LABEL) {
            Some(kind) => read_secret(self, kind, secret),
            None => Ok(()),
        }
    }

    /// A value of argocd-cm; empty when absent.
    pub fn get(&self, key: &str) -> &str {
        self.config.get(key).map_or("", String::as_str)
    }

    /// A value of argocd-cmd-params-cm; empty when it is not set.
    pub fn param(&self, key: &str) -> &str {
        self.params.get(key).map_or("", String::as_str)
    }

    /// `application.namespaces` of argocd-cmd-params-cm: additional namespaces with Applications,
    /// as parsed by `patterns`.
    pub fn application_namespaces(&self) -> Vec<String> {
        self.param("application.namespaces")
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Whether the value is `true`, as Go's settings parse it.
    pub fn is_true(&self, key: &str) -> bool {
        self.get(key) == "true"
    }

    /// How resources are tracked; `instance` is the Application's instance name.
    pub fn tracking(&self, instance: &str) -> Tracking {
        let method = match self.get("application.resourceTrackingMethod") {
            "label" => TrackingMethod::Label,
            "annotation+label" => TrackingMethod::AnnotationAndLabel,
            _ => TrackingMethod::Annotation,
        };
        let label_key = Some(self.get("application.instanceLabelKey"))
            .filter(|k| !k.is_empty())
            .unwrap_or(DEFAULT_LABEL_KEY)
            .to_owned();
        Tracking {
            app_name: instance.to_owned(),
            method,
            label_key,
            installation_id: self.get("installationID").to_owned(),
        }
    }

    /// `helm.valuesFileSchemes`: URL schemes that values files may have; https and http if the key
    /// is absent.
    pub fn value_file_schemes(&self) -> Vec<String> {
        let schemes = self
            .config
            .get("helm.valuesFileSchemes")
            .map_or("https,http", String::as_str);
        schemes
            .split(',')
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// `reposerver.enable.git.submodule`: whether submodules are fetched.
    pub fn takes_submodules(&self) -> bool {
        // As Go parses it; what is no boolean leaves it on.
        let off = ["0", "f", "F", "false", "False", "FALSE"];
        !off.contains(&self.param("reposerver.enable.git.submodule"))
    }

    /// `reposerver.streamed.manifest.max.extracted.size`, in bytes; `None`: it is not set, or no size.
    pub fn streamed_bytes(&self) -> Option<u64> {
        let size = self.param("reposerver.streamed.manifest.max.extracted.size");
        let size: Quantity = size.trim().parse().ok()?;
        u64::try_from(size.value()).ok()
    }

    /// The repository Secret for a URL; one scoped to `project` takes precedence. Those of other
    /// projects are never used.
    pub fn repository(&self, url: &str, project: &str) -> Option<&Repository> {
        of_project(&self.repositories, url, project)
    }

    /// The credential template for this URL with the longest path.
    pub fn credentials(&self, url: &str) -> Option<&RepoCreds> {
        best_template(url, self.repo_creds.iter().map(|c| &c.value), |c| {
            c.url.as_str()
        })
    }

    /// A repository with the credentials for pushing to it, if there are any; those for reading are
    /// never used for that. Without a project only credentials of no project.
    pub fn write_repository(&self, url: &str, project: &str) -> Repository {
        let known = of_project(&self.write_repositories, url, project);
        completed(known, url, (&self.write_creds, &self.faulty_write_creds))
    }
}

/// A repository, completed by the best matching of the templates and of those whose Secrets cannot
/// be read.
pub(super) fn completed(
    known: Option<&Repository>,
    url: &str,
    (templates, faulty): (&[RepoSecret<RepoCreds>], &[FaultyTemplate]),
) -> Repository {
    let mut repository = known.cloned().unwrap_or_else(|| Repository {
        repo: url.to_owned(),
        ..Repository::default()
    });
    let good = templates.iter().map(|c| &c.value);
    let good = good.map(|creds| (creds.url.as_str(), Ok::<_, &String>(creds)));
    let faulty = faulty.iter();
    let faulty = faulty.map(|template| (template.url.as_str(), Err(&template.fault)));
    // Of several for the same URL the last one counts: a good one goes on being used.
    match best_template(url, faulty.chain(good), |(url, _)| *url) {
        // It would be used with the credentials of others.
        _ if repository.fault().is_some() => {}
        Some((_, Ok(creds))) => repository.inherit(creds),
        // Another template is not meant for it.
        Some((_, Err(fault))) if !repository.has_credentials() => {
            repository = repository.with_fault(fault.clone());
        }
        _ => {}
    }
    repository
}

/// The repository of a project, or else of none.
fn of_project<'a>(
    all: &'a [RepoSecret<Repository>],
    url: &str,
    project: &str,
) -> Option<&'a Repository> {
    let fits = |r: &&Repository| same_repository(&r.repo, url);
    let all = || all.iter().map(|r| &r.value).filter(fits);
    all()
        .find(|r| r.project == project)
        .or_else(|| all().find(|r| r.project.is_empty()))
}

/// Rebuilds the snapshot when a ConfigMap or Secret changes.
pub(super) fn follow(
    config_maps: &Store<Object>,
    secrets: &Store<Object>,
    overrides: SettingsOverrides,
    mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
) -> watch::Receiver<Arc<Settings>> {
    let (sender, receiver) = watch::channel(Arc::new(Settings::default()));
    let (mut maps_changed, mut secrets_changed) = (config_maps.changes(), secrets.changes());
    let (config_maps, secrets) = (config_maps.clone(), secrets.clone());
    tokio::spawn(async move {
        // Until both were read, missing settings cannot be distinguished from unset ones.
        while config_maps.wait_ready().await.is_err() || secrets.wait_ready().await.is_err() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            // What they wrote is in the stores: one reading answers them all.
            while let Ok(who) = asked.try_recv() {
                waiting.push(who);
            }
            let new = read(&config_maps, &secrets, &overrides);
            new.problems.iter().for_each(|p| tracing::warn!("{p}"));
            sender.send_replace(Arc::new(new));
            for who in waiting.drain(..) {
                let _ = who.send(());
            }
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    Some(who) = asked.recv() => {
                        waiting.push(who);
                        break;
                    }
                    _ = maps_changed.recv() => break,
                    // It is an error where changes were missed.
                    changed = secrets_changed.recv() => {
                        if changed.is_err() || changed.is_ok_and(|change| concerns(&change)) {
                            break;
                        }
                    }
                }
            }
            // Changes come in bursts, which one reading answers; who asks is not made to wait.
            if waiting.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(SETTLE) => {}
                    Some(who) = asked.recv() => waiting.push(who),
                }
            }
            (maps_changed, secrets_changed) = (config_maps.changes(), secrets.changes());
        }
    });
    receiver
}

/// Whether the change of a Secret may change the settings.
fn concerns(change: &RecordChange<Object>) -> bool {
    let records = [Some(&change.record), change.before.as_ref()];
    records
        .into_iter()
        .flatten()
        .any(|r| may_be_setting(&r.meta))
}

/// Whether it is no Secret in which something else is kept.
fn may_be_setting(meta: &Meta) -> bool {
    let labels = &meta.labels;
    meta.name == "argocd-secret"
        || labels.contains_key(constants::SECRET_TYPE_LABEL)
        || !labels.contains_key(constants::OWN_SECRET_TYPE_LABEL)
}

fn read(
    config_maps: &Store<Object>,
    secrets: &Store<Object>,
    overrides: &SettingsOverrides,
) -> Settings {
    let mut settings = Settings {
        complete: true,
        ..Settings::default()
    };
    let mut config = Texts::default();
    for record in config_maps.list() {
        let Some(object) = readable(&record, &mut settings) else {
            continue;
        };
        let (version, data) = (record.meta.resource_version.clone(), texts(&object));
        match record.meta.name.as_str() {
            "argocd-cm" => (config, settings.config_version) = (data, version),
            "argocd-rbac-cm" => settings.rbac = data,
            "argocd-cmd-params-cm" => settings.params = data,
            "argocd-ssh-known-hosts-cm" => {
                settings.known_hosts = data.get("ssh_known_hosts").cloned().unwrap_or_default()
            }
            "argocd-tls-certs-cm" => settings.tls_certificates = data,
            "argocd-gpg-keys-cm" => settings.gpg_keys = data,
            _ => {}
        }
    }
    config.extend(overrides.config.clone());
    settings.config = config.into();
    settings.params.extend(overrides.params.clone());
    let all = secrets.list();
    for record in all.iter().filter(|record| may_be_setting(&record.meta)) {
        let Some(object) = &readable(record, &mut settings) else {
            continue;
        };
        if object.name() == "argocd-secret" {
            settings.secret_version = object.resource_version().to_owned();
            settings.secret = secret_data(object)
                .into_iter()
                .map(|(k, v)| (k, SecretText(v)))
                .collect();
        }
        if let Err(problem) = settings.add_secret(object) {
            settings.problems.push(problem);
        }
    }
    let (customizations, problems) = customize::read(&settings.config, jiff::Timestamp::now);
    settings.customizations = Arc::new(customizations);
    settings.problems.extend(problems);
    let (globals, problem) = GlobalProject::parse(settings.get("globalProjects"));
    settings.global_projects = globals;
    settings.problems.extend(problem);
    let aliases = one_per_server(&mut settings.clusters);
    settings.local_names = local_names(&settings, &aliases);
    settings.destinations = destinations(&settings, aliases);
    settings
}

fn readable(record: &Record<Object>, settings: &mut Settings) -> Option<Object> {
    record
        .object()
        .map_err(|e| settings.problems.push(e.to_string()))
        .ok()
}

fn texts(map: &Object) -> Texts {
    let data = map.0.get("data").and_then(Value::as_object);
    data.map(|d| {
        d.iter()
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect()
    })
    .unwrap_or_default()
}

/// The `data` of a Secret, decoded; an entry that is not base64 is ignored, because no API server
/// accepts one.
pub fn secret_data(secret: &Object) -> BTreeMap<String, Vec<u8>> {
    let data = secret.0.get("data").and_then(Value::as_object);
    data.map(|d| {
        d.iter()
            .filter_map(|(k, v)| Some((k.clone(), STANDARD.decode(v.as_str()?).ok()?)))
            .collect()
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{lean::Raw, testing::secret};
    use super::*;
    use crate::cache::ChangeType;
    use serde_json::json;

    #[test]
    fn kept_secrets_are_no_settings() {
        let record = |name: &str, labels: Value| {
            let text = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
            });
            let text = text.to_string();
            let raw = Raw::read(&text).expect("a Secret");
            let kind = super::super::kind("", "v1", "Secret", "secrets");
            Arc::new(Record::<Object>::new(raw, &kind))
        };
        let own = json!({"tiphys.dev/secret-type": "deleted-applicationset"});
        let both = json!({
            "tiphys.dev/secret-type": "x", "argocd.argoproj.io/secret-type": "repository",
        });
        let concerns = |now: &Arc<Record<Object>>, before: Option<&Arc<Record<Object>>>| {
            concerns(&RecordChange {
                change_type: ChangeType::Modified,
                record: Arc::clone(now),
                before: before.cloned(),
            })
        };
        let (kept, repository) = (record("a", own.clone()), record("a", both));
        assert!(!concerns(&kept, None));
        assert!(!concerns(&kept, Some(&kept)));
        assert!(concerns(&repository, None));
        assert!(concerns(&kept, Some(&repository)), "it was one");
        assert!(concerns(&record("argocd-secret", own), None));
        // Settings may refer to it.
        assert!(concerns(&record("other", json!({})), None));
    }

    #[test]
    fn the_size_of_what_is_streamed_is_a_quantity() {
        for (said, bytes) in [
            (Some("2M"), Some(2_000_000)),
            (Some(" 1Gi "), Some(1 << 30)),
            (Some("much"), None),
            (Some("-1"), None),
            (None, None),
        ] {
            let key = "reposerver.streamed.manifest.max.extracted.size";
            let params = said.map(|said| (key.to_owned(), said.to_owned()));
            let settings = Settings {
                params: params.into_iter().collect(),
                ..Settings::default()
            };
            assert_eq!(settings.streamed_bytes(), bytes, "{said:?}");
        }
    }

    #[test]
    fn repositories_and_templates_are_found_by_url() {
        let mut s = Settings::default();
        read_secret(
            &mut s,
            "repository",
            &secret(
                "repository",
                &[
                    ("url", "https://Git.example/a.git"),
                    ("insecure", "true"),
                    ("depth", "3"),
                ],
            ),
        )
        .expect("valid");
        read_secret(
            &mut s,
            "repo-creds",
            &secret(
                "repo-creds",
                &[("url", "https://git.example"), ("username", "short")],
            ),
        )
        .expect("valid");
        read_secret(
            &mut s,
            "repo-creds",
            &secret(
                "repo-creds",
                &[("url", "https://git.example/team"), ("username", "long")],
            ),
        )
        .expect("valid");
        let r = s.repository("https://git.example/a", "any").expect("found");
        assert!(r.insecure && r.depth == 3);
        assert_eq!(
            s.credentials("https://git.example/team/x")
                .expect("found")
                .username,
            "long"
        );
        assert_eq!(
            s.credentials("https://git.example/b")
                .expect("found")
                .username,
            "short"
        );
        assert!(s.credentials("https://other.example/b").is_none());
    }

    #[test]
    fn a_password_is_for_its_host_and_path_only() {
        let mut s = Settings::default();
        let template = secret(
            "repo-creds",
            &[
                ("url", "http://git.corp.example"),
                ("username", "u"),
                ("password", "p"),
            ],
        );
        read_secret(&mut s, "repo-creds", &template).expect("valid");
        let password = |url: &str| s.known_repository(url, "").password;
        assert_eq!(password("http://git.corp.example/x.git"), "p");
        for url in [
            "http://git.corp.example@127.0.0.1/x.git",
            "http://git.corp.example:8080/x.git",
            "http://git.corp.example.evil/x",
        ] {
            assert_eq!(password(url), "", "{url}");
        }
    }

    #[test]
    fn a_registry_is_known_with_and_without_its_scheme() {
        let mut s = Settings::default();
        for (kind, url, more) in [
            ("repository", "h:5000/charts", ("enableOCI", "true")),
            ("repository", "oci://h/apps", ("type", "oci")),
            ("repository", "h/private", ("project", "other")),
            ("repository", "https://classic/charts", ("type", "helm")),
            ("repo-creds", "t/team", ("type", "helm")),
        ] {
            let fields = [("url", url), ("username", "u"), ("password", url), more];
            read_secret(&mut s, kind, &secret(kind, &fields)).expect("valid");
        }
        for (url, repo, password) in [
            ("oci://h:5000/charts", "h:5000/charts", "h:5000/charts"),
            ("oci://h:5000/charts/sub", "h:5000/charts", "h:5000/charts"),
            ("oci://h:5000", "h:5000/charts", "h:5000/charts"),
            ("oci://h/apps/web", "oci://h/apps", "oci://h/apps"),
            ("oci://t/team/lib", "t/team/lib", "t/team"),
            // Another port, another path, another project, no registry, another host.
            ("oci://h/charts", "oci://h/charts", ""),
            ("oci://h:5000/charts2", "oci://h:5000/charts2", ""),
            ("oci://h/private", "oci://h/private", ""),
            ("oci://classic/charts", "oci://classic/charts", ""),
            ("oci://h.evil.org/apps", "oci://h.evil.org/apps", ""),
        ] {
            let known = s.known_registry(url, "p");
            let found = (known.repo.as_str(), known.password.as_str());
            assert_eq!(found, (repo, password), "{url}");
        }
    }
}
