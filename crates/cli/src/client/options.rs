//! The server and the credentials: from flags, then `ARGOCD_*` variables, then the config file.
//! [`Connection`] is the result.

use super::{
    Failure,
    config::{Context, LocalConfig, default_folder, with_port},
    exit, reason,
};
use std::{collections::BTreeMap, env, fs, path::PathBuf};

/// The server's name in the config file where a port is forwarded to it, as Argo CD writes it: its
/// port is another one each time.
pub const FORWARDED: &str = "port-forward";

/// What the pods of an Argo CD server and of ours are called.
const SERVERS: [&str; 2] = ["argocd-server", "tiphys"];

/// The flags of every command that asks a server.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArgs {
    /// Server address [env: ARGOCD_SERVER]
    #[arg(long, global = true, value_name = "ADDRESS")]
    server: Option<String>,
    /// Disable TLS
    #[arg(long, global = true)]
    plaintext: Option<bool>,
    /// Skip server certificate and domain verification
    #[arg(long, global = true)]
    insecure: Option<bool>,
    /// Server certificate file
    #[arg(long, global = true, value_name = "FILE")]
    server_crt: Option<String>,
    /// Client certificate file
    #[arg(long, global = true, value_name = "FILE")]
    client_crt: Option<String>,
    /// Client certificate key file
    #[arg(long, global = true, value_name = "FILE")]
    client_crt_key: Option<String>,
    /// Authentication token [env: ARGOCD_AUTH_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    auth_token: Option<String>,
    /// Use gRPC-web, which gets through proxies without HTTP/2
    #[arg(long, global = true)]
    grpc_web: Option<bool>,
    /// Use gRPC-web below this path
    #[arg(long, global = true, value_name = "PATH")]
    grpc_web_root_path: Option<String>,
    /// Additional header of all requests, as `name: value` (can be repeated, and separated by
    /// commas)
    #[arg(long, short = 'H', global = true, value_name = "HEADER")]
    header: Vec<String>,
    /// Path of the config file
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The context of the config file to use
    #[arg(long, global = true, value_name = "CONTEXT")]
    argocd_context: Option<String>,
    /// Ask before logging out or removing something
    #[arg(long, global = true)]
    prompts_enabled: Option<bool>,
    /// Format of messages and of a role's log: json or text
    #[arg(long, global = true, value_name = "FORMAT")]
    logformat: Option<String>,
    /// Ask the Kubernetes API of the kubeconfig, without a server
    #[arg(long, global = true)]
    core: Option<bool>,
    /// Context of the kubeconfig, for --core
    #[arg(long, global = true, value_name = "NAME")]
    kube_context: Option<String>,
    /// Connect to a pod of the server, through the Kubernetes API of the kubeconfig
    #[arg(long, global = true)]
    port_forward: Option<bool>,
    /// The same, with the namespace of the pod
    #[arg(long, global = true, value_name = "NAMESPACE")]
    port_forward_namespace: Option<String>,
    /// Name of the server, as its pods' label app.kubernetes.io/name says [env: ARGOCD_SERVER_NAME]
    #[arg(long, global = true, value_name = "NAME")]
    server_name: Option<String>,
    /// Maximum number of retries to reach the server [default: 2 for a call, none to connect]
    #[arg(long, global = true, value_name = "N")]
    http_retry_max: Option<i64>,
    #[command(flatten)]
    without_effect: WithoutEffect,
}

/// Flags that scripts pass and that change nothing here. They are about how the `argocd` command
/// finds parts of a server in a cluster.
#[derive(clap::Args, Clone, Debug, Default)]
struct WithoutEffect {
    /// (no effect but for `admin cluster shards` and `stats`, which have the flag themselves)
    #[arg(long, global = true, hide = true)]
    controller_name: Option<String>,
    /// (no effect)
    #[arg(long, global = true, hide = true)]
    redis_name: Option<String>,
    /// (no effect)
    #[arg(long, global = true, hide = true)]
    redis_haproxy_name: Option<String>,
    /// (no effect)
    #[arg(long, global = true, hide = true)]
    redis_compress: Option<String>,
    /// (no effect)
    #[arg(long, global = true, hide = true)]
    repo_server_name: Option<String>,
}

/// Values of flags from the variable `ARGOCD_OPTS`.
#[derive(Debug, Default, PartialEq)]
struct Defaults(BTreeMap<String, String>);

impl Defaults {
    fn parse(text: &str) -> Result<Self, Failure> {
        let mut values = BTreeMap::new();
        let mut waiting: Option<String> = None;
        for word in words(text)? {
            if let Some(flag) = word.strip_prefix("--") {
                if let Some(flag) = waiting.take() {
                    values.insert(flag, "true".to_owned());
                }
                match flag.split_once('=') {
                    Some((flag, value)) => drop(values.insert(flag.to_owned(), value.to_owned())),
                    None => waiting = Some(flag.to_owned()),
                }
            } else if let Some(flag) = waiting.take() {
                values.insert(flag, word);
            } else {
                return Err(Failure::fatal(format!("ARGOCD_OPTS invalid at '{word}'")));
            }
        }
        if let Some(flag) = waiting {
            values.insert(flag, "true".into());
        }
        Ok(Self(values))
    }

    fn text(&self, flag: &str) -> Option<String> {
        self.0.get(flag).cloned()
    }

    fn is_set(&self, flag: &str) -> bool {
        self.0.get(flag).is_some_and(|v| v == "true")
    }
}

/// Splits like a shell: at blanks, with quotes and backslashes.
fn words(text: &str) -> Result<Vec<String>, Failure> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Failure::fatal("ARGOCD_OPTS has a quote that does not end"));
    }
    words.extend(word);
    Ok(words)
}

/// The Kubernetes API in the place of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Core {
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
}

/// A way to a server's pod, through the Kubernetes API.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// `None`: that of the context.
    pub namespace: Option<String>,
    /// What the pods may be called, the preferred name first.
    pub servers: Vec<String>,
}

/// How to connect to the server.
#[derive(Clone, Default)]
pub struct Connection {
    /// Host and port.
    pub server: String,
    pub plaintext: bool,
    pub insecure: bool,
    pub grpc_web: bool,
    pub root_path: String,
    pub token: String,
    /// PEM.
    pub server_certificate: Vec<u8>,
    /// PEM of the certificate chain and its key.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
    pub headers: Vec<(String, String)>,
    /// How often to try again, at least once; `None`: the user does not say.
    pub retries: Option<u32>,
}

impl Connection {
    /// What the config file says of a server and its user.
    fn of_context(context: Context) -> Result<Self, Failure> {
        let Context { server, user } = context;
        let pem = |text: &str| {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            STANDARD.decode(text).map_err(|e| {
                Failure::fatal(format!("client-certificate-data in the config file: {e}"))
            })
        };
        let client_certificate = match (
            server.client_certificate_data.as_str(),
            server.client_certificate_key_data.as_str(),
        ) {
            ("", "") => None,
            ("", _) | (_, "") => {
                return Err(Failure::fatal(
                    "ClientCertificateData and ClientCertificateKeyData must always be specified together",
                ));
            }
            (certificate, key) => Some((pem(certificate)?, pem(key)?)),
        };
        Ok(Self {
            server: server.server,
            plaintext: server.plain_text,
            insecure: server.insecure,
            grpc_web: server.grpc_web || !server.grpc_web_root_path.is_empty(),
            root_path: server.grpc_web_root_path,
            token: user.auth_token,
            client_certificate,
            ..Self::default()
        })
    }
}

impl ConnectArgs {
    fn defaults() -> Result<Defaults, Failure> {
        Defaults::parse(&env::var("ARGOCD_OPTS").unwrap_or_default())
    }

    /// The path of the config file.
    pub fn config_path(&self) -> Result<PathBuf, Failure> {
        let chosen = self
            .config
            .clone()
            .or(Self::defaults()?.text("config").map(PathBuf::from));
        Ok(chosen.unwrap_or_else(|| default_folder().join("config")))
    }

    pub fn log_format(&self) -> Option<String> {
        let default = || Self::defaults().ok().and_then(|d| d.text("logformat"));
        self.logformat.clone().or_else(default)
    }

    /// Whether the command line itself asks for the Kubernetes API.
    pub fn core_flag(&self) -> Result<bool, Failure> {
        Ok(match self.core {
            Some(core) => core,
            None => Self::defaults()?.is_set("core"),
        })
    }

    /// The Kubernetes API, if that is to be asked instead of a server: by the command line, or by
    /// the context of the config file.
    ///
    /// # Errors
    /// The config file cannot be read, or does not have the context.
    pub fn core(&self) -> Result<Option<Core>, Failure> {
        let core = Core {
            context: self.kube_context.clone().filter(|name| !name.is_empty()),
        };
        if self.core_flag()? {
            return Ok(Some(core));
        }
        // A server that is named is meant.
        if self.core == Some(false) || self.names_server()? || self.forward()?.is_some() {
            return Ok(None);
        }
        let config = self.read_config()?;
        let Some(config) = config else {
            return Ok(None);
        };
        let name = self.context_name();
        if name.is_empty() && config.current_context.is_empty() {
            return Ok(None);
        }
        Ok(config.resolve(name)?.server.core.then_some(core))
    }

    /// Whether there is a server to ask: the command line, a variable or the config file says which
    /// one.
    ///
    /// # Errors
    /// The config file cannot be read, or does not have the context.
    pub fn knows_server(&self) -> Result<bool, Failure> {
        if self.core()?.is_some() {
            return Ok(false);
        }
        if self.names_server()? || self.forward()?.is_some() {
            return Ok(true);
        }
        let config = self.read_config()?;
        let context = config.map(|config| self.context_of(&config)).transpose()?;
        Ok(context.flatten().is_some())
    }

    /// The way to the server's pod, if the command line wants one.
    pub fn forward(&self) -> Result<Option<Forward>, Failure> {
        let defaults = Self::defaults()?;
        let is_asked = self
            .port_forward
            .unwrap_or_else(|| defaults.is_set("port-forward"));
        let namespace = self
            .port_forward_namespace
            .clone()
            .or_else(|| defaults.text("port-forward-namespace"))
            .filter(|namespace| !namespace.is_empty());
        if !is_asked && namespace.is_none() {
            return Ok(None);
        }
        let named = self
            .server_name
            .clone()
            .or_else(|| defaults.text("server-name"))
            .or_else(|| env::var("ARGOCD_SERVER_NAME").ok())
            .filter(|name| !name.is_empty());
        let servers = named.map_or_else(|| SERVERS.map(str::to_owned).to_vec(), |name| vec![name]);
        Ok(Some(Forward {
            context: self.kube_context.clone().filter(|name| !name.is_empty()),
            namespace,
            servers,
        }))
    }

    /// The context that the command line means: that of the server that it names, else the one that
    /// it names, else the current one.
    ///
    /// # Errors
    /// It names a context that the config file does not have.
    pub fn context_of(&self, config: &LocalConfig) -> Result<Option<Context>, Failure> {
        let name = self.context_name();
        let server = match self.forward()? {
            Some(_) => Some(FORWARDED.to_owned()),
            None => self.named_server()?,
        };
        match server {
            Some(server) => config.of_server(name, &server),
            None if name.is_empty() && config.current_context.is_empty() => Ok(None),
            None if name.is_empty() => {
                let current = config.resolve(name).map(Some);
                current.map_err(|e| Failure::error(format!("local config invalid: {e}")))
            }
            None => config.resolve(name).map(Some),
        }
    }

    fn named_server(&self) -> Result<Option<String>, Failure> {
        let variable = || env::var("ARGOCD_SERVER").ok().filter(|s| !s.is_empty());
        let flag = self.server.clone().or(Self::defaults()?.text("server"));
        Ok(flag.or_else(variable))
    }

    fn names_server(&self) -> Result<bool, Failure> {
        Ok(self.named_server()?.is_some())
    }

    /// Whether to ask before something is removed.
    pub fn prompts(&self) -> Result<bool, Failure> {
        if let Some(asked) = self.prompts_enabled {
            return Ok(asked);
        }
        if let Some(text) = Self::defaults()?.text("prompts-enabled") {
            return Ok(text == "true");
        }
        Ok(LocalConfig::read(&self.config_path()?)?.is_some_and(|c| c.prompts_enabled))
    }

    /// The connection according to the flags, for the given server and without a config file: as
    /// `login` needs it.
    pub fn for_login(&self, server: &str) -> Result<Connection, Failure> {
        let mut connection = Connection::default();
        self.apply_flags(&mut connection)?;
        connection.server = with_port(server);
        connection.token.clear();
        Ok(connection)
    }

    /// The connection to the server of a context, for another session: without its token.
    pub fn for_context(&self, context: &Context) -> Result<Connection, Failure> {
        let server = &context.server;
        let mut connection = self.for_login(&server.server)?;
        connection.plaintext |= server.plain_text;
        connection.insecure |= server.insecure;
        connection.grpc_web |= server.grpc_web || !server.grpc_web_root_path.is_empty();
        connection.root_path.clone_from(&server.grpc_web_root_path);
        Ok(connection)
    }

    /// The name of the context that is asked for; empty for the current one.
    pub fn context_name(&self) -> &str {
        self.argocd_context.as_deref().unwrap_or_default()
    }

    /// Whether the command line itself says to ask before something is removed.
    pub fn prompts_flag(&self) -> Option<bool> {
        self.prompts_enabled
    }

    /// The config file, for a command that needs what is in it to begin.
    fn read_config(&self) -> Result<Option<LocalConfig>, Failure> {
        LocalConfig::read(&self.config_path()?).map_err(|e| Failure {
            code: exit::FAILED,
            message: format!("error reading local config: {}", e.message),
            ..e
        })
    }

    /// The connection according to the flags, the variables or the config file.
    pub fn resolve(&self) -> Result<Connection, Failure> {
        let config = self.read_config()?;
        let context = config.map(|config| self.context_of(&config)).transpose()?;
        let mut connection = context
            .flatten()
            .map_or_else(|| Ok(Connection::default()), Connection::of_context)?;
        self.apply_flags(&mut connection)?;
        if connection.server.is_empty() && self.forward()?.is_none() {
            let hint = "`tiphys login HOST:PORT`, or --server, or ARGOCD_SERVER; `tiphys up` starts a server and prints its address";
            return Err(Failure::fatal("Argo CD server address unspecified").with_hint(hint));
        }
        connection.server = with_port(&connection.server);
        Ok(connection)
    }

    /// How often to try again. As in `argocd`, 0 and less are what it is without the flag.
    fn retries(&self, defaults: &Defaults) -> Result<Option<u32>, Failure> {
        let default = || {
            let text = defaults.text("http-retry-max")?;
            Some(text.parse::<i64>().map_err(|_| {
                Failure::fatal(format!(
                    "ARGOCD_OPTS: --http-retry-max: {text:?} is no number"
                ))
            }))
        };
        let asked = match self.http_retry_max {
            Some(asked) => Some(asked),
            None => default().transpose()?,
        };
        let asked = asked.filter(|asked| *asked > 0);
        Ok(asked.map(|asked| u32::try_from(asked).unwrap_or(u32::MAX)))
    }

    fn apply_flags(&self, c: &mut Connection) -> Result<(), Failure> {
        let defaults = Self::defaults()?;
        c.retries = self.retries(&defaults)?;
        let variable = |name: &str| env::var(name).ok().filter(|v| !v.is_empty());
        let text = |flag: &Option<String>, name: &str| {
            flag.clone()
                .or_else(|| defaults.text(name))
                .filter(|v| !v.is_empty())
        };
        let is_on = |flag: Option<bool>, name: &str| flag.unwrap_or_else(|| defaults.is_set(name));
        if let Some(server) = self.named_server()? {
            c.server = server;
        }
        if let Some(token) = self
            .auth_token
            .clone()
            .or_else(|| defaults.text("auth-token"))
            .or_else(|| variable("ARGOCD_AUTH_TOKEN"))
            .filter(|token| !token.trim().is_empty())
        {
            c.token = token;
        }
        // Files and variables end with a line break that nobody sees.
        c.token = c.token.trim().to_owned();
        if c.token
            .contains(|ch: char| ch.is_whitespace() || ch.is_control())
        {
            return Err(Failure::fatal(
                "the authentication token has a blank or a line break inside: look at --auth-token, ARGOCD_AUTH_TOKEN and the config file",
            ));
        }
        c.plaintext |= is_on(self.plaintext, "plaintext");
        c.insecure |= is_on(self.insecure, "insecure");
        c.grpc_web |= is_on(self.grpc_web, "grpc-web");
        if let Some(path) = text(&self.grpc_web_root_path, "grpc-web-root-path") {
            c.grpc_web = true;
            c.root_path = path;
        }
        if let Some(file) = text(&self.server_crt, "server-crt") {
            c.server_certificate = read(&file, "--server-crt")?;
        }
        match (
            text(&self.client_crt, "client-crt"),
            text(&self.client_crt_key, "client-crt-key"),
        ) {
            (None, None) => {}
            (Some(certificate), Some(key)) => {
                c.client_certificate = Some((
                    read(&certificate, "--client-crt")?,
                    read(&key, "--client-crt-key")?,
                ));
            }
            _ => {
                return Err(Failure::fatal(
                    "--client-crt and --client-crt-key must always be specified together",
                ));
            }
        }
        let default = defaults.text("header").into_iter().collect();
        for header in if self.header.is_empty() {
            &default
        } else {
            &self.header
        }
        .iter()
        .flat_map(|h| h.split(','))
        {
            let parted = header.split_once(':').filter(|(name, _)| !name.is_empty());
            let (name, value) = parted.ok_or_else(|| {
                Failure::fatal(format!(
                    "Failed to establish connection to {}: additional headers must be \
                     colon(:)-separated: {header}",
                    c.server
                ))
            })?;
            c.headers
                .push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(())
    }
}

fn read(file: &str, flag: &str) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|e| Failure::fatal(format!("{flag}: open {file}: {}", reason(&e))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_with_flags() {
        let d = Defaults::parse("--grpc-web --server 'cd.example.com' --header=a:b --plaintext")
            .expect("it is valid");
        assert!(d.is_set("grpc-web") && d.is_set("plaintext") && !d.is_set("insecure"));
        assert_eq!(d.text("server").as_deref(), Some("cd.example.com"));
        assert_eq!(d.text("header").as_deref(), Some("a:b"));
        assert_eq!(
            Defaults::parse("x").expect_err("not a flag").message,
            "ARGOCD_OPTS invalid at 'x'"
        );
        assert!(Defaults::parse("--a 'b").is_err());
        assert_eq!(
            words(r#"a\ b "c d" '' e'f'"#).expect("words"),
            ["a b", "c d", "", "ef"]
        );
    }

    #[test]
    fn how_often_to_try_again() {
        let retries = |flag: Option<i64>, variable: &str| {
            let args = ConnectArgs {
                http_retry_max: flag,
                ..ConnectArgs::default()
            };
            let defaults = Defaults::parse(variable).expect("it is valid");
            args.retries(&defaults).map_err(|e| (e.code, e.message))
        };
        assert_eq!(retries(None, ""), Ok(None));
        assert_eq!(retries(Some(5), "--http-retry-max 7"), Ok(Some(5)));
        assert_eq!(retries(None, "--http-retry-max 7"), Ok(Some(7)));
        for unset in [0, -1, i64::MIN] {
            assert_eq!(retries(Some(unset), ""), Ok(None), "{unset}");
        }
        assert_eq!(retries(None, "--http-retry-max=0"), Ok(None));
        assert_eq!(retries(Some(i64::MAX), ""), Ok(Some(u32::MAX)));
        let message = "ARGOCD_OPTS: --http-retry-max: \"many\" is no number";
        let many = retries(None, "--http-retry-max=many");
        assert_eq!(many, Err((exit::FAILED, message.to_owned())));
    }

    #[test]
    fn ports() {
        for (server, expected) in [
            ("cd.example.com", "cd.example.com:443"),
            ("localhost:8080", "localhost:8080"),
            ("[::1]", "[::1]:443"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(with_port(server), expected);
        }
    }

    /// Two servers, each with its settings; B's context is the current one.
    const TWO_SERVERS: &str = "\
current-context: b
contexts: [{name: a, server: 'a.example', user: a}, {name: b, server: 'b.example:443', user: b}, {name: port-forward, server: port-forward, user: f}]
servers: [{server: 'a.example', insecure: true}, {server: 'b.example:443', grpc-web: true}, {server: port-forward, plain-text: true}]
users: [{name: a, auth-token: of-a}, {name: b, auth-token: of-b}, {name: f, auth-token: of-f}]
";

    #[test]
    fn a_server_gets_what_the_config_file_says_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config");
        fs::write(&file, TWO_SERVERS).expect("written");
        let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&file, own).expect("it is ours");
        let resolved = |args: ConnectArgs| {
            let args = ConnectArgs {
                config: Some(file.clone()),
                ..args
            };
            let c = args.resolve().expect("valid");
            (c.server, c.token, c.insecure, c.grpc_web, c.plaintext)
        };
        let server = |address: &str| ConnectArgs {
            server: Some(address.to_owned()),
            ..ConnectArgs::default()
        };
        let row = |server: &str, token: &str, insecure, grpc_web, plaintext| {
            let (server, token) = (server.to_owned(), token.to_owned());
            (server, token, insecure, grpc_web, plaintext)
        };
        let nothing = ConnectArgs::default();
        let b = row("b.example:443", "of-b", false, true, false);
        assert_eq!(resolved(nothing), b);
        let (_, token, ..) = resolved(server("B.example"));
        assert_eq!(token, "of-b");
        let a = row("a.example:443", "of-a", true, false, false);
        assert_eq!(resolved(server("a.example:443")), a);
        // Another server gets nothing, a context that is named included.
        let other = row("c.example:443", "", false, false, false);
        assert_eq!(resolved(server("c.example")), other);
        let another_port = row("a.example:8443", "", false, false, false);
        assert_eq!(resolved(server("a.example:8443")), another_port);
        let named = ConnectArgs {
            argocd_context: Some("a".to_owned()),
            ..server("b.example")
        };
        assert_eq!(
            resolved(named),
            row("b.example:443", "", false, false, false)
        );
        let given = ConnectArgs {
            auth_token: Some("given".to_owned()),
            ..server("c.example")
        };
        assert_eq!(resolved(given).1, "given");
        let forwarded = ConnectArgs {
            port_forward_namespace: Some("argocd".to_owned()),
            ..ConnectArgs::default()
        };
        let (_, token, _, _, plaintext) = resolved(forwarded);
        assert_eq!((token.as_str(), plaintext), ("of-f", true));
    }

    #[test]
    fn a_server_is_known_from_a_flag_or_a_context() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("written");
            let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(&file, own).expect("it is ours");
            ConnectArgs {
                config: Some(file),
                ..ConnectArgs::default()
            }
        };
        let known = |args: &ConnectArgs| args.knows_server().map_err(|e| e.message);
        let none = ConnectArgs {
            config: Some(folder.path().join("none")),
            ..ConnectArgs::default()
        };
        assert_eq!(known(&none), Ok(false));
        let named = ConnectArgs {
            server: Some("c.example".to_owned()),
            ..none.clone()
        };
        assert_eq!(known(&named), Ok(true));
        assert_eq!(known(&of("two", TWO_SERVERS)), Ok(true));
        let core = "current-context: k\ncontexts: [{name: k, server: k, user: k}]\n\
                    servers: [{server: k, core: true}]\nusers: [{name: k}]\n";
        let core = of("core", core);
        assert_eq!(known(&core), Ok(false));
        let instead = ConnectArgs {
            server: Some("c.example".to_owned()),
            ..core
        };
        assert_eq!(known(&instead), Ok(true));
        // What was meant is not known: nothing else is asked instead.
        let gone = of("gone", "current-context: red\n");
        assert!(known(&gone).is_err());
    }

    #[test]
    fn headers_and_certificates_are_checked() {
        let args = ConnectArgs {
            header: vec!["X-A: 1,X-B:2".into()],
            ..Default::default()
        };
        let c = args.for_login("localhost").expect("valid");
        assert_eq!(
            c.headers,
            [
                ("x-a".to_owned(), "1".to_owned()),
                ("x-b".to_owned(), "2".to_owned())
            ]
        );
        let args = ConnectArgs {
            header: vec!["oops".into()],
            ..Default::default()
        };
        assert!(args.for_login("localhost").is_err());
        let args = ConnectArgs {
            client_crt: Some("a".into()),
            ..Default::default()
        };
        let message = args.for_login("localhost").err().map(|e| e.message);
        assert_eq!(
            message.as_deref(),
            Some("--client-crt and --client-crt-key must always be specified together")
        );
    }
}
