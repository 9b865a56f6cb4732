//! Equivalent URLs, rejected URLs, and what credential templates apply to.

use super::{RepoUrl, UrlFault, canonical_pattern};
use crate::access::best_template;

fn canonical(url: &str) -> Result<String, UrlFault> {
    RepoUrl::parse(url).map(|u| u.canonical())
}

#[test]
fn one_spelling() {
    for (url, want) in [
        (
            "https://Git.Example/Team/App.git",
            "https://git.example/team/app",
        ),
        (
            "https://git.example/team/app/",
            "https://git.example/team/app",
        ),
        (
            "https://git.example:443/team/app",
            "https://git.example/team/app",
        ),
        (
            "https://git.example./team/app",
            "https://git.example/team/app",
        ),
        (
            "https://me:secret@git.example/team/app",
            "https://git.example/team/app",
        ),
        (
            "https://git.example//team///app",
            "https://git.example/team/app",
        ),
        (
            "https://git.example/%74eam/app",
            "https://git.example/team/app",
        ),
        (
            "https://git.example/my%20team/app",
            "https://git.example/my team/app",
        ),
        (
            "https://git.example:8443/team/app",
            "https://git.example:8443/team/app",
        ),
        ("http://git.example:80/a", "http://git.example/a"),
        ("http://git.example:443/a", "http://git.example:443/a"),
        ("http://[::1]:80/r", "http://[::1]/r"),
        (
            "git@git.example:Team/App.git",
            "ssh://git@git.example/team/app",
        ),
        (
            "ssh://git@git.example:22/team/app",
            "ssh://git@git.example/team/app",
        ),
        (
            "ssh://git@git.example:2222/team/app",
            "ssh://git@git.example:2222/team/app",
        ),
        (
            "git@git.example:/team/app",
            "ssh://git@git.example/team/app",
        ),
        ("git.example:team/app", "ssh://git.example/team/app"),
        ("git@github.com:2222/app", "ssh://git@github.com/2222/app"),
        ("localhost:5000/charts/app", "localhost:5000/charts/app"),
        ("ghcr.io/Org/App", "ghcr.io/org/app"),
        ("oci://ghcr.io/Org/App", "oci://ghcr.io/org/app"),
        ("file:///srv/git/r.git", "file:///srv/git/r"),
        ("/srv/git/r", "file:///srv/git/r"),
        ("https://git.example", "https://git.example"),
    ] {
        assert_eq!(canonical(url).as_deref(), Ok(want), "{url}");
    }
}

#[test]
fn what_is_fetched_has_the_same_parts() {
    for (url, want) in [
        (
            "https://me:x@Git.Example:443/Team//App%2egit/",
            "https://git.example/Team/App.git",
        ),
        (
            "https://git.example/my%20team/%C3%A9",
            "https://git.example/my%20team/%C3%A9",
        ),
        ("http://h:8080/a;b=c", "http://h:8080/a;b=c"),
    ] {
        assert_eq!(
            RepoUrl::parse(url).map(|u| u.http_url()),
            Ok(want.to_owned())
        );
    }
}

#[test]
fn refused() {
    use UrlFault::*;
    for (url, fault) in [
        ("", Empty),
        ("https://h/team/../other", Dots),
        ("https://h/team/./other", Dots),
        ("https://h/team/..", Dots),
        ("https://h/../x", Dots),
        ("https://h/team/%2e%2e/other", Dots),
        ("https://h/team/%2E./other", Dots),
        ("https://h/team/.%2e/other", Dots),
        ("https://h/team/%252e%252e/other", Encoding),
        ("https://h/team/%25252e%25252e/other", Encoding),
        ("https://h/team%2fother", EncodedSlash),
        ("https://h/team%252fother", Encoding),
        ("https://h/team/..%5cother", EncodedSlash),
        ("https://h/team/..\\other", Backslash),
        ("https://h/team\\other", Backslash),
        ("https:\\\\h\\team", Backslash),
        ("https://h/team/a\nb", Control),
        ("https://h/team/a\0b", Control),
        ("https://h/team/a\tb", Control),
        ("https://h/team/a\u{85}b", Control),
        ("https://h/team/a%00b", Control),
        ("https://h/team/a%0ab", Control),
        ("https://h/team/%zz", Encoding),
        ("https://h/team/%ff", Encoding),
        ("https://h/team/%", Encoding),
        ("https://h/a b", Blank),
        ("https://h/a?x=/../b", Query),
        ("https://h/a#b", Query),
        ("https:///a", Host),
        ("https://h|x/a", Host),
        ("https://h%2fx/a", Host),
        ("https://-h/a", Host),
        ("https://h:x/a", Port),
        ("https://h:99999/a", Port),
        ("git@h:team/../other", Dots),
        ("git@h:../other", Dots),
        ("git@h:team/%2e%2e/other", Dots),
        ("git@h:team/%252e%252e/other", Dots),
        ("git@h:team/..\\other", Backslash),
        ("ssh://git@h/team/../other", Dots),
        ("ssh://git@h/team/%2e%2e/other", Dots),
        ("ssh://user:secret@h/team", Password),
        ("user:secret@h:team", Password),
        ("user:secret@h/team", Password),
        ("/srv/git/../other", Dots),
        ("file:///srv/git/../other", Dots),
        ("file:///srv/git/%2e%2e/other", Dots),
        ("file://host/srv", Host),
        ("oci://h/team/../x", Dots),
        ("h/team/../x", Dots),
        ("../x", Dots),
    ] {
        assert_eq!(canonical(url), Err(fault), "{url:?}");
    }
    assert_eq!(
        canonical(&format!("https://h/{}", "a".repeat(5000))),
        Err(Long)
    );
}

#[test]
fn patterns_have_the_spelling_of_what_they_are_compared_with() {
    for (pattern, want) in [
        ("*", "*"),
        ("https://Git.Example/Team/*", "https://git.example/team/*"),
        (
            "https://git.example:443/team/**",
            "https://git.example/team/**",
        ),
        (
            "https://me@git.example/my%20team/*.git",
            "https://git.example/my team/*",
        ),
        ("git@git.example:team/*", "ssh://git@git.example/team/*"),
        ("https://*.example/{a,b}/*", "https://*.example/{a,b}/*"),
        ("/srv/git/*", "file:///srv/git/*"),
        ("ghcr.io/org/*", "ghcr.io/org/*"),
        ("**", "**"),
    ] {
        assert_eq!(canonical_pattern(pattern), want);
    }
}

/// A template, with repositories that it applies to and does not apply to.
const TEMPLATES: &[(&str, &[&str], &[&str])] = &[
    (
        "http://git.corp.example",
        &[
            "http://git.corp.example/x.git",
            "http://GIT.corp.example:80/a/b",
            "http://git.corp.example./x",
        ],
        &[
            "http://git.corp.example@127.0.0.1/x.git",
            "http://git.corp.example:80@127.0.0.1/x.git",
            "http://git.corp.example:8080/x.git",
            "http://git.corp.example.evil/x.git",
            "https://git.corp.example/x.git",
            "http://user@git.corp.example/x",
            "http://git.corp.example\\@127.0.0.1/x",
            "http://git.corp.example%40127.0.0.1/x",
            "http://git.corp.example/../x",
            "git.corp.example/x",
            "ssh://git.corp.example/x",
        ],
    ),
    (
        "http://git.corp.example:80",
        &["http://git.corp.example/x"],
        &[
            "http://git.corp.example:8080/x",
            "http://git.corp.example:800/x",
        ],
    ),
    (
        "https://h:8443/",
        &["https://h:8443/x"],
        &["https://h/x", "https://h:84430/x", "https://h:844/x"],
    ),
    (
        "https://github.com/argoproj",
        &[
            "https://github.com/argoproj/x",
            "https://github.com/argoproj",
            "https://github.com/ArgoProj/x.git",
        ],
        &[
            "https://github.com/argoproj-labs/x",
            "https://github.com/argo/x",
        ],
    ),
    (
        "https://github.com/argoproj/",
        &["https://github.com/argoproj/x"],
        &["https://github.com/argoproj-labs/x"],
    ),
    (
        "https://host/arg",
        &["https://host/arg/x"],
        &[
            "https://host/argoproj/x",
            "https://host/argoproj",
            "https://host/a",
        ],
    ),
    (
        "https://host/a/b.git",
        &["https://host/a/b", "https://host/a/b.git"],
        &["https://host/a/bb"],
    ),
    (
        "https://org@dev.azure.com",
        &["https://org@dev.azure.com/org/p/_git/r"],
        &[
            "https://dev.azure.com/org/p/_git/r",
            "https://x@dev.azure.com/a",
        ],
    ),
    ("https://", &[], &["https://github.com/x"]),
    ("", &[], &["https://github.com/x", "ghcr.io/x"]),
    (
        "git@github.com:argoproj",
        &[
            "git@github.com:argoproj/x.git",
            "ssh://git@github.com/argoproj/x",
        ],
        &[
            "git@github.com:argoproj-labs/x",
            "me@github.com:argoproj/x",
            "ssh://git@github.com:2222/argoproj/x",
            "git@github.com.evil:argoproj/x",
            "https://git@github.com/argoproj/x",
        ],
    ),
    (
        "git@github.com:",
        &["git@github.com:argoproj/x", "ssh://git@github.com/a"],
        &["git@gitlab.com:argoproj/x"],
    ),
    (
        "ssh://git@h:2222",
        &["ssh://git@h:2222/x"],
        &["ssh://git@h:22220/x", "ssh://git@h/x", "git@h:x"],
    ),
    ("ssh://git@h:22/team", &["git@h:team/x"], &["git@h:teams/x"]),
    (
        "ghcr.io/org",
        &["ghcr.io/org/chart"],
        &[
            "ghcr.io/organisation/chart",
            "oci://ghcr.io/org/chart",
            "ghcr.io.evil/org/chart",
        ],
    ),
    (
        "oci://ghcr.io/org",
        &["oci://ghcr.io/org/chart"],
        &["oci://ghcr.io:5000/org/chart", "ghcr.io/org/chart"],
    ),
    (
        "localhost:5000/charts",
        &["localhost:5000/charts/a"],
        &["localhost:50000/charts/a"],
    ),
    (
        "/srv/git",
        &["/srv/git/r", "file:///srv/git/r"],
        &["/srv/gitter/r"],
    ),
];

#[test]
fn credentials_are_for_one_host_and_whole_segments() {
    for (template, yes, no) in TEMPLATES {
        let found = |url: &str| best_template(url, [*template], |t| *t).is_some();
        for url in *yes {
            assert!(found(url), "{template} is for {url}");
        }
        for url in *no {
            assert!(!found(url), "{template} is not for {url}");
        }
    }
}

#[test]
fn the_template_with_the_longest_path_is_taken() {
    let find = |url| {
        best_template(
            url,
            [
                "",
                "https://h/team",
                "https://h",
                "https://h/team/very-long",
            ],
            |t| *t,
        )
    };
    assert_eq!(find("https://h/team/x"), Some("https://h/team"));
    assert_eq!(find("https://h/other"), Some("https://h"));
    assert_eq!(find("https://elsewhere/x"), None);
}
