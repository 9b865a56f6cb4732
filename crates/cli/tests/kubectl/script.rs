//! Scenarios as text: files, commands with their output, requests by others, and objects. Main
//! type: [`Script`].
//!
//! `=== name` begins a scenario, `--- file` a file. `$ words` is a command; `1>`, `2>` and `=` are
//! its output and exit code. `? path` shows an object, whose lines begin with `|`. `! METHOD path
//! {json}` is a request by someone else. `~ stderr why` and `~ embedded why` explain permitted
//! differences: in the message of the preceding command, and in the behaviour of the embedded
//! server. `~ unrecorded why` marks a scenario that was written from kubectl's source and not
//! recorded yet: `UPDATE_TRANSCRIPT=1` replaces its output, and the mark can go.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub enum Step {
    File {
        name: String,
        text: String,
    },
    Command {
        line: String,
        said: Vec<String>,
    },
    Show {
        path: String,
        lines: Vec<String>,
    },
    Request {
        line: String,
    },
    /// An explained difference, kept as it is.
    Excuse {
        text: String,
    },
}

#[derive(Clone, Debug)]
pub struct Script {
    pub file: PathBuf,
    pub name: String,
    pub steps: Vec<Step>,
    pub embedded_differs: bool,
}

impl Script {
    /// The text in the file.
    pub fn text(&self) -> String {
        let mut out = format!("=== {}\n", self.name);
        for step in &self.steps {
            match step {
                Step::File { name, text } => out.push_str(&format!("--- {name}\n{text}")),
                Step::Command { line, said } => {
                    out.push_str(&format!("$ {line}\n"));
                    said.iter().for_each(|l| out.push_str(&format!("{l}\n")));
                }
                Step::Show { path, lines } => {
                    out.push_str(&format!("? {path}\n"));
                    lines.iter().for_each(|l| out.push_str(&format!("| {l}\n")));
                }
                Step::Request { line } => out.push_str(&format!("! {line}\n")),
                Step::Excuse { text } => out.push_str(&format!("~ {text}\n")),
            }
        }
        out.push('\n');
        out
    }

    /// What must be equal: commands and objects, without messages that may differ.
    pub fn compared(&self) -> String {
        let mut kept = self.clone();
        kept.steps.retain(|s| !matches!(s, Step::File { .. }));
        for at in 1..kept.steps.len() {
            let is_excuse =
                matches!(&kept.steps[at], Step::Excuse { text } if text.starts_with("stderr "));
            if let (true, Step::Command { said, .. }) = (is_excuse, &mut kept.steps[at - 1]) {
                said.retain(|l| !l.starts_with("2>"));
            }
        }
        for step in &mut kept.steps {
            if let Step::Command { said, .. } = step {
                // kubectl prunes the kinds of an ApplySet in no particular order.
                let is_pruned = |l: &&String| l.contains(" pruned");
                let mut pruned: Vec<String> = said.iter().filter(is_pruned).cloned().collect();
                pruned.sort();
                let mut pruned = pruned.into_iter();
                said.iter_mut()
                    .filter(|l| l.contains(" pruned"))
                    .for_each(|l| *l = pruned.next().expect("as many as there were"));
            }
        }
        kept.text()
    }
}

/// Reads the scenarios of a file.
pub fn parse(file: &Path, text: &str) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    let mut in_file = false;
    for line in text.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        if mark == "===" {
            in_file = false;
            scripts.push(Script {
                file: file.to_owned(),
                name: rest.to_owned(),
                steps: Vec::new(),
                embedded_differs: false,
            });
            continue;
        }
        let script = scripts.last_mut().expect("a scenario begins with ===");
        let is_mark = matches!(mark, "$" | "?" | "!" | "~")
            || (mark == "---" && !rest.is_empty() && !rest.starts_with('#'));
        if in_file && !is_mark {
            if let Some(Step::File { text, .. }) = script.steps.last_mut() {
                text.push_str(line);
                text.push('\n');
            }
            continue;
        }
        in_file = mark == "---";
        let rest = rest.to_owned();
        match mark {
            "" => {}
            "---" => script.steps.push(Step::File {
                name: rest,
                text: String::new(),
            }),
            "$" => script.steps.push(Step::Command {
                line: rest,
                said: Vec::new(),
            }),
            "?" => script.steps.push(Step::Show {
                path: rest,
                lines: Vec::new(),
            }),
            "!" => script.steps.push(Step::Request { line: rest }),
            "~" => {
                script.embedded_differs |= rest.starts_with("embedded ");
                script.steps.push(Step::Excuse { text: rest });
            }
            "1>" | "2>" | "=" => match script.steps.last_mut() {
                Some(Step::Command { said, .. }) => said.push(line.to_owned()),
                _ => panic!("{}: {line:?} is not below a command", script.name),
            },
            "|" => match script.steps.last_mut() {
                Some(Step::Show { lines, .. }) => lines.push(rest),
                _ => panic!("{}: {line:?} is not below ?", script.name),
            },
            _ => panic!("{}: {line:?} is not understood", script.name),
        }
    }
    scripts
}
