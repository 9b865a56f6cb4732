//! Shrinks a text for which two programs differ, as long as they still do.
//!
//! Main function: [`shrunk`]; [`Oracle`] asks the real program about texts that the generator did
//! not create.

use anyhow::Context;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// The generator of a baseline, which answers questions, one line of JSON each.
pub struct Oracle {
    program: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    pub fn start(root: &Path, generator: &str) -> anyhow::Result<Self> {
        let mut go = Command::new("go");
        go.current_dir(
            root.join("crates/gocompat/tests/baseline/generate")
                .join(generator),
        );
        let mut program = go
            .args(["run", ".", "answer"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("go does not start")?;
        let questions = program.stdin.take().context("the input was asked for")?;
        let answers = BufReader::new(program.stdout.take().context("the output was asked for")?);
        Ok(Self {
            program,
            questions,
            answers,
        })
    }

    pub fn answer(&mut self, question: &Value) -> Option<Value> {
        writeln!(self.questions, "{question}").ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Oracle {
    /// It ends when there are no more questions.
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Removes lines, then characters, fewer and fewer at a time, as long as `differs`.
pub fn shrunk(text: &str, mut differs: impl FnMut(&str) -> bool) -> String {
    let lines = without(
        text.split_inclusive('\n').map(str::to_owned).collect(),
        &mut differs,
    );
    without(lines.chars().map(String::from).collect(), &mut differs)
}

fn without(mut pieces: Vec<String>, differs: &mut impl FnMut(&str) -> bool) -> String {
    let mut size = pieces.len().div_ceil(2);
    while size > 0 {
        let (before, mut at) = (pieces.len(), 0);
        while at < pieces.len() {
            let end = pieces.len().min(at + size);
            let smaller = [&pieces[..at], &pieces[end..]].concat();
            if differs(&smaller.concat()) {
                pieces = smaller
            } else {
                at = end
            }
        }
        if size > 1 || pieces.len() == before {
            size /= 2;
        }
    }
    pieces.concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_does_not_matter_is_left_out() {
        assert_eq!(
            super::shrunk("one\ntwo\nthree four\nfive\n", |text| text.contains("hre")
                && text.contains('v')),
            "hrev"
        );
        assert_eq!(super::shrunk("a\nb", |_| false), "a\nb");
    }
}
