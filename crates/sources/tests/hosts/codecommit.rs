//! AWS CodeCommit, played on the loopback interface: what is asked with which signature, and which
//! answers are no lists.

use super::server::{Asked, Reply, Server};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tiphys_api::application_set::hosts::SCMProviderGenerator;
use tiphys_repo::{
    RepoOptions, Repos,
    scm::{Account, Repository, RepositoryId, ScmError},
};

/// Who this process is at the AWS that a server plays.
fn repos(url: &str) -> Repos {
    let cloud = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "s3cr3t"),
        ("AWS_ENDPOINT_URL", url),
        ("AWS_REGION", ""),
        ("AWS_DEFAULT_REGION", ""),
        // Nothing of the machine that runs the test.
        ("AWS_SESSION_TOKEN", ""),
        ("AWS_PROFILE", ""),
        ("AWS_ENDPOINT_URL_STS", ""),
        ("AWS_ENDPOINT_URL_CODECOMMIT", ""),
        ("AWS_ENDPOINT_URL_RESOURCE_GROUPS_TAGGING_API", ""),
        ("HOME", "/nonexistent"),
    ];
    let cloud = cloud.iter().map(|(n, v)| ((*n).into(), (*v).into()));
    let options = RepoOptions {
        cloud: cloud.collect(),
        ..RepoOptions::default()
    };
    // Nothing is written there.
    Repos::with_options(std::env::temp_dir().join("tiphys-no-repositories"), options)
}

fn settings(code_commit: Value, protocol: &str) -> SCMProviderGenerator {
    let settings = json!({"awsCodeCommit": code_commit, "cloneProtocol": protocol});
    serde_json::from_value(settings).expect("settings")
}

fn action(asked: &Asked) -> &str {
    asked.header("x-amz-target")
}

fn body(asked: &Asked) -> Value {
    serde_json::from_str(&asked.body).expect("JSON")
}

/// An account with three repositories, of which one is empty. Lists have two pages.
fn aws(_: &str, asked: &Asked) -> Reply {
    let wrong = |what: &str| Reply::new(400, json!({"__type": what, "message": "no"}));
    if asked.body.starts_with("Action=AssumeRole&") {
        return Reply::new(
            200,
            "<R><Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>x</SecretAccessKey>\
             <SessionToken>st</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>\
             </Credentials></R>",
        );
    }
    let question = body(asked);
    let answer = match (action(asked), question["nextToken"].as_str()) {
        ("CodeCommit_20150413.ListRepositories", None) => {
            json!({"repositories": [{"repositoryName": "a", "repositoryId": "1"}], "nextToken": "2"})
        }
        ("CodeCommit_20150413.ListRepositories", Some("2")) => {
            json!({"repositories": [{"repositoryName": "b"}, {"repositoryName": "empty"}]})
        }
        ("CodeCommit_20150413.GetRepository", _) => {
            let name = question["repositoryName"].as_str().unwrap_or_default();
            let mut metadata = json!({
                "accountId": "12", "repositoryId": format!("id-{name}"), "repositoryName": name,
                "cloneUrlHttp": format!("https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/{name}"),
                "cloneUrlSsh": format!("ssh://git-codecommit.eu-west-1.amazonaws.com/v1/repos/{name}"),
            });
            if name != "empty" {
                metadata["defaultBranch"] = "main".into();
            }
            json!({"repositoryMetadata": metadata})
        }
        ("CodeCommit_20150413.ListBranches", None) => {
            json!({"branches": ["main"], "nextToken": "n"})
        }
        ("CodeCommit_20150413.ListBranches", Some("n")) => json!({"branches": ["dev"]}),
        ("CodeCommit_20150413.GetFolder", _) if question["folderPath"] == "/" => json!({
            "commitId": "c", "folderPath": "/",
            "files": [{"relativePath": "README.md"}], "subFolders": [{"relativePath": "apps"}],
            "subModules": [{"relativePath": "sub"}], "symbolicLinks": [{"relativePath": "link"}],
        }),
        ("CodeCommit_20150413.GetFolder", _) if question["folderPath"] == "/apps/web" => {
            json!({"commitId": "c", "files": [{"relativePath": "a.yaml"}]})
        }
        ("CodeCommit_20150413.GetFolder", _) => {
            return wrong("com.amazonaws.codecommit#FolderDoesNotExistException");
        }
        ("ResourceGroupsTaggingAPI_20170126.GetResources", _) => {
            match question["PaginationToken"].as_str() {
                None => json!({
                    "ResourceTagMappingList": [{"ResourceARN": "arn:aws:codecommit:eu-west-1:12:b"}],
                    "PaginationToken": "more",
                }),
                Some(_) => json!({
                    "ResourceTagMappingList": [{"ResourceARN": "arn:aws:codecommit:eu-west-1:12:empty"}],
                    "PaginationToken": "",
                }),
            }
        }
        _ => return wrong("UnknownOperationException"),
    };
    Reply::new(200, answer)
}

fn repository(name: &str, url: &str) -> Repository {
    Repository {
        organization: "12".to_owned(),
        name: name.to_owned(),
        id: RepositoryId::Text(format!("id-{name}")),
        url: format!("{url}/v1/repos/{name}"),
        branch: "main".to_owned(),
        ..Repository::default()
    }
}

#[tokio::test]
async fn repositories_are_listed_and_questions_signed() {
    let server = Server::start(aws).await;
    let repos = repos(&server.url);
    for (protocol, url) in [
        ("", "ssh://git-codecommit.eu-west-1.amazonaws.com"),
        ("ssh", "ssh://git-codecommit.eu-west-1.amazonaws.com"),
        ("https", "https://git-codecommit.eu-west-1.amazonaws.com"),
        (
            "https-fips",
            "https://git-codecommit-fips.eu-west-1.amazonaws.com",
        ),
    ] {
        let settings = settings(json!({"region": "eu-west-1"}), protocol);
        let found = repos
            .scm()
            .repositories(&settings, &Account::default())
            .await;
        let expected = vec![repository("a", url), repository("b", url)];
        assert_eq!(found.expect("a list"), expected, "{protocol}");
    }
    for asked in server.asked() {
        assert_eq!(asked.header("content-type"), "application/x-amz-json-1.1");
        let authorization = asked.header("authorization");
        let date = asked.header("x-amz-date").get(..8).expect("a date");
        let start = format!(
            "AWS4-HMAC-SHA256 Credential=AKID/{date}/eu-west-1/codecommit/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
        );
        assert!(authorization.starts_with(&start), "{authorization}");
    }
}

#[tokio::test]
async fn tags_choose_and_roles_are_assumed() {
    let server = Server::start(aws).await;
    let repos = repos(&server.url);
    let tags = json!([
        {"key": "team", "value": "web"}, {"key": "live"}, {"key": "team", "value": "shop"},
    ]);
    let role = "arn:aws:iam::34:role/reader";
    let settings = settings(
        json!({"region": "eu-west-1", "role": role, "tagFilters": tags}),
        "https",
    );
    let https = "https://git-codecommit.eu-west-1.amazonaws.com";
    for _ in 0..2 {
        let found = repos
            .scm()
            .repositories(&settings, &Account::default())
            .await;
        assert_eq!(found.expect("a list"), vec![repository("b", https)]);
    }
    let asked = server.asked();
    let assumed: Vec<_> = asked
        .iter()
        .filter(|a| a.body.starts_with("Action="))
        .collect();
    assert_eq!(assumed.len(), 1, "the role's keys are kept");
    assert!(assumed[0].body.contains("role%2Freader"));
    let tagging: Vec<_> = asked
        .iter()
        .filter(|a| action(a).ends_with(".GetResources"))
        .collect();
    let mut question = json!({
        "ResourceTypeFilters": ["codecommit:repository"],
        "TagFilters": [{"Key": "live"}, {"Key": "team", "Values": ["web", "shop"]}],
    });
    assert_eq!(body(tagging[0]), question);
    question["PaginationToken"] = "more".into();
    assert_eq!(body(tagging[1]), question);
    let scope = "/eu-west-1/tagging/aws4_request, SignedHeaders=content-type;host;x-amz-date;\
                 x-amz-security-token;x-amz-target, ";
    assert!(tagging[0].header("authorization").contains(scope));
    assert_eq!(tagging[0].header("x-amz-security-token"), "st");
}

#[tokio::test]
async fn branches_and_paths() {
    let server = Server::start(aws).await;
    let repos = repos(&server.url);
    let of = repository("a", "https://x");
    let (one, all) = (
        settings(json!({"region": "eu-west-1"}), ""),
        settings(json!({"region": "eu-west-1", "allBranches": true}), ""),
    );
    let account = Account::default();
    let names = |found: Result<Vec<Repository>, ScmError>| -> Vec<String> {
        found
            .expect("a list")
            .into_iter()
            .map(|its| its.branch)
            .collect()
    };
    assert_eq!(
        names(repos.scm().branches(&one, &account, &of).await),
        ["main"]
    );
    assert_eq!(
        names(repos.scm().branches(&all, &account, &of).await),
        ["main", "dev"]
    );
    for (path, is_there) in [
        ("", true),
        ("/", true),
        ("README.md", true),
        ("apps", true),
        ("/apps/", true),
        ("sub", true),
        ("link", true),
        ("read.md", false),
        ("apps/web/a.yaml", true),
        ("apps/web/b.yaml", false),
        ("none/b.yaml", false),
    ] {
        let found = repos.scm().has_path(&one, &account, &of, path).await;
        assert_eq!(found.expect("an answer"), is_there, "{path}");
    }
}

/// Every repository is a question of its own, and AWS limits how many may come in a second.
#[tokio::test]
async fn a_question_that_came_too_fast_is_asked_again() {
    let refused = AtomicUsize::new(0);
    let server = Server::start(move |own, asked| {
        let is_one = action(asked).ends_with(".GetRepository");
        match is_one && refused.fetch_add(1, Ordering::Relaxed) < 2 {
            true => Reply::new(
                400,
                json!({"__type": "ThrottlingException", "message": "slow"}),
            ),
            false => aws(own, asked),
        }
    })
    .await;
    let repos = repos(&server.url);
    let settings = settings(json!({"region": "eu-west-1"}), "https");
    let scm = repos.scm();
    let found = scm.repositories(&settings, &Account::default()).await;
    let https = "https://git-codecommit.eu-west-1.amazonaws.com";
    let expected = vec![repository("a", https), repository("b", https)];
    assert_eq!(found.expect("a list"), expected);
    let asked = server.asked();
    let of_one = asked
        .iter()
        .filter(|asked| action(asked).ends_with(".GetRepository"));
    assert_eq!(of_one.count(), 3 + 2);
}

/// A failed answer is never a shorter list.
#[tokio::test]
async fn what_is_no_list_is_an_error() {
    let named = |name: &str| Reply::new(400, json!({"__type": name, "message": "said"}));
    let page = |body: Value| Reply::new(200, body);
    let cases: [(&str, Reply, &str); 12] = [
        (
            "ListRepositories",
            named("AccessDeniedException"),
            "400: said",
        ),
        (
            "ListRepositories",
            named("ThrottlingException"),
            "no more requests before",
        ),
        ("ListRepositories", Reply::new(500, "{}"), "500"),
        (
            "ListRepositories",
            Reply::new(200, "<html>"),
            "a web page in place of JSON",
        ),
        (
            "ListRepositories",
            page(json!([])),
            "other JSON than its API defines",
        ),
        (
            "ListRepositories",
            page(json!("ok")),
            "other JSON than its API defines",
        ),
        (
            "ListRepositories",
            page(json!({"repositories": [], "nextToken": 2})),
            "other JSON than its API defines",
        ),
        (
            "ListRepositories",
            page(json!({})),
            "other JSON than its API defines",
        ),
        (
            "ListRepositories",
            page(json!({"repositories": [], "nextToken": "2"})),
            "the next page is the same one",
        ),
        (
            "GetRepository",
            named("RepositoryDoesNotExistException"),
            "400: said",
        ),
        (
            "GetRepository",
            page(json!({"repositoryMetadata": null})),
            "other JSON",
        ),
        (
            "GetResources",
            page(json!({"ResourceTagMappingList": [{"ResourceARN": "arn:aws:s3"}]})),
            "\"arn:aws:s3\" is no ARN of a repository",
        ),
    ];
    for (at, reply, expected) in cases {
        let server = Server::start(move |own, asked| match action(asked).ends_with(at) {
            true => reply.clone(),
            false => aws(own, asked),
        })
        .await;
        let mut own = json!({"region": "eu-west-1"});
        if at == "GetResources" {
            own["tagFilters"] = json!([{"key": "k"}]);
        }
        let repos = repos(&server.url);
        let found = repos
            .scm()
            .repositories(&settings(own, ""), &Account::default())
            .await;
        let error = found.expect_err(expected).to_string();
        assert!(error.contains(expected), "{at}: {error}");
        assert!(!error.contains("s3cr3t"), "{error}");
    }
    for reply in [
        named("CommitDoesNotExistException"),
        named("RepositoryDoesNotExistException"),
        page(json!({})),
        page(json!([])),
        page(json!(null)),
        page(json!({"commitId": "c", "files": "none"})),
    ] {
        let told = reply.body.clone();
        let server = Server::start(move |_, _| reply.clone()).await;
        let repos = repos(&server.url);
        let settings = settings(json!({"region": "eu-west-1"}), "");
        let of = repository("a", "https://x");
        let found = repos
            .scm()
            .has_path(&settings, &Account::default(), &of, "a")
            .await;
        assert!(found.is_err(), "{told}");
    }
}

#[tokio::test]
async fn what_cannot_be_asked_is_told() {
    let server = Server::start(aws).await;
    let own = server.url.as_str();
    for (asked, protocol, url, expected) in [
        (
            json!({}),
            "",
            own,
            "there is no region: neither `region` nor AWS_REGION",
        ),
        (
            json!({"region": "eu-west-1"}),
            "git",
            own,
            "unknown clone protocol for codecommit git",
        ),
        (
            json!({"region": "evil.example.org/"}),
            "",
            "",
            "there is no region \"evil.example.org/\"",
        ),
    ] {
        let settings = settings(asked, protocol);
        let found = repos(url)
            .scm()
            .repositories(&settings, &Account::default())
            .await;
        let error = found.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(server.asked().is_empty(), "nothing was asked");
}
