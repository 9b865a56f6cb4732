//! The server's settings in argocd-cm and argocd-secret. [`SettingsCache`] caches them briefly, so
//! that not every request contacts Kubernetes.

use crate::{
    ApiError,
    auth::{LocalAccount, Revoked, read_accounts, revoked_until},
    extension_settings::{self, Extensions, ExtensionsFault},
    policy::Enforcer,
    ports::{SecretRecord, Store, StoreError},
    referred::{Referred, Unresolved},
    sso::{self, SsoConfig, SsoFault},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use tiphys_api::resource::{OverrideIgnoreDiff, ResourceOverride};
use tiphys_engine::{
    customize::{self, Customization},
    types::IgnoreStatus,
};
use tiphys_gocompat::yaml;
use tokio::sync::Mutex;

const CONFIG_MAP: &str = "argocd-cm";
const RBAC: &str = "argocd-rbac-cm";
const PARAMS: &str = "argocd-cmd-params-cm";
pub(crate) const SECRET: &str = "argocd-secret";
/// The Secret with the ids of logged-out sessions and the second each one expires.
const REVOKED: &str = "tiphys-revoked-sessions";
/// Bytes of a key of a Secret.
const MAX_KEY: usize = 253;
/// With this many entries, expired ones are removed.
const TIDY_FROM: usize = 200;
/// The label of what belongs to the installation.
const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "argocd");
/// How often the record is written where other replicas write it meanwhile.
const MAX_ATTEMPTS: u32 = 5;
const REMEMBER: Duration = Duration::from_secs(3);
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The parsed settings. There is no Debug, because they contain the signing key.
pub struct Settings {
    pub config: BTreeMap<String, String>,
    /// By name.
    pub accounts: BTreeMap<String, LocalAccount>,
    pub signing_key: Vec<u8>,
    pub session_seconds: i64,
    /// The webhook secrets: non-empty `webhook.*` values of argocd-secret.
    pub webhook_secrets: BTreeMap<String, Vec<u8>>,
    revoked: Revoked,
    overrides: OnceLock<BTreeMap<String, ResourceOverride>>,
    /// `server.sync.replace.allowed` of argocd-cmd-params-cm.
    pub replace_allowed: bool,
    /// The services that requests can be passed on to.
    pub(crate) extensions: Result<Extensions, ExtensionsFault>,
    /// The identity provider; `Ok(None)`: there is none.
    pub sso: Result<Option<Arc<SsoConfig>>, SsoFault>,
}

impl Settings {
    /// A value of argocd-cm; empty when absent.
    pub fn value(&self, key: &str) -> &str {
        self.config.get(key).map_or("", String::as_str)
    }

    pub fn flag(&self, key: &str) -> bool {
        self.value(key) == "true"
    }

    /// Whether the token with this id was logged out, as far as that is recorded.
    pub(crate) fn is_revoked(&self, id: &str) -> bool {
        self.revoked.contains(&revoked_key(id))
    }

    /// `server.rbac.rollback.enforce.enable` of argocd-cm: whether rollbacks have a permission of
    /// their own.
    ///
    /// # Errors
    /// It is neither true nor false.
    pub fn enforces_rollback(&self) -> Result<bool, ApiError> {
        let enforces = self.boolean("server.rbac.rollback.enforce.enable")?;
        Ok(enforces == Some(true))
    }

    /// Whether who may update or delete an Application may do so with its resources, by
    /// `server.rbac.disableApplicationFineGrainedRBACInheritance` of argocd-cm.
    ///
    /// # Errors
    /// It is neither true nor false.
    pub fn resources_inherit(&self) -> Result<bool, ApiError> {
        const KEY: &str = "server.rbac.disableApplicationFineGrainedRBACInheritance";
        Ok(self.boolean(KEY)? == Some(false))
    }

    /// As Go reads it; `None` where it is not set.
    fn boolean(&self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.value(key) {
            "" => Ok(None),
            "false" | "False" | "FALSE" | "f" | "F" | "0" => Ok(Some(false)),
            "true" | "True" | "TRUE" | "t" | "T" | "1" => Ok(Some(true)),
            other => Err(ApiError::internal(format!(
                "{key} of argocd-cm is {other:?}; use true or false"
            ))),
        }
    }

    /// The resource customizations in argocd-cm, by `group/Kind`. Parsed only once, because callers
    /// need not be logged in.
    pub fn overrides(&self) -> &BTreeMap<String, ResourceOverride> {
        self.overrides.get_or_init(|| {
            let (customizations, _) = customize::read(&self.config, Timestamp::now);
            let kinds = customizations.kinds();
            let mut all: BTreeMap<_, _> = kinds
                .map(|(kind, customization)| (kind.clone(), resource_override(customization)))
                .collect();
            let options = self.value("resource.compareoptions");
            for (kind, pointer) in ignored_status(options) {
                let rules: &mut ResourceOverride = all.entry((*kind).to_owned()).or_default();
                let rules = rules.ignore_differences.get_or_insert_default();
                if !rules.json_pointers.iter().any(|known| known == pointer) {
                    rules.json_pointers.push((*pointer).to_owned());
                }
            }
            all
        })
    }
}

/// Kinds whose status is ignored in comparisons, with the paths: `resource.compareoptions`.
fn ignored_status(options: &str) -> &'static [(&'static str, &'static str)] {
    const CRD: &str = "apiextensions.k8s.io/CustomResourceDefinition";
    let limits = yaml::Limits::default();
    let options = yaml::parse_document(options, &limits, yaml::Duplicates::LastWins);
    let options = options.unwrap_or_default();
    match IgnoreStatus::of_option(options.get("ignoreResourceStatusField")) {
        IgnoreStatus::All => &[("*/*", "/status")],
        IgnoreStatus::Crd => &[(CRD, "/status"), (CRD, "/spec/preserveUnknownFields")],
        IgnoreStatus::None => &[],
    }
}

fn resource_override(customization: &Customization) -> ResourceOverride {
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let rules = |rules: &OverrideIgnoreDiff| {
        (*rules != OverrideIgnoreDiff::default()).then(|| rules.clone())
    };
    ResourceOverride {
        health_lua: text(&customization.health),
        use_open_libs: customization.open_libs.then_some(true),
        actions: text(&customization.actions),
        ignore_differences: rules(&customization.ignore_differences),
        ignore_resource_updates: rules(&customization.ignore_resource_updates),
        known_type_fields: customization.known_type_fields.clone(),
    }
}

/// Five reads a second are as many as strangers can cause.
const MOMENT: Duration = Duration::from_millis(200);

/// A short-lived cache of the settings, which lives on while nothing that they are read from has
/// changed: most requests need the current ones.
pub struct SettingsCache {
    store: Arc<dyn Store>,
    enforcer: Arc<dyn Enforcer>,
    cached: Mutex<Option<Cached>>,
}

struct Cached {
    /// When they were known to be current.
    at: Instant,
    settings: Arc<Settings>,
    /// The Secrets that they refer to.
    referred: Vec<String>,
    /// Of what they were read from, before it was read; `None`: not known.
    versions: Option<Versions>,
}

/// Of ConfigMaps and Secrets that settings always have, and of the Secrets that they refer to.
#[derive(PartialEq, Eq)]
struct Versions {
    own: Vec<String>,
    referred: Vec<String>,
}

impl SettingsCache {
    /// `enforcer` gets the policy whenever the settings are read.
    pub fn new(store: Arc<dyn Store>, enforcer: Arc<dyn Enforcer>) -> Self {
        Self {
            store,
            enforcer,
            cached: Mutex::new(None),
        }
    }

    /// Reads the current argocd-cm.
    pub async fn config(&self) -> Result<BTreeMap<String, String>, ApiError> {
        Ok(self.store.config_map(CONFIG_MAP).await?)
    }

    /// Stores values of accounts in argocd-secret, such as those of `Auth::change_password`.
    pub async fn store_account(&self, values: &BTreeMap<String, Vec<u8>>) -> Result<(), ApiError> {
        Ok(self.store.set_in_secret(SECRET, values).await?)
    }

    /// The settings, at most a few seconds old: for what strangers may cause.
    pub async fn get(&self) -> Result<Arc<Settings>, ApiError> {
        self.load(REMEMBER).await
    }

    /// The settings, at most a moment old: for what strangers may cause, where settings that were
    /// just changed may be the reason why something is refused.
    pub async fn recent(&self) -> Result<Arc<Settings>, ApiError> {
        self.load(MOMENT).await
    }

    /// The current settings: for callers who may have just changed them.
    pub async fn fresh(&self) -> Result<Arc<Settings>, ApiError> {
        self.load(Duration::ZERO).await
    }

    async fn load(&self, age: Duration) -> Result<Arc<Settings>, ApiError> {
        let mut cached = self.cached.lock().await;
        if let Some(cached) = cached.as_mut() {
            if cached.at.elapsed() < age {
                return Ok(cached.settings.clone());
            }
            let now = Instant::now();
            let is_known = cached.versions.is_some();
            if is_known && cached.versions == self.versions(&cached.referred) {
                cached.at = now;
                return Ok(cached.settings.clone());
            }
        }
        // Before they are read: what changes meanwhile is read again.
        let own = self.own_versions();
        let config = self
            .store
            .config_map(CONFIG_MAP)
            .await
            .map_err(|e| ApiError::from(e).context("cannot read argocd-cm"))?;
        let secret = self
            .store
            .secret(SECRET)
            .await
            .map_err(|e| ApiError::from(e).context("cannot read argocd-secret"))?;
        let revoked = match self.store.secret(REVOKED).await {
            Ok(record) => Revoked::read(&record.data),
            Err(StoreError::NotFound(_)) => Revoked::default(),
            Err(e) => return Err(ApiError::from(e).context(&format!("cannot read {REVOKED}"))),
        };
        let params = self
            .store
            .config_map(PARAMS)
            .await
            .map_err(|e| ApiError::from(e).context("cannot read argocd-cmd-params-cm"))?;
        let policy = self
            .store
            .config_map(RBAC)
            .await
            .map_err(|e| ApiError::from(e).context("cannot read argocd-rbac-cm"))?;
        self.enforcer.update(&policy);
        let duration = config
            .get("users.session.duration")
            .and_then(|text| session_seconds(text));
        let signing_key = secret.data.get("server.secretkey").cloned();
        let signing_key = signing_key.unwrap_or_default();
        let references = extension_settings::references(&config).into_iter();
        let references: Vec<String> = references.chain(sso::references(&config)).collect();
        let others = references.iter().filter_map(|text| text.split_once(':'));
        let others: Vec<String> = others.map(|(name, _)| name.to_owned()).collect();
        let referred = self.versions_of(&others);
        let secrets = self.referred(references, &secret).await?;
        let sso = SsoConfig::read(&config, &secrets, &signing_key);
        let settings = Arc::new(Settings {
            sso: sso.map(|config| config.map(Arc::new)),
            extensions: Extensions::read(&config, &secrets),
            accounts: read_accounts(&config, &secret),
            signing_key,
            session_seconds: duration.unwrap_or(DAY_SECONDS),
            webhook_secrets: webhook_secrets(&secret),
            revoked,
            overrides: OnceLock::new(),
            replace_allowed: params
                .get("server.sync.replace.allowed")
                .is_none_or(|v| v != "false"),
            config,
        });
        *cached = Some(Cached {
            at: Instant::now(),
            settings: settings.clone(),
            referred: others,
            versions: own
                .zip(referred)
                .map(|(own, referred)| Versions { own, referred }),
        });
        Ok(settings)
    }

    fn versions(&self, referred: &[String]) -> Option<Versions> {
        Some(Versions {
            own: self.own_versions()?,
            referred: self.versions_of(referred)?,
        })
    }

    fn own_versions(&self) -> Option<Vec<String>> {
        let config_maps = [CONFIG_MAP, PARAMS, RBAC];
        self.store.versions(&config_maps, &[SECRET, REVOKED])
    }

    fn versions_of(&self, secrets: &[String]) -> Option<Vec<String>> {
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        self.store.versions(&[], &secrets)
    }

    /// The values that `oidc.config` and `extension.config` refer to, by `key` of argocd-secret or
    /// `secret:key`.
    async fn referred(
        &self,
        references: Vec<String>,
        own: &SecretRecord,
    ) -> Result<Referred, ApiError> {
        let text = |record: &SecretRecord, key: &str| {
            let value = record.data.get(key).map(|_| record.text(key));
            value.ok_or(Unresolved::Key)
        };
        let mut found = Referred::new();
        for reference in references {
            let value = match reference.split_once(':') {
                None => text(own, &reference),
                Some((name, key)) => match self.store.secret(name).await {
                    Ok(secret) if secret.labels.get(PART_OF.0).is_some_and(|p| p == PART_OF.1) => {
                        text(&secret, key)
                    }
                    Ok(_) => Err(Unresolved::Label),
                    Err(StoreError::NotFound(_)) => Err(Unresolved::Secret),
                    Err(e) => return Err(ApiError::from(e).context(&format!("cannot read {name}"))),
                },
            };
            found.insert(reference, value);
        }
        Ok(found)
    }
}

impl SettingsCache {
    /// Records a logout, for all replicas and across restarts.
    pub async fn record_revoked(&self, id: &str, end: i64, now: Timestamp) -> Result<(), ApiError> {
        let key = revoked_key(id).into_owned();
        let mut attempt = 1;
        loop {
            let (data, version) = self.store.read_secret(REVOKED).await?;
            // Providers may give two tokens one id: they end with the later one.
            if data
                .get(&key)
                .is_some_and(|known| revoked_until(known) >= end)
            {
                return Ok(());
            }
            let mut values = BTreeMap::from([(key.clone(), Some(end.to_string().into_bytes()))]);
            if data.len() >= TIDY_FROM {
                let is_over = |value: &[u8]| revoked_until(value) <= now.as_second();
                for (key, _) in data.iter().filter(|(_, value)| is_over(value)) {
                    values.entry(key.clone()).or_insert(None);
                }
            }
            let written = self.store.change_secret(REVOKED, &version, &values);
            match written.await {
                // Another replica has just written it: what it wrote counts, too.
                Err(StoreError::Conflict(_)) if attempt < MAX_ATTEMPTS => attempt += 1,
                written => return Ok(written?),
            }
        }
    }
}

/// The key under which a token's id is recorded: providers give ids that cannot be keys of a Secret.
fn revoked_key(id: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_key = (1..=MAX_KEY).contains(&id.len())
        && id.bytes().all(is_plain)
        && id != "."
        && !id.starts_with("..");
    if is_key {
        return Cow::Borrowed(id);
    }
    let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(id));
    Cow::Owned(format!("sha256-{hash}"))
}

/// A value `$key` refers to another value of the same Secret.
fn webhook_secrets(secret: &SecretRecord) -> BTreeMap<String, Vec<u8>> {
    let value = |value: &Vec<u8>| {
        let other = value
            .strip_prefix(b"$")
            .and_then(|key| secret.data.get(std::str::from_utf8(key).ok()?));
        other.map_or_else(|| value.clone(), |other| other.trim_ascii().to_vec())
    };
    let webhooks = secret
        .data
        .iter()
        .filter(|(key, _)| key.starts_with("webhook."));
    webhooks
        .map(|(key, v)| (key.clone(), value(v)))
        .filter(|(_, v)| !v.is_empty())
        .collect()
}

/// Parses a duration such as `24h` or `1h30m`; `None` if it is invalid.
/// One number and one unit, as Argo CD reads it.
fn session_seconds(text: &str) -> Option<i64> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let amount: i64 = text[..at].parse().ok()?;
    let unit = match &text[at..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => DAY_SECONDS,
        _ => return None,
    };
    amount.checked_mul(unit).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_id_of_a_token_has_a_key() {
        let key = |id: &str| super::revoked_key(id).into_owned();
        for id in ["a", "0b5e-1_.x", ".a", "a".repeat(253).as_str()] {
            assert_eq!(key(id), id);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        for id in [
            "urn:id/1",
            "a b",
            "é",
            ".",
            "..",
            "..a",
            "",
            "a".repeat(254).as_str(),
        ] {
            let key = key(id);
            assert!(key.starts_with("sha256-"), "{id}: {key}");
            assert!(key.len() < 100 && key.chars().all(is_plain), "{id}: {key}");
        }
        assert_ne!(key("urn:id/1"), key("urn:id/2"));
    }

    #[test]
    fn session_durations() {
        for (text, seconds) in [
            ("24h", Some(86_400)),
            ("2d", Some(172_800)),
            ("48h0m", None),
            ("1h30m", None),
            ("h", None),
            ("99999999999999999d", None),
            ("90s", Some(90)),
            ("", None),
            ("soon", None),
            ("0s", None),
        ] {
            assert_eq!(super::session_seconds(text), seconds, "{text:?}");
        }
    }
}
