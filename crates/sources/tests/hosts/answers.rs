//! What hosts answer, and that nothing else passes for a complete answer.

use super::server::{Asked, Reply, Server};
use super::table::{Host, hosts};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_repo::{
    Repos, Secret,
    scm::{Account, Login, Repository, RepositoryId},
};

fn repos() -> Repos {
    // Nothing is written there.
    Repos::new(std::env::temp_dir().join("tiphys-no-repositories"))
}

fn param<'a>(asked: &'a Asked, name: &str) -> &'a str {
    asked.query.get(name).map_or("", String::as_str)
}

/// Ends the connection after so many bytes of the body.
fn cut(reply: Reply, after: usize) -> Reply {
    Reply {
        cut: Some(after),
        ..reply
    }
}

#[tokio::test]
async fn all_pages_of_every_host() {
    let repos = repos();
    for host in hosts() {
        let server = host.start().await;
        let found = host.list(&repos, &server.url).await.expect(host.name);
        let names: BTreeSet<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, BTreeSet::from(["one", "two"]), "{}", host.name);
        let pulls = host.list_pulls(&repos, &server.url).await.expect(host.name);
        let shown: BTreeSet<String> = pulls
            .iter()
            .map(|p| {
                let (source, target) = (&p.branch, &p.target_branch);
                format!(
                    "{} {} {source} {target} {} {}",
                    p.number, p.title, p.head_sha, p.author
                )
            })
            .collect();
        let expected = [1, 2].map(|n| format!("{n} PR {n} topic-{n} main abc ann"));
        assert_eq!(shown, BTreeSet::from(expected), "{}", host.name);
        let (name, value) = host.header;
        for asked in server.asked() {
            assert_eq!(asked.header(name), value, "{}: {}", host.name, asked.path);
            assert_eq!(asked.header("user-agent"), "argocd-applicationset");
        }
    }
}

#[tokio::test]
async fn branches_and_paths_of_every_host() {
    let repos = repos();
    for host in hosts() {
        let server = host.start().await;
        let (settings, account) = (host.scm(&server.url), host.account(&server.url));
        let found = host.list(&repos, &server.url).await.expect(host.name);
        let one = found.iter().find(|found| found.name == "one").expect("one");
        assert_eq!(one.branch, host.listed_as, "{}", host.name);
        assert!(
            !one.url.is_empty() && one.id != RepositoryId::None,
            "{one:?}"
        );
        let branches = repos.scm().branches(&settings, &account, one).await;
        let branches = branches.expect(host.name);
        let shown: Vec<_> = branches
            .iter()
            .map(|b| (b.branch.as_str(), b.sha.as_str()))
            .collect();
        assert_eq!(shown, [("main", "abc")], "{}", host.name);
        let has = async |path: &str| {
            let has = repos
                .scm()
                .has_path(&settings, &account, &branches[0], path);
            has.await.map_err(|e| e.to_string())
        };
        assert_eq!(has("dir/a.yaml").await, Ok(true), "{}", host.name);
        for path in ["dir/a.yaml/", "./dir//a.yaml", "/", ".", ""] {
            assert_eq!(has(path).await, Ok(true), "{}: {path:?}", host.name);
        }
        if host.name != "Azure DevOps" {
            assert_eq!(has("dir/b.yaml").await, Ok(false), "{}", host.name);
        }
        let asked = server.asked().len();
        for path in ["../../user", "dir/../a.yaml"] {
            if host.name != "Azure DevOps" {
                assert!(has(path).await.is_err(), "{}: {path}", host.name);
            }
        }
        if host.name != "Azure DevOps" {
            assert_eq!(
                server.asked().len(),
                asked,
                "{}: no path is left",
                host.name
            );
        }
    }
}

#[tokio::test]
async fn a_well_formed_empty_list_is_empty() {
    let repos = repos();
    for host in hosts() {
        let empty = host.empty.clone();
        let server = Server::start(move |_, _| Reply::new(200, &empty)).await;
        assert_eq!(
            host.list(&repos, &server.url).await,
            Ok(Vec::new()),
            "{}",
            host.name
        );
        let pulls = host.list_pulls(&repos, &server.url).await;
        assert_eq!(pulls, Ok(Vec::new()), "{}", host.name);
    }
}

/// What a host or a proxy before it may answer in place of a page.
fn failures() -> Vec<(&'static str, Reply)> {
    let html = "<!DOCTYPE html><title>Sign in</title>";
    vec![
        ("an error", Reply::new(500, json!({"message": "no"}))),
        ("a refusal", Reply::new(401, json!({"message": "no"}))),
        ("not found", Reply::new(404, json!({"message": "no"}))),
        ("not found, in HTML", Reply::new(404, html)),
        (
            "a web page",
            Reply::new(200, html).header("content-type", "text/html; charset=utf-8"),
        ),
        ("a web page called JSON", Reply::new(200, html)),
        ("nothing", Reply::new(200, "")),
        ("no content", Reply::new(204, "")),
        ("null", Reply::new(200, "null")),
        ("an empty object", Reply::new(200, "{}")),
        ("a text", Reply::new(200, "\"\"")),
        ("half a list", Reply::new(200, "[{\"id\": 1")),
        ("an element without fields", Reply::new(200, json!([{}]))),
        (
            "a list of one in a list",
            Reply::new(200, json!({"values": {"id": 1}, "value": 1})),
        ),
        (
            "a page that ends early",
            cut(Reply::new(200, " ".repeat(500)), 100),
        ),
        ("a redirect to nowhere", Reply::new(302, "")),
        (
            "a redirect to a file",
            Reply::new(302, "").header("location", "file:///etc/passwd"),
        ),
        (
            "a redirect to a script",
            Reply::new(302, "").header("location", "javascript:1"),
        ),
        (
            "a redirect to a cloud's metadata",
            Reply::new(302, "").header("location", "http://169.254.169.254/latest"),
        ),
        ("too many requests", Reply::new(429, "{}")),
    ]
}

#[tokio::test]
async fn a_failed_page_is_never_a_shorter_list() {
    for host in hosts() {
        for (what, reply) in failures() {
            // Each with limits of its own.
            let repos = repos();
            for last in [false, true] {
                let (answer, reply) = (host.answer(), reply.clone());
                let server = Server::start(move |own, asked| {
                    let is_last = ["page", "start", "$skip"]
                        .iter()
                        .any(|name| !matches!(param(asked, name), "" | "0"));
                    match is_last == last {
                        true => reply.clone(),
                        false => answer(own, asked),
                    }
                })
                .await;
                let pulls = host.list_pulls(&repos, &server.url).await;
                assert!(pulls.is_err(), "{}: {what}: {pulls:?}", host.name);
                // The list of Azure DevOps has one page.
                if !(last && host.name == "Azure DevOps") {
                    let found = host.list(&repos, &server.url).await;
                    assert!(found.is_err(), "{}: {what}: {found:?}", host.name);
                }
                let shown = format!("{pulls:?}");
                assert!(!shown.contains("t0ken"), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_host_that_repeats_the_token_does_not_make_it_public() {
    for host in hosts() {
        let reply = json!({"message": "the token t0ken is wrong"});
        let server = Server::start(move |_, _| Reply::new(403, &reply)).await;
        let error = host.list(&repos(), &server.url).await.expect_err(host.name);
        assert!(error.contains("403") && !error.contains("t0ken"), "{error}");
    }
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect() {
    for host in hosts() {
        let target = host.start().await;
        let to = target.url.clone();
        let server = Server::start(move |_, asked| {
            let query: Vec<String> = asked
                .query
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            let location = format!("{to}{}?{}", asked.path, query.join("&"));
            Reply::new(302, "").header("location", location)
        })
        .await;
        // What comes of it differs; that it is followed without credentials does not.
        let _ = host.list(&repos(), &server.url).await;
        let (name, value) = host.header;
        let (first, followed) = (server.asked(), target.asked());
        assert_eq!(first[0].header(name), value, "{}", host.name);
        assert!(!followed.is_empty(), "{}", host.name);
        for asked in followed {
            assert_eq!(asked.header(name), "", "{}", host.name);
            assert!(!format!("{asked:?}").contains("t0ken"), "{asked:?}");
        }
    }
}

fn host(name: &str) -> Host {
    hosts()
        .into_iter()
        .find(|host| host.name == name)
        .expect(name)
}

#[tokio::test]
async fn the_next_page_is_on_the_same_host() {
    let host = host("Bitbucket");
    let other = host.start().await;
    let next = format!("{}/repositories/acme?page=2", other.url);
    let server =
        Server::start(move |_, _| Reply::new(200, json!({"values": [], "next": next}))).await;
    let error = host.list(&repos(), &server.url).await.expect_err("refused");
    assert!(
        error.contains("the next page is on another host"),
        "{error}"
    );
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn a_list_without_an_end_is_refused() {
    let host = host("GitHub");
    let server = Server::start(|own, asked| {
        let page: usize = param(asked, "page").parse().unwrap_or(1);
        let next = format!("<{own}/?page={}>; rel=\"next\"", page + 1);
        Reply::new(200, "[]").header("link", next)
    })
    .await;
    let error = host.list(&repos(), &server.url).await.expect_err("refused");
    assert!(error.contains("1000 pages"), "{error}");
    assert!(server.asked().len() <= 1_001);
}

#[tokio::test]
async fn a_rate_limit_is_respected() {
    let (host, repos) = (host("GitHub"), repos());
    let reset = jiff::Timestamp::now().as_second() + 600;
    let server = Server::start(move |_, _| {
        Reply::new(403, json!({"message": "API rate limit exceeded"}))
            .header("x-ratelimit-remaining", 0)
            .header("x-ratelimit-reset", reset)
    })
    .await;
    let first = host.list(&repos, &server.url).await.expect_err("refused");
    let second = host.list(&repos, &server.url).await.expect_err("refused");
    assert!(first.contains("permits no more requests before"), "{first}");
    assert_eq!(
        (&first, server.asked().len()),
        (&second, 1),
        "nothing is asked meanwhile"
    );
    // Another account has limits of its own.
    let account = Account {
        login: Login::Token(Secret::new("other")),
        ..Account::default()
    };
    let other = repos
        .scm()
        .repositories(&host.scm(&server.url), &account)
        .await;
    assert!(other.is_err());
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_user_has_repositories_and_a_hidden_organization_has_an_error() {
    let host = host("GitHub");
    for (kind, expected) in [("User", Ok(1)), ("Organization", Err(()))] {
        let server = Server::start(move |_, asked| match asked.path.as_str() {
            "/api/v3/users/acme" => Reply::new(200, json!({"login": "acme", "type": kind})),
            "/api/v3/users/acme/repos" => Reply::new(
                200,
                json!([{"id": 1, "name": "one", "owner": {"login": "acme"}}]),
            ),
            _ => Reply::new(404, json!({"message": "Not Found"})),
        })
        .await;
        let found = host.list(&repos(), &server.url).await;
        assert_eq!(
            found.map(|found| found.len()).map_err(drop),
            expected,
            "{kind}"
        );
    }
}

/// A branch that does not exist, of a repository that does, and of one that is hidden.
#[tokio::test]
async fn only_a_known_repository_has_no_branch() {
    let of = Repository {
        organization: "acme".to_owned(),
        name: "one".to_owned(),
        id: RepositoryId::Number(1),
        branch: "main".to_owned(),
        ..Repository::default()
    };
    for (name, said, expected) in [
        ("GitHub", "Branch not found", Ok(0)),
        ("GitHub", "Not Found", Err(())),
        ("GitLab", "404 Branch Not Found", Ok(0)),
        ("GitLab", "404 Repository Not Found", Ok(0)),
        ("GitLab", "404 Project Not Found", Err(())),
        ("Gitea", "branch does not exist", Err(())),
        ("Bitbucket", "no", Err(())),
    ] {
        let (host, reply) = (host(name), json!({"message": said}));
        let server = Server::start(move |_, _| Reply::new(404, &reply)).await;
        let (settings, account) = (host.scm(&server.url), host.account(&server.url));
        let found = repos().scm().branches(&settings, &account, &of).await;
        let found = found.map(|found| found.len()).map_err(drop);
        assert_eq!(found, expected, "{name}: {said}");
    }
}

#[tokio::test]
async fn azure_devops_names_its_errors() {
    let host = host("Azure DevOps");
    for (key, has) in [
        ("GitItemNotFoundException", Ok(false)),
        ("VssServiceException", Err(())),
    ] {
        let reply = json!({"message": "TF401174", "typeKey": key});
        let server = Server::start(move |_, _| Reply::new(404, &reply)).await;
        let (settings, account) = (host.scm(&server.url), host.account(&server.url));
        let of = Repository {
            name: "one".to_owned(),
            branch: "main".to_owned(),
            ..Repository::default()
        };
        let found = repos().scm().has_path(&settings, &account, &of, "a").await;
        assert_eq!(found.map_err(drop), has, "{key}");
    }
    for (key, is_gone) in [
        ("ProjectDoesNotExistWithNameException", true),
        ("ProjectDoesNotExistException", false),
        ("", false),
    ] {
        let message = "TF200016: The following project does not exist: the team";
        let reply = json!({"message": message, "typeKey": key});
        let server = Server::start(move |_, _| Reply::new(400, &reply)).await;
        let (settings, account) = (host.of_pulls(&server.url), host.account(&server.url));
        let found = repos().scm().pull_requests(&settings, &account).await;
        let error = found.expect_err("it has no pull requests");
        assert_eq!(error.is_not_found(), is_gone, "{key}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_refused_by_name() {
    let refused = [
        (json!({}), "no SCM provider implementation configured"),
        (
            json!({"azureDevOps": {"organization": "o", "teamProject": "t"}}),
            "no access token provided",
        ),
        (
            json!({"gitea": {"owner": "o", "api": "gopher://h"}}),
            "is no address of an API",
        ),
        (
            json!({"gitlab": {"group": "..", "api": "http://127.0.0.1:1"}}),
            "cannot be part of a path",
        ),
    ];
    for (settings, expected) in refused {
        let settings = serde_json::from_value(settings).expect("settings");
        let found = repos()
            .scm()
            .repositories(&settings, &Account::default())
            .await;
        let error = found.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_plugin_answers_a_body() {
    let (body, wait) = (json!({"input": {}}).to_string(), Duration::from_secs(5));
    let token = Secret::new("t0ken");
    for (reply, expected) in [
        (Reply::new(200, "{\"output\": {}}"), Ok("{\"output\": {}}")),
        (Reply::new(201, "[]"), Ok("[]")),
        (Reply::new(300, "{}"), Err(())),
        (Reply::new(500, "{}"), Err(())),
        (
            Reply::new(307, "").header("location", "/elsewhere"),
            Err(()),
        ),
        (Reply::new(200, "<html>"), Err(())),
        (cut(Reply::new(200, "{\"output\": {}}"), 5), Err(())),
    ] {
        let shown = format!("{reply:?}");
        let server = Server::start(move |_, _| reply.clone()).await;
        let url = format!("{}/api/v1/getparams.execute", server.url);
        let found = repos()
            .scm()
            .parameters(&url, &token, body.clone(), wait)
            .await;
        let found = found.map(|body| String::from_utf8(body).expect("text"));
        assert_eq!(found.as_deref().map_err(drop), expected, "{shown}");
        let asked = server.asked();
        assert_eq!(asked.len(), 1, "{shown}");
        assert_eq!((asked[0].method.as_str(), &asked[0].body), ("POST", &body));
        assert_eq!(asked[0].path, "/api/v1/getparams.execute");
        assert_eq!(asked[0].header("authorization"), "Bearer t0ken");
        assert_eq!(asked[0].header("content-type"), "application/json");
    }
    // Nobody accepts this connection.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    let wait = Duration::from_millis(50);
    let found = repos().scm().parameters(&url, &token, body, wait).await;
    let error = found.expect_err("it does not answer").to_string();
    assert!(error.contains("did not answer in time"), "{error}");
}

fn app_key() -> String {
    let made = std::process::Command::new("openssl")
        .args(["genrsa", "2048"])
        .output()
        .expect("openssl");
    String::from_utf8(made.stdout).expect("PEM text")
}

fn app(id: i64, installation: i64, key: &str) -> Account {
    Account {
        login: Login::GitHubApp {
            id,
            installation,
            key: Secret::new(key),
            api: String::new(),
        },
        ..Account::default()
    }
}

/// An App proves itself by its key, and lists with the token of the owner's installation.
#[tokio::test]
async fn an_app_asks_with_the_token_of_its_installation() {
    let key = app_key();
    let host = host("GitHub");
    let answer = host.answer();
    let server = Server::start(move |own, asked| {
        let token = asked.header("authorization");
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/api/v3/app/installations") => Reply::new(
                200,
                json!([
                    {"id": 4, "account": {"login": "other"}},
                    {"id": 5, "account": {"login": "Acme"}},
                ]),
            ),
            ("POST", "/api/v3/app/installations/5/access_tokens") => Reply::new(
                201,
                json!({"token": "installed", "expires_at": "2999-01-01T00:00:00Z"}),
            ),
            _ if token == "Bearer installed" => answer(own, asked),
            _ => Reply::new(401, json!({"message": "Bad credentials"})),
        }
    })
    .await;
    let account = app(1, 0, &key);
    let (repos, settings) = (repos(), host.scm(&server.url));
    for _ in 0..2 {
        let found = repos.scm().repositories(&settings, &account).await;
        let found = found.expect("the repositories");
        assert!(found.iter().any(|repository| repository.name == "two"));
    }
    let tokens = server.asked();
    let tokens = tokens.iter().filter(|asked| asked.method == "POST");
    assert_eq!(tokens.count(), 1, "the token is kept");
    // Another owner has no installation.
    let settings = json!({"github": {"organization": "nobody", "api": server.url}});
    let settings = serde_json::from_value(settings).expect("settings");
    let found = repos.scm().repositories(&settings, &account).await;
    let error = found.expect_err("refused").to_string();
    assert!(error.contains("is not installed for nobody"), "{error}");
}

/// A GitHub whose tokens are numbered; those before `valid` are revoked.
async fn issuing(valid: Arc<AtomicUsize>) -> Server {
    let (host, issued) = (host("GitHub"), AtomicUsize::new(0));
    let answer = host.answer();
    Server::start(move |own, asked| {
        if asked.method == "POST" {
            let number = issued.fetch_add(1, Ordering::SeqCst);
            let body =
                json!({"token": format!("token-{number}"), "expires_at": "2999-01-01T00:00:00Z"});
            return Reply::new(201, body);
        }
        let token = asked.header("authorization").strip_prefix("Bearer token-");
        let number = token.and_then(|number| number.parse::<usize>().ok());
        match number.is_some_and(|number| number >= valid.load(Ordering::SeqCst)) {
            true => answer(own, asked),
            // A careless host, which repeats what it was sent.
            false => Reply::new(
                401,
                json!({"message": format!("bad {}", asked.header("authorization"))}),
            ),
        }
    })
    .await
}

#[tokio::test]
async fn a_token_that_was_revoked_is_fetched_anew_once() {
    let (host, key) = (host("GitHub"), app_key());
    // Tokens that are revoked before the first list and before the second; tokens issued in all, and
    // whether both lists were given.
    for (what, revoked, issued, is_listed) in [
        ("none", [0, 0], 1, [true, true]),
        ("between two lists", [0, 1], 2, [true, true]),
        ("at once", [1, 1], 2, [true, true]),
        ("again and again", [1, 2], 3, [true, true]),
        ("all", [9, 9], 3, [false, false]),
        ("all that are kept", [0, 9], 2, [true, false]),
    ] {
        let valid = Arc::new(AtomicUsize::new(0));
        let (server, repos) = (issuing(valid.clone()).await, repos());
        let settings = host.scm(&server.url);
        for (before, is_listed) in revoked.into_iter().zip(is_listed) {
            valid.store(before, Ordering::SeqCst);
            let found = repos.scm().repositories(&settings, &app(1, 5, &key)).await;
            assert_eq!(found.is_ok(), is_listed, "{what}: {found:?}");
            if let Err(error) = found {
                let error = error.to_string();
                assert!(
                    error.contains("401") && !error.contains("token-"),
                    "{error}"
                );
            }
        }
        let asked = server.asked();
        let posts = asked.iter().filter(|asked| asked.method == "POST").count();
        assert_eq!(posts, issued, "{what}");
    }
}

#[tokio::test]
async fn each_app_and_each_installation_has_a_rate_limit_of_its_own() {
    let (host, key, repos) = (host("GitHub"), app_key(), repos());
    let server = Server::start(|_, asked| match asked.method.as_str() {
        "POST" => {
            let body = json!({"token": "t", "expires_at": "2999-01-01T00:00:00Z"});
            Reply::new(201, body)
        }
        _ => Reply::new(429, json!({"message": "too many"})).header("retry-after", 600),
    })
    .await;
    let settings = host.scm(&server.url);
    let mut asked = 0;
    for (account, is_new) in [
        (app(1, 5, &key), true),
        (app(1, 5, &key), false),
        (app(1, 6, &key), true),
        (app(2, 5, &key), true),
        (Account::default(), true),
        (app(2, 5, &key), false),
    ] {
        let found = repos.scm().repositories(&settings, &account).await;
        let error = found.expect_err("refused").to_string();
        assert!(error.contains("permits no more requests"), "{error}");
        asked += usize::from(is_new);
        let all = server.asked();
        let gets = all.iter().filter(|asked| asked.method == "GET").count();
        assert_eq!(gets, asked, "{account:?}");
    }
}
