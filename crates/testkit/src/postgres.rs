//! A PostgreSQL server on loopback, in a temporary folder: the programs of Debian's package
//! `postgresql`, or of the folder that `POSTGRES_BIN` names.
//!
//! Main type: [`Postgres`].

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// Its superuser, who needs no password.
pub const USER: &str = "postgres";

/// A running server; it is stopped, and its folder removed, when this is dropped.
pub struct Postgres {
    bin: PathBuf,
    port: u16,
    child: Child,
    folder: tempfile::TempDir,
    databases: AtomicU32,
}

impl Postgres {
    /// Starts a server; `None`: its programs are not here.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Option<Self> {
        Self::with(None, None)
    }

    /// The same with TLS: a certificate and its key, in PEM.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_encrypted(certificate: &str, key: &str) -> Option<Self> {
        Self::with(Some((certificate, key)), None)
    }

    /// The same, where all users but its superuser must show a certificate of this authority with
    /// their name.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_demanding(certificate: &str, key: &str, authority: &str) -> Option<Self> {
        Self::with(Some((certificate, key)), Some(authority))
    }

    fn with(identity: Option<(&str, &str)>, of_users: Option<&str>) -> Option<Self> {
        let bin = programs()?;
        let folder = tempfile::Builder::new()
            .prefix("tiphys-postgres-")
            .tempdir();
        let folder = folder.expect("a temporary folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder for data");
        if is_root() {
            for path in [folder.path(), &data] {
                run(Command::new("chown").arg(USER).arg(path));
            }
        }
        let mut init = as_user(&bin.join("initdb"));
        init.args([
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "-U",
            USER,
            "-D",
        ]);
        run(init.arg(&data).current_dir(folder.path()));
        if let Some((certificate, key)) = identity {
            let files = [("server.crt", certificate), ("server.key", key)];
            let rules =
                format!("host all {USER} 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 cert\n");
            let demanding = of_users
                .iter()
                .flat_map(|authority| [("root.crt", *authority), ("pg_hba.conf", rules.as_str())]);
            for (name, text) in files.into_iter().chain(demanding) {
                let path = data.join(name);
                fs::write(&path, text).expect("a file");
                run(Command::new("chmod").arg("600").arg(&path));
                if is_root() {
                    run(Command::new("chown").arg(USER).arg(&path));
                }
            }
        }
        // Another program may take the port between these two lines; then the start fails.
        let port = {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
            free.local_addr().expect("an address").port()
        };
        let mut server = as_user(&bin.join("postgres"));
        server.arg("-D").arg(&data).args(["-p", &port.to_string()]);
        // Nothing here needs to outlive a crash of the machine.
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
        ] {
            server.args(["-c", setting]);
        }
        if identity.is_some() {
            server.args(["-c", "ssl=on"]);
        }
        if of_users.is_some() {
            server.args(["-c", "ssl_ca_file=root.crt"]);
        }
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let child = server
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let running = Self {
            bin,
            port,
            child,
            folder,
            databases: AtomicU32::new(0),
        };
        crate::eventually(crate::PATIENCE, "a database that answers", || {
            let log = fs::read_to_string(running.folder.path().join("log")).unwrap_or_default();
            let ready = log.contains("ready to accept connections");
            let open = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            if ready && open { Ok(()) } else { Err(log) }
        });
        Some(running)
    }

    /// Starts a server, or skips the test.
    pub fn start_or_skip() -> Option<Self> {
        let started = Self::start();
        if started.is_none() {
            crate::skip(
                "postgres",
                "there is no PostgreSQL here (POSTGRES_BIN names a folder)",
            );
        }
        started
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its processes stop where they are, as those of a host that hangs; they go on when what this
    /// returns is dropped.
    ///
    /// # Panics
    /// If they cannot be stopped.
    pub fn freeze(&self) -> Frozen {
        let server = self.child.id();
        let mut processes = children(server);
        processes.insert(0, server.to_string());
        run(Command::new("kill").arg("-STOP").args(&processes));
        Frozen(processes)
    }

    /// Makes an empty database, and returns its name.
    ///
    /// # Panics
    /// If that fails.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs SQL; returns the rows, columns separated by `|`.
    ///
    /// # Panics
    /// If that fails.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            USER,
            "-X",
            "-q",
            "-A",
        ]);
        run(psql.args(["-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql]))
    }
}

/// Processes of a server that do nothing at present.
pub struct Frozen(Vec<String>);

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg("-CONT").args(&self.0).status();
    }
}

/// The processes that a process started.
fn children(parent: u32) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("processes");
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_child = |id: &String| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        line.and_then(|id| id.trim().parse().ok()) == Some(parent)
    };
    names.filter(is_child).collect()
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The signal for an immediate end, which reaches its processes, too.
        let _ = Command::new("kill")
            .args(["-QUIT", &self.child.id().to_string()])
            .status();
        let _ = self.child.wait();
    }
}

/// The folder with the programs of the newest version.
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("POSTGRES_BIN") {
        return Some(PathBuf::from(named));
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|bin| bin.join("initdb").is_file()).max()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

/// The server refuses to run as root.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([
        &format!("--reuid={USER}"),
        "--init-groups",
        &format!("--regid={USER}"),
    ]);
    command.arg(program);
    command
}

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
