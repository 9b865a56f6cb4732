//! What a project and the settings permit, checked per object.
//!
//! It must not know where the rules come from.

use crate::{
    base::{DestinationRule, ExclusionRule, KindRule, ProjectRules},
    pattern::{glob, path_match},
    rules::CompareRules,
};
use tiphys_apimachinery::{GroupKind, Kept};
use tiphys_gocompat::glob::Glob;

/// Whether the project permits a kind (and, for cluster-scoped objects, a name).
pub fn kind(project: &ProjectRules, gk: &GroupKind, name: &str, namespaced: bool) -> bool {
    if namespaced {
        let listed = |rules: &[KindRule]| rules.iter().any(|r| kind_matches(r, gk));
        project.namespace_whitelist.as_deref().is_none_or(listed)
            && !listed(&project.namespace_blacklist)
    } else {
        let listed = |rules: &[KindRule]| {
            rules
                .iter()
                .any(|r| kind_matches(r, gk) && (r.name.is_empty() || path_match(&r.name, name)))
        };
        listed(&project.cluster_whitelist) && !listed(&project.cluster_blacklist)
    }
}

/// Whether the project permits managing this live object: its kind, and its namespace.
pub fn live(rules: &CompareRules, object: &Kept) -> bool {
    resource(
        rules,
        object.group(),
        object.kind(),
        object.namespace(),
        object.name(),
    )
}

/// Like [`live`], by names alone.
pub fn resource(
    rules: &CompareRules,
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> bool {
    self::kind(
        &rules.project,
        &GroupKind::new(group, kind),
        name,
        !namespace.is_empty(),
    ) && (namespace.is_empty()
        || destination(
            &rules.project,
            &rules.dest_server,
            &rules.dest_name,
            namespace,
        ))
}

/// Whether the project permits a destination: some rule without `!` permits it, and no rule with
/// `!` rejects it. `server` and `name` are those of the cluster that the destination resolves to,
/// whichever of them the Application uses.
pub fn destination(project: &ProjectRules, server: &str, name: &str, namespace: &str) -> bool {
    let place = Place {
        server,
        name,
        namespace,
    };
    let mut permitted = false;
    for rule in &project.destinations {
        match place.verdict(rule) {
            RuleEffect::Permits => permitted = true,
            RuleEffect::Rejects => return false,
            RuleEffect::Nothing => {}
        }
    }
    permitted && project.cluster_permitted
}

enum RuleEffect {
    Permits,
    Rejects,
    Nothing,
}

/// A namespace of a cluster, as rules see it.
struct Place<'a> {
    server: &'a str,
    name: &'a str,
    namespace: &'a str,
}

impl Place<'_> {
    /// A rule with a `!` anywhere only rejects. A field that such a rule leaves out does not narrow
    /// it: no namespace means every namespace, and no cluster means every cluster.
    fn verdict(&self, rule: &DestinationRule) -> RuleEffect {
        let denied =
            |pattern: &str, text: &str| pattern.strip_prefix('!').is_some_and(|p| rejects(p, text));
        let negated = |pattern: &str| pattern.starts_with('!');
        let (server_rule, own) = (
            rule.server.trim_end_matches('/'),
            self.server.trim_end_matches('/'),
        );
        let cluster_negated = negated(server_rule) || negated(&rule.name);
        if !cluster_negated && !negated(&rule.namespace) {
            let here = (!own.is_empty() && permits(server_rule, own))
                || (!self.name.is_empty() && permits(&rule.name, self.name));
            return if here && permits(&rule.namespace, self.namespace) {
                RuleEffect::Permits
            } else {
                RuleEffect::Nothing
            };
        }
        let cluster_denied = denied(server_rule, own) || denied(&rule.name, self.name);
        let rejected = if negated(&rule.namespace) {
            let everywhere = cluster_negated || (server_rule.is_empty() && rule.name.is_empty());
            let here = everywhere
                || rejects_given(server_rule, own)
                || rejects_given(&rule.name, self.name);
            cluster_denied || (here && denied(&rule.namespace, self.namespace))
        } else {
            cluster_denied
                && (rule.namespace.is_empty() || rejects(&rule.namespace, self.namespace))
        };
        if rejected {
            RuleEffect::Rejects
        } else {
            RuleEffect::Nothing
        }
    }
}

fn permits(pattern: &str, text: &str) -> bool {
    pattern == "*" || glob(pattern, text)
}

/// Like [`permits`], in a rule that rejects: an invalid pattern may have meant anything, so it
/// rejects everything.
fn rejects(pattern: &str, text: &str) -> bool {
    pattern == "*" || Glob::new(pattern, &[]).map_or(true, |pattern| pattern.matches(text))
}

fn rejects_given(pattern: &str, text: &str) -> bool {
    !pattern.is_empty() && rejects(pattern, text)
}

/// Whether a list permits a text: some pattern without `!` matches it, and no pattern with `!`
/// does. `fits` returns `None` for an invalid pattern: it permits nothing, and denies everything.
pub fn listed<'a>(
    patterns: impl IntoIterator<Item = &'a String>,
    fits: impl Fn(&str) -> Option<bool>,
) -> bool {
    let mut permitted = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(denied) if fits(denied).unwrap_or(true) => return false,
            Some(_) => {}
            None => permitted |= fits(pattern).unwrap_or(false),
        }
    }
    permitted
}

/// Whether the settings exclude a kind on a cluster. Exclusions take precedence over inclusions. If
/// there are inclusions for the cluster, all other kinds are excluded.
pub fn is_excluded(rules: &CompareRules, gk: &GroupKind) -> bool {
    excluded(&rules.exclusions, &rules.inclusions, gk, &rules.dest_server)
}

/// Like [`is_excluded`], for callers without comparison rules.
pub fn excluded(
    exclusions: &[ExclusionRule],
    inclusions: &[ExclusionRule],
    gk: &GroupKind,
    cluster: &str,
) -> bool {
    let for_cluster =
        |r: &&ExclusionRule| r.clusters.is_empty() || r.clusters.iter().any(|c| glob(c, cluster));
    let named = |r: &ExclusionRule| {
        (r.api_groups.is_empty() || r.api_groups.iter().any(|g| glob(g, &gk.group)))
            && (r.kinds.is_empty() || r.kinds.iter().any(|k| k == "*" || *k == gk.kind))
    };
    if never_managed(gk) || exclusions.iter().filter(for_cluster).any(named) {
        return true;
    }
    let mut included = inclusions.iter().filter(for_cluster).peekable();
    included.peek().is_some() && !included.any(named)
}

/// Kinds that change constantly and that no one keeps in Git.
fn never_managed(gk: &GroupKind) -> bool {
    matches!(gk.group.as_str(), "events.k8s.io" | "metrics.k8s.io")
        || (gk.group.is_empty() && gk.kind == "Event")
        || (gk.group == "coordination.k8s.io" && gk.kind == "Lease")
}

fn kind_matches(rule: &KindRule, gk: &GroupKind) -> bool {
    path_match(&rule.kind, &gk.kind) && path_match(&rule.group, &gk.group)
}

#[cfg(test)]
mod destinations;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &str, kind: &str, name: &str) -> KindRule {
        KindRule {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
        }
    }

    fn to(server: &str, namespace: &str) -> DestinationRule {
        DestinationRule {
            server: server.into(),
            name: String::new(),
            namespace: namespace.into(),
        }
    }

    #[test]
    fn lists_of_kinds() {
        let mut project = ProjectRules::default();
        let (deployment, namespace) = (
            GroupKind::new("apps", "Deployment"),
            GroupKind::new("", "Namespace"),
        );
        assert!(
            kind(&project, &deployment, "web", true),
            "no whitelist permits namespaced kinds"
        );
        assert!(
            !kind(&project, &namespace, "web", false),
            "no whitelist permits no cluster-scoped kind"
        );
        project.namespace_whitelist = Some(Vec::new());
        assert!(!kind(&project, &deployment, "web", true));
        project.namespace_whitelist = Some(vec![rule("*", "*", "")]);
        project.namespace_blacklist = vec![rule("apps", "Dep*", "")];
        assert!(!kind(&project, &deployment, "web", true));
        project.cluster_whitelist = vec![rule("", "Namespace", "team-*")];
        assert!(
            kind(&project, &namespace, "team-a", false)
                && !kind(&project, &namespace, "other", false)
        );
    }

    #[test]
    fn destinations_and_denials() {
        let mut project = ProjectRules {
            cluster_permitted: true,
            ..ProjectRules::default()
        };
        let s = "https://kubernetes.default.svc";
        assert!(!destination(&project, s, "", "default"));
        project.destinations = vec![to("*", "team-*"), to("*", "!team-secret")];
        assert!(destination(&project, s, "", "team-a"));
        assert!(!destination(&project, s, "", "team-secret"));
        project.cluster_permitted = false;
        assert!(!destination(&project, s, "", "team-a"));
    }

    #[test]
    fn a_list_permits_what_one_names_and_none_denies() {
        let permits = |patterns: &[&str], text: &str| {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            listed(&patterns, |pattern| {
                (pattern != "broken").then(|| pattern == "*" || pattern == text)
            })
        };
        let (both, not_b) = (["a", "b"], ["*", "!b"]);
        assert_eq!(
            ["a", "b", "c"].map(|text| permits(&both, text)),
            [true, true, false]
        );
        assert_eq!(["a", "b"].map(|text| permits(&not_b, text)), [true, false]);
        assert_eq!(
            ["a", "b"].map(|text| permits(&["!b", "*"], text)),
            [true, false],
            "in any order"
        );
        assert!(
            !permits(&[], "a") && !permits(&["!b"], "a"),
            "nothing names it"
        );
        assert!(
            !permits(&["broken"], "a") && permits(&["a", "broken"], "a"),
            "what cannot be read permits nothing"
        );
        assert!(!permits(&["a", "!broken"], "a"), "and denies everything");
    }

    #[test]
    fn exclusions_and_inclusions() {
        let of = |groups: &[&str], kinds: &[&str], clusters: &[&str]| {
            let list = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
            ExclusionRule {
                api_groups: list(groups),
                kinds: list(kinds),
                clusters: list(clusters),
            }
        };
        let gk = GroupKind::new("apps", "Deployment");
        assert!(!excluded(&[], &[], &gk, "c"));
        assert!(excluded(&[of(&["apps"], &["*"], &["c"])], &[], &gk, "c"));
        assert!(!excluded(&[of(&["apps"], &["*"], &["d"])], &[], &gk, "c"));
        assert!(excluded(&[], &[of(&[""], &[], &[])], &gk, "c"));
        assert!(!excluded(&[], &[of(&["apps"], &[], &[])], &gk, "c"));
        assert!(excluded(
            &[of(&["apps"], &[], &[])],
            &[of(&["apps"], &[], &[])],
            &gk,
            "c"
        ));
        let never = [
            ("", "Event"),
            ("events.k8s.io", "Event"),
            ("metrics.k8s.io", "PodMetrics"),
            ("coordination.k8s.io", "Lease"),
        ];
        assert!(never.iter().all(|(group, kind)| excluded(
            &[],
            &[],
            &GroupKind::new(group, kind),
            "c"
        )));
        let others = [
            ("example.org", "Event"),
            ("", "Lease"),
            ("coordination.k8s.io", "LeaseCandidate"),
        ];
        assert!(!others.iter().any(|(group, kind)| excluded(
            &[],
            &[],
            &GroupKind::new(group, kind),
            "c"
        )));
    }
}
