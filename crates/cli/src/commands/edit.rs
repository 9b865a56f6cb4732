//! Editing an object with the user's editor until it is saved. Main function: [`until_saved`].

use crate::client::{Failure, reason};
use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::NamedTempFile;

/// The words above the text, those that `argocd` has; the quotation mark is theirs too.
const HEADER: &str = "\
# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.\"
";
const DEFAULT_EDITOR: &str = "vi";

/// Why nothing was saved, and what the user wrote for nothing; empty: nothing.
struct GivenUp {
    why: Failure,
    unsaved: String,
}

/// Opens a text in the editor and hands what the user wrote to `save`; when that fails, the editor
/// opens again with the reason as a comment. `name` begins the name of the temporary file. Leaving
/// the text as it is, or empty, gives up; what could not be saved then stays in a file.
pub async fn until_saved(
    text: &str,
    name: &str,
    save: impl AsyncFn(String) -> Result<(), String>,
) -> Result<(), Failure> {
    let editor = std::env::var("EDITOR").unwrap_or_default();
    let Err(GivenUp { why, unsaved }) = edit(&editor, text, name, save).await else {
        return Ok(());
    };
    // Without a terminal it was no user's work.
    if !unsaved.is_empty() && io::stderr().is_terminal() {
        match kept(&unsaved, name) {
            Ok(path) => eprintln!(
                "A copy of your changes has been stored to \"{}\"",
                path.display()
            ),
            Err(e) => eprintln!("Your changes are lost: {}", reason(&e)),
        }
    }
    Err(why)
}

async fn edit(
    editor: &str,
    text: &str,
    name: &str,
    save: impl AsyncFn(String) -> Result<(), String>,
) -> Result<(), GivenUp> {
    let (mut text, mut problem, mut unsaved) = (text.to_owned(), String::new(), String::new());
    loop {
        let shown = with_comments(&text, &problem);
        let written = match edited(editor, &shown, name) {
            Ok(written) => written,
            Err((why, Some(written))) if written != shown => {
                let unsaved = without_comments(&written);
                return Err(GivenUp { why, unsaved });
            }
            Err((why, _)) => return Err(GivenUp { why, unsaved }),
        };
        if written.is_empty() || written == shown {
            let why = Failure::error("edit cancelled, no valid changes were saved");
            return Err(GivenUp { why, unsaved });
        }
        text = without_comments(&written);
        match save(text.clone()).await {
            Ok(()) => return Ok(()),
            Err(e) => problem = e,
        }
        unsaved.clone_from(&text);
    }
}

/// Only the user can read the file.
fn file(text: &str, name: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(&format!("{name}-"))
        .suffix("-edit.yaml")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

fn kept(text: &str, name: &str) -> io::Result<PathBuf> {
    let (_, path) = file(text, name)?.keep()?;
    Ok(path)
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

/// The text after the editor has ended; with an error what it left, if that can be read.
fn edited(editor: &str, text: &str, name: &str) -> Result<String, (Failure, Option<String>)> {
    let file = file(text, name).map_err(|e| (Failure::error(reason(&e)), None))?;
    let ended = run(editor, file.path()).map_err(Failure::error);
    // Many editors put another file in its place: it is read by its name.
    let left = fs::read_to_string(file.path());
    match ended {
        Ok(()) => left.map_err(|e| (Failure::file(file.path(), &e), None)),
        Err(why) => Err((why, left.ok())),
    }
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

    /// The first time it adds a line, later it leaves the file as it is.
    const ONCE: &str = "[ -e \"$0.done\" ] || echo 'c: d' >> \"$1\"\n: > \"$0.done\"\n";

    /// An editor may end with an error after it has written.
    #[tokio::test]
    async fn what_an_editor_wrote_before_it_failed_is_kept() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let script = folder.path().join("editor");
        let editor = format!("sh {}", script.display());
        for (commands, unsaved) in [
            ("echo 'c: d' >> \"$1\"\nexit 3\n", "a: b\nc: d\n"),
            ("exit 3\n", ""),
        ] {
            fs::write(&script, commands).expect("a file");
            let save = async |_: String| Ok::<(), String>(());
            let given_up = edit(&editor, "a: b\n", "app", save).await;
            let given_up = given_up.expect_err("it failed");
            assert_eq!(given_up.why.message, "exit status 3");
            assert!(given_up.unsaved.ends_with(unsaved), "{}", given_up.unsaved);
            assert_eq!(given_up.unsaved.is_empty(), unsaved.is_empty());
        }
    }

    #[tokio::test]
    async fn what_could_not_be_saved_is_kept() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let script = folder.path().join("editor");
        fs::write(&script, ONCE).expect("a file");
        let editor = format!("sh {}", script.display());
        let refused = async |_: String| Err::<(), String>("the server says no".to_owned());
        let ended = edit(&editor, "a: b\n", "app", refused).await;
        let given_up = ended.expect_err("nothing was saved");
        assert!(given_up.why.message.starts_with("edit cancelled"));
        assert!(given_up.unsaved.ends_with("a: b\nc: d\n"));
        let path = kept(&given_up.unsaved, "app").expect("it is stored");
        let stored = fs::read_to_string(&path).expect("it stays");
        fs::remove_file(&path).expect("it is there");
        assert_eq!(stored, given_up.unsaved);
        // Who changes nothing loses nothing.
        let ended = edit(&editor, "a: b\n", "app", async |_: String| {
            Ok::<(), String>(())
        })
        .await;
        assert_eq!(ended.expect_err("no change").unsaved, "");
    }
}
