//! `.helmignore`: which files of a folder are not part of the chart.
//!
//! Main type: [`Rules`].

use tiphys_gocompat::path_match::{BadPattern, matches};

pub(super) struct Rules(Vec<Rule>);

struct Rule {
    pattern: String,
    /// How many bytes of the pattern, at its start, stand for themselves.
    literal: usize,
    /// Everything that does not match is ignored.
    negated: bool,
    folders_only: bool,
    /// The pattern is matched against the last part of a path.
    base_only: bool,
}

impl Rules {
    /// Ignores nothing.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Parses the file and adds the patterns that Helm always ignores.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self(Vec::new());
        for line in text.lines().chain(["templates/.?*"]) {
            rules.add(line.trim())?;
        }
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.contains("**") {
            return Err("double-star (**) syntax is not supported".to_owned());
        }
        matches(line, "abc").map_err(|BadPattern| BadPattern.to_string())?;
        let (negated, pattern) = line
            .strip_prefix('!')
            .map_or((false, line), |rest| (true, rest));
        let (folders_only, pattern) = pattern
            .strip_suffix('/')
            .map_or((false, pattern), |rest| (true, rest));
        let (base_only, pattern) = match pattern.strip_prefix('/') {
            Some(rest) => (false, rest),
            None => (!pattern.contains('/'), pattern),
        };
        self.0.push(Rule {
            pattern: pattern.to_owned(),
            literal: pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len()),
            negated,
            folders_only,
            base_only,
        });
        Ok(())
    }

    pub fn ignore(&self, path: &str, folder: bool) -> bool {
        for rule in &self.0 {
            let subject = if rule.base_only {
                path.rsplit('/').next().unwrap_or(path)
            } else {
                path
            };
            // Most paths do not even begin as the pattern does.
            let hit = || {
                subject.starts_with(&rule.pattern[..rule.literal])
                    && matches(&rule.pattern, subject).unwrap_or(false)
            };
            if rule.negated {
                if (rule.folders_only && !folder) || !hit() {
                    return true;
                }
            } else if (folder || !rule.folders_only) && hit() {
                return true;
            }
        }
        false
    }
}
