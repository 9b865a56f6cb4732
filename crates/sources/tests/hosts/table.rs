//! What each host answers to the same questions: two repositories on two pages, and two pull
//! requests on two pages. Main type: [`Host`].

use super::server::{Asked, Reply, Server, pairs};
use serde_json::{Value, json};
use tiphys_api::application_set::hosts::{PullRequestGenerator, SCMProviderGenerator};
use tiphys_repo::{
    Repos, Secret,
    scm::{Account, Login, PullRequest, Repository},
};

/// A path, parameters that a request has, and the body of the answer. `URL` stands for the server.
pub type Route = (&'static str, &'static str, Value);

pub struct Host {
    pub name: &'static str,
    /// The settings of an scmProvider generator; `URL` stands for the server.
    pub repositories: Value,
    /// Those of a pullRequest generator.
    pub pulls: Value,
    pub login: Login,
    /// The header with the credentials, and its value.
    pub header: (&'static str, &'static str),
    /// The first two are the pages of the repositories.
    pub routes: Vec<Route>,
    /// The pages of the pull requests.
    pub pull_routes: Vec<Route>,
    /// A list without elements.
    pub empty: Value,
    /// The branch of the first repository as the host names it in its list.
    pub listed_as: &'static str,
}

fn token() -> Login {
    Login::Token(Secret::new("t0ken"))
}

fn password() -> Login {
    Login::Password {
        username: "user".to_owned(),
        secret: Secret::new("t0ken"),
    }
}

impl Host {
    pub fn account(&self, url: &str) -> Account {
        Account {
            login: self.login.clone(),
            api: url.to_owned(),
            ..Account::default()
        }
    }

    pub fn scm(&self, url: &str) -> SCMProviderGenerator {
        serde_json::from_str(&self.repositories.to_string().replace("URL", url)).expect("settings")
    }

    pub fn of_pulls(&self, url: &str) -> PullRequestGenerator {
        serde_json::from_str(&self.pulls.to_string().replace("URL", url)).expect("settings")
    }

    /// Answers by the routes; whatever else is asked for does not exist.
    pub fn answer(&self) -> impl Fn(&str, &Asked) -> Reply + Send + Sync + 'static {
        let routes: Vec<Route> = [&self.routes[..], &self.pull_routes].concat();
        move |own, asked| {
            let found = routes.iter().find(|(path, query, _)| {
                let has = |(name, value): (&String, &String)| asked.query.get(name) == Some(value);
                asked.path == *path && pairs(query).iter().all(has)
            });
            match found {
                Some((.., body)) => Reply::new(200, body.to_string().replace("URL", own)),
                None => Reply::new(404, json!({"message": "Not Found"})),
            }
        }
    }

    pub async fn start(&self) -> Server {
        Server::start(self.answer()).await
    }

    pub async fn list(&self, repos: &Repos, url: &str) -> Result<Vec<Repository>, String> {
        let (settings, account) = (self.scm(url), self.account(url));
        let found = repos.scm().repositories(&settings, &account);
        found.await.map_err(|e| e.to_string())
    }

    pub async fn list_pulls(&self, repos: &Repos, url: &str) -> Result<Vec<PullRequest>, String> {
        let (settings, account) = (self.of_pulls(url), self.account(url));
        let found = repos.scm().pull_requests(&settings, &account);
        found.await.map_err(|e| e.to_string())
    }
}

pub fn hosts() -> Vec<Host> {
    vec![
        github(),
        gitlab(),
        gitea(),
        bitbucket_server(),
        azure_devops(),
        bitbucket(),
    ]
}

fn github() -> Host {
    let repo = |id: i64, name: &str| {
        json!({
            "id": id, "name": name, "owner": {"login": "acme"}, "default_branch": "main",
            "ssh_url": format!("git@h:acme/{name}.git"), "clone_url": format!("https://h/acme/{name}.git"),
            "archived": false, "topics": ["t"],
        })
    };
    let pull = |number: i64| {
        json!({
            "number": number, "title": format!("PR {number}"), "user": {"login": "ann"},
            "head": {"ref": format!("topic-{number}"), "sha": "abc"},
            "base": {"ref": "main", "sha": "def"}, "labels": [{"name": "preview"}],
        })
    };
    Host {
        name: "GitHub",
        repositories: json!({"github": {"organization": "acme", "api": "URL"}}),
        pulls: json!({"github": {"owner": "acme", "repo": "one", "api": "URL", "labels": ["preview"]}}),
        login: token(),
        header: ("authorization", "Bearer t0ken"),
        routes: vec![
            ("/api/v3/orgs/acme/repos", "page=2", json!([repo(2, "two")])),
            ("/api/v3/orgs/acme/repos", "", full(repo(1, "one"), 100)),
            (
                "/api/v3/repos/acme/one/branches/main",
                "",
                json!({"name": "main", "commit": {"sha": "abc"}}),
            ),
            (
                "/api/v3/repos/acme/one/contents/dir/a.yaml",
                "ref=main",
                json!({}),
            ),
        ],
        pull_routes: vec![
            ("/api/v3/repos/acme/one/pulls", "page=2", json!([pull(2)])),
            ("/api/v3/repos/acme/one/pulls", "", full(pull(1), 100)),
        ],
        empty: json!([]),
        listed_as: "main",
    }
}

/// A page that is full, with one element as often as it takes.
fn full(element: Value, size: usize) -> Value {
    vec![element; size].into()
}

fn gitlab() -> Host {
    let project = |id: i64, path: &str| {
        json!({
            "id": id, "path": path, "namespace": {"full_path": "acme/team"},
            "default_branch": "main", "ssh_url_to_repo": format!("git@h:acme/team/{path}.git"),
            "http_url_to_repo": format!("https://h/acme/team/{path}.git"), "topics": ["t"],
        })
    };
    let request = |iid: i64| {
        json!({
            "iid": iid, "title": format!("PR {iid}"), "source_branch": format!("topic-{iid}"),
            "target_branch": "main", "sha": "abc", "labels": ["preview"],
            "author": {"username": "ann"},
        })
    };
    Host {
        name: "GitLab",
        repositories: json!({"gitlab": {"group": "acme/team", "api": "URL", "includeSubgroups": true}}),
        pulls: json!({"gitlab": {"project": "acme/team/one", "api": "URL", "pullRequestState": "opened"}}),
        login: token(),
        header: ("private-token", "t0ken"),
        routes: vec![
            (
                "/api/v4/groups/acme%2Fteam/projects",
                "page=2&include_subgroups=true&with_shared=true",
                json!([project(2, "two")]),
            ),
            (
                "/api/v4/groups/acme%2Fteam/projects",
                "include_subgroups=true",
                full(project(1, "one"), 100),
            ),
            (
                "/api/v4/projects/1/repository/branches/main",
                "",
                json!({"name": "main", "commit": {"id": "abc"}}),
            ),
            (
                "/api/v4/projects/1/repository/files/dir%2Fa.yaml",
                "ref=main",
                json!({}),
            ),
        ],
        pull_routes: vec![
            (
                "/api/v4/projects/acme%2Fteam%2Fone/merge_requests",
                "page=2&state=opened",
                json!([request(2)]),
            ),
            (
                "/api/v4/projects/acme%2Fteam%2Fone/merge_requests",
                "state=opened",
                full(request(1), 100),
            ),
        ],
        empty: json!([]),
        listed_as: "main",
    }
}

fn gitea() -> Host {
    let repo = |id: i64, name: &str| {
        json!({
            "id": id, "name": name, "default_branch": "main", "archived": false,
            "ssh_url": format!("git@h:acme/{name}.git"), "html_url": format!("https://h/acme/{name}"),
        })
    };
    let pull = |number: i64| {
        json!({
            "number": number, "title": format!("PR {number}"), "user": {"login": "ann"},
            "head": {"ref": format!("topic-{number}"), "sha": "abc"},
            "base": {"ref": "main", "sha": "def"}, "labels": [{"name": "preview"}],
        })
    };
    Host {
        name: "Gitea",
        repositories: json!({"gitea": {"owner": "acme", "api": "URL/"}}),
        pulls: json!({"gitea": {"owner": "acme", "repo": "one", "api": "URL/"}}),
        login: token(),
        header: ("authorization", "token t0ken"),
        routes: vec![
            ("/api/v1/orgs/acme/repos", "page=2", json!([repo(2, "two")])),
            ("/api/v1/orgs/acme/repos", "", full(repo(1, "one"), 50)),
            ("/api/v1/repos/acme/one/labels", "", json!([{"name": "t"}])),
            ("/api/v1/repos/acme/two/labels", "", json!([{"name": "t"}])),
            (
                "/api/v1/repos/acme/one/branches/main",
                "",
                json!({"name": "main", "commit": {"id": "abc"}}),
            ),
            (
                "/api/v1/repos/acme/one/contents/dir/a.yaml",
                "ref=main",
                json!({}),
            ),
        ],
        pull_routes: vec![
            (
                "/api/v1/repos/acme/one/pulls",
                "page=2&state=open",
                json!([pull(2)]),
            ),
            (
                "/api/v1/repos/acme/one/pulls",
                "state=open",
                full(pull(1), 50),
            ),
        ],
        empty: json!([]),
        listed_as: "main",
    }
}

fn bitbucket_server() -> Host {
    let repo = |id: i64, name: &str| {
        json!({
            "id": id, "name": name, "slug": name, "project": {"key": "ACME"},
            "links": {"clone": [
                {"name": "http", "href": format!("https://h/scm/acme/{name}.git")},
                {"name": "ssh", "href": format!("ssh://git@h/acme/{name}.git")},
            ]},
        })
    };
    let pull = |id: i64| {
        json!({
            "id": id, "title": format!("PR {id}"), "author": {"user": {"name": "ann"}},
            "fromRef": {"displayId": format!("topic-{id}"), "latestCommit": "abc"},
            "toRef": {"displayId": "main"},
        })
    };
    let first =
        |element: Value| json!({"values": [element], "isLastPage": false, "nextPageStart": 7});
    let last = |element: Value| json!({"values": [element], "isLastPage": true});
    let branch = json!({"displayId": "main", "latestCommit": "abc"});
    Host {
        name: "Bitbucket Server",
        repositories: json!({"bitbucketServer": {"project": "ACME", "api": "URL"}}),
        pulls: json!({"bitbucketServer": {"project": "ACME", "repo": "one", "api": "URL/rest/"}}),
        login: password(),
        header: ("authorization", "Basic dXNlcjp0MGtlbg=="),
        routes: vec![
            (
                "/rest/api/1.0/projects/ACME/repos",
                "start=7",
                last(repo(2, "two")),
            ),
            (
                "/rest/api/1.0/projects/ACME/repos",
                "",
                first(repo(1, "one")),
            ),
            (
                "/rest/api/1.0/projects/ACME/repos/one/branches/default",
                "",
                branch.clone(),
            ),
            (
                "/rest/api/1.0/projects/ACME/repos/two/branches/default",
                "",
                branch,
            ),
            (
                "/rest/api/1.0/projects/ACME/repos/one/browse/dir/a.yaml",
                "at=main",
                json!({"type": "FILE"}),
            ),
        ],
        pull_routes: vec![
            (
                "/rest/api/1.0/projects/ACME/repos/one/pull-requests",
                "start=7",
                last(pull(2)),
            ),
            (
                "/rest/api/1.0/projects/ACME/repos/one/pull-requests",
                "",
                first(pull(1)),
            ),
        ],
        empty: json!({"values": [], "isLastPage": true}),
        listed_as: "main",
    }
}

/// Its list of repositories has one page.
fn azure_devops() -> Host {
    let repo = |id: &str, name: &str| {
        json!({
            "id": id, "name": name, "defaultBranch": "refs/heads/main",
            "remoteUrl": format!("https://h/acme/team/_git/{name}"),
        })
    };
    let pull = |id: i64| {
        json!({
            "pullRequestId": id, "title": format!("PR {id}"),
            "sourceRefName": format!("refs/heads/topic-{id}"), "targetRefName": "refs/heads/main",
            "lastMergeSourceCommit": {"commitId": "abc"}, "repository": {"name": "one"},
            "createdBy": {"uniqueName": "ann@example.com"}, "labels": [{"name": "preview"}],
        })
    };
    let both = json!({"count": 2, "value": [repo("1-1", "one"), repo("2-2", "two")]});
    Host {
        name: "Azure DevOps",
        repositories: json!({"azureDevOps": {
            "organization": "acme", "teamProject": "the team", "api": "URL",
        }}),
        pulls: json!({"azuredevops": {
            "organization": "acme", "project": "the team", "repo": "one", "api": "URL",
            "labels": ["preview"],
        }}),
        login: token(),
        header: ("authorization", "Basic OnQwa2Vu"),
        routes: vec![
            ("/acme/the%20team/_apis/git/repositories", "", both.clone()),
            ("/acme/the%20team/_apis/git/repositories", "", both),
            (
                "/acme/the%20team/_apis/git/repositories/one/stats/branches",
                "name=main",
                json!({"name": "main", "commit": {"commitId": "abc"}}),
            ),
            (
                "/acme/the%20team/_apis/git/repositories/1-1/items",
                "path=dir/a.yaml&versionDescriptor.version=main",
                json!({}),
            ),
        ],
        pull_routes: vec![
            (
                "/acme/the%20team/_apis/git/pullrequests",
                "$skip=100",
                json!({"value": [pull(2)]}),
            ),
            (
                "/acme/the%20team/_apis/git/pullrequests",
                "$skip=0&$top=100",
                json!({"value": full(pull(1), 100)}),
            ),
        ],
        empty: json!({"count": 0, "value": []}),
        listed_as: "refs/heads/main",
    }
}

fn bitbucket() -> Host {
    let repo = |id: &str, slug: &str| {
        json!({
            "uuid": id, "slug": slug, "mainbranch": {"name": "main"},
            "links": {"clone": [
                {"name": "https", "href": format!("https://h/acme/{slug}.git")},
                {"name": "ssh", "href": format!("git@h:acme/{slug}.git")},
            ]},
        })
    };
    let pull = |id: i64| {
        json!({
            "id": id, "title": format!("PR {id}"), "author": {"nickname": "ann"},
            "source": {"branch": {"name": format!("topic-{id}")}, "commit": {"hash": "abc"}},
            "destination": {"branch": {"name": "main"}},
        })
    };
    let next = |path: &str| format!("URL{path}?page=2");
    Host {
        name: "Bitbucket",
        repositories: json!({"bitbucket": {"owner": "acme", "user": "user"}}),
        pulls: json!({"bitbucket": {"owner": "acme", "repo": "one", "api": "URL"}}),
        login: password(),
        header: ("authorization", "Basic dXNlcjp0MGtlbg=="),
        routes: vec![
            (
                "/repositories/acme",
                "page=2",
                json!({"values": [repo("{2}", "two")]}),
            ),
            (
                "/repositories/acme",
                "role=member",
                json!({"values": [repo("{1}", "one")], "next": next("/repositories/acme")}),
            ),
            (
                "/repositories/acme/one/refs/branches/main",
                "",
                json!({"name": "main", "target": {"hash": "abc"}}),
            ),
            (
                "/repositories/acme/one/src/abc/dir/a.yaml",
                "format=meta",
                json!({}),
            ),
        ],
        pull_routes: vec![
            (
                "/repositories/acme/one/pullrequests",
                "page=2",
                json!({"values": [pull(2)]}),
            ),
            (
                "/repositories/acme/one/pullrequests",
                "",
                json!({
                    "values": [pull(1)],
                    "next": next("/repositories/acme/one/pullrequests"),
                }),
            ),
        ],
        empty: json!({"values": []}),
        listed_as: "main",
    }
}
