//! The user's editor on a temporary file. Main function: [`edit`].

use std::{fs, io::Write as _, path::PathBuf, process::Command};

/// The variables that kubectl checks for the editor, in order.
const VARIABLES: [&str; 2] = ["KUBE_EDITOR", "EDITOR"];
const DEFAULT: &str = "vi";

/// The edited text, and its file.
pub struct Edited {
    pub text: String,
    pub file: PathBuf,
}

/// Writes a text to a new file that only the user can read, and waits for the editor to exit.
pub fn edit(text: &str, extension: &str) -> Result<Edited, String> {
    let file = write(text, extension).map_err(|e| crate::client::reason(&e))?;
    let editor = VARIABLES
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|v| !v.is_empty())
        .unwrap_or_else(|| DEFAULT.to_owned());
    let (words, problem) = command(&editor, &file);
    let outcome = Command::new(&words[0]).args(&words[1..]).status();
    if !outcome.is_ok_and(|status| status.success()) {
        return Err(format!("there was a problem with the editor {problem:?}"));
    }
    let text = fs::read_to_string(&file)
        .map_err(|e| format!("{}: {}", file.display(), crate::client::reason(&e)))?;
    Ok(Edited { text, file })
}

/// The command line, and the editor's name; a command with quotes is run by the shell.
fn command(editor: &str, file: &std::path::Path) -> (Vec<String>, String) {
    let file = file.display().to_string();
    if editor.contains(' ') && editor.contains(['"', '\'', '\\']) {
        let shell = std::env::var("SHELL")
            .ok()
            .filter(|s| !s.is_empty())
            .unwrap_or_else(|| "/bin/bash".to_owned());
        let problem = format!("{shell} -c {editor}");
        return (
            vec![shell, "-c".into(), format!("{editor} {file:?}")],
            problem,
        );
    }
    let words = editor
        .split(' ')
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .chain([file])
        .collect();
    (words, editor.to_owned())
}

fn write(text: &str, extension: &str) -> std::io::Result<PathBuf> {
    for number in 0..1000 {
        let path = std::env::temp_dir().join(format!(
            "tiphys-edit-{}-{number}{extension}",
            std::process::id()
        ));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            Ok(mut file) => return file.write_all(text.as_bytes()).map(|()| path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_editor_has_words_and_a_shell_reads_quotes() {
        let words = |editor: &str| command(editor, Path::new("/f")).0;
        assert_eq!(words("vi"), ["vi", "/f"]);
        assert_eq!(words("code --wait"), ["code", "--wait", "/f"]);
        assert_eq!(words("'a b' -x")[1..], ["-c", "'a b' -x \"/f\""]);
    }
}
