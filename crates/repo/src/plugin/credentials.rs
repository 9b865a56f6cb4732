//! What a plugin's programs may use to fetch more from the source's repository, for plugins that
//! ask for it (`provideGitCreds`): variables for git, and a password that is told over a socket to
//! whoever has the nonce, as long as the plugin works.
//!
//! Main type: [`AskPass`].

use crate::{RepoAccess, RepoError, Secret};
use http::{HeaderMap, Uri, uri::PathAndQuery};
use hyper_util::rt::TokioIo;
use rand::RngCore as _;
use std::{
    collections::HashMap,
    io::{self, Write as _},
    net::IpAddr,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};
use tiphys_api::rpc::plugin::{CredentialsRequest, CredentialsResponse};
use tiphys_rpc::{ApiError, Call, Code, Role, Table, table::unary, unix};
use tokio::{net::UnixStream, sync::OnceCell, task::JoinHandle};
use tonic::{client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

/// The variable with the nonce, and the socket where Argo CD's programs look for its password.
pub const ASK_PASS_NONCE: &str = "ARGOCD_GIT_ASKPASS_NONCE";
pub const ASK_PASS_SOCKET: &str = "/tmp/reposerver-ask-pass.sock";
const GET: &str = "askpass.AskPassService/GetCredentials";
/// The largest question.
const MAX_QUESTION: usize = 4096;
/// The user name that hosts of Git expect beside a token.
const TOKEN_USER: &str = "x-access-token";
/// In memory, where there is one.
const SHARED_MEMORY: &str = "/dev/shm";

struct Login {
    username: String,
    password: Secret,
}

/// The logins of running plugins by their nonces.
struct Lending {
    table: Table<Self>,
    logins: Mutex<HashMap<String, Login>>,
}

impl Lending {
    fn logins(&self) -> std::sync::MutexGuard<'_, HashMap<String, Login>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Role for Lending {
    type Caller = ();
    type Access = ();

    fn table(&self) -> &Table<Self> {
        &self.table
    }

    async fn caller(&self, _: IpAddr, _: &HeaderMap, _: Option<&()>) -> Result<(), ApiError> {
        Ok(())
    }

    fn max_request(&self, (): &()) -> usize {
        MAX_QUESTION
    }
}

fn call() -> Call<Lending> {
    let handler = async |lending: Arc<Lending>, (), asked: CredentialsRequest| {
        if asked.nonce.is_empty() {
            return Err(ApiError::new(Code::InvalidArgument, "missing nonce"));
        }
        let logins = lending.logins();
        let login = logins.get(&asked.nonce);
        let login = login.ok_or_else(|| ApiError::new(Code::NotFound, "unknown nonce"))?;
        Ok(CredentialsResponse {
            username: login.username.clone(),
            password: login.password.expose().to_owned(),
        })
    };
    unary(GET, &[], (), |_| {}, handler)
}

/// Tells passwords to those who have a nonce, from the first time that one is lent.
pub(super) struct AskPass {
    socket: PathBuf,
    lending: Arc<Lending>,
    serving: OnceCell<JoinHandle<()>>,
}

impl Drop for AskPass {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.get() {
            serving.abort();
        }
    }
}

/// Variables for git; what they refer to is gone when this is dropped.
pub(super) struct Lent {
    env: Vec<(String, String)>,
    nonce: Option<(String, Arc<Lending>)>,
    _files: Option<tempfile::TempDir>,
}

impl Lent {
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some((nonce, lending)) = &self.nonce {
            lending.logins().remove(nonce);
        }
    }
}

impl AskPass {
    pub fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            lending: Arc::new(Lending {
                table: Table::new(vec![call()]),
                logins: Mutex::default(),
            }),
            serving: OnceCell::new(),
        }
    }

    /// The access to a repository as variables. Public access has none.
    pub async fn lend(&self, access: &RepoAccess) -> Result<Lent, RepoError> {
        if !access.password.is_empty() || !access.bearer_token.is_empty() {
            self.serve().await?;
            self.by_https(access)
        } else if !access.ssh_private_key.is_empty() {
            by_ssh(access)
        } else {
            Ok(Lent {
                env: Vec::new(),
                nonce: None,
                _files: None,
            })
        }
    }

    async fn serve(&self) -> Result<(), RepoError> {
        let serving = self.serving.get_or_try_init(async || {
            let listener = unix::bind(&self.socket).map_err(|e| unusable(&self.socket, &e))?;
            // Whoever has a nonce gets a password.
            let own = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&self.socket, own).map_err(|e| unusable(&self.socket, &e))?;
            let serve = unix::serve(Arc::clone(&self.lending), listener, std::future::pending());
            Ok::<_, RepoError>(tokio::spawn(serve))
        });
        serving.await.map(|_| ())
    }

    fn by_https(&self, access: &RepoAccess) -> Result<Lent, RepoError> {
        let mut env = Vec::new();
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        if access.insecure {
            set("GIT_SSL_NO_VERIFY", "true".to_owned());
        }
        let mut files = None;
        if !access.tls_client_cert.is_empty() && !access.tls_client_key.is_empty() {
            let dir = folder()?;
            let certificate = private_file(dir.path(), "cert", &access.tls_client_cert)?;
            let key = private_file(dir.path(), "key", access.tls_client_key.expose())?;
            set("GIT_SSL_CERT", certificate.display().to_string());
            set("GIT_SSL_KEY", key.display().to_string());
            files = Some(dir);
        }
        if !access.bearer_token.is_empty() {
            let header = format!("Authorization: Bearer {}", access.bearer_token.expose());
            set("ARGOCD_GIT_BEARER_AUTH_HEADER", header);
        }
        let mut random = [0; 16];
        rand::rng().fill_bytes(&mut random);
        let nonce = crate::ground::hex(&random);
        let username = if access.username.is_empty() {
            TOKEN_USER
        } else {
            &access.username
        };
        let login = Login {
            username: username.to_owned(),
            password: access.password.clone(),
        };
        self.lending.logins().insert(nonce.clone(), login);
        set("GIT_ASKPASS", "argocd".to_owned());
        set(ASK_PASS_NONCE, nonce.clone());
        set("GIT_TERMINAL_PROMPT", "0".to_owned());
        set("ARGOCD_BINARY_NAME", "argocd-git-ask-pass".to_owned());
        set("ARGOCD_ASK_PASS_SOCK", self.socket.display().to_string());
        Ok(Lent {
            env,
            nonce: Some((nonce, Arc::clone(&self.lending))),
            _files: files,
        })
    }
}

/// With the key and the hosts in files, which a plugin sees if it shares the folder.
fn by_ssh(access: &RepoAccess) -> Result<Lent, RepoError> {
    let dir = folder()?;
    let mut key = access.ssh_private_key.expose().replace("\r\n", "\n");
    if !key.ends_with('\n') {
        key.push('\n');
    }
    let key = private_file(dir.path(), "key", &key)?;
    let hosts = if access.insecure || access.insecure_ignore_host_key {
        "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null".to_owned()
    } else if access.known_hosts.is_empty() {
        "-o StrictHostKeyChecking=yes".to_owned()
    } else {
        let hosts = private_file(dir.path(), "known_hosts", &access.known_hosts)?;
        format!(
            "-o StrictHostKeyChecking=yes -o UserKnownHostsFile={}",
            hosts.display()
        )
    };
    let command = format!("ssh -i {} {hosts}", key.display());
    Ok(Lent {
        env: vec![("GIT_SSH_COMMAND".to_owned(), command)],
        nonce: None,
        _files: Some(dir),
    })
}

/// A private folder whose path needs no quotes in a shell.
fn folder() -> Result<tempfile::TempDir, RepoError> {
    static BASE: LazyLock<PathBuf> = LazyLock::new(|| {
        let memory = PathBuf::from(SHARED_MEMORY);
        if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        }
    });
    let base = BASE.as_path();
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("tiphys-plugin-").tempdir_in(base);
    made.map_err(|e| unusable(base, &e))
}

fn private_file(dir: &Path, name: &str, content: &str) -> Result<PathBuf, RepoError> {
    let path = dir.join(name);
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
    written.map_err(|e| unusable(&path, &e))?;
    Ok(path)
}

fn unusable(path: &Path, e: &io::Error) -> RepoError {
    RepoError::Internal(format!(
        "cannot write {} for a plugin's credentials: {e}",
        path.display()
    ))
}

/// What git asked for, `Username…` or `Password…`, from the process that lent a nonce.
///
/// # Errors
/// Why there is no answer.
pub async fn ask_pass(socket: &Path, nonce: &str, prompt: &str) -> Result<String, String> {
    let path = socket.to_owned();
    let connect = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    });
    let channel = Endpoint::from_static("http://askpass")
        .connect_with_connector(connect)
        .await;
    let channel = channel.map_err(|e| format!("cannot connect to {}: {e}", socket.display()))?;
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|e| e.to_string())?;
    let question = CredentialsRequest {
        nonce: nonce.to_owned(),
    };
    let method = PathAndQuery::from_static("/askpass.AskPassService/GetCredentials");
    let codec = ProstCodec::<CredentialsRequest, CredentialsResponse>::default();
    let answer = grpc
        .unary(tonic::Request::new(question), method, codec)
        .await;
    let answer = answer
        .map_err(|status| crate::repo_server::shown(&status))?
        .into_inner();
    if prompt.starts_with("Username") {
        Ok(answer.username)
    } else if prompt.starts_with("Password") {
        Ok(answer.password)
    } else {
        Err(format!("unknown credential type '{prompt}'"))
    }
}
