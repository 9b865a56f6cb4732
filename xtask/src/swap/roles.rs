//! The programs of an installation, each the genuine one or ours, started by the same name with the
//! same words and variables. Main types: [`Role`], [`Installation`].

use anyhow::Context;
use std::{
    fs::{self, File},
    net::TcpStream,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::free_port;

/// What an Argo CD installation consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    RepoServer,
    ApplicationController,
    Server,
    ApplicationsetController,
    Notifications,
}

impl Role {
    pub const ALL: [Self; 5] = [
        Self::RepoServer,
        Self::ApplicationController,
        Self::Server,
        Self::ApplicationsetController,
        Self::Notifications,
    ];

    /// Those that a fleet of Applications needs.
    pub const OF_FLEETS: [Self; 4] = [
        Self::RepoServer,
        Self::ApplicationController,
        Self::Server,
        Self::ApplicationsetController,
    ];

    /// Those that are swapped if nothing else is said.
    pub const SWAPPED: [Self; 4] = [
        Self::RepoServer,
        Self::ApplicationController,
        Self::ApplicationsetController,
        Self::Notifications,
    ];

    /// Whether it is compared by a fleet of Applications.
    pub fn has_fleet(self) -> bool {
        ![Self::ApplicationsetController, Self::Notifications].contains(&self)
    }

    /// The name by which both programs know their role.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepoServer => "argocd-repo-server",
            Self::ApplicationController => "argocd-application-controller",
            Self::Server => "argocd-server",
            Self::ApplicationsetController => "argocd-applicationset-controller",
            Self::Notifications => "argocd-notifications",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name().trim_start_matches("argocd-"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Genuine,
    Ours,
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            for _ in 0..100 {
                if self.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the programs are, and which of them run.
pub struct Installation {
    folder: TempDir,
    kubeconfig: PathBuf,
    /// Helm and kustomize, which the genuine repo-server starts.
    tools: PathBuf,
    ports: Ports,
    _redis: Process,
    running: Vec<(Role, Maker, Process)>,
}

struct Ports {
    redis: u16,
    renderer: u16,
    server: u16,
    others: [u16; 7],
}

/// The programs themselves.
pub struct Programs<'a> {
    pub genuine: &'a Path,
    pub ours: &'a Path,
    pub redis: &'a Path,
    pub tools: &'a Path,
}

impl Installation {
    /// Starts Redis alone.
    ///
    /// # Errors
    /// If it does not start, or links to the programs cannot be made.
    pub fn new(programs: &Programs<'_>, kubeconfig: &Path) -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        for (place, program) in [("genuine", programs.genuine), ("ours", programs.ours)] {
            let place = folder.path().join(place);
            fs::create_dir(&place)?;
            let program = fs::canonicalize(program)
                .with_context(|| format!("{} is missing", program.display()))?;
            for role in Role::ALL {
                symlink(&program, place.join(role.name()))?;
            }
        }
        for place in ["tls", "ssh", "gpg", "plugins", "tmp"] {
            fs::create_dir(folder.path().join(place))?;
        }
        fs::write(folder.path().join("ssh/ssh_known_hosts"), "")?;
        let ports = Ports {
            redis: free_port(),
            renderer: free_port(),
            server: free_port(),
            others: std::array::from_fn(|_| free_port()),
        };
        let redis = Command::new(programs.redis)
            .args(["--port", &ports.redis.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| programs.redis.display().to_string())?;
        Ok(Self {
            folder,
            kubeconfig: kubeconfig.to_owned(),
            tools: programs.tools.to_owned(),
            ports,
            _redis: Process(redis),
            running: Vec::new(),
        })
    }

    /// Ends who has the role, if anybody, and starts the other program in its place.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn put(&mut self, role: Role, maker: Maker) -> anyhow::Result<()> {
        self.running.retain(|(taken, ..)| *taken != role);
        let place = match maker {
            Maker::Genuine => "genuine",
            Maker::Ours => "ours",
        };
        let folder = self.folder.path();
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log(role, maker))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(self.tools.clone()).chain(std::env::split_paths(&path)),
        )?;
        let child = Command::new(folder.join(place).join(role.name()))
            .args(self.words(role))
            .env_clear()
            .env("PATH", path)
            .env("HOME", folder)
            .env("TMPDIR", folder.join("tmp"))
            // The cluster of the kubeconfig is that of the service account.
            .env("ARGOCD_FAKE_IN_CLUSTER", "true")
            .env("KUBECONFIG", &self.kubeconfig)
            .env("ARGOCD_GPG_ENABLED", "false")
            .env("ARGOCD_TLS_DATA_PATH", folder.join("tls"))
            .env("ARGOCD_SSH_DATA_PATH", folder.join("ssh"))
            .env("ARGOCD_PLUGINSOCKFILEPATH", folder.join("plugins"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.running.push((role, maker, Process(child)));
        Ok(())
    }

    /// Whether the programs that others call listen.
    pub fn listens(&self) -> bool {
        [self.ports.renderer, self.ports.server, self.ports.redis]
            .iter()
            .all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
    }

    /// Whether the repo-server listens.
    pub fn renders(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.ports.renderer)).is_ok()
    }

    /// Ends all programs.
    pub fn stop(&mut self) {
        self.running.clear();
    }

    /// The last lines that each program wrote.
    pub fn last_words(&self) -> String {
        let mut text = String::new();
        for role in Role::ALL {
            for maker in [Maker::Genuine, Maker::Ours] {
                let log = fs::read_to_string(self.log(role, maker)).unwrap_or_default();
                let lines: Vec<_> = log.lines().collect();
                for line in &lines[lines.len().saturating_sub(5)..] {
                    text += &format!("{} {maker:?}: {line}\n", role.name());
                }
            }
        }
        text
    }

    fn log(&self, role: Role, maker: Maker) -> PathBuf {
        self.folder
            .path()
            .join(format!("{}-{maker:?}.log", role.name()))
    }

    /// The address of the API.
    pub fn api(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.server)
    }

    /// The same for both makers.
    fn words(&self, role: Role) -> Vec<String> {
        let Ports {
            redis,
            renderer,
            server,
            others: [a, b, c, d, e, f, g],
        } = self.ports;
        let redis = format!("127.0.0.1:{redis}");
        let renderer = format!("127.0.0.1:{renderer}");
        let kubeconfig = self.kubeconfig.display().to_string();
        match role {
            Role::RepoServer => vec![
                "--address=127.0.0.1".to_owned(),
                format!("--port={}", self.ports.renderer),
                "--metrics-address=127.0.0.1".to_owned(),
                format!("--metrics-port={a}"),
                "--disable-tls".to_owned(),
                "--client-ca-path=".to_owned(),
                format!("--redis={redis}"),
            ],
            Role::ApplicationController => vec![
                format!("--kubeconfig={kubeconfig}"),
                "--namespace=argocd".to_owned(),
                format!("--repo-server={renderer}"),
                "--repo-server-plaintext".to_owned(),
                format!("--redis={redis}"),
                format!("--metrics-port={b}"),
                "--app-resync=36000".to_owned(),
            ],
            Role::Server => vec![
                format!("--kubeconfig={kubeconfig}"),
                "--namespace=argocd".to_owned(),
                "--address=127.0.0.1".to_owned(),
                format!("--port={server}"),
                "--insecure".to_owned(),
                "--disable-auth".to_owned(),
                format!("--repo-server={renderer}"),
                "--repo-server-plaintext".to_owned(),
                format!("--redis={redis}"),
                "--metrics-address=127.0.0.1".to_owned(),
                format!("--metrics-port={f}"),
            ],
            Role::ApplicationsetController => vec![
                format!("--kubeconfig={kubeconfig}"),
                "--namespace=argocd".to_owned(),
                format!("--argocd-repo-server={renderer}"),
                "--repo-server-plaintext".to_owned(),
                format!("--metrics-addr=127.0.0.1:{c}"),
                format!("--probe-addr=127.0.0.1:{d}"),
                format!("--webhook-addr=127.0.0.1:{e}"),
            ],
            Role::Notifications => vec![
                format!("--kubeconfig={kubeconfig}"),
                "--namespace=argocd".to_owned(),
                format!("--argocd-repo-server={renderer}"),
                "--argocd-repo-server-plaintext".to_owned(),
                format!("--metrics-port={g}"),
            ],
        }
    }
}
