//! The configuration file of the Dex that runs beside this server: `dex.config` of argocd-cm with
//! what Argo CD's `argocd-dex` adds. Main type: [`DexConfiguration`].

use super::config::{
    DEX, DEX_CLI_CLIENT, DEX_CLIENT, DEX_PATH, SsoFault, base_urls, dex_secret, fault, parsed,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tiphys_gocompat::yaml;

const URL: &str = "url";
const ADDITIONAL_URLS: &str = "additionalUrls";
/// The connectors that send the browser back to Dex.
const REDIRECTING: [&str; 11] = [
    "oidc",
    "saml",
    "microsoft",
    "linkedin",
    "gitlab",
    "github",
    "bitbucket-cloud",
    "openshift",
    "gitea",
    "google",
    "oauth",
];
/// Fields that are hidden even if they refer to no Secret.
const SECRET_FIELDS: [&str; 6] = [
    "bindPW",
    "clientSecret",
    "hash",
    "keystonePassword",
    "password",
    "secret",
];
const HIDDEN: &str = "******";

/// What the configuration is made of. There is no `Debug`, because it has secrets.
pub struct DexInput<'a> {
    /// argocd-cm.
    pub config: &'a BTreeMap<String, String>,
    /// `server.secretkey`; empty: there is none.
    pub signing_key: &'a [u8],
    /// What may be referred to, by `key` of argocd-secret or `secret:key`.
    pub secrets: &'a BTreeMap<String, String>,
}

/// How Dex is run.
#[derive(Clone, Debug)]
pub struct DexOptions {
    /// The files with the certificate and its key; `None`: it serves without TLS.
    pub certificate: Option<(String, String)>,
    /// As Argo CD's roles name it.
    pub log_level: String,
    pub log_format: String,
}

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DexFault {
    #[error(transparent)]
    Setting(#[from] SsoFault),
    #[error("argocd-secret has no server.secretkey, which the secret of Dex's client is made of")]
    NoSigningKey,
}

/// There is no `Debug`, because it has secrets.
#[derive(Clone, PartialEq)]
pub struct DexConfiguration {
    whole: Value,
    shown: Value,
    unresolved: Vec<String>,
}

impl DexConfiguration {
    /// `Ok(None)`: `url` or `dex.config` is not set.
    ///
    /// Unlike Argo CD's, the issuer is ours even if there is an `oidc.config`, and a secret that
    /// begins with a dollar sign is escaped like any other.
    ///
    /// # Errors
    /// A setting cannot be used, or the signing key is missing.
    pub fn of(input: &DexInput<'_>, options: &DexOptions) -> Result<Option<Self>, DexFault> {
        let Some(mut fields) = described(input.config)? else {
            return Ok(None);
        };
        let urls = urls(input.config)?;
        let Some(own) = urls.first() else {
            return Ok(None);
        };
        if input.signing_key.is_empty() {
            return Err(DexFault::NoSigningKey);
        }
        connect(&mut fields, &format!("{own}{DEX_PATH}/callback"))?;
        set_up(&mut fields, own, options);
        let clients = clients(fields.get("staticClients"), &urls, input.signing_key);
        fields.insert("staticClients".into(), clients);
        let mut shown = fields.clone();
        let mut resolver = Resolver {
            secrets: input.secrets,
            hides: false,
            unresolved: Vec::new(),
        };
        resolver.resolve(&mut fields);
        let unresolved = std::mem::take(&mut resolver.unresolved);
        resolver.hides = true;
        resolver.resolve(&mut shown);
        let mut shown = Value::Object(shown);
        hide(&mut shown);
        Ok(Some(Self {
            whole: Value::Object(fields),
            shown,
            unresolved,
        }))
    }

    /// For Dex. It contains secrets.
    pub fn text(&self) -> String {
        yaml::to_string(&self.whole)
    }

    /// For people, without secrets.
    pub fn shown(&self) -> String {
        yaml::to_string(&self.shown)
    }

    /// Fields that begin with a dollar sign and name nothing in a Secret, by their paths. They are
    /// left as they are, because Dex replaces what names a variable of its environment. Their texts
    /// may be secrets that were meant literally.
    pub fn unresolved(&self) -> &[String] {
        &self.unresolved
    }
}

fn set<'a>(config: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    let text = config.get(key).map(|text| text.trim());
    text.filter(|text| !text.is_empty())
}

/// The fields of `dex.config`, if there are any and the installation has an address.
fn described(config: &BTreeMap<String, String>) -> Result<Option<Map<String, Value>>, DexFault> {
    let (Some(text), Some(_)) = (set(config, DEX), set(config, URL)) else {
        return Ok(None);
    };
    match parsed(DEX, text)? {
        Value::Null => Ok(None),
        Value::Object(fields) if fields.is_empty() => Ok(None),
        Value::Object(fields) => Ok(Some(fields)),
        _ => Err(fault(DEX, "it must be a map").into()),
    }
}

/// The addresses of the installation, without a slash at the end.
fn urls(config: &BTreeMap<String, String>) -> Result<Vec<String>, DexFault> {
    if let Some(text) = set(config, ADDITIONAL_URLS) {
        let is_list = match parsed(ADDITIONAL_URLS, text)? {
            Value::Null => true,
            Value::Array(urls) => urls.iter().all(Value::is_string),
            _ => false,
        };
        if !is_list {
            return Err(fault(ADDITIONAL_URLS, "it must be a list of URLs").into());
        }
    }
    let urls = base_urls(config);
    for (at, url) in urls.iter().enumerate() {
        let setting = if at == 0 { URL } else { ADDITIONAL_URLS };
        reqwest::Url::parse(url).map_err(|e| fault(setting, format!("{url:?}: {e}")))?;
    }
    Ok(urls)
}

/// Tells the connectors where browsers come back to.
fn connect(fields: &mut Map<String, Value>, callback: &str) -> Result<(), DexFault> {
    let connectors = fields.get_mut("connectors").and_then(Value::as_array_mut);
    let connectors = connectors.ok_or_else(|| fault(DEX, "connectors must be a list"))?;
    for (at, connector) in connectors.iter_mut().enumerate() {
        let kind = connector.get("type").and_then(Value::as_str);
        let kind = kind.ok_or_else(|| fault(DEX, format!("connectors[{at}] has no type")))?;
        if !REDIRECTING.contains(&kind) {
            continue;
        }
        let config = connector.get_mut("config").and_then(Value::as_object_mut);
        let config = config.ok_or_else(|| fault(DEX, format!("connectors[{at}] has no config")))?;
        config.insert("redirectURI".into(), json!(callback));
    }
    Ok(())
}

/// What is the same for all: issuer, storage, ports, log and consent.
fn set_up(fields: &mut Map<String, Value>, url: &str, options: &DexOptions) {
    let web = web(fields.get("web"), options.certificate.as_ref());
    let logger = logger(fields.get("logger"), options);
    let map = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    let mut oauth2 = map(fields.get("oauth2")).unwrap_or_default();
    let skips = "skipApprovalScreen";
    if !oauth2.get(skips).is_some_and(Value::is_boolean) {
        oauth2.insert(skips.into(), json!(true));
    }
    for (name, value) in [
        ("issuer", json!(format!("{url}{DEX_PATH}"))),
        ("storage", json!({"type": "memory"})),
        ("web", web),
        ("logger", logger),
        ("grpc", json!({"addr": "0.0.0.0:5557"})),
        ("telemetry", json!({"http": "0.0.0.0:5558"})),
        ("oauth2", Value::Object(oauth2)),
    ] {
        fields.insert(name.into(), value);
    }
}

fn web(given: Option<&Value>, certificate: Option<&(String, String)>) -> Value {
    const ADDRESS: &str = "0.0.0.0:5556";
    const OLDEST: &str = "tlsMinVersion";
    let Some((certificate, key)) = certificate else {
        return json!({"http": ADDRESS});
    };
    let mut web = json!({"https": ADDRESS, "tlsCert": certificate, "tlsKey": key});
    let oldest = given.and_then(|web| web.get(OLDEST));
    if let Some(oldest) = oldest.filter(|oldest| oldest.as_str() != Some("")) {
        web[OLDEST] = oldest.clone();
    }
    web
}

fn logger(given: Option<&Value>, options: &DexOptions) -> Value {
    let given = given.and_then(Value::as_object).cloned();
    let mut logger = given.unwrap_or_default();
    let level = json!(level(&options.log_level));
    logger.entry("level").or_insert(level);
    let format = json!(options.log_format);
    logger.entry("format").or_insert(format);
    Value::Object(logger)
}

/// Dex's name of a level.
fn level(level: &str) -> &str {
    match level.to_ascii_lowercase().as_str() {
        "debug" | "trace" => "DEBUG",
        "info" => "INFO",
        "warn" | "warning" => "WARN",
        "error" | "fatal" | "panic" => "ERROR",
        _ => level,
    }
}

/// The clients of Dex: this server, the command line, the page in development, and those of the
/// settings.
fn clients(given: Option<&Value>, urls: &[String], signing_key: &[u8]) -> Value {
    let returns = urls.iter().map(|url| format!("{url}/auth/callback"));
    let returns: Vec<String> = returns.collect();
    let mut clients = vec![
        json!({"id": DEX_CLIENT, "name": "Argo CD", "secret": dex_secret(signing_key),
            "redirectURIs": returns}),
        json!({"id": DEX_CLI_CLIENT, "name": "Argo CD CLI", "public": true,
            "redirectURIs": ["http://localhost", "http://localhost:8085/auth/callback"]}),
        json!({"id": "argo-cd-pkce", "name": "Argo CD PKCE", "public": true,
            "redirectURIs": ["http://localhost:4000/auth/callback"]}),
    ];
    let given = given.and_then(Value::as_array);
    clients.extend(given.into_iter().flatten().cloned());
    Value::Array(clients)
}

/// Replaces references to Secrets.
struct Resolver<'a> {
    secrets: &'a BTreeMap<String, String>,
    /// What is referred to is hidden.
    hides: bool,
    unresolved: Vec<String>,
}

impl Resolver<'_> {
    fn resolve(&mut self, fields: &mut Map<String, Value>) {
        for (name, value) in fields {
            match value {
                Value::Array(connectors) if name == "connectors" => {
                    for (at, connector) in connectors.iter_mut().enumerate() {
                        self.resolve_connector(connector, &format!("connectors[{at}]"));
                    }
                }
                value => self.walk(value, name, false),
            }
        }
    }

    /// Dex replaces variables in the configurations of connectors, so their dollar signs are
    /// escaped.
    fn resolve_connector(&mut self, connector: &mut Value, path: &str) {
        for (name, value) in connector.as_object_mut().into_iter().flatten() {
            let escapes = name == "config" && value.is_object();
            self.walk(value, &format!("{path}.{name}"), escapes);
        }
    }

    fn walk(&mut self, value: &mut Value, path: &str, escapes: bool) {
        match value {
            Value::String(text) => self.replace(text, path, escapes),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.walk(item, &format!("{path}[{at}]"), escapes);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.walk(field, &format!("{path}.{name}"), escapes);
                }
            }
            _ => {}
        }
    }

    fn replace(&mut self, text: &mut String, path: &str, escapes: bool) {
        let escaped = |text: &str| match escapes {
            true => text.replace('$', "$$"),
            false => text.to_owned(),
        };
        let key = text.strip_prefix('$').filter(|key| !key.is_empty());
        let Some(key) = key else {
            *text = escaped(text);
            return;
        };
        match self.secrets.get(key) {
            Some(_) if self.hides => HIDDEN.clone_into(text),
            Some(secret) => *text = escaped(secret.trim()),
            // A password of `staticPasswords`, where Dex replaces nothing.
            None if !escapes && is_bcrypt(text) => {}
            None => self.unresolved.push(path.to_owned()),
        }
    }
}

/// Whether it is a hash of bcrypt, all of which begin with a dollar sign.
fn is_bcrypt(text: &str) -> bool {
    let kinds = ["$2a$", "$2b$", "$2x$", "$2y$"];
    text.len() == 60 && kinds.iter().any(|kind| text.starts_with(kind))
}

/// Hides what is a secret by its name.
fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            for (name, field) in fields {
                if field.is_string() && SECRET_FIELDS.contains(&name.as_str()) {
                    *field = json!(HIDDEN);
                } else {
                    hide(field);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "dex_config_tests.rs"]
mod tests;
