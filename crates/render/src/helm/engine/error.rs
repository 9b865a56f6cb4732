//! Template errors with Helm's messages.
//!
//! Main functions: [`parse`] and [`execute`]. Helm parses Go's error texts and puts the locations
//! on separate lines; where it cannot parse them, it leaves them unchanged. This module does the
//! same with the same texts.

use super::functions::{WARN_END, WARN_START};
use crate::helm::HelmError;
use tiphys_gocompat::template::{Error, ErrorKind};

/// The error for a template that cannot be parsed.
pub fn parse(name: &str, error: &Error) -> HelmError {
    let text = error.to_string();
    if error.kind() == ErrorKind::Limit {
        return HelmError::Limit(text);
    }
    let parts: Vec<&str> = text.split(": ").collect();
    HelmError::template(match parts.as_slice() {
        [] | [_] => format!("parse error in ({name}): {text}"),
        [_, place, .., message] => format!("parse error at ({place}): {message}"),
        [_, place] => format!("parse error at ({place}): {place}"),
    })
}

/// The error for a template that failed.
pub fn execute(name: &str, error: &Error) -> HelmError {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Limit => HelmError::Limit(compact(error).unwrap_or(text)),
        _ => HelmError::template(told(name, &text).or_else(|| compact(error)).unwrap_or(text)),
    }
}

/// The message of `fail` or `required`, with the location of the outermost call.
fn told(name: &str, text: &str) -> Option<String> {
    let mut parts = text.splitn(3, ": ");
    let (Some(_), Some(place), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Some(format!("execution error in ({name}): {text}"));
    };
    let start = rest.find(WARN_START)? + WARN_START.len();
    let end = rest.rfind(WARN_END).filter(|end| *end >= start)?;
    Some(format!(
        "execution error at ({place}): {}",
        &rest[start..end]
    ))
}

/// Locations and reason on separate lines; None if one of the texts does not have the form of
/// text/template.
fn compact(error: &Error) -> Option<String> {
    let mut places: Vec<Place> = Vec::new();
    for link in error.chain() {
        let place = Place::read(&from(link))?;
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    let text: String = places.iter().map(Place::text).collect();
    Some(text.trim().to_owned())
}

/// The text of one link of the error chain, up to the next location, which the next link reports.
fn from(link: &Error) -> String {
    let mut text = link.message().to_owned();
    if let Some(cause) = link.cause() {
        text.push_str(cause.message());
    }
    text
}

#[derive(PartialEq)]
struct Place {
    location: String,
    executed: String,
    message: String,
}

impl Place {
    fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("template: ")?;
        if rest.starts_with("no template ") {
            return Some(Self {
                location: String::new(),
                executed: String::new(),
                message: text.to_owned(),
            });
        }
        Self::executing(rest).or_else(|| Self::simple(rest))
    }

    /// `name:1:2: executing "name" at <.x>: why`
    fn executing(rest: &str) -> Option<Self> {
        let (location, after) = rest.split_once(": executing ")?;
        let (function, after) = after.strip_prefix('"')?.split_once('"')?;
        let (place, why) = after.strip_prefix(" at <")?.split_once(">: ")?;
        Some(Self {
            location: location.to_owned(),
            executed: format!("executing \"{function}\" at <{place}>:"),
            message: own(why),
        })
    }

    fn simple(rest: &str) -> Option<Self> {
        let (location, why) = rest.rsplit_once(": ")?;
        Some(Self {
            location: location.to_owned(),
            executed: String::new(),
            message: own(why),
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.location.is_empty() {
            text += &format!("{}\n  ", self.location);
        }
        if !self.executed.is_empty() {
            text += &format!("{}\n    ", self.executed);
        }
        if !self.message.is_empty() {
            text += &format!("{}\n", self.message);
        }
        text
    }
}

/// The message without what the nested template reports.
fn own(why: &str) -> String {
    why.find(" template:")
        .map_or(why, |at| &why[..at])
        .to_owned()
}
