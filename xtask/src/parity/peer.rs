//! A program built elsewhere that asks the real thing: it reads a line of JSON for each question
//! and answers with a line of JSON. Main type: [`Peer`].

use anyhow::Context;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// The program ends when this is dropped.
pub struct Peer {
    program: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    pub fn start(path: &Path) -> anyhow::Result<Self> {
        let mut program = Command::new(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", path.display()))?;
        let questions = program.stdin.take().context("the input was asked for")?;
        let answers = program.stdout.take().context("the output was asked for")?;
        Ok(Self {
            program,
            questions,
            answers: BufReader::new(answers).lines(),
        })
    }

    pub fn ask(&mut self, case: &Value) -> anyhow::Result<()> {
        writeln!(self.questions, "{case}").context("the peer has ended")
    }

    pub fn answer(&mut self) -> anyhow::Result<Value> {
        let line = self.answers.next().context("the peer has ended")??;
        serde_json::from_str(&line).context("the peer's answer")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
