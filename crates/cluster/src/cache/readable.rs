//! Which parts of a cluster can be read. An error never means "empty".
//!
//! Main types: [`Known`], the resources whose kinds a reader needs, and [`Unreadable`], the error
//! if some of them cannot be read.

use super::feed::Scope;
use crate::error::Error;
use std::{collections::BTreeMap, fmt, time::Duration};
use tiphys_apimachinery::{GroupKind, ResourceKey};
use tokio::time::Instant;

/// How long to wait for a first list after a temporary failure.
const PATIENCE: Duration = Duration::from_secs(3);
/// A listed collection counts as current for this long after its watch failed, because API servers
/// restart.
const STALE: Duration = Duration::from_secs(30);

/// Kinds that a brief text names.
const BRIEF: usize = 3;

/// The state of one collection of a kind.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    /// Its first list has not been answered.
    Pending,
    Current,
    Failed {
        why: String,
        since: Instant,
        /// It was listed once; its objects are as old as `since`.
        listed: bool,
        /// The failure is temporary: the same request may succeed at the next attempt.
        may_pass: bool,
    },
}

/// The collections in which a kind is watched. Empty: it is not watched.
#[derive(Default)]
pub(super) struct Readings(Vec<(Scope, Reading)>);

impl Readings {
    pub fn begin(&mut self, scopes: &[Scope]) {
        self.0 = scopes
            .iter()
            .map(|scope| (scope.clone(), Reading::Pending))
            .collect();
    }

    pub fn end(&mut self) {
        self.0.clear();
    }

    fn of(&mut self, scope: &Scope) -> Option<&mut Reading> {
        self.0
            .iter_mut()
            .find(|(own, _)| own == scope)
            .map(|(_, reading)| reading)
    }

    pub fn succeeded(&mut self, scope: &Scope) {
        if let Some(reading) = self.of(scope) {
            *reading = Reading::Current;
        }
    }

    /// A watch of a collection continues. If the collection was never listed, the watch alone is
    /// incomplete.
    pub fn goes_on(&mut self, scope: &Scope) {
        if let Some(reading @ Reading::Failed { listed: true, .. }) = self.of(scope) {
            *reading = Reading::Current;
        }
    }

    pub fn failed(&mut self, scope: &Scope, error: &Error) {
        let Some(reading) = self.of(scope) else {
            return;
        };
        let (since, listed) = match reading {
            Reading::Failed { since, listed, .. } => (*since, *listed),
            Reading::Current => (Instant::now(), true),
            Reading::Pending => (Instant::now(), false),
        };
        *reading = Reading::Failed {
            why: error.to_string(),
            since,
            listed,
            may_pass: error.retryable(),
        };
    }

    /// Whether every collection was listed at least once.
    pub fn is_listed(&self) -> bool {
        let listed = |(_, reading): &(Scope, Reading)| {
            matches!(
                reading,
                Reading::Current | Reading::Failed { listed: true, .. }
            )
        };
        !self.0.is_empty() && self.0.iter().all(listed)
    }

    /// Whether more may become known in a moment.
    pub fn is_unsettled(&self, within: &Within) -> bool {
        self.0
            .iter()
            .filter(|(scope, _)| within.meets(scope))
            .any(|(_, reading)| match reading {
                Reading::Pending => true,
                Reading::Current => false,
                Reading::Failed {
                    since,
                    listed,
                    may_pass,
                    ..
                } => !listed && *may_pass && since.elapsed() < PATIENCE,
            })
    }

    /// The last error of a collection.
    pub fn error(&self) -> Option<&str> {
        self.0.iter().find_map(|(_, reading)| {
            if let Reading::Failed { why, .. } = reading {
                Some(why.as_str())
            } else {
                None
            }
        })
    }

    /// Why the known objects of the kind are incomplete, unless it is just being listed.
    pub fn lasting(&self) -> Option<&str> {
        self.0.iter().find_map(|(_, reading)| match reading {
            Reading::Failed {
                why, since, listed, ..
            } if !listed || since.elapsed() > STALE => Some(why.as_str()),
            _ => None,
        })
    }

    /// Why the known objects of the kind are incomplete.
    pub fn unreadable(&self, within: &Within) -> Option<String> {
        self.0
            .iter()
            .filter(|(scope, _)| within.meets(scope))
            .find_map(|(_, reading)| match reading {
                Reading::Pending => Some("it has not been listed yet".to_owned()),
                Reading::Failed {
                    why, since, listed, ..
                } if !listed || since.elapsed() > STALE => Some(why.clone()),
                _ => None,
            })
    }
}

/// The resources whose kinds a reader needs, in addition to those that it requests.
#[derive(Clone, Debug)]
pub enum Known {
    /// Resources that the Application is known to have, or to have had.
    Resources(Vec<ResourceKey>),
    /// Nothing is known about it: it may have objects of any kind.
    Nothing,
}

/// The namespaces of a kind that a reader needs.
pub(super) enum Within {
    All,
    Namespaces(Vec<String>),
}

impl Within {
    fn meets(&self, scope: &Scope) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(names) => names.iter().any(|name| scope.has(name)),
        }
    }

    /// The namespaces needed per kind, for all of these resources.
    pub fn of<'a>(keys: impl Iterator<Item = &'a ResourceKey>) -> BTreeMap<GroupKind, Self> {
        let mut needed: BTreeMap<GroupKind, Vec<String>> = BTreeMap::new();
        let mut last: Option<&ResourceKey> = None;
        for key in keys {
            let same = |last: &ResourceKey| {
                last.kind == key.kind && last.group == key.group && last.namespace == key.namespace
            };
            if last.replace(key).is_some_and(same) {
                continue;
            }
            let namespaces = needed.entry(key.group_kind()).or_default();
            if !namespaces.contains(&key.namespace) {
                namespaces.push(key.namespace.clone());
            }
        }
        needed
            .into_iter()
            .map(|(kind, namespaces)| (kind, Self::Namespaces(namespaces)))
            .collect()
    }
}

/// Kinds that could not be read, each with the reason; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unreadable(BTreeMap<GroupKind, String>);

impl Unreadable {
    /// The value, if everything could be read.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }

    /// One kind, by group and name.
    pub fn of((group, kind): (&str, &str), why: &str) -> Self {
        Self(BTreeMap::from([(
            GroupKind::new(group, kind),
            why.to_owned(),
        )]))
    }

    pub(super) fn none() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn add(&mut self, kind: GroupKind, why: String) {
        self.0.entry(kind).or_insert(why);
    }

    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.0.keys()
    }
}

impl Unreadable {
    /// The first of them, and the number of others.
    pub fn brief(&self) -> String {
        let first = Self(
            self.0
                .iter()
                .take(BRIEF)
                .map(|(kind, why)| (kind.clone(), why.clone()))
                .collect(),
        );
        let others = self.0.len().saturating_sub(BRIEF);
        if others == 0 {
            first.to_string()
        } else {
            format!("{first}; and {others} more")
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (GroupKind { group, kind }, why)) in self.0.iter().enumerate() {
            let (and, dot) = (
                if number == 0 { "" } else { "; " },
                if group.is_empty() { "" } else { "." },
            );
            write!(
                f,
                "{and}failed to load state of resource {kind}{dot}{group}: {why}"
            )?;
        }
        Ok(())
    }
}

/// The CRD or API service that defines something in a group that is not served. `served` are the
/// plurals that are.
pub(super) fn unserved<'a>(
    group: &str,
    served: &[&str],
    crds: &[&'a str],
    services: &[&'a str],
) -> Option<&'a str> {
    let of_group = |name: &'a str| {
        name.strip_suffix(group)?
            .strip_suffix('.')
            .filter(|rest| !rest.contains('.'))
    };
    let crd = crds
        .iter()
        .find(|name| of_group(name).is_some_and(|plural| !served.contains(&plural)));
    crd.or_else(|| {
        services
            .iter()
            .find(|name| served.is_empty() && of_group(name).is_some())
    })
    .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiError;

    fn refusal(code: u16, message: &str) -> Error {
        Error::Api(ApiError {
            code,
            message: message.to_owned(),
            ..ApiError::default()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_may_pass_is_worth_waiting_for() {
        let mut readings = Readings::default();
        readings.begin(&[Scope::All]);
        assert!(readings.is_unsettled(&Within::All));
        readings.failed(&Scope::All, &refusal(403, "no"));
        assert!(!readings.is_unsettled(&Within::All));
        readings.failed(&Scope::All, &refusal(503, "away"));
        assert!(readings.is_unsettled(&Within::All));
        tokio::time::advance(PATIENCE).await;
        readings.failed(&Scope::All, &refusal(503, "still away"));
        assert!(!readings.is_unsettled(&Within::All), "not for ever");
    }

    #[test]
    fn a_brief_text_names_the_first_few() {
        let mut unreadable = Unreadable::of(("", "Secret"), "no");
        assert_eq!(
            unreadable.brief(),
            "failed to load state of resource Secret: no"
        );
        for kind in ["A", "B", "C", "D"] {
            unreadable.add(GroupKind::new("example.org", kind), "away".to_owned());
        }
        let text = unreadable.brief();
        assert!(
            text.starts_with("failed to load state of resource Secret: no; ")
                && text.ends_with("B.example.org: away; and 2 more"),
            "{text}"
        );
    }

    #[test]
    fn what_is_defined_and_not_served_is_not_gone() {
        let crds = [
            "widgets.example.org",
            "gadgets.example.org",
            "widgets.more.example.org",
        ];
        let services = ["v1.example.org", "v1beta1.metrics.k8s.io", "v1."];
        let unserved =
            |group: &str, served: &[&str]| super::unserved(group, served, &crds, &services);
        assert_eq!(
            unserved("example.org", &["widgets", "gadgets"]),
            None,
            "the kind was of another definition, which is gone"
        );
        assert_eq!(
            unserved("example.org", &["widgets"]),
            Some("gadgets.example.org")
        );
        assert_eq!(
            unserved("metrics.k8s.io", &[]),
            Some("v1beta1.metrics.k8s.io")
        );
        assert_eq!(unserved("metrics.k8s.io", &["pods"]), None);
        assert_eq!(unserved("org", &[]), None);
    }

    #[test]
    fn one_collection_that_is_read_does_not_speak_for_another() {
        let (own, others) = (Scope::In("own".into()), Scope::AllBut(vec!["own".into()]));
        let mut readings = Readings::default();
        readings.begin(&[own.clone(), others.clone()]);
        let within = |name: &str| Within::Namespaces(vec![name.to_owned()]);
        readings.failed(&others, &refusal(403, "forbidden"));
        readings.succeeded(&own);
        assert!(!readings.is_listed());
        assert_eq!(readings.unreadable(&within("own")), None);
        assert_eq!(
            readings.unreadable(&within("else")).as_deref(),
            Some("forbidden")
        );
        assert_eq!(
            readings.unreadable(&Within::All).as_deref(),
            Some("forbidden")
        );
        // A watch without a list only knows about changes.
        readings.goes_on(&others);
        assert_eq!(readings.error(), Some("forbidden"));
        readings.succeeded(&others);
        assert_eq!(
            (readings.is_listed(), readings.unreadable(&Within::All)),
            (true, None)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_is_good_for_a_while() {
        let mut readings = Readings::default();
        readings.begin(&[Scope::All]);
        readings.succeeded(&Scope::All);
        readings.failed(&Scope::All, &refusal(500, "away"));
        tokio::time::advance(STALE).await;
        assert_eq!(readings.unreadable(&Within::All), None);
        readings.failed(&Scope::All, &refusal(500, "still away"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(
            readings.unreadable(&Within::All).as_deref(),
            Some("still away")
        );
        readings.goes_on(&Scope::All);
        assert_eq!(readings.unreadable(&Within::All), None);
    }
}
