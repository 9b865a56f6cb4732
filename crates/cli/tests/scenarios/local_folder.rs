//! `tiphys up` on folders of this machine.

use crate::scenarios::world::program;
use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::Path, process::Command};
use tempfile::TempDir;

/// Who stands in a folder of a repository means that folder; and what is not committed cannot be
/// deployed, which is said at once.
#[test]
fn a_folder_of_a_repository_is_found_in_it() {
    let top = TempDir::new().expect("a folder");
    let tree = top.path().join("tree");
    fs::create_dir_all(tree.join("apps/web")).expect("a folder");
    fs::create_dir(top.path().join("plain")).expect("a folder");
    fs::write(
        tree.join("apps/web/cm.yaml"),
        crate::scenarios::world::config_map("a", "1"),
    )
    .expect("a file");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&tree)
            // Not as whoever runs the tests has set up Git.
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.test"]);
        let done = git.args(arguments).output().expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    let up = |folder: &Path, path: &str| {
        let ended = Command::new(program())
            .current_dir(folder)
            .args(["up", "--ephemeral", "--once", "--port", "0", "--repo", "."])
            .args(["--path", path])
            .output()
            .expect("it runs");
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            ended.status.code(),
            shown(&ended.stdout),
            shown(&ended.stderr),
        )
    };
    let (code, out, error) = up(&top.path().join("plain"), ".");
    assert_eq!((code, &*out), (Some(1), ""), "nothing was started");
    assert!(error.contains("is in no Git repository"), "{error}");
    // Else another folder would be read.
    let odd = top.path().join(OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir_all(odd.join(".git")).expect("a folder");
    fs::write(odd.join(".git/packed-refs"), "").expect("a file");
    let (code, out, error) = up(&odd, ".");
    assert_eq!((code, &*out), (Some(1), ""), "nothing was started");
    assert!(error.contains("is not UTF-8"), "{error}");
    git(&["init", "--quiet"]);
    let (code, out, error) = up(&tree.join("apps"), "web");
    assert_eq!((code, &*out), (Some(1), ""), "nothing was started");
    assert!(error.contains("nothing is committed"), "{error}");
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    let (code, out, error) = up(&tree.join("apps"), "web");
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("web: Synced Healthy"), "{out}");
}
