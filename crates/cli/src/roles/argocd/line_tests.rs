//! Command lines and variables as upstream Argo CD parses them.

use super::{super::controller_flags::CONTROLLER, *};

fn read_with(words: &[&str], variables: &[(&str, &str)]) -> Result<Said, String> {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    let of = |name: &str| {
        variables
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| (*value).to_owned())
    };
    match read(&CONTROLLER, &words, of)? {
        Line::Run(said) => Ok(said),
        Line::Help => Err("help".to_owned()),
    }
}

#[test]
fn without_a_word_the_neighbours_are_argo_cds() {
    let said = read_with(
        &[],
        &[
            ("REDIS_SERVER", ""),
            ("ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CA_CERT_PATH", ""),
        ],
    )
    .expect("valid");
    assert_eq!(
        said.words(),
        [
            "--repo-server=argocd-repo-server:8081",
            "--commit-server=argocd-commit-server:8086",
            "--redis=argocd-redis:6379"
        ]
    );
    assert_eq!(
        (said.overrides(), said.without_effect(), said.refused()),
        (SettingsOverrides::default(), vec![], None)
    );
}

#[test]
fn flags_win_over_variables() {
    let words = [
        "--repo-server",
        "r:1",
        "--redis=",
        "-n",
        "cd",
        "--repo-server-plaintext",
        "--application-namespaces=a,b",
        "--application-namespaces",
        "c",
        "--app-resync",
        "30",
        "ignored",
        "--kubectl-parallelism-limit=5",
        "--loglevel=debug",
        "--loglevel",
        "warn",
        "--",
        "--bogus",
    ];
    let variables = [
        ("ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER", "r:2"),
        ("REDIS_SERVER", "redis:2"),
        ("ARGOCD_APPLICATION_NAMESPACES", "x"),
        ("ARGOCD_RECONCILIATION_TIMEOUT", "3m"),
        ("ARGOCD_RECONCILIATION_JITTER", "2d"),
        (
            "ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_TIMEOUT_SECONDS",
            "7",
        ),
        (
            "ARGOCD_APPLICATION_CONTROLLER_PERSIST_RESOURCE_HEALTH",
            "TRUE",
        ),
        ("ARGOCD_CONTROLLER_REPLICAS", "3"),
        ("ARGOCD_CONTROLLER_SHARDING_ALGORITHM", "round-robin"),
        (
            "ARGOCD_APPLICATION_CONTROLLER_METRICS_CLUSTER_LABELS",
            "a, b",
        ),
        ("ARGOCD_K8S_CLIENT_QPS", "50"),
    ];
    let said = read_with(&words, &variables).expect("valid");
    assert_eq!(
        said.words(),
        [
            "--repo-server=r:1",
            "--commit-server=argocd-commit-server:8086",
            "--metrics-cluster-labels=a,b",
            "--application-namespaces=a,b,c",
            "--sharding-method=round-robin",
            "--replicas=3",
            "--repo-server-plaintext=true",
            "--namespace=cd",
        ]
    );
    let overrides = said.overrides();
    let texts = |map: &BTreeMap<String, String>| {
        map.iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&overrides.config),
        [
            "timeout.reconciliation=30s",
            "timeout.reconciliation.jitter=172800s"
        ]
    );
    assert_eq!(
        texts(&overrides.params),
        [
            "controller.resource.health.persist=true",
            "controller.self.heal.timeout.seconds=7"
        ]
    );
    assert_eq!(
        said.without_effect(),
        ["kubectl-parallelism-limit", "ARGOCD_K8S_CLIENT_QPS"]
    );
    assert_eq!(said.text("loglevel").as_deref(), Some("warn"));
}

#[test]
fn a_broken_variable_counts_for_nothing() {
    let variables = [
        ("ARGOCD_RECONCILIATION_TIMEOUT", "often"),
        ("ARGOCD_APPLICATION_CONTROLLER_STATUS_PROCESSORS", "-3"),
        ("ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_PLAINTEXT", "1"),
    ];
    let said = read_with(&[], &variables).expect("valid");
    assert_eq!(
        (said.overrides(), said.words().len(), said.broken.len()),
        (SettingsOverrides::default(), 3, 3),
        "{:?}",
        said.broken
    );
}

#[test]
fn a_broken_flag_is_told_as_cobra_tells_it() {
    for (words, expected) in [
        (&["--bogus"][..], "unknown flag: --bogus"),
        (&["--bogus=1"], "unknown flag: --bogus"),
        (&["-x"], "unknown shorthand flag: 'x' in -x"),
        (&["--=a"], "bad flag syntax: --=a"),
        (&["--redis"], "flag needs an argument: --redis"),
        (&["-n"], "flag needs an argument: 'n' in -n"),
        (
            &["--redisdb", "a"],
            "invalid argument \"a\" for \"--redisdb\" flag: strconv.ParseInt: parsing \"a\": invalid syntax",
        ),
        (
            &["--redis-use-tls=maybe"],
            "invalid argument \"maybe\" for \"--redis-use-tls\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        ),
        (
            &["--metrics-cache-expiration", "a"],
            "invalid argument \"a\" for \"--metrics-cache-expiration\" flag: time: invalid duration \"a\"",
        ),
        (
            &["--otlp-headers", "a"],
            "invalid argument \"a\" for \"--otlp-headers\" flag: a must be formatted as key=value",
        ),
        (&["-h"], "help"),
    ] {
        assert_eq!(read_with(words, &[]).err().as_deref(), Some(expected));
    }
}

#[test]
fn what_would_matter_is_refused() {
    assert_eq!(
        read_with(&["--proxy-url", "http://p"], &[])
            .expect("valid")
            .refused(),
        Some("proxy-url")
    );
}

#[test]
fn the_flags_are_told_with_their_variables() {
    let usage = usage(&CONTROLLER);
    for line in [
        "  -n, --namespace string\n",
        "      --redis string (default argocd-redis:6379) [$REDIS_SERVER]\n",
        "      --operation-processors int (default 10) [$ARGOCD_APPLICATION_CONTROLLER_OPERATION_PROCESSORS] (no effect)\n",
    ] {
        assert!(usage.contains(line), "{usage}");
    }
}
