//! Questions to the user. Answers are read from standard input, one line each.

mod hidden;

use crate::{client::Failure, output};
use hidden::Hidden;
use std::io::BufRead as _;

/// `cut` takes away what is not part of the answer.
fn line(cut: fn(&str) -> &str) -> Result<String, Failure> {
    let mut text = String::new();
    match std::io::stdin().lock().read_line(&mut text) {
        Ok(0) => Err(Failure::error("EOF")),
        Ok(_) => Ok(cut(&text).to_owned()),
        Err(e) => Err(Failure::error(format!("cannot read the answer: {e}"))),
    }
}

/// Without the end of the line: a password may begin or end with a space.
fn whole(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Asks until the answer is not empty.
pub fn text(label: &str) -> Result<String, Failure> {
    asked(label, str::trim)
}

fn asked(label: &str, cut: fn(&str) -> &str) -> Result<String, Failure> {
    loop {
        output::print(&format!("{label}: "));
        let answer = line(cut)?;
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
    let answer = asked(label, if hidden.is_some() { whole } else { str::trim });
    if hidden.is_some() {
        output::print("\n");
    }
    answer
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
        if let Some(answer) = answer(&line(str::trim)?, all) {
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
    fn a_password_keeps_its_spaces() {
        for (line, expected) in [(" a b \n", " a b "), ("a\t\r\n", "a\t"), ("a", "a")] {
            assert_eq!(whole(line), expected);
        }
    }

    #[test]
    fn answers() {
        assert_eq!(answer("Yes", false), Some(Answer::Yes));
        assert_eq!(answer("n", false), Some(Answer::No));
        assert_eq!(answer("a", false), None);
        assert_eq!(answer("ALL", true), Some(Answer::All));
    }
}
