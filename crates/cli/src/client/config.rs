//! The config file with the known servers and their tokens, shared with the `argocd` command.
//! [`LocalConfig`] is the main type.

use super::Failure;
use crate::private;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::{
    env, fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

const LIMITS: Limits = Limits {
    bytes: 4 << 20,
    depth: 20,
    nodes: 100_000,
    aliases: 1_000,
    copied_bytes: 4 << 20,
    documents: 1,
};

fn null_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    d: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// The config file. Unknown fields are preserved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct LocalConfig {
    #[serde(deserialize_with = "null_default")]
    pub current_context: String,
    #[serde(deserialize_with = "null_default")]
    pub contexts: Vec<ContextRef>,
    #[serde(deserialize_with = "null_default")]
    pub servers: Vec<Server>,
    #[serde(deserialize_with = "null_default")]
    pub users: Vec<User>,
    #[serde(deserialize_with = "null_default")]
    pub prompts_enabled: bool,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A name for a pair of server and user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextRef {
    pub name: String,
    pub server: String,
    pub user: String,
}

/// A server, by its address, and the connection options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Server {
    pub server: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grpc_web: bool,
    pub grpc_web_root_path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_certificate_data: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_certificate_key_data: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plain_text: bool,
    /// It is the Kubernetes API.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub core: bool,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A user's credentials for a server.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct User {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub auth_token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refresh_token: String,
}

/// Tokens must not get into logs.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A resolved context.
#[derive(Clone, Debug)]
pub struct Context {
    pub server: Server,
    pub user: User,
}

/// `ARGOCD_CONFIG_DIR`, the legacy `~/.argocd` if it exists, or the user's configuration folder.
pub fn default_folder() -> PathBuf {
    let set = |name: &str| {
        env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = set("ARGOCD_CONFIG_DIR") {
        return folder;
    }
    let home = set("HOME").unwrap_or_default();
    let older = home.join(".argocd");
    if older.exists() {
        return older;
    }
    set("XDG_CONFIG_HOME")
        .unwrap_or_else(|| home.join(".config"))
        .join("argocd")
}

/// Replaces or appends.
fn upsert<T>(list: &mut Vec<T>, item: T, same: impl Fn(&T) -> bool) {
    match list.iter_mut().find(|i| same(i)) {
        Some(existing) => *existing = item,
        None => list.push(item),
    }
}

impl LocalConfig {
    /// None if there is no such file. A file that others may read is refused, because it contains
    /// tokens.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => {
                return Err(Failure::error(format!(
                    "cannot read the config file {}: {e}",
                    path.display()
                )));
            }
        };
        check_mode(path)?;
        let broken = |e: String| {
            Failure::error(format!(
                "failed to parse config file: {}: {e}",
                path.display()
            ))
        };
        let value = yaml::parse_document(&bytes, &LIMITS, Duplicates::LastWins)
            .map_err(|e| broken(e.to_string()))?;
        let config: Self = if value.is_null() {
            Self::default()
        } else {
            serde_json::from_value(value).map_err(|e| broken(e.to_string()))?
        };
        Ok(Some(config))
    }

    /// Keeps others from changing the file until the result is dropped. What was read before may be
    /// outdated.
    pub fn lock(path: &Path) -> Result<fs::File, Failure> {
        let failed = |e: std::io::Error| {
            Failure::error(format!(
                "cannot lock the config file {}: {e}",
                path.display()
            ))
        };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        make_folder_of(path).map_err(failed)?;
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).append(true).open(beside);
        let file = file.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Changes the file as it is now, which others may have changed since it was read.
    pub fn change(path: &Path, change: impl FnOnce(&mut Self)) -> Result<(), Failure> {
        let _alone = Self::lock(path)?;
        let mut config = Self::read(path)?.unwrap_or_default();
        change(&mut config);
        config.write(path)
    }

    /// Writes the file atomically, readable only for the user.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |e: std::io::Error| {
            Failure::error(format!(
                "cannot write the config file {}: {e}",
                path.display()
            ))
        };
        // The target of a link is replaced, not the link.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        make_folder_of(path).map_err(failed)?;
        let value = serde_json::to_value(self).map_err(|e| failed(e.into()))?;
        private::write(path, yaml::to_string(&value).as_bytes()).map_err(failed)
    }

    /// The context with this name, or the current one if the name is empty.
    pub fn resolve(&self, name: &str) -> Result<Context, Failure> {
        let name = if name.is_empty() {
            &self.current_context
        } else {
            name
        };
        if name.is_empty() {
            return Err(Failure::fatal("local config: current-context unset"));
        }
        let undefined = |what: &str, name: &str| {
            Failure::fatal(format!("{what} '{name}' undefined"))
                .with_hint("`tiphys context` lists the contexts")
        };
        let context = self
            .contexts
            .iter()
            .find(|c| c.name == name)
            .ok_or_else(|| undefined("Context", name))?;
        let server = self
            .servers
            .iter()
            .find(|s| s.server == context.server)
            .ok_or_else(|| undefined("Server", &context.server))?;
        let user = self
            .users
            .iter()
            .find(|u| u.name == context.user)
            .ok_or_else(|| undefined("User", &context.user))?;
        Ok(Context {
            server: server.clone(),
            user: user.clone(),
        })
    }

    /// The context whose server this is: the one with this name (or the current one if the name is
    /// empty) if it fits, else, without a name, another that does. Tokens and settings belong to
    /// their server; no other one gets them.
    pub fn of_server(&self, name: &str, server: &str) -> Result<Option<Context>, Failure> {
        let fits = |address: &str| with_port(address).eq_ignore_ascii_case(&with_port(server));
        if !name.is_empty() {
            let context = self.resolve(name)?;
            return Ok(Some(context).filter(|c| fits(&c.server.server)));
        }
        // A current context that is broken, or not there, is none.
        let current = self.resolve("").ok();
        if let Some(context) = current.filter(|c| fits(&c.server.server)) {
            return Ok(Some(context));
        }
        let other = self.contexts.iter().find(|c| fits(&c.server));
        other.map(|c| self.resolve(&c.name)).transpose()
    }

    pub fn upsert_server(&mut self, server: Server) {
        let name = server.server.clone();
        upsert(&mut self.servers, server, |s| s.server == name);
    }

    pub fn upsert_user(&mut self, user: User) {
        let name = user.name.clone();
        upsert(&mut self.users, user, |u| u.name == name);
    }

    pub fn upsert_context(&mut self, context: ContextRef) {
        let name = context.name.clone();
        upsert(&mut self.contexts, context, |c| c.name == name);
    }

    /// Removes a context, its user and its server. False if there is no such context.
    pub fn remove_context(&mut self, name: &str) -> bool {
        let Some(at) = self.contexts.iter().position(|c| c.name == name) else {
            return false;
        };
        let removed = self.contexts.remove(at);
        self.users.retain(|u| u.name != removed.user);
        // Another context may still need the server.
        if !self.contexts.iter().any(|c| c.server == removed.server) {
            self.servers.retain(|s| s.server != removed.server);
        }
        if self.current_context == name {
            self.current_context.clear();
        }
        true
    }
}

/// Makes the folder of a file, if it is not there, for this user alone.
fn make_folder_of(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder.unwrap_or(Path::new(".")))
}

#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).map_or(0o600, |m| m.permissions().mode() & 0o777);
    if matches!(mode, 0o600 | 0o400) {
        return Ok(());
    }
    let letters: String = (0..9)
        .map(|n| {
            if mode >> (8 - n) & 1 == 1 {
                ['r', 'w', 'x'][n % 3]
            } else {
                '-'
            }
        })
        .collect();
    Err(Failure::error(format!(
        "config file has incorrect permission flags -{letters}, change the file permission either to 0400 or 0600: {}",
        path.display()
    )))
}

#[cfg(not(unix))]
fn check_mode(_: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Adds the most likely port if there is none.
pub fn with_port(server: &str) -> String {
    let after_address = server.rsplit_once(']').map_or(server, |(_, rest)| rest);
    if after_address.contains(':') {
        server.to_owned()
    } else {
        format!("{server}:443")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
contexts:
- name: localhost:8080
  server: localhost:8080
  user: localhost:8080
current-context: localhost:8080
prompts-enabled: false
servers:
- grpc-web-root-path: \"\"
  plain-text: true
  server: localhost:8080
users:
- auth-token: abc
  name: localhost:8080
";

    fn scratch(name: &str) -> PathBuf {
        let folder =
            env::temp_dir().join(format!("tiphys-cli-config-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        folder.join("config")
    }

    #[test]
    fn what_several_write_at_once_is_all_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        std::thread::scope(|scope| {
            for n in 0..20 {
                let path = &path;
                scope.spawn(move || {
                    let user = User {
                        name: format!("ci-{n}"),
                        ..User::default()
                    };
                    LocalConfig::change(path, |config| config.upsert_user(user)).expect("changed");
                });
            }
        });
        let config = LocalConfig::read(&path).expect("it is sound");
        assert_eq!(config.expect("it is there").users.len(), 20);
    }

    #[test]
    fn its_folder_is_made_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("argocd");
        let change = LocalConfig::change(&folder.join("config"), |_| {});
        change.expect("changed");
        let mode = fs::metadata(&folder).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
    }

    #[test]
    fn a_current_context_that_is_not_there_keeps_nobody_from_the_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        LocalConfig::change(&path, |config| {
            config.current_context = "red".to_owned();
            config.upsert_server(Server {
                server: "a.example:443".to_owned(),
                ..Server::default()
            });
            config.upsert_user(User {
                name: "green".to_owned(),
                auth_token: "t".to_owned(),
                ..User::default()
            });
            config.upsert_context(ContextRef {
                name: "green".to_owned(),
                server: "a.example:443".to_owned(),
                user: "green".to_owned(),
            });
        })
        .expect("written");
        let config = LocalConfig::read(&path).expect("it is sound");
        let config = config.expect("it is there");
        assert!(config.resolve("").is_err());
        assert_eq!(
            config
                .resolve("green")
                .expect("it is there")
                .user
                .auth_token,
            "t"
        );
        let found = config.of_server("", "a.example").expect("no error");
        assert_eq!(found.expect("green").user.auth_token, "t");
    }

    #[test]
    fn a_file_of_the_argocd_command_reads_and_writes_the_same() {
        let path = scratch("same");
        fs::write(&path, FILE).expect("written");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let e = LocalConfig::read(&path).expect_err("others may read it");
            assert!(
                e.message
                    .starts_with("config file has incorrect permission flags -rw-"),
                "{e}"
            );
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        }
        let config = LocalConfig::read(&path)
            .expect("it is valid")
            .expect("it exists");
        let context = config.resolve("").expect("the current context");
        assert!(context.server.plain_text);
        assert_eq!(context.user.auth_token, "abc");
        config.write(&path).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), FILE);
        assert_eq!(
            LocalConfig::read(&path.with_file_name("other")).expect("no file is no error"),
            None
        );
        let _ = fs::remove_dir_all(path.parent().expect("it is in a folder"));
    }

    #[test]
    fn what_is_not_known_is_kept() {
        let value = yaml::parse_document(
            "theme: dark\nservers:\n- server: a\n  core: true\n",
            &LIMITS,
            Duplicates::LastWins,
        )
        .expect("YAML");
        let config: LocalConfig = serde_json::from_value(value).expect("a config");
        let text = yaml::to_string(&serde_json::to_value(&config).expect("a value"));
        assert!(
            text.contains("theme: dark") && text.contains("core: true"),
            "{text}"
        );
    }

    #[test]
    fn removing_a_context_keeps_what_others_need() {
        let mut config = LocalConfig::default();
        config.upsert_server(Server {
            server: "s".into(),
            ..Default::default()
        });
        for name in ["a", "b"] {
            config.upsert_user(User {
                name: name.into(),
                ..Default::default()
            });
            config.upsert_context(ContextRef {
                name: name.into(),
                server: "s".into(),
                user: name.into(),
            });
        }
        config.current_context = "a".into();
        assert!(config.remove_context("a") && !config.remove_context("a"));
        assert_eq!(
            (
                config.servers.len(),
                config.users.len(),
                config.current_context.as_str()
            ),
            (1, 1, "")
        );
        assert!(config.remove_context("b"));
        assert!(config.servers.is_empty());
    }
}
