//! The `ssh` program: the only process this crate starts. It gets our own configuration in a
//! private folder and none of the user's.

use crate::{RepoAccess, RepoError};
use base64::{Engine, engine::general_purpose::STANDARD};
use gix::protocol::transport::client::blocking_io::ssh::{ProgramKind, connect};
use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The most that is read of what `ssh` and the server say.
const SAID: u64 = 16 << 10;
/// The largest file that `ssh` may write, in blocks of 512 bytes: a server could fill the disk with
/// its messages.
const WRITTEN_BLOCKS: u32 = 2 << 10;
/// What is shown of a message.
const SHOWN: usize = 300;

/// What was said of a connection, apart from the protocol.
#[derive(Default)]
pub(super) struct Said {
    /// By `ssh`, without warnings. It may quote why the server ended the connection. Empty: it
    /// logged in, and saw the server's program end.
    pub ssh: String,
    /// By the server's program.
    pub server: String,
}

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
    /// validated arguments. gix would print what the server says to this process's standard error.
    pub fn options(&self, program: &str) -> connect::Options {
        let quoted = |name: &str| {
            let path = self.dir.path().join(name).display().to_string();
            path.replace('\'', r"'\''")
        };
        let (config, log, server) = (quoted("config"), quoted("log"), quoted("server"));
        let command = format!(
            "ulimit -f {WRITTEN_BLOCKS} 2>/dev/null; \
             exec {program} 2>'{server}' -F '{config}' -E '{log}'"
        );
        connect::Options {
            command: Some(command.into()),
            disallow_shell: false,
            kind: Some(ProgramKind::Ssh),
        }
    }

    /// Why a connection failed: the exit code is the same for every failure of `ssh`.
    pub fn said(&self) -> Said {
        let folder = format!("{}/", self.dir.path().display());
        let read = |name: &str| {
            let mut said = Vec::new();
            // Without a file nothing was said.
            if let Ok(file) = std::fs::File::open(self.dir.path().join(name)) {
                let _ = file.take(SAID).read_to_end(&mut said);
            }
            // The folder has another name each time, and these texts become conditions.
            String::from_utf8_lossy(&said).replace(&folder, "")
        };
        Said {
            ssh: without_warnings(&read("log")),
            server: read("server"),
        }
    }
}

fn without_warnings(log: &str) -> String {
    let lines = log.lines().map(str::trim);
    let kept = lines.filter(|line| !line.starts_with("**") && !line.starts_with("Warning:"));
    kept.collect::<Vec<_>>().join("\n")
}

/// The last line of a text that is not empty, which is why a program ended.
pub(super) fn last_line(text: &str) -> Option<String> {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let printable = last.chars().filter(|c| !c.is_control());
    Some(printable.take(SHOWN).collect())
}

/// Whether a private key is encrypted: nobody is here who could enter its passphrase, and `ssh`
/// says nothing of it.
pub(super) fn has_passphrase(key: &str) -> bool {
    const MAGIC: &[u8] = b"openssh-key-v1\0\0\0\0";
    if key.contains("BEGIN ENCRYPTED PRIVATE KEY") || key.contains("Proc-Type: 4,ENCRYPTED") {
        return true;
    }
    let lines = key.lines().map(str::trim);
    let body: String = lines.filter(|line| !line.starts_with("-----")).collect();
    let Ok(content) = STANDARD.decode(body) else {
        return false;
    };
    // The length of the cipher's name in one byte, because the others are zero, and the name.
    let Some((length, rest)) = content.strip_prefix(MAGIC).and_then(<[u8]>::split_first) else {
        return false;
    };
    !rest.starts_with(b"none") || *length != 4
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_the_same_each_time() {
        let files = Files::new(&RepoAccess::public("ssh://git@example.com/a")).expect("files");
        assert_eq!(files.said().ssh, "");
        let folder = files.dir.path();
        let log = format!(
            "** WARNING: a weak key exchange\r\nWarning: added to the list.\r\n\
             Load key \"{}/key\": error in libcrypto\r\n\r\n",
            folder.display()
        );
        fs_write(&folder.join("log"), &log);
        fs_write(&folder.join("server"), "ERROR: no.\n\n");
        let said = files.said();
        let last = last_line(&said.ssh).expect("a line");
        assert_eq!(last, "Load key \"key\": error in libcrypto");
        assert!(!said.ssh.contains("arning"), "{}", said.ssh);
        assert_eq!(last_line(&said.server).as_deref(), Some("ERROR: no."));
        fs_write(&folder.join("log"), "** WARNING: a weak key exchange\n");
        assert_eq!(last_line(&files.said().ssh), None, "it only warned");
    }

    fn fs_write(path: &Path, text: &str) {
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn keys_with_a_passphrase_are_recognized() {
        let openssh = |cipher: &str| {
            let mut content = b"openssh-key-v1\0".to_vec();
            let length = u32::try_from(cipher.len()).expect("short");
            content.extend(length.to_be_bytes());
            content.extend(cipher.as_bytes());
            content.extend([0; 90]);
            let body = STANDARD.encode(content);
            let (first, second) = body.split_at(70);
            format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\r\n{first}\r\n{second}\r\n-----END OPENSSH PRIVATE KEY-----\r\n"
            )
        };
        for (key, protected) in [
            (openssh("none"), false),
            (openssh("aes256-ctr"), true),
            (openssh("none-of-these"), true),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n".to_owned(),
                true,
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n".to_owned(),
                true,
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n".to_owned(), false),
            ("KEY TEXT".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(has_passphrase(&key), protected, "{key}");
        }
    }
}
