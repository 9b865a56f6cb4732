//! A server under measurement, ours or the genuine one, started with the same words. Main type:
//! [`Running`].

use super::{super::process, world};
use anyhow::{Context, bail, ensure};
use serde_json::json;
use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_testkit::{Api, free_port};

/// By this name both programs know the role.
const ROLE: &str = "argocd-server";
const POLL: Duration = Duration::from_millis(100);

/// Ended on drop.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
    /// Of a session of `admin`.
    pub token: String,
    log: PathBuf,
    _folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a program and signs in.
    ///
    /// # Errors
    /// If it does not serve in time.
    pub fn start(
        program: &Path,
        kubeconfig: &Path,
        redis: SocketAddr,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        for place in ["tls", "ssh", "gpg", "plugins", "tmp"] {
            fs::create_dir(folder.path().join(place))?;
        }
        fs::write(folder.path().join("ssh/ssh_known_hosts"), "")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let log = folder.path().join("log");
        let file = File::create(&log)?;
        let child = Command::new(program)
            .args(words(kubeconfig, address.port(), redis))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ARGOCD_BINARY_NAME", ROLE)
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path().join("tmp"))
            // The cluster of the kubeconfig is that of the service account.
            .env("ARGOCD_FAKE_IN_CLUSTER", "true")
            .env("ARGOCD_GPG_ENABLED", "false")
            .env("ARGOCD_TLS_DATA_PATH", folder.path().join("tls"))
            .env("ARGOCD_SSH_DATA_PATH", folder.path().join("ssh"))
            .env("ARGOCD_PLUGINSOCKFILEPATH", folder.path().join("plugins"))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut running = Self {
            child,
            address,
            token: String::new(),
            log,
            _folder: folder,
        };
        running.token = running.session(patience)?;
        Ok(running)
    }

    /// Asks for a session until there is one.
    fn session(&mut self, patience: Duration) -> anyhow::Result<String> {
        let api = Api::plain(&format!("http://{}", self.address));
        let login = json!({"username": "admin", "password": world::PASSWORD});
        let end = Instant::now() + patience;
        loop {
            if let Ok(answer) = api.post("/api/v1/session", &login) {
                if let Some(token) = answer.body["token"].as_str() {
                    return Ok(token.to_owned());
                }
                // Others mean that it has not read everything yet.
                let is_refused = matches!(answer.status, 401 | 403);
                ensure!(!is_refused, "the login is refused: {}", answer.status);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}: {}", self.last_words());
            }
            ensure!(
                Instant::now() < end,
                "nobody can sign in: {}",
                self.last_words()
            );
            thread::sleep(POLL);
        }
    }

    /// The end of its log.
    pub fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    pub fn resident_mebibytes(&self) -> anyhow::Result<f64> {
        process::resident_mebibytes(self.child.id())
    }

    pub fn peak_mebibytes(&self) -> anyhow::Result<f64> {
        process::peak_mebibytes(self.child.id())
    }
}

/// The same for both programs. Nothing that is measured needs a repo-server.
fn words(kubeconfig: &Path, port: u16, redis: SocketAddr) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={}", world::NAMESPACE),
        "--address=127.0.0.1".to_owned(),
        format!("--port={port}"),
        "--insecure".to_owned(),
        "--repo-server=127.0.0.1:1".to_owned(),
        "--repo-server-plaintext".to_owned(),
        format!("--redis={redis}"),
        "--metrics-address=127.0.0.1".to_owned(),
        format!("--metrics-port={}", free_port()),
        "--loglevel=warn".to_owned(),
    ]
}
