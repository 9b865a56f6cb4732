//! A real ssh server on loopback: OpenSSH's `sshd`, or what `SSHD` names. It serves the repositories of
//! this machine to the user who runs the test, with keys that only the test has.
//!
//! Main type: [`Sshd`].

use crate::ssh_keygen;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// How many ports are tried.
const ATTEMPTS: u32 = 10;

/// A running server; it ends when this is dropped.
pub struct Sshd {
    process: Child,
    folder: TempDir,
    port: u16,
    user: String,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// It starts itself again for each connection, so its path must be absolute.
fn program() -> PathBuf {
    let named = std::env::var_os("SSHD").map(PathBuf::from);
    named.unwrap_or_else(|| PathBuf::from("/usr/sbin/sshd"))
}

/// Starts the server at a port.
fn begin(folder: &Path, port: u16) -> Child {
    let at = |name: &str| folder.join(name).display().to_string();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nAcceptEnv GIT_PROTOCOL\nLogLevel INFO\n",
        at("host"),
        at("authorized")
    );
    fs::write(folder.join("config"), config).expect("a file");
    let log = fs::File::create(folder.join("log")).expect("a file");
    Command::new(program())
        .args(["-D", "-e", "-f"])
        .arg(folder.join("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("sshd starts")
}

impl Sshd {
    /// `None`: its program is not here, and the test is skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_or_skip() -> Option<Self> {
        if !program().is_file() {
            crate::skip("sshd", "there is no sshd here (SSHD names one)");
            return None;
        }
        let folder = TempDir::new().expect("a temporary folder");
        for name in ["host", "other-host"] {
            key(folder.path(), name, "")?;
        }
        fs::write(folder.path().join("authorized"), "").expect("a file");
        // Debian makes this folder when the service starts; only root's sshd wants it, and without it
        // the server does not start, which is said below.
        let _ = fs::create_dir_all("/run/sshd");
        let user = Command::new("id").arg("-un").output().expect("id runs");
        let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
        let port = crate::free_port();
        let mut server = Self {
            process: begin(folder.path(), port),
            folder,
            port,
            user,
        };
        let mut attempts = 1;
        crate::eventually(crate::PATIENCE, "an sshd that answers", || {
            if server
                .process
                .try_wait()
                .expect("it is our child")
                .is_some()
            {
                // Someone else may have taken the port meanwhile.
                let log = server.log();
                let is_taken = log.contains("Address already in use");
                assert!(is_taken && attempts < ATTEMPTS, "sshd ended: {log}");
                attempts += 1;
                server.port = crate::free_port();
                server.process = begin(server.folder.path(), server.port);
            }
            // A connection would not tell: someone else may listen there.
            let log = server.log();
            let is_there = log.contains("Server listening on");
            is_there.then_some(()).ok_or(log)
        });
        Some(server)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who may log in.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The URL of a path of this machine.
    pub fn url(&self, path: &Path) -> String {
        format!(
            "ssh://{}@127.0.0.1:{}{}",
            self.user,
            self.port,
            path.display()
        )
    }

    /// The line of a known_hosts file for this server.
    pub fn known_host(&self) -> String {
        self.known("host")
    }

    /// The same with a key that the server does not have.
    pub fn changed_host(&self) -> String {
        self.known("other-host")
    }

    fn known(&self, name: &str) -> String {
        let public = fs::read_to_string(self.folder.path().join(format!("{name}.pub")));
        let public = public.expect("a public key");
        let words: Vec<&str> = public.split_whitespace().take(2).collect();
        format!("[127.0.0.1]:{} {}\n", self.port, words.join(" "))
    }

    /// A new private key, protected by the passphrase unless that is empty. `may_log_in`: the server
    /// accepts it.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn key(&self, name: &str, passphrase: &str, may_log_in: bool) -> String {
        let folder = self.folder.path();
        let private = key(folder, name, passphrase).expect("ssh-keygen made the host's keys");
        if may_log_in {
            let public = fs::read_to_string(folder.join(format!("{name}.pub")));
            let public = public.expect("a public key");
            let mut accepted = fs::read_to_string(folder.join("authorized")).expect("a file");
            accepted.push_str(&public);
            fs::write(folder.join("authorized"), accepted).expect("a file");
        }
        private
    }
}

/// Makes a pair of keys, and returns the private one.
fn key(folder: &Path, name: &str, passphrase: &str) -> Option<String> {
    let words = ["-q", "-t", "ed25519", "-N", passphrase, "-f", name];
    ssh_keygen(folder, &words)?;
    Some(fs::read_to_string(folder.join(name)).expect("the key was made"))
}
