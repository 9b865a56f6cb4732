//! The Application to render, and the build environment: `$ARGOCD_APP_NAME` and the like in
//! parameters and file names.
//!
//! Main types: [`AppFacts`] and [`Environment`]. Texts are expanded as Go's `os.Expand` does: an
//! unknown variable expands to nothing.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tiphys_api::source::ApplicationSource;

/// The Application to render.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppFacts {
    /// Its instance name: `namespace_name` when it is not in the control plane's namespace.
    pub name: String,
    /// The destination namespace.
    pub namespace: String,
    pub project: String,
    /// The commit.
    pub revision: String,
}

/// Variables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<&'static str, String>);

impl Environment {
    pub fn new(app: &AppFacts, source: &ApplicationSource) -> Self {
        let short = |length: usize| {
            app.revision
                .get(..length)
                .unwrap_or(&app.revision)
                .to_owned()
        };
        Self(BTreeMap::from([
            ("ARGOCD_APP_NAME", app.name.clone()),
            ("ARGOCD_APP_NAMESPACE", app.namespace.clone()),
            ("ARGOCD_APP_PROJECT_NAME", app.project.clone()),
            ("ARGOCD_APP_REVISION", app.revision.clone()),
            ("ARGOCD_APP_REVISION_SHORT", short(7)),
            ("ARGOCD_APP_REVISION_SHORT_8", short(8)),
            ("ARGOCD_APP_SOURCE_REPO_URL", source.repo_url.clone()),
            ("ARGOCD_APP_SOURCE_PATH", source.path.clone()),
            (
                "ARGOCD_APP_SOURCE_TARGET_REVISION",
                source.target_revision.clone(),
            ),
        ]))
    }

    pub fn add(&mut self, name: &'static str, value: String) {
        self.0.insert(name, value);
    }

    pub fn pairs(&self) -> Vec<(String, String)> {
        let pairs = self.0.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    }

    /// Replaces `$NAME` and `${NAME}`; `$$` becomes `$`.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let (name, length) = variable(after);
            match name {
                // As in `os.Expand`, invalid braces are dropped and a `$` without a name stays.
                "" if length == 0 => out.push('$'),
                "$" => out.push('$'),
                name => out.push_str(self.0.get(name).map_or("", String::as_str)),
            }
            rest = &after[length..];
        }
        out.push_str(rest);
        out
    }
}

/// The name at the beginning of the text, and its length in the text.
fn variable(text: &str) -> (&str, usize) {
    let special = |c: char| matches!(c, '*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9');
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(0) => ("", 2),
            Some(end) => (&inner[..end], end + 2),
            None => ("", 1),
        };
    }
    match text.chars().next() {
        Some(c) if special(c) => (&text[..1], 1),
        _ => {
            let end = text
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(text.len());
            (&text[..end], end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of `os.Expand` in Go 1.26.
    #[test]
    fn texts_are_expanded_as_go_does() {
        let app = AppFacts {
            name: "web".into(),
            revision: "0123456789abcdef".into(),
            ..AppFacts::default()
        };
        let environment = Environment::new(
            &app,
            &ApplicationSource {
                path: "apps/web".into(),
                ..ApplicationSource::default()
            },
        );
        for (text, want) in [
            ("$ARGOCD_APP_NAME", "web"),
            ("a-${ARGOCD_APP_NAME}-b", "a-web-b"),
            (
                "$ARGOCD_APP_REVISION_SHORT/$ARGOCD_APP_REVISION_SHORT_8",
                "0123456/01234567",
            ),
            ("${ARGOCD_APP_SOURCE_PATH}x", "apps/webx"),
            ("$ARGOCD_APP_NAMEx", ""),
            ("$$ARGOCD_APP_NAME", "$ARGOCD_APP_NAME"),
            ("${$}", "$"),
            ("100$", "100$"),
            ("a$ b$/c", "a$ b$/c"),
            ("$2y$10$abc", "y0"),
            ("${}x", "x"),
            ("${x", "x"),
            ("$é", "$é"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(environment.expand(text), want, "{text}");
        }
    }
}
