//! Plugins with the program itself: `tiphys up` deploys what `argocd-cmp-server` makes, which is the
//! same program under another name, and a plugin's `git` gets the password that it may have from
//! `argocd-git-ask-pass`, a third one.

use crate::scenarios::world::program;
use std::{
    fs,
    os::unix::{fs::symlink, process::CommandExt as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const PLUGIN: &str = r#"apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata: {name: maker}
spec:
  version: v1
  init: {command: [sh, -c, 'echo from-plugin > text']}
  generate:
    command: [sh, -c]
    args:
    - |
      if [ -n "$ARGOCD_GIT_ASKPASS_NONCE" ]; then
        told=$("$GIT_ASKPASS" "Password for 'https://h': ")
        test "$told" = hunter2 || { echo "no password" >&2; exit 1; }
        echo asked >> ../../../asked
      fi
      cat <<END
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: made
      data:
        text: $(cat text) for $ARGOCD_APP_NAME
      END
  discover: {fileName: Makefile}
  provideGitCreds: true
"#;

/// Seconds that a machine with much to do may take for what takes three.
const PATIENCE: u64 = 300;

/// Ended with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct World {
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            dir: TempDir::new().expect("a folder"),
        };
        for folder in ["config", "sockets", "bin", "repository/app"] {
            fs::create_dir_all(world.path(folder)).expect("made");
        }
        fs::write(world.path("config/plugin.yaml"), PLUGIN).expect("written");
        fs::write(world.path("repository/app/Makefile"), "all:\n").expect("written");
        for name in ["argocd", "argocd-cmp-server"] {
            symlink(program(), world.path(&format!("bin/{name}"))).expect("linked");
        }
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &["commit", "-q", "-m", "first"],
        ] {
            let done = Command::new("git")
                .current_dir(world.path("repository"))
                .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
                .args(words)
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .status();
            assert!(done.expect("git runs").success());
        }
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn serve(&self) -> Running {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut server = Command::new(self.path("bin/argocd-cmp-server"));
        server
            .args([
                "--config-dir-path",
                &text(&self.path("config")),
                "--loglevel",
                "warn",
            ])
            .env("ARGOCD_PLUGINSOCKFILEPATH", self.path("sockets"))
            .env("ARGOCD_CMP_WORKDIR", self.dir.path())
            .env("PATH", format!("{}:{path}", text(&self.path("bin"))))
            .stderr(Stdio::null());
        let server = Running(server.spawn().expect("it starts"));
        let (socket, begun) = (self.path("sockets/maker-v1.sock"), Instant::now());
        while !socket.exists() {
            assert!(begun.elapsed() < Duration::from_secs(PATIENCE), "no socket");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    /// `tiphys up` until all is deployed: its exit code, and what it says.
    fn up(&self, seconds: u64, more: &[&str]) -> (Option<i32>, String) {
        let mut up = Command::new(program());
        up.args([
            "up",
            "--once",
            "--ephemeral",
            "--port",
            "0",
            "--timeout",
            &seconds.to_string(),
        ])
        .args(["--repo", &text(&self.path("repository")), "--path", "app"])
        .args(["--plugins-dir", &text(&self.path("sockets"))])
        .args(["--ask-pass-socket", &text(&self.path("ask-pass.sock"))])
        .args(more);
        let ended = up.output().expect("it runs");
        let said = [ended.stdout, ended.stderr].concat();
        (
            ended.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a plain name").to_owned()
}

#[test]
fn what_a_plugin_makes_is_deployed() {
    let world = World::new();
    let server = world.serve();
    let (code, said) = world.up(PATIENCE, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!world.path("asked").exists());
    let (code, said) = world.up(PATIENCE, &["--username", "u", "--password", "hunter2"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert!(world.path("asked").exists(), "the plugin had no password");

    // A process that is told to end takes its socket along; then the folder has no objects.
    drop(server);
    let why = "could not find out whether a plugin is for this source";
    let mut all = String::new();
    // It cannot end well: a machine with much to do is given more time until it says why.
    for seconds in [5, 30, 90, PATIENCE] {
        let (code, said) = world.up(seconds, &[]);
        assert_eq!(code, Some(1), "{said}");
        all.push_str(&said);
        if said.contains(why) {
            return;
        }
    }
    panic!("it does not say why: {all}");
}

#[test]
fn a_plugin_yaml_that_is_none_is_named() {
    let world = World::new();
    fs::write(
        world.path("config/plugin.yaml"),
        "kind: Pod\nmetadata: {name: a}\n",
    )
    .expect("written");
    let mut command = Command::new("argocd-cmp-server");
    let ended = command
        .arg0("argocd-cmp-server")
        .env("PATH", world.path("bin"))
        .args(["--config-dir-path", &text(&world.path("config"))])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        said.contains(
            "invalid plugin configuration file. kind should be ConfigManagementPlugin, found Pod"
        ),
        "{said}"
    );
    let mut command = Command::new(program());
    let ended = command
        .args([
            "cmp-server",
            "--config-dir-path",
            &text(&world.path("gone")),
        ])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("gone/plugin.yaml"), "{said}");

    let mut command = Command::new(world.path("bin/argocd"));
    let ended = command
        .arg("Password for 'https://h': ")
        .env("ARGOCD_BINARY_NAME", "argocd-git-ask-pass")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        said.contains("ARGOCD_GIT_ASKPASS_NONCE is not set"),
        "{said}"
    );
}
