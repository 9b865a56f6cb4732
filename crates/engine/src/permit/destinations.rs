//! Destinations that a project permits and rejects, as a table.

use super::destination;
use crate::base::{DestinationRule, ProjectRules};

const OWN: &str = "https://kubernetes.default.svc";
const PROD: &str = "https://prod.example:6443";

/// `server|name|namespace`, separated by blanks.
fn project(rules: &str) -> ProjectRules {
    let rule = |text: &str| {
        let mut fields = text.split('|').map(str::to_owned);
        let mut next = || fields.next().expect("three fields");
        DestinationRule {
            server: next(),
            name: next(),
            namespace: next(),
        }
    };
    ProjectRules {
        cluster_permitted: true,
        destinations: rules.split_whitespace().map(rule).collect(),
        ..ProjectRules::default()
    }
}

/// Rules, and each `cluster/namespace` that they permit and that they reject; `own` is in-cluster.
const TABLE: &[(&str, &str, &str)] = &[
    ("", "", "own/a prod/a"),
    // 16-deny-destination.
    (
        "*||yard-ok *||!vault *||!argocd",
        "own/yard-ok prod/yard-ok",
        "own/yard-other own/vault own/argocd prod/vault own/",
    ),
    (
        "*||!vault *||yard-ok",
        "own/yard-ok",
        "own/yard-other own/vault",
    ),
    ("*||!vault", "", "own/a own/vault prod/a"),
    ("!https://elsewhere||*", "", "own/a prod/a"),
    ("!https://elsewhere||*  *||*", "own/a prod/a", ""),
    // By server, by name, by both: the rule applies to the cluster, whichever the Application uses.
    (
        "|in-cluster|!kube-system |in-cluster|*",
        "own/a",
        "own/kube-system prod/a prod/kube-system",
    ),
    (
        "|in-cluster|!kube-system *||*",
        "own/a prod/kube-system prod/a",
        "own/kube-system",
    ),
    (
        "https://kubernetes.default.svc||!kube-system |*|*",
        "own/a prod/kube-system",
        "own/kube-system",
    ),
    (
        "https://kubernetes.default.svc/||!kube-system |*|*",
        "own/a prod/kube-system",
        "own/kube-system",
    ),
    (
        "https://nowhere|in-cluster|!kube-system *||*",
        "own/a prod/kube-system",
        "own/kube-system",
    ),
    ("|!prod|* *||*", "own/a", "prod/a prod/b"),
    ("*|!prod|* *||*", "own/a", "prod/a"),
    ("|!prod| *||*", "own/a", "prod/a"),
    ("!https://prod*||* |*|*", "own/a", "prod/a"),
    ("!https://prod*|| |*|*", "own/a", "prod/a"),
    ("!https://prod*|in-cluster|* |*|*", "own/a", "prod/a"),
    (
        "!https://prod*||payments |*|*",
        "own/payments prod/a",
        "prod/payments",
    ),
    ("|!pro?|pay* |*|*", "own/payments prod/a", "prod/payments"),
    // A rule with two negations rejects what either of them matches.
    (
        "!https://prod*||!vault *||*",
        "own/a",
        "prod/a prod/vault own/vault",
    ),
    ("|!prod|!vault *||*", "own/a", "prod/a prod/vault own/vault"),
    ("!https://prod*|!in-cluster|* *||*", "", "own/a prod/a"),
    // A denial without a cluster applies to all clusters.
    ("||!vault *||*", "own/a prod/a", "own/vault prod/vault"),
    ("||yard-ok", "", "own/yard-ok"),
    // A denial wins at any position, however general it is.
    ("*||* *||!*", "", "own/a prod/a own/"),
    ("!*||* *||*", "", "own/a prod/a"),
    (
        "*||team-* *||!team-secret*",
        "own/team-a",
        "own/team-secret own/team-secrets own/a",
    ),
    ("*||!{vault,argocd} *||*", "own/a", "own/vault own/argocd"),
    (
        "*||!kube-* *||*",
        "own/kube own/a",
        "own/kube-system prod/kube-public",
    ),
    // An invalid pattern permits nothing and denies everything.
    ("*||[a", "", "own/a own/[a"),
    ("*||![a *||*", "", "own/a prod/b"),
    ("![a||* *||*", "", "own/a"),
    // Rules without `!`.
    ("*||*", "own/a own/ prod/a", ""),
    ("|prod|*", "prod/a", "own/a"),
    ("https://prod.example:6443||a", "prod/a", "prod/b own/a"),
    ("*||", "own/", "own/a"),
];

#[test]
fn a_destination_needs_a_permission_and_no_denial() {
    let mut cases = 0;
    for (rules, yes, no) in TABLE {
        let project = project(rules);
        let expected = yes
            .split_whitespace()
            .map(|p| (p, true))
            .chain(no.split_whitespace().map(|p| (p, false)));
        for (place, expected) in expected {
            let (cluster, namespace) = place.split_once('/').expect("a cluster and a namespace");
            let (server, name) = if cluster == "own" {
                (OWN, "in-cluster")
            } else {
                (PROD, "prod")
            };
            assert_eq!(
                destination(&project, server, name, namespace),
                expected,
                "{rules} for {place}"
            );
            cases += 1;
        }
    }
    assert!(cases >= 80, "{cases}");
}
