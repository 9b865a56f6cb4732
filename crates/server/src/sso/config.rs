//! `oidc.config` and `dex.config` of argocd-cm. Main type: [`SsoConfig`].

use crate::referred::{Referred, Unresolved};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, time::Duration};
use tiphys_api::rpc::settings::{Claim, Connector, DexConfig, OIDCConfig};
use tiphys_gocompat::{
    duration,
    yaml::{Duplicates, Limits, parse_document},
};

/// What Dex knows this server as.
pub(super) const DEX_CLIENT: &str = "argo-cd";
pub(super) const DEX_CLI_CLIENT: &str = "argo-cd-cli";
pub const DEX_PATH: &str = "/api/dex";
/// How long answers of the user info endpoint are used unless the settings say otherwise.
const USER_INFO_SECONDS: u64 = 60;

/// Why callers cannot sign in with the identity provider; names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} of argocd-cm: {why}")]
pub struct SsoFault {
    setting: &'static str,
    why: String,
}

/// The identity provider, and what this server is to it. There is no `Debug`, because it has the
/// client's secret.
#[derive(Clone, PartialEq)]
pub struct SsoConfig {
    pub name: String,
    pub issuer: String,
    pub client_id: String,
    pub client_secret: String,
    pub cli_client_id: String,
    pub scopes: Vec<String>,
    pub id_token_claims: Map<String, Value>,
    pub logout_url: String,
    /// PEM.
    pub root_ca: String,
    pub uses_pkce: bool,
    pub domain_hint: String,
    /// The audiences of tokens that are accepted.
    pub audiences: Vec<String>,
    pub accepts_no_audience: bool,
    pub user_info: Option<UserInfo>,
    /// Where Entra ID says the groups that it leaves out of a token.
    pub graph: Option<Graph>,
    /// Sessions of browsers are refreshed when less than this is left of them; none: never.
    pub refresh_below: Option<Duration>,
    /// Its certificate is not checked (`oidc.tls.insecure.skip.verify`).
    pub is_insecure: bool,
    /// The connectors of Dex, if that is the provider.
    pub connectors: Option<Vec<Connector>>,
    /// The connector that Dex goes to at once (`dex.auth.connectorId`); empty: callers choose.
    pub connector_id: String,
    /// `url` of argocd-cm, then `additionalUrls`, without a slash at the end.
    pub base_urls: Vec<String>,
}

/// Groups come from the user info endpoint, not from the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserInfo {
    /// Below the issuer; empty: the endpoint that the provider names.
    pub path: String,
    pub lifetime: Duration,
}

/// Microsoft Graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Without a slash at the end.
    pub endpoint: String,
    /// How long its answers are used; none: as long as the caller's access token.
    pub lifetime: Option<Duration>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawAzure {
    enable_user_group_overage_claim: bool,
    graph_api_endpoint: String,
    user_group_overage_claim_cache_expiration: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    name: String,
    issuer: String,
    #[serde(rename = "clientID")]
    client_id: String,
    client_secret: String,
    #[serde(rename = "cliClientID")]
    cli_client_id: String,
    requested_scopes: Vec<String>,
    #[serde(rename = "requestedIDTokenClaims")]
    requested_id_token_claims: Map<String, Value>,
    #[serde(rename = "logoutURL")]
    logout_url: String,
    #[serde(rename = "rootCA")]
    root_ca: String,
    #[serde(rename = "enablePKCEAuthentication")]
    enable_pkce_authentication: bool,
    domain_hint: String,
    allowed_audiences: Vec<String>,
    skip_audience_check_when_token_has_no_audience: bool,
    enable_user_info_groups: bool,
    user_info_path: String,
    user_info_cache_expiration: String,
    azure: Option<RawAzure>,
    refresh_token_threshold: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawDex {
    connectors: Vec<RawConnector>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawConnector {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    id: String,
}

/// The settings that are given as YAML, with references to Secrets.
const OIDC: &str = "oidc.config";
pub(super) const DEX: &str = "dex.config";
const CONNECTOR: &str = "dex.auth.connectorId";

pub(super) fn fault(setting: &'static str, why: impl Into<String>) -> SsoFault {
    SsoFault {
        setting,
        why: why.into(),
    }
}

pub(super) fn parsed(setting: &'static str, text: &str) -> Result<Value, SsoFault> {
    parse_document(text, &Limits::default(), Duplicates::LastWins)
        .map_err(|e| fault(setting, format!("it is not valid YAML: {e}")))
}

/// The references `$key` and `$secret:key` in the setting; a reference that cannot be read later is
/// an error only then.
pub fn references(config: &BTreeMap<String, String>) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.extend(text.strip_prefix('$').map(str::to_owned)),
            Value::Array(items) => items.iter().for_each(|v| collect(v, found)),
            Value::Object(fields) => fields.values().for_each(|v| collect(v, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Some(text) = config.get(OIDC)
        && let Ok(value) = parsed(OIDC, text)
    {
        collect(&value, &mut found);
    }
    found
}

/// Replaces the references in all texts.
fn resolve(value: &mut Value, secrets: &Referred) -> Result<(), SsoFault> {
    match value {
        Value::String(text) => {
            if let Some(key) = text.strip_prefix('$') {
                let found = secrets.get(key).unwrap_or(&Err(Unresolved::Key));
                let found = found.as_ref().map_err(|why| fault(OIDC, why.of(key)))?;
                *text = found.trim().to_owned();
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|v| resolve(v, secrets)),
        Value::Object(fields) => fields.values_mut().try_for_each(|v| resolve(v, secrets)),
        _ => Ok(()),
    }
}

fn lifetime(field: &str, text: &str) -> Result<Option<Duration>, SsoFault> {
    if text.is_empty() {
        return Ok(None);
    }
    let nanos = duration::parse(text).ok().map(u64::try_from);
    match nanos {
        Some(Ok(nanos)) => Ok(Some(Duration::from_nanos(nanos))),
        _ => Err(fault(OIDC, format!("{field} {text:?} is no duration"))),
    }
}

/// Microsoft's clouds. Callers' access tokens go to no other host.
const GRAPH_HOSTS: [&str; 4] = [
    "graph.microsoft.com",
    "graph.microsoft.us",
    "graph.microsoft.de",
    "microsoftgraph.chinacloudapi.cn",
];

fn graph(raw: RawAzure) -> Result<Option<Graph>, SsoFault> {
    let expiration = &raw.user_group_overage_claim_cache_expiration;
    let lifetime = lifetime("azure.userGroupOverageClaimCacheExpiration", expiration)?;
    let endpoint = match raw.graph_api_endpoint.as_str() {
        "" => "https://graph.microsoft.com/v1.0",
        endpoint => endpoint,
    };
    let refused = |why: &str| fault(OIDC, format!("azure.graphApiEndpoint {endpoint:?} {why}"));
    let url = reqwest::Url::parse(endpoint).map_err(|_| refused("is not a URL"))?;
    if url.scheme() != "https" {
        return Err(refused("must use https"));
    }
    if !url
        .host_str()
        .is_some_and(|host| GRAPH_HOSTS.contains(&host))
    {
        let known = GRAPH_HOSTS.join(", ");
        return Err(refused(&format!(
            "is not a host of Microsoft Graph ({known})"
        )));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(refused("may have only a host and a path"));
    }
    Ok(raw.enable_user_group_overage_claim.then(|| Graph {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        lifetime,
    }))
}

pub(super) fn base_urls(config: &BTreeMap<String, String>) -> Vec<String> {
    let clean = |url: &str| url.trim().trim_end_matches('/').to_owned();
    let url = config.get("url").map(|u| clean(u));
    let more = config
        .get("additionalUrls")
        .and_then(|text| parsed("additionalUrls", text).ok());
    let more = more.as_ref().and_then(Value::as_array);
    let more = more.into_iter().flatten().filter_map(Value::as_str);
    url.into_iter()
        .chain(more.map(clean))
        .filter(|u| !u.is_empty())
        .collect()
}

impl SsoConfig {
    /// Whether this is the provider's issuer. Providers write their own with and without a slash at
    /// the end.
    pub fn is_issuer(&self, issuer: &str) -> bool {
        let bare = |text: &str| text.trim_end_matches('/').to_owned();
        !issuer.is_empty() && bare(&self.issuer) == bare(issuer)
    }

    /// The provider of the settings, if there is one. `secrets` has the values of the
    /// [`references`].
    pub fn read(
        config: &BTreeMap<String, String>,
        secrets: &Referred,
        signing_key: &[u8],
    ) -> Result<Option<Self>, SsoFault> {
        let set = |key: &str| config.get(key).filter(|text| !text.trim().is_empty());
        let base_urls = base_urls(config);
        let is_insecure = set("oidc.tls.insecure.skip.verify").is_some_and(|v| v == "true");
        if let Some(text) = set(OIDC) {
            let mut value = parsed(OIDC, text)?;
            resolve(&mut value, secrets)?;
            return Self::of_oidc(value, base_urls, is_insecure).map(Some);
        }
        let Some(text) = set(DEX) else {
            return Ok(None);
        };
        let raw: RawDex =
            serde_json::from_value(parsed(DEX, text)?).map_err(|e| fault(DEX, e.to_string()))?;
        if raw.connectors.is_empty() {
            return Ok(None);
        }
        let mut read = Self::of_dex(raw, base_urls, is_insecure, signing_key);
        if let Some(wanted) = set(CONNECTOR) {
            read.go_to(wanted);
        }
        Ok(Some(read))
    }

    fn of_oidc(value: Value, base_urls: Vec<String>, is_insecure: bool) -> Result<Self, SsoFault> {
        let raw: Raw = serde_json::from_value(value).map_err(|e| fault(OIDC, e.to_string()))?;
        for (field, text) in [("issuer", &raw.issuer), ("clientID", &raw.client_id)] {
            if text.is_empty() {
                return Err(fault(OIDC, format!("{field} is missing")));
            }
        }
        let mut audiences = raw.allowed_audiences;
        if audiences.is_empty() {
            audiences = vec![raw.client_id.clone(), raw.cli_client_id.clone()];
            audiences.retain(|a| !a.is_empty());
        }
        let refresh_below = lifetime("refreshTokenThreshold", &raw.refresh_token_threshold)?;
        let lifetime = lifetime("userInfoCacheExpiration", &raw.user_info_cache_expiration)?;
        let lifetime = lifetime.unwrap_or(Duration::from_secs(USER_INFO_SECONDS));
        let graph = graph(raw.azure.unwrap_or_default())?;
        let user_info = raw.enable_user_info_groups.then_some(UserInfo {
            path: raw.user_info_path,
            lifetime,
        });
        Ok(Self {
            name: raw.name,
            issuer: raw.issuer,
            client_id: raw.client_id,
            client_secret: raw.client_secret,
            cli_client_id: raw.cli_client_id,
            scopes: raw.requested_scopes,
            id_token_claims: raw.requested_id_token_claims,
            logout_url: raw.logout_url,
            root_ca: raw.root_ca,
            uses_pkce: raw.enable_pkce_authentication,
            domain_hint: raw.domain_hint,
            audiences,
            accepts_no_audience: raw.skip_audience_check_when_token_has_no_audience,
            user_info,
            graph,
            refresh_below,
            is_insecure,
            connectors: None,
            connector_id: String::new(),
            base_urls,
        })
    }

    fn of_dex(raw: RawDex, base_urls: Vec<String>, is_insecure: bool, signing_key: &[u8]) -> Self {
        let connector = |c: RawConnector| Connector {
            name: c.name,
            type_: c.type_,
            id: c.id,
        };
        let issuer = base_urls.first().map_or("", String::as_str);
        Self {
            name: String::new(),
            issuer: format!("{issuer}{DEX_PATH}"),
            client_id: DEX_CLIENT.to_owned(),
            client_secret: dex_secret(signing_key),
            cli_client_id: DEX_CLI_CLIENT.to_owned(),
            scopes: Vec::new(),
            id_token_claims: Map::new(),
            logout_url: String::new(),
            root_ca: String::new(),
            uses_pkce: false,
            domain_hint: String::new(),
            audiences: vec![DEX_CLIENT.to_owned(), DEX_CLI_CLIENT.to_owned()],
            accepts_no_audience: false,
            user_info: None,
            graph: None,
            refresh_below: None,
            is_insecure,
            connectors: Some(raw.connectors.into_iter().map(connector).collect()),
            connector_id: String::new(),
            base_urls,
        }
    }

    /// Has Dex skip its list of connectors. An id that it does not have would end every sign-in with
    /// an error of Dex, so then callers choose, as in Argo CD.
    fn go_to(&mut self, wanted: &str) {
        let has_it = |connector: &Connector| connector.id == wanted;
        if self.connectors.iter().flatten().any(has_it) {
            wanted.clone_into(&mut self.connector_id);
        } else {
            tracing::warn!("{CONNECTOR} of argocd-cm: no connector of {DEX} has the id {wanted:?}");
        }
    }

    pub fn is_dex(&self) -> bool {
        self.connectors.is_some()
    }

    /// The scopes to ask for.
    pub fn requested_scopes(&self) -> Vec<String> {
        if !self.scopes.is_empty() {
            return self.scopes.clone();
        }
        let more = self.is_dex().then_some("federated:id");
        ["openid", "profile", "email", "groups"]
            .into_iter()
            .chain(more)
            .map(str::to_owned)
            .collect()
    }

    /// What clients need to sign in themselves.
    pub fn shown(&self) -> (Option<OIDCConfig>, Option<DexConfig>) {
        if let Some(connectors) = &self.connectors {
            let dex = DexConfig {
                connectors: connectors.clone(),
                dex_auth_connector_id: self.connector_id.clone(),
            };
            return (None, Some(dex));
        }
        let claim = |value: &Value| serde_json::from_value::<Claim>(value.clone()).ok();
        let claims = self
            .id_token_claims
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), claim(value)?)));
        let oidc = OIDCConfig {
            name: self.name.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            cli_client_id: self.cli_client_id.clone(),
            scopes: self.scopes.clone(),
            id_token_claims: claims.collect(),
            enable_pkce_authentication: self.uses_pkce,
        };
        (Some(oidc), None)
    }
}

/// The secret that Dex and this server derive from `server.secretkey`.
pub fn dex_secret(signing_key: &[u8]) -> String {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE};
    let mut text = BASE64_URL_SAFE.encode(Sha256::digest(signing_key));
    text.truncate(40);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pair = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn references_are_resolved_or_named() {
        let text = "issuer: https://sso.example.com\nclientID: a\nclientSecret: $corp:key\n";
        let config = map(&[(OIDC, text), ("url", "https://cd.example.com/")]);
        assert_eq!(references(&config), ["corp:key"]);
        let read = |found: Result<&str, Unresolved>| {
            let found = found.map(str::to_owned);
            SsoConfig::read(&config, &BTreeMap::from([("corp:key".into(), found)]), b"")
        };
        let resolved = read(Ok("hush\n")).ok().flatten().expect("a provider");
        assert_eq!(resolved.client_secret, "hush");
        assert_eq!(resolved.base_urls, ["https://cd.example.com"]);
        assert_eq!(resolved.audiences, ["a"]);
        for (why, said) in [
            (Unresolved::Secret, "there is no Secret corp"),
            (Unresolved::Key, "Secret corp has no key key"),
            (
                Unresolved::Label,
                "Secret corp has no label app.kubernetes.io/part-of: argocd",
            ),
        ] {
            let fault = read(Err(why)).err().expect(said).to_string();
            let want = format!("oidc.config of argocd-cm: $corp:key does not resolve: {said}");
            assert_eq!(fault, want);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, why) in [
            ("clientID: a", "issuer is missing"),
            ("issuer: https://x", "clientID is missing"),
            ("issuer: [", "not valid YAML"),
            (
                "issuer: x\nclientID: a\nuserInfoCacheExpiration: soon",
                "soon",
            ),
        ] {
            let Err(fault) = SsoConfig::read(&map(&[(OIDC, text)]), &Referred::new(), b"") else {
                panic!("{text}");
            };
            assert!(fault.to_string().contains(why), "{text}: {fault}");
        }
    }

    #[test]
    fn dex_is_the_provider_without_another() {
        let dex = "connectors:\n- {type: github, id: gh, name: GitHub}\n";
        let config = map(&[(DEX, dex), ("url", "https://cd.example.com")]);
        let read = SsoConfig::read(&config, &Referred::new(), b"key")
            .ok()
            .flatten();
        let read = read.expect("a provider");
        assert_eq!(read.issuer, "https://cd.example.com/api/dex");
        assert_eq!(read.client_secret.len(), 40);
        assert!(read.requested_scopes().contains(&"federated:id".to_owned()));
        let none = SsoConfig::read(&map(&[(DEX, "connectors: []")]), &Referred::new(), b"");
        assert!(none.is_ok_and(|config| config.is_none()));
    }

    #[test]
    fn dex_goes_to_a_connector_that_it_has() {
        let dex = "connectors:\n- {type: github, id: gh}\n- {type: ldap, id: corp}\n";
        for (wanted, goes_to) in [("corp", "corp"), ("other", ""), ("", "")] {
            let config = map(&[(DEX, dex), (CONNECTOR, wanted)]);
            let read = SsoConfig::read(&config, &Referred::new(), b"key");
            let read = read.ok().flatten().expect("a provider");
            assert_eq!(read.connector_id, goes_to, "{wanted}");
            let shown = read.shown().1.expect("Dex");
            assert_eq!(shown.dex_auth_connector_id, goes_to, "{wanted}");
        }
        // It says nothing to another provider.
        let oidc = "issuer: https://sso.example.com\nclientID: a\n";
        let config = map(&[(OIDC, oidc), (DEX, dex), (CONNECTOR, "corp")]);
        let read = SsoConfig::read(&config, &Referred::new(), b"key");
        let read = read.ok().flatten().expect("a provider");
        assert_eq!(read.connector_id, "");
    }
}
