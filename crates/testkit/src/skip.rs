//! Tests with requirements that not every machine meets. Main function: [`skip`].

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

/// Lists the requirements that may be missing, separated by commas; `all` stands for every one.
pub const ALLOW: &str = "TIPHYS_ALLOW_SKIP";

/// Records that the running test is skipped because `need` is missing. The test returns after it.
///
/// libtest counts such a test as passed and hides its output, so this fails unless
/// `TIPHYS_ALLOW_SKIP` names the requirement. What is skipped is appended to `skipped-tests` in the
/// target folder, which `make test` prints at its end.
///
/// Requirements in use: `real` (a control plane, see `make test-real`), `control-plane` (one that
/// may be restarted), `shared` (`../shared`), `kubectl`, `kubectl-1.36`, `kustomize`, `argocd`,
/// `dex`, `docker-registry`, `nats-server`, `gpg`, `ssh-keygen`, `sshd`, `postgres`,
/// `script`, `zsh`, `fish`.
///
/// # Panics
/// If the skip is not allowed.
#[track_caller]
pub fn skip(need: &str, why: &str) {
    let allowed = std::env::var(ALLOW).unwrap_or_default();
    assert!(
        is_allowed(&allowed, need),
        "this test cannot run here: {why}; with {ALLOW}={need} it is skipped"
    );
    let program = std::env::current_exe().expect("the path of the test program");
    let line = line(
        &program,
        std::thread::current().name().unwrap_or("a test"),
        need,
        why,
    );
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(record(&program))
        .expect("the record of skipped tests can be opened");
    // In one write, because several test programs write to it.
    file.write_all(line.as_bytes())
        .expect("the record of skipped tests can be written");
}

fn is_allowed(allowed: &str, need: &str) -> bool {
    allowed
        .split(',')
        .map(str::trim)
        .any(|one| one == need || one == "all")
}

/// `need`, the test and the reason, separated by tabs.
fn line(program: &Path, test: &str, need: &str, why: &str) -> String {
    let name = program
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // Without the hash that cargo appends.
    let name = name
        .rsplit_once('-')
        .map_or(name.as_str(), |(name, _)| name);
    format!("{need}\t{name}::{test}\t{why}\n")
}

/// A test program is `target/PROFILE/deps/NAME`, or deeper if it is built for another platform;
/// cargo marks the target folder.
fn record(program: &Path) -> PathBuf {
    let marked = program
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file());
    marked
        .or(program.ancestors().nth(3))
        .unwrap_or(Path::new(""))
        .join("skipped-tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_allowed() {
        for (allowed, need, expected) in [
            ("", "real", false),
            ("real", "real", true),
            ("shared, kubectl", "kubectl", true),
            ("kubectl-1.36", "kubectl", false),
            ("kubectl", "kubectl-1.36", false),
            ("all", "shared", true),
        ] {
            assert_eq!(is_allowed(allowed, need), expected, "{need} of `{allowed}`");
        }
    }

    #[test]
    fn a_record_names_the_test() {
        let program = Path::new("/w/target/debug/deps/scenarios-0123456789abcdef");
        assert_eq!(record(program), Path::new("/w/target/skipped-tests"));
        assert_eq!(
            line(program, "real::a_test", "real", "no cluster"),
            "real\tscenarios::real::a_test\tno cluster\n"
        );
    }
}
