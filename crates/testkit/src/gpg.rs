//! Keys and signatures of the real gpg, in a home of their own. Main type: [`Gpg`].

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// A home of gpg. Its agent ends with it.
pub struct Gpg {
    home: TempDir,
}

impl Gpg {
    /// None if there is no gpg and the test may be skipped.
    pub fn new() -> Option<Self> {
        let there = Command::new("gpg").arg("--version").output().is_ok();
        if !there {
            crate::skip("gpg", "there is no gpg here");
            return None;
        }
        // A short path: the agent's socket is in it. Made with mode 0700.
        let home = tempfile::Builder::new().prefix("g").tempdir_in("/tmp");
        Some(Self {
            home: home.expect("a temporary folder"),
        })
    }

    /// The folder for `GNUPGHOME`.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs gpg with an input.
    ///
    /// # Panics
    /// If it fails.
    pub fn run(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("gpg")
            .env("GNUPGHOME", self.home())
            .env("LC_ALL", "C")
            .args(["--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"])
            .args(["--passphrase", ""])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("gpg starts");
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(input).expect("gpg reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("gpg ends");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "gpg {arguments:?}: {error}");
        output.stdout
    }

    /// Runs git in a folder, where it signs with these keys.
    ///
    /// # Panics
    /// If it fails.
    pub fn git(&self, tree: &Path, arguments: &[&str]) -> String {
        let out = Command::new("git")
            .current_dir(tree)
            .env("GNUPGHOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(["-c", "user.name=A U Thor", "-c", "user.email=a@example.org"])
            .args(arguments)
            .output()
            .expect("git runs");
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "git {arguments:?}: {error}");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// Makes a key and returns its fingerprint. `options`: such as `--faked-system-time`.
    pub fn generate(&self, user: &str, algorithm: &str, expire: &str, options: &[&str]) -> String {
        let mut arguments = options.to_vec();
        arguments.extend(["--quick-gen-key", user, algorithm, "sign,cert", expire]);
        self.run(&arguments, b"");
        self.fingerprints(user).remove(0)
    }

    /// The fingerprints of a key and its subkeys.
    pub fn fingerprints(&self, key: &str) -> Vec<String> {
        let arguments = [
            "--with-colons",
            "--with-subkey-fingerprint",
            "--list-keys",
            key,
        ];
        let listed = String::from_utf8(self.run(&arguments, b"")).expect("text");
        let lines = listed.lines().filter_map(|line| line.strip_prefix("fpr:"));
        lines
            .filter_map(|line| line.split(':').find(|field| !field.is_empty()))
            .map(str::to_owned)
            .collect()
    }

    /// The public key, armored.
    pub fn export(&self, key: &str) -> String {
        let text = self.run(&["--armor", "--export", key], b"");
        String::from_utf8(text).expect("text")
    }

    /// A detached signature, armored, by exactly this key or subkey.
    pub fn sign(&self, key: &str, text: &[u8], options: &[&str]) -> String {
        let exactly = format!("{key}!");
        let mut arguments = options.to_vec();
        arguments.extend(["--armor", "--local-user", &exactly, "--detach-sign"]);
        String::from_utf8(self.run(&arguments, text)).expect("text")
    }

    /// Revokes a key, with the certificate that gpg made with it.
    pub fn revoke(&self, fingerprint: &str) {
        let file = format!("openpgp-revocs.d/{fingerprint}.rev");
        let text = std::fs::read_to_string(self.home().join(file)).expect("its certificate");
        self.run(
            &["--import"],
            text.replace(":-----BEGIN", "-----BEGIN").as_bytes(),
        );
    }
}

/// Runs ssh-keygen in a folder and returns what it printed; None if there is none and the test may
/// be skipped.
///
/// # Panics
/// If it fails.
pub fn ssh_keygen(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("ssh-keygen")
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        crate::skip("ssh-keygen", "there is no ssh-keygen here");
        return None;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ssh-keygen {arguments:?}: {error}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Drop for Gpg {
    fn drop(&mut self) {
        // Ends the agent that gpg started for this home, and no other.
        let _ = Command::new("gpgconf")
            .env("GNUPGHOME", self.home())
            .args(["--kill", "all"])
            .output();
    }
}
