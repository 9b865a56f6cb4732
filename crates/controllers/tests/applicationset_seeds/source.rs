//! What a set is generated from: a host of Git or a repository that fails in many ways. Main types:
//! [`Kind`], [`Truth`] and [`Source`].

use crate::applicationset_hosts::server::{Asked, Reply, Server};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use tiphys_testkit::Repo;

/// Elements of a page.
const PAGE: usize = 2;
/// No file of a generator's form.
const BROKEN: &str = "apps/broken/c.json";

/// What the first generator of a matrix is; the second one lists clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    PullRequests,
    Repositories,
    Directories,
    Files,
    /// Pull requests, merged with a list.
    Merge,
}

pub const KINDS: [Kind; 5] = [
    Kind::PullRequests,
    Kind::Repositories,
    Kind::Directories,
    Kind::Files,
    Kind::Merge,
];

impl Kind {
    /// Whether a repository is read, and no host asked for a list.
    pub fn is_git(self) -> bool {
        matches!(self, Self::Directories | Self::Files)
    }

    /// The generator, and the parameter that names an element.
    pub fn generator(self, url: &str) -> (Value, &'static str) {
        let pulls =
            json!({"pullRequest": {"github": {"owner": "acme", "repo": "shop", "api": url}}});
        let git = |what: &str, path: &str| json!({"git": {"repoURL": url, "revision": "HEAD", what: [{"path": path}]}});
        match self {
            Self::PullRequests => (pulls, "{{.number}}"),
            Self::Repositories => (
                json!({"scmProvider": {
                    "cloneProtocol": "https", "gitlab": {"group": "acme", "api": url},
                }}),
                "{{.repository}}",
            ),
            Self::Directories => (git("directories", "apps/*"), "{{.path.basename}}"),
            Self::Files => (git("files", "apps/*/c.json"), "{{.item}}"),
            Self::Merge => {
                let list = json!({"list": {"elements": [{"number": "1", "extra": "x"}]}});
                let merge =
                    json!({"merge": {"mergeKeys": ["number"], "generators": [pulls, list]}});
                (merge, "{{.number}}")
            }
        }
    }
}

/// How a host answers. A repository that fails is away, or has a file of another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Well,
    Status(u16),
    Html,
    /// JSON that is no list.
    Object,
    /// Half a list.
    Cut,
    /// The last of several pages fails; one page fails where there is no other.
    LastPage,
    /// Every other list lacks an element: it moved to the page before, which was asked already.
    Torn,
}

pub const FAILURES: [Mode; 9] = [
    Mode::Status(500),
    Mode::Status(502),
    Mode::Status(404),
    Mode::Status(403),
    Mode::Status(401),
    Mode::Html,
    Mode::Object,
    Mode::Cut,
    Mode::LastPage,
];

/// What there is: elements, and clusters.
#[derive(Clone, Debug)]
pub struct Truth {
    pub items: BTreeSet<u64>,
    pub clusters: BTreeSet<u64>,
    pub mode: Mode,
}

impl Truth {
    /// Whether the source says that something is wrong.
    pub fn fails(&self) -> bool {
        ![Mode::Well, Mode::Torn].contains(&self.mode)
    }

    /// The Applications that are wanted, by name.
    pub fn wanted(&self, seed: u64) -> BTreeSet<String> {
        let of = |item: &u64| {
            let clusters = self.clusters.iter();
            let names = clusters.map(|cluster| format!("s{seed}-{item}-c{cluster}"));
            names.collect::<Vec<_>>()
        };
        self.items.iter().flat_map(of).collect()
    }

    /// `listed`: how many lists were asked for, and what the last one is of.
    fn answer(&self, own: &str, asked: &Asked, listed: &mut (usize, Vec<u64>)) -> Reply {
        if let Mode::Status(status) = self.mode {
            // Of GitLab, that a branch is missing would be an answer; that the project is, is none.
            return Reply::new(status, json!({"message": "404 Project Not Found"}));
        }
        if asked.path.contains("/repository/branches/") {
            let branch = json!({"name": "main", "commit": {"id": "0123456789abcdef"}}).to_string();
            return self.formed(branch).unwrap_or_else(|reply| reply);
        }
        let page: usize = asked
            .query
            .get("page")
            .map_or(Ok(1), |page| page.parse())
            .expect("a page");
        if page == 1 {
            *listed = (listed.0 + 1, self.items.iter().copied().collect());
            if self.mode == Mode::Torn && listed.0 % 2 == 1 && listed.1.len() > PAGE {
                listed.1.remove(PAGE);
            }
        }
        let items = &listed.1;
        let chunk = items.chunks(PAGE).nth(page - 1).unwrap_or_default();
        let is_last = page * PAGE >= items.len();
        let is_gitlab = asked.path.ends_with("/projects");
        let list = chunk.iter().map(|item| match is_gitlab {
            true => project(*item),
            false => pull_request(*item),
        });
        let reply = match self.formed(Value::from_iter(list).to_string()) {
            Ok(reply) => reply,
            Err(reply) => return reply,
        };
        if is_last {
            return match self.mode {
                Mode::LastPage => Reply::new(503, "{}"),
                _ => reply,
            };
        }
        let next = format!("<{own}{}?page={}>; rel=\"next\"", asked.path, page + 1);
        reply.header("link", next)
    }

    /// An answer; `Err`: one that cannot be read.
    fn formed(&self, body: String) -> Result<Reply, Reply> {
        match self.mode {
            Mode::Html => Err(Reply::new(200, "<html></html>")),
            Mode::Object => Err(Reply::new(200, "{}")),
            Mode::Cut => Err(Reply {
                cut: Some(body.len() / 2),
                ..Reply::new(200, body)
            }),
            _ => Ok(Reply::new(200, body)),
        }
    }
}

fn pull_request(number: u64) -> Value {
    json!({
        "number": number, "title": "t", "user": {"login": "ann"}, "labels": [],
        "head": {"ref": "topic", "sha": "0123456789abcdef"}, "base": {"ref": "main", "sha": "d"},
    })
}

fn project(number: u64) -> Value {
    json!({
        "id": number, "path": number.to_string(), "namespace": {"full_path": "acme"},
        "default_branch": "main", "http_url_to_repo": format!("https://example.com/{number}.git"),
        "ssh_url_to_repo": format!("git@example.com:acme/{number}.git"),
    })
}

/// Where the elements are.
pub struct Source {
    pub kind: Kind,
    truth: Arc<Mutex<Truth>>,
    host: Server,
    repo: Repo,
    /// The elements of the last commit.
    committed: BTreeSet<u64>,
    is_away: bool,
    is_broken: bool,
}

impl Source {
    pub async fn start(kind: Kind) -> Self {
        let truth = Arc::new(Mutex::new(Truth {
            items: BTreeSet::new(),
            clusters: BTreeSet::new(),
            mode: Mode::Well,
        }));
        let now = Arc::clone(&truth);
        let listed = Mutex::new((0, Vec::new()));
        let host = Server::start(move |own, asked| {
            let truth = now.lock().expect("no panic").clone();
            truth.answer(own, asked, &mut listed.lock().expect("no panic"))
        })
        .await;
        Self {
            kind,
            truth,
            host,
            repo: Repo::with(&[("README.md", "x")]),
            committed: BTreeSet::new(),
            is_away: false,
            is_broken: false,
        }
    }

    pub fn url(&self) -> String {
        match self.kind.is_git() {
            true => self.repo.url(),
            false => self.host.url.clone(),
        }
    }

    pub fn truth(&self) -> Truth {
        self.truth.lock().expect("no panic").clone()
    }

    /// From now on it fails.
    pub fn fail(&mut self, mode: Mode) {
        self.truth.lock().expect("no panic").mode = mode;
        if !self.kind.is_git() || self.is_away || self.is_broken {
            return;
        }
        let has_files = self.kind == Kind::Files;
        if has_files && [Mode::Html, Mode::Object, Mode::Cut].contains(&mode) {
            self.repo.commit(&[(BROKEN, "{\"item\": ")], &[]);
            self.is_broken = true;
        } else {
            self.repo.set_away(true);
            self.is_away = true;
        }
    }

    /// What there is from now on.
    pub fn tell(&mut self, truth: Truth) {
        if self.kind.is_git() && !truth.fails() {
            self.mend(&truth.items);
        }
        *self.truth.lock().expect("no panic") = truth;
    }

    /// The repository is there, and its last commit has these elements.
    fn mend(&mut self, items: &BTreeSet<u64>) {
        if self.is_away {
            self.repo.set_away(false);
        }
        let file = |item: &u64| format!("apps/{item}/c.json");
        let new: Vec<(String, String)> = items
            .difference(&self.committed)
            .map(|item| (file(item), json!({"item": item.to_string()}).to_string()))
            .collect();
        let new: Vec<(&str, &str)> = new
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let gone: Vec<String> = self.committed.difference(items).map(file).collect();
        let mut gone: Vec<&str> = gone.iter().map(String::as_str).collect();
        if self.is_broken {
            gone.push(BROKEN);
        }
        if !new.is_empty() || !gone.is_empty() {
            self.repo.commit(&new, &gone);
        }
        self.committed.clone_from(items);
        (self.is_away, self.is_broken) = (false, false);
    }
}
