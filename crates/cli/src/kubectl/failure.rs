//! Errors in kubectl's wording. Main type: [`Trouble`]; [`Trouble::report`] prints it.
//!
//! kubectl's message may be followed by hints, one per line, with a location and advice.

use std::{collections::BTreeSet, fmt};
use tiphys_cluster::{ApiError, apply::Failure};

/// One error, or several that occurred together.
#[derive(Clone, Debug)]
pub enum Trouble {
    One(Failure),
    Many(Vec<Trouble>),
}

impl Trouble {
    pub fn text(text: impl fmt::Display) -> Self {
        Self::One(Failure::Text(text.to_string()))
    }

    /// Without nesting levels that contain only one error.
    fn unwrapped(&self) -> &Self {
        match self {
            Self::Many(list) if list.len() == 1 => &list[0],
            other => other,
        }
    }

    /// A list with one error becomes that error: what was read with an error and then applied
    /// without one is reported alone.
    pub fn flat(self) -> Self {
        match self {
            Self::Many(mut list) if list.len() == 1 => list.remove(0),
            other => other,
        }
    }

    /// The text for standard error.
    pub fn report(&self) -> String {
        let mut out = String::new();
        match self.unwrapped() {
            Self::One(Failure::Api(e)) if e.reason == "Invalid" => out.push_str(&invalid(e)),
            Self::One(failure) => {
                let text = message(failure);
                if failure_is_text(failure) && !text.starts_with("error: ") {
                    out.push_str("error: ");
                }
                out.push_str(&text);
            }
            Self::Many(list) => {
                let lines = list.iter().map(|t| match t {
                    Self::One(failure) => message(failure),
                    Self::Many(_) => t.to_string(),
                });
                out.push_str(&lines.collect::<Vec<_>>().join("\n"));
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out
    }

    fn leaves<'a>(&'a self, into: &mut Vec<&'a Failure>) {
        match self {
            Self::One(failure) => into.push(failure),
            Self::Many(list) => list.iter().for_each(|t| t.leaves(into)),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::One(failure)
    }
}

/// Several in one line: `[first, second]`, without duplicates.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut leaves = Vec::new();
        self.leaves(&mut leaves);
        let mut seen = BTreeSet::new();
        let texts: Vec<String> = leaves
            .iter()
            .map(ToString::to_string)
            .filter(|t| seen.insert(t.clone()))
            .collect();
        match &texts[..] {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

fn failure_is_text(failure: &Failure) -> bool {
    !matches!(failure, Failure::Api(_))
}

fn message(failure: &Failure) -> String {
    let Failure::Api(e) = failure else {
        return failure.to_string();
    };
    match e.reason.as_str() {
        "" => format!("Error from server: {}", e.message),
        "Unauthorized" => format!("error: You must be logged in to the server ({})", e.message),
        reason => format!("Error from server ({reason}): {}", e.message),
    }
}

/// An object that the server considers invalid: one line per cause, if there are several.
fn invalid(e: &ApiError) -> String {
    let mut text = "The request is invalid".to_owned();
    if let Some(about) = &e.about {
        text = format!("The {} {:?} is invalid", about.kind, about.name);
    } else if !e.message.is_empty() && e.causes.is_empty() {
        text = format!("{text}: {}", e.message);
    }
    let mut seen = BTreeSet::new();
    let causes: Vec<String> = e
        .causes
        .iter()
        .map(|(_, message, field)| format!("{field}: {message}"))
        .filter(|c| seen.insert(c.clone()))
        .collect();
    match &causes[..] {
        [] => text,
        [one] => format!("{text}: {one}\n"),
        several => format!(
            "{text}: \n{}",
            several
                .iter()
                .map(|c| format!("* {c}\n"))
                .collect::<String>()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_cluster::About;

    fn api(reason: &str, message: &str, causes: &[(&str, &str)]) -> Failure {
        let causes = causes
            .iter()
            .map(|(field, message)| (String::new(), (*message).to_owned(), (*field).to_owned()))
            .collect();
        let about = Some(Box::new(About {
            kind: "Deployment".into(),
            name: "web".into(),
        }))
        .filter(|_| reason == "Invalid");
        Failure::Api(ApiError {
            reason: reason.into(),
            message: message.into(),
            about,
            causes,
            ..ApiError::default()
        })
    }

    #[test]
    fn one_is_told_in_full() {
        let rows = [
            (Failure::Text("no".into()), "error: no\n"),
            (
                api("NotFound", "x not found", &[]),
                "Error from server (NotFound): x not found\n",
            ),
            (api("", "broken", &[]), "Error from server: broken\n"),
            (
                api("Invalid", "m", &[("spec.a", "Required value")]),
                "The Deployment \"web\" is invalid: spec.a: Required value\n",
            ),
            (
                api("Invalid", "m", &[("a", "b"), ("c", "d"), ("a", "b")]),
                "The Deployment \"web\" is invalid: \n* a: b\n* c: d\n",
            ),
        ];
        for (failure, want) in rows {
            assert_eq!(Trouble::One(failure).report(), want);
        }
    }

    #[test]
    fn several_are_told_a_line_each() {
        let read = Trouble::Many(vec![
            Trouble::text("a"),
            Trouble::text("b"),
            Trouble::text("a"),
        ]);
        assert_eq!(Trouble::Many(vec![read.clone()]).report(), "a\nb\na\n");
        let all = Trouble::Many(vec![read, Trouble::One(api("NotFound", "x", &[]))]);
        assert_eq!(all.report(), "[a, b]\nError from server (NotFound): x\n");
    }
}
