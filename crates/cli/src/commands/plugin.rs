//! Plugins of the command line, as Argo CD has them: a program `argocd-NAME` in PATH is the command
//! NAME. Main function: [`run`].

use crate::output;
use std::{env, ffi::OsString, os::unix::fs::PermissionsExt as _, path::PathBuf, process};

const PREFIX: &str = "argocd-";

/// Runs the plugin that the first word names, with the other words; returns its exit code. `None`:
/// there is none, or the first word is no name.
pub fn run(mut words: impl Iterator<Item = OsString>) -> Option<process::ExitCode> {
    let name = words.next()?.into_string().ok()?;
    if name.starts_with('-') || name.contains('/') {
        return None;
    }
    let program = find(&format!("{PREFIX}{name}"))?;
    let ended = process::Command::new(&program).args(words).status();
    let code = match ended.map(|status| status.code()) {
        Ok(Some(0)) => return Some(process::ExitCode::SUCCESS),
        Ok(code) => code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        Err(e) => {
            output::log::error(&format!("{} cannot be run: {e}", program.display()));
            return Some(process::ExitCode::FAILURE);
        }
    };
    output::print(&format!("Error: exit status {code}\n"));
    Some(process::ExitCode::from(code))
}

/// The first file of this name in PATH that may be run. A relative folder in PATH is passed over:
/// what it holds depends on where one is.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let runs = |path: &PathBuf| {
        let found = path.metadata();
        found.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(runs)
}
