//! Texts that go-yaml reads and the YAML 1.2 scanner underneath refuses, changed so that both mean the same.
//!
//! Main function: [`repair`]. It looks only where the scanner stopped, so a text without such places is never touched:
//! a tab after a colon, brackets or quoted text continued at the left margin, `\'` between double quotes.

use saphyr_parser::{Marker, ScanError};

/// The changed text, or None when the error is a real one.
pub(super) fn repair(text: &str, error: &ScanError) -> Option<String> {
    let at = *error.marker();
    match error.info() {
        "invalid indentation" | "invalid indentation in flow construct" => indent_in_brackets(text, at),
        "invalid indentation in quoted scalar" => indent_quoted(text, at),
        "while parsing a quoted scalar, found unknown escape character" => unescape_quotes(text, at),
        info if info.starts_with("':' must be followed by") => tab_to_space(text, at),
        _ => None,
    }
}

fn offset(text: &str, at: Marker) -> Option<usize> {
    match text.char_indices().nth(at.index()) {
        Some((offset, _)) => Some(offset),
        None => (text.chars().count() == at.index()).then_some(text.len()),
    }
}

fn tab_to_space(text: &str, at: Marker) -> Option<String> {
    let (before, after) = text.split_at_checked(offset(text, at)?)?;
    let kept = before.trim_end_matches('\t');
    if kept.len() == before.len() || !kept.ends_with(':') {
        return None;
    }
    Some(format!("{kept}{}{after}", " ".repeat(before.len() - kept.len())))
}

/// A line inside brackets must stand right of the collection it is in; leading blanks mean nothing there.
fn indent_in_brackets(text: &str, at: Marker) -> Option<String> {
    let (before, after) = text.split_at_checked(offset(text, at)?)?;
    let (lines, blanks) = before.rsplit_once('\n').map(|(lines, blanks)| (lines, blanks.len()))?;
    if !before.get(before.len() - blanks..)?.chars().all(|c| c == ' ' || c == '\t') {
        return None;
    }
    let above = lines.lines().rev().find(|line| !line.trim().is_empty())?;
    let margin = above.chars().take_while(|c| matches!(c, ' ' | '\t' | '-' | '?')).count() + 1;
    if margin <= blanks {
        return None;
    }
    Some(format!("{before}{}{after}", " ".repeat(margin - blanks)))
}

/// Where a quoted text ends, from its opening quote on.
fn quoted_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    let (_, quote) = chars.next()?;
    if !matches!(quote, '"' | '\'') {
        return None;
    }
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => {
                chars.next();
            }
            '\'' if quote == '\'' && text.get(i + 1..)?.starts_with('\'') => {
                chars.next();
            }
            c if c == quote => return Some(i),
            _ => {}
        }
    }
    None
}

/// Line breaks and blanks inside quoted text fold to one blank, however many there are.
fn indent_quoted(text: &str, at: Marker) -> Option<String> {
    let (before, after) = text.split_at_checked(offset(text, at)?)?;
    let (quoted, rest) = after.split_at_checked(quoted_end(after)?)?;
    let margin = format!("\n{}", " ".repeat(at.col() + 1));
    let indented = quoted.replace('\n', &margin);
    (indented != quoted).then(|| format!("{before}{indented}{rest}"))
}

fn unescape_quotes(text: &str, at: Marker) -> Option<String> {
    let (before, after) = text.split_at_checked(offset(text, at)?)?;
    let (quoted, rest) = after.split_at_checked(quoted_end(after)?)?;
    if !quoted.starts_with('"') {
        return None;
    }
    let mut changed = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some('\'')) => {}
            ('\\', Some(next)) => {
                changed.extend([c, next]);
                chars.next();
            }
            _ => changed.push(c),
        }
    }
    (changed.len() != quoted.len()).then(|| format!("{before}{changed}{rest}"))
}
