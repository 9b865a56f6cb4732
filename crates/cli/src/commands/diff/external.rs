//! `KUBECTL_EXTERNAL_DIFF`: another program compares two folders. Main type: [`Program`].

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;

const VARIABLE: &str = "KUBECTL_EXTERNAL_DIFF";

/// The program, and its arguments after the two folders.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    name: String,
    arguments: Vec<String>,
}

impl Program {
    /// The one that the environment names.
    pub fn named() -> Option<Self> {
        let line = std::env::var(VARIABLE).ok()?;
        (!line.is_empty()).then(|| Self::of(&line))
    }

    /// As in kubectl, only arguments of letters, digits, `-` and `=` are passed.
    fn of(line: &str) -> Self {
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '=');
        let arguments = words
            .filter(|word| !word.is_empty() && word.chars().all(is_plain))
            .collect();
        Self { name, arguments }
    }

    /// Runs it; whether it found differences.
    pub fn run(&self, from: &Path, to: &Path) -> Result<bool, String> {
        let failed = |why: &str| format!("failed to run {:?}: {why}", self.name);
        let status = Command::new(&self.name)
            .args([from, to])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .status()
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => failed("executable file not found in $PATH"),
                _ => failed(&crate::client::reason(&e)),
            })?;
        match status.code() {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(code) => Err(failed(&format!("exit status {code}"))),
            None => Err(failed(&status.to_string())),
        }
    }
}

/// A folder for one version of all objects, which only the user can read.
pub struct Folder(TempDir);

impl Folder {
    pub fn new(name: &str) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir();
        folder.map(Self).map_err(|e| {
            format!(
                "cannot make a folder in {}: {}",
                std::env::temp_dir().display(),
                crate::client::reason(&e)
            )
        })
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        // A name of a server's object must not lead out of the folder.
        let path = self.path().join(name.replace('/', "_"));
        let written = fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| format!("write {}: {}", path.display(), crate::client::reason(&e)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_arguments_are_passed() {
        let program = Program::of("colordiff -N -u  --color=always ;rm $(x) a_b");
        assert_eq!(program.name, "colordiff");
        assert_eq!(program.arguments, ["-N", "-u", "--color=always"]);
    }

    #[test]
    fn the_code_says_whether_something_differs() {
        let (from, to) = (
            Folder::new("LIVE").expect("a folder"),
            Folder::new("MERGED").expect("a folder"),
        );
        let mode = fs::metadata(from.path()).expect("a folder").permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        let run = |line: &str| Program::of(line).run(from.path(), to.path());
        assert_eq!(run("true"), Ok(false));
        assert_eq!(run("false"), Ok(true));
        assert_eq!(run("diff -r"), Ok(false));
        from.write("../a", "b").expect("written");
        assert!(from.path().join(".._a").is_file());
        assert_eq!(
            run("no-such-program -u"),
            Err("failed to run \"no-such-program\": executable file not found in $PATH".to_owned())
        );
        assert_eq!(
            run("diff --no-such-flag"),
            Err("failed to run \"diff\": exit status 2".to_owned())
        );
    }
}
