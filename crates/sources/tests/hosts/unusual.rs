//! What few hosts have: releases that are years old, slashes in names, no main branch.

use super::server::{Reply, Server};
use super::table::{Host, hosts};
use serde_json::{Value, json};
use tiphys_api::application_set::hosts::SCMProviderGenerator;
use tiphys_repo::{Repos, scm::Repository};

fn repos() -> Repos {
    // Nothing is written there.
    Repos::new(std::env::temp_dir().join("tiphys-no-repositories"))
}

fn host(name: &str) -> Host {
    let found = hosts().into_iter().find(|host| host.name == name);
    found.expect("a host of that name")
}

fn settings(settings: Value) -> SCMProviderGenerator {
    serde_json::from_value(settings).expect("settings")
}

fn too_new() -> Reply {
    let key = "VssVersionOutOfRangeException";
    Reply::new(
        400,
        json!({"message": "it is out of range", "typeKey": key}),
    )
}

/// The versions that a server was asked in, in order.
fn versions(server: &Server) -> Vec<String> {
    let asked = server.asked().into_iter();
    asked
        .map(|mut asked| asked.query.remove("api-version").unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn an_older_azure_devops_server_is_asked_in_a_version_that_it_knows() {
    let (azure, repos) = (host("Azure DevOps"), repos());
    let answer = azure.answer();
    let server =
        Server::start(
            move |own, asked| match asked.query.get("api-version").map(String::as_str) {
                Some("6.0" | "5.1" | "5.0" | "4.1") => answer(own, asked),
                _ => too_new(),
            },
        )
        .await;
    let found = azure.list(&repos, &server.url).await.expect("a list");
    assert_eq!(found.len(), 2);
    assert_eq!(versions(&server), ["7.1", "7.0", "6.0"]);
    let pulls = azure.list_pulls(&repos, &server.url).await.expect("pulls");
    assert!(pulls.iter().any(|pull| pull.number == 2), "the second page");
    // It is not found out again for each question.
    assert_eq!(versions(&server)[3..], ["6.0", "6.0"]);

    let server = Server::start(|_, _| too_new()).await;
    let error = azure.list(&repos, &server.url).await.expect_err("no list");
    assert!(error.contains("it is out of range"), "{error}");
    assert_eq!(versions(&server).len(), 6, "no version is asked twice");
}

#[tokio::test]
async fn a_collection_of_azure_devops_may_be_named_with_its_folder() {
    let azure = host("Azure DevOps");
    let server = Server::start(|_, _| Reply::new(200, json!({"value": []}))).await;
    let collection = settings(json!({"azureDevOps": {
        "organization": "tfs/DefaultCollection", "teamProject": "team", "api": server.url,
    }}));
    let account = azure.account(&server.url);
    let found = repos().scm().repositories(&collection, &account).await;
    assert_eq!(found.expect("a list"), Vec::new());
    let paths: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(
        paths,
        ["/tfs/DefaultCollection/team/_apis/git/repositories"]
    );
}

#[tokio::test]
async fn a_branch_of_bitbucket_has_slashes() {
    let bitbucket = host("Bitbucket");
    let branch = json!({"name": "feature/a b", "target": {"hash": "abc"}});
    let server = Server::start(move |_, _| Reply::new(200, &branch)).await;
    let of = Repository {
        organization: "acme".to_owned(),
        name: "one".to_owned(),
        branch: "feature/a b".to_owned(),
        ..Repository::default()
    };
    let (scm, account) = (bitbucket.scm(&server.url), bitbucket.account(&server.url));
    let found = repos().scm().branches(&scm, &account, &of).await;
    assert_eq!(found.expect("a branch")[0].sha, "abc");
    assert_eq!(
        server.asked()[0].path,
        "/repositories/acme/one/refs/branches/feature/a%20b"
    );
}

/// It is unset, or was deleted: what is on the other branches is still wanted.
#[tokio::test]
async fn a_repository_of_bitbucket_without_a_main_branch_has_other_branches() {
    let bitbucket = host("Bitbucket");
    let server = Server::start(|_, asked| {
        let answer = match asked.path.as_str() {
            "/repositories/acme" => json!({"values": [{
                "uuid": "{1}", "slug": "one", "mainbranch": null,
                "links": {"clone": [{"name": "ssh", "href": "git@h:acme/one.git"}]},
            }]}),
            _ => json!({"values": [{"name": "dev", "target": {"hash": "abc"}}]}),
        };
        Reply::new(200, answer)
    })
    .await;
    let (repos, account) = (repos(), bitbucket.account(&server.url));
    let of = |all: bool| {
        settings(json!({"bitbucket": {"owner": "acme", "user": "user", "allBranches": all}}))
    };
    let found = repos.scm().repositories(&of(false), &account).await;
    let refused = found.expect_err("nobody knows its main branch").to_string();
    assert!(refused.contains("acme/one"), "{refused}");
    let found = repos.scm().repositories(&of(true), &account).await;
    let found = found.expect("a list");
    assert_eq!(found.len(), 1);
    let branches = repos.scm().branches(&of(true), &account, &found[0]).await;
    let branches = branches.expect("branches");
    assert_eq!((branches.len(), branches[0].branch.as_str()), (1, "dev"));
}

#[tokio::test]
async fn an_empty_repository_of_bitbucket_is_left_out() {
    let bitbucket = host("Bitbucket");
    let server = Server::start(|_, asked| {
        let answer = match asked.path.as_str() {
            "/repositories/acme" => json!({"values": [{
                "uuid": "{1}", "slug": "one", "mainbranch": null,
                "links": {"clone": [{"name": "ssh", "href": "git@h:acme/one.git"}]},
            }]}),
            _ => json!({"values": []}),
        };
        Reply::new(200, answer)
    })
    .await;
    let (repos, account) = (repos(), bitbucket.account(&server.url));
    let settings = settings(json!({"bitbucket": {"owner": "acme", "user": "user"}}));
    let found = repos.scm().repositories(&settings, &account).await;
    assert_eq!(found.expect("a list"), Vec::new());
    assert_eq!(
        server.asked()[1].path,
        "/repositories/acme/one/refs/branches"
    );
}
