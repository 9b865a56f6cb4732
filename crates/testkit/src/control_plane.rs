//! A real Kubernetes control plane on loopback, started by scripts/control-plane. Main type:
//! [`ControlPlane`].

use crate::{Api, free_port};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Offsets of further ports that the script uses.
const OFFSETS: [u16; 4] = [1000, 2000, 2001, 2002];
const LAST_OFFSET: u16 = 3000;

/// A running control plane; stopped on drop.
pub struct ControlPlane {
    script: PathBuf,
    port: u16,
    pub kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Starts one on free ports. `root` is the top-level folder of the repository.
    ///
    /// # Panics
    /// If it does not start, for example because its programs were never built
    /// (`scripts/control-plane build`).
    pub fn start(root: &Path) -> Self {
        Self::run(root, "up", false)
    }

    /// Starts an API server without controllers; `durable`: it responds to a write when it is on
    /// disk.
    ///
    /// # Panics
    /// As [`ControlPlane::start`].
    pub fn api_server(root: &Path, durable: bool) -> Self {
        Self::run(root, "up-api", durable)
    }

    fn run(root: &Path, verb: &str, durable: bool) -> Self {
        let script = root.join("scripts/control-plane");
        let port = free_range();
        let mut command = Command::new(&script);
        if durable {
            command.env("CONTROL_PLANE_FSYNC", "1");
        }
        let output = command
            .args([verb, "", &port.to_string()])
            .output()
            .expect("the script runs");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let kubeconfig = stdout
            .lines()
            .find_map(|l| l.strip_prefix("KUBECONFIG="))
            .map(PathBuf::from);
        match kubeconfig.filter(|_| output.status.success()) {
            Some(kubeconfig) => Self {
                script,
                port,
                kubeconfig,
            },
            None => panic!(
                "the control plane does not start: {stdout}{}",
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    /// The control plane that scripts/control-plane started separately, identified by its
    /// kubeconfig. It is not stopped on drop.
    pub fn of(root: &Path, kubeconfig: &Path) -> Option<Running> {
        let folder = kubeconfig.parent()?;
        let port = folder
            .file_name()?
            .to_str()?
            .strip_prefix("run-")?
            .parse()
            .ok()?;
        Some(Running {
            script: root.join("scripts/control-plane"),
            folder: folder.parent()?.to_owned(),
            port,
        })
    }

    /// A client for it.
    pub fn api(&self) -> Api {
        Api::kubeconfig(&self.kubeconfig).expect("the script wrote it")
    }
}

/// A control plane that someone else started and stops.
pub struct Running {
    script: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Running {
    /// Restarts the API server.
    pub fn restart_api_server(&self) {
        self.run("restart-apiserver");
    }

    /// The same, with a new certificate from the same CA.
    pub fn rotate_certificate(&self) {
        self.run("rotate-cert");
    }

    fn run(&self, verb: &str) {
        let output = Command::new(&self.script)
            .arg(verb)
            .arg(&self.folder)
            .arg(self.port.to_string())
            .output()
            .expect("the script runs");
        assert!(
            output.status.success(),
            "{verb}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let _ = Command::new(&self.script)
            .args(["down", "", &self.port.to_string()])
            .output();
        // The next one uses other ports, and so another folder.
        if let Some(folder) = self
            .kubeconfig
            .parent()
            .filter(|f| f.ends_with(format!("run-{}", self.port)))
        {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A port for which the additional ports are free as well.
fn free_range() -> u16 {
    let free =
        |port: u16| std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port)).is_ok();
    for _ in 0..200 {
        // Below the ephemeral port range of the system, so that no one takes one of the ports
        // meanwhile.
        let port = 10_000 + free_port() % 15_000;
        if free(port) && OFFSETS.iter().all(|o| free(port + o)) && free(port + LAST_OFFSET) {
            return port;
        }
    }
    panic!("no range of free ports for a control plane");
}
