//! Questions to the user. Answers are read from standard input, one line each.

use crate::{client::Failure, output};
use std::io::{BufRead as _, IsTerminal as _};

fn line() -> Result<String, Failure> {
    let mut text = String::new();
    match std::io::stdin().lock().read_line(&mut text) {
        Ok(0) => Err(Failure::error("EOF")),
        Ok(_) => Ok(text.trim().to_owned()),
        Err(e) => Err(Failure::error(format!("cannot read the answer: {e}"))),
    }
}

/// Asks until the answer is not empty.
pub fn text(label: &str) -> Result<String, Failure> {
    loop {
        output::print(&format!("{label}: "));
        let answer = line()?;
        if !answer.is_empty() {
            return Ok(answer);
        }
    }
}

/// As [`text`]; a terminal does not show what is typed.
pub fn password() -> Result<String, Failure> {
    secret("Password")
}

/// The same under another label.
pub fn secret(label: &str) -> Result<String, Failure> {
    let hidden = Hidden::start();
    let answer = text(label);
    if hidden.is_some() {
        output::print("\n");
    }
    answer
}

/// Disables the terminal's echo while it exists.
struct Hidden;

impl Hidden {
    fn start() -> Option<Self> {
        let is_hidden = std::io::stdin().is_terminal() && Self::echo("-echo");
        // Made only then: its end shows what is typed again.
        is_hidden.then(|| Self)
    }

    fn echo(mode: &str) -> bool {
        std::process::Command::new("stty")
            .arg(mode)
            .status()
            .is_ok_and(|s| s.success())
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        Self::echo("echo");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    All,
}

fn answer(text: &str, all: bool) -> Option<Answer> {
    match text.to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes),
        "n" | "no" => Some(Answer::No),
        "a" | "all" if all => Some(Answer::All),
        _ => None,
    }
}

fn ask(message: &str, all: bool) -> Result<Answer, Failure> {
    loop {
        output::print(message);
        if let Some(answer) = answer(&line()?, all) {
            return Ok(answer);
        }
    }
}

pub fn proceed(message: &str) -> Result<bool, Failure> {
    Ok(ask(message, false)? == Answer::Yes)
}

/// Also accepts "all", to skip the questions that would follow.
pub fn proceed_or_all(message: &str) -> Result<Answer, Failure> {
    ask(message, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        assert_eq!(answer("Yes", false), Some(Answer::Yes));
        assert_eq!(answer("n", false), Some(Answer::No));
        assert_eq!(answer("a", false), None);
        assert_eq!(answer("ALL", true), Some(Answer::All));
    }
}
