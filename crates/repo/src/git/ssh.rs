//! The `ssh` program: the only process this crate starts. It gets our own configuration in a
//! private folder and none of the user's.

use crate::{RepoAccess, RepoError};
use gix::protocol::transport::client::blocking_io::ssh::{ProgramKind, connect};
use std::{
    fmt::Write as _,
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The key, the known hosts and the configuration of one connection, removed when it is dropped.
pub(super) struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    pub fn new(access: &RepoAccess) -> Result<Self, RepoError> {
        // Made with mode 0700.
        let dir = tempfile::Builder::new()
            .prefix("tiphys-ssh-")
            .tempdir()
            .map_err(|e| failed(Path::new("a temporary folder"), &e))?;
        let mut config = String::from(
            "BatchMode yes\nConnectTimeout 15\nServerAliveInterval 15\nServerAliveCountMax 3\nForwardAgent no\nForwardX11 no\n\
             ClearAllForwardings yes\nPermitLocalCommand no\nControlMaster no\nControlPath none\nProxyCommand none\n",
        );
        if !access.ssh_private_key.is_empty() {
            let mut key = access.ssh_private_key.expose().replace("\r\n", "\n");
            if !key.ends_with('\n') {
                key.push('\n');
            }
            let path = private_file(dir.path(), "key", &key)?;
            let _ = writeln!(
                config,
                "IdentitiesOnly yes\nIdentityAgent none\nIdentityFile \"{}\"",
                path.display()
            );
        }
        if access.insecure || access.insecure_ignore_host_key {
            config.push_str("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nGlobalKnownHostsFile /dev/null\nLogLevel ERROR\n");
        } else {
            config.push_str("StrictHostKeyChecking yes\n");
            if !access.known_hosts.is_empty() {
                let path = private_file(dir.path(), "known_hosts", &access.known_hosts)?;
                let _ = writeln!(
                    config,
                    "UserKnownHostsFile \"{}\"\nGlobalKnownHostsFile /dev/null",
                    path.display()
                );
            }
        }
        private_file(dir.path(), "config", &config)?;
        Ok(Self { dir })
    }

    /// The command contains nothing of the URL or the credentials; gix adds user, host and path as
    /// validated arguments.
    pub fn options(&self, program: &str) -> connect::Options {
        let config = self
            .dir
            .path()
            .join("config")
            .display()
            .to_string()
            .replace('\'', r"'\''");
        connect::Options {
            command: Some(format!("{program} -F '{config}'").into()),
            disallow_shell: false,
            kind: Some(ProgramKind::Ssh),
        }
    }
}

fn failed(path: &Path, e: &std::io::Error) -> RepoError {
    RepoError::Internal(format!("cannot write {} for ssh: {e}", path.display()))
}

fn private_file(dir: &Path, name: &str, content: &str) -> Result<PathBuf, RepoError> {
    let path = dir.join(name);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| failed(&path, &e))?;
    file.write_all(content.as_bytes())
        .map_err(|e| failed(&path, &e))?;
    Ok(path)
}
