//! Health of custom kinds, written as rules: one file in `data/` for each API group or a few
//! related ones.
//!
//! Main function: [`judge`]. The language is described in docs/guide/health-rules.md; [`parse`] and
//! [`expr`] parse it into [`syntax`], [`eval`] applies it. Every status and message is that of Argo
//! CD 3.6. Kinds that need code are in `super::kinds`.

mod eval;
mod expr;
mod parse;
mod syntax;
mod value;

use crate::types::Health;
use parse::{KindRules, RuleError};
use std::{collections::HashMap, sync::LazyLock};
use syntax::Statement;
use tiphys_apimachinery::Object;

/// The names of the files, passed to a macro that reads them.
macro_rules! families {
    ($read:ident) => {
        $read![
            "3scale",
            "airlock",
            "altinity",
            "ansible",
            "argo",
            "aws",
            "cert-manager",
            "cluster-api",
            "crossplane",
            "databases",
            "elastic",
            "flux",
            "gateway-api",
            "google",
            "humio",
            "kafka",
            "knative",
            "kruise",
            "kubernetes",
            "mariadb",
            "netapp",
            "networking",
            "numaproj",
            "observability",
            "open-cluster-management",
            "openshift",
            "platform",
            "promoter",
            "rabbitmq",
            "security",
            "storage",
            "virtualization",
        ]
    };
}

macro_rules! rules_files {
    ($($name:literal),* $(,)?) => {
        [$((concat!($name, ".health"), include_str!(concat!("data/", $name, ".health")))),*]
    };
}

/// Rules that the files share.
const COMMON: (&str, &str) = ("common.health", include_str!("data/common.health"));

/// The files with their content.
const FILES: &[(&str, &str)] = &families!(rules_files);

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    Known::read(FILES).expect("the files are part of the program, and a test reads them")
});

/// The result of the rules for an object; `None` for kinds without rules. Some objects of a kind
/// with rules have no health either.
pub fn judge(live: &Object) -> Option<Option<Health>> {
    KNOWN
        .rules_of(live.group(), live.kind())
        .map(|rules| eval::judge(rules, &live.0))
}

/// Whether there are rules for the kind.
pub fn knows(group: &str, kind: &str) -> bool {
    KNOWN.rules_of(group, kind).is_some()
}

/// All rules, by the kinds that they are for.
#[derive(Debug, Default)]
struct Known {
    rules: Vec<Vec<Statement>>,
    /// Kind and group, with the index in `rules`.
    exact: HashMap<String, Vec<(String, usize)>>,
    /// Group or `*` with a suffix, and the index in `rules`: for all kinds of these groups that
    /// have no rules of their own.
    groups: Vec<(String, usize)>,
}

impl Known {
    fn read(files: &[(&str, &str)]) -> Result<Self, RuleError> {
        let common = parse::shared(COMMON.0, COMMON.1)?;
        let mut known = Self::default();
        for (name, text) in files {
            for KindRules { kinds, rules } in parse::parse(name, text, &common)? {
                for (group, kind) in kinds {
                    if kind == "*" {
                        known.groups.push((group, known.rules.len()));
                    } else {
                        known
                            .exact
                            .entry(kind)
                            .or_default()
                            .push((group, known.rules.len()));
                    }
                }
                known.rules.push(rules);
            }
        }
        Ok(known)
    }

    fn rules_of(&self, group: &str, kind: &str) -> Option<&[Statement]> {
        let exact = self
            .exact
            .get(kind)
            .and_then(|groups| groups.iter().find(|(name, _)| name == group));
        let found = exact.or_else(|| {
            self.groups
                .iter()
                .find(|(pattern, _)| covers(pattern, group))
        });
        found.map(|(_, at)| self.rules[*at].as_slice())
    }
}

/// Whether a group equals the pattern, or ends with it if the pattern begins with `*`.
fn covers(pattern: &str, group: &str) -> bool {
    pattern
        .strip_prefix('*')
        .map_or(group == pattern, |end| group.ends_with(end))
}

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
