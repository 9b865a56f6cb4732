//! Editing an object with the user's editor until it is saved. Main function: [`until_saved`].

use crate::client::{Failure, reason};
use std::{fs, io::Write as _, path::Path, process::Command};

/// The words above the text, those that `argocd` has; the quotation mark is theirs too.
const HEADER: &str = "\
# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.\"
";
const DEFAULT_EDITOR: &str = "vi";

/// Opens a text in the editor and hands what the user wrote to `save`; when that fails, the editor
/// opens again with the reason as a comment. `name` begins the name of the temporary file. Leaving
/// the text as it is, or empty, gives up.
pub async fn until_saved(
    text: &str,
    name: &str,
    save: impl AsyncFn(String) -> Result<(), String>,
) -> Result<(), Failure> {
    let editor = std::env::var("EDITOR").unwrap_or_default();
    let (mut text, mut problem) = (text.to_owned(), String::new());
    loop {
        let shown = with_comments(&text, &problem);
        let written = edited(&editor, &shown, name)?;
        if written.is_empty() || written == shown {
            return Err(Failure::error(
                "edit cancelled, no valid changes were saved",
            ));
        }
        text = without_comments(&written);
        match save(text.clone()).await {
            Ok(()) => return Ok(()),
            Err(e) => problem = e,
        }
    }
}

fn without_comments(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect()
}

fn with_comments(text: &str, problem: &str) -> String {
    let comments: Vec<String> = problem
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| format!("# {line}"))
        .collect();
    let comments = comments.join("\n");
    let parts = [HEADER, &comments, &without_comments(text)];
    let kept = parts
        .iter()
        .enumerate()
        .filter(|(n, part)| *n != 1 || !part.is_empty());
    kept.map(|(_, part)| *part).collect::<Vec<_>>().join("\n")
}

/// The text after the editor has ended. Only the user can read the file.
fn edited(editor: &str, text: &str, name: &str) -> Result<String, Failure> {
    let failed = |e: std::io::Error| Failure::error(reason(&e));
    let mut file = tempfile::Builder::new()
        .prefix(&format!("{name}-"))
        .suffix("-edit.yaml")
        .tempfile()
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    run(editor, file.path()).map_err(Failure::error)?;
    // Many editors put another file in its place: it is read by its name.
    fs::read_to_string(file.path()).map_err(|e| Failure::file(file.path(), &e))
}

fn run(editor: &str, file: &Path) -> Result<(), String> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or(DEFAULT_EDITOR);
    let status = Command::new(program).args(words).arg(file).status();
    let status = status.map_err(|e| match program.contains('/') {
        true => format!("fork/exec {program}: {}", reason(&e)),
        false => format!("exec: {program:?}: executable file not found in $PATH"),
    })?;
    match (status.success(), status.code()) {
        (true, _) => Ok(()),
        (false, Some(code)) => Err(format!("exit status {code}")),
        (false, None) => Err("the editor was ended by a signal".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_above_the_text_and_not_saved() {
        let shown = with_comments("a: b\n", "");
        assert_eq!(shown, format!("{HEADER}\na: b\n"));
        let again = with_comments(&shown, "it failed:\n\nhere");
        assert_eq!(again, format!("{HEADER}\n# it failed:\n# here\n\na: b\n"));
        assert_eq!(without_comments("# x\n  # y\na: b # z\n#"), "a: b # z\n");
    }

    #[test]
    fn editors() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let run = |editor| run(editor, file.path());
        assert_eq!(run("true"), Ok(()));
        assert_eq!(run("false"), Err("exit status 1".to_owned()));
        assert_eq!(
            run("./nope.sh"),
            Err("fork/exec ./nope.sh: no such file or directory".to_owned())
        );
        assert_eq!(
            run("no-such-editor -x"),
            Err("exec: \"no-such-editor\": executable file not found in $PATH".to_owned())
        );
    }
}
