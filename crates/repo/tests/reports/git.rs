//! Cases 47 to 54: names of revisions, links, LFS, and how much is fetched.

use super::{Here, case, committed, copied, documents, local, objects, rows, text};
use crate::local::git;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};
use tiphys_repo::{RepoAccess, Secret};
use tiphys_testkit::{
    charts::{Answer, FileServer, basic},
    git_server::{Lfs, Server, Setup},
};

fn subject(repository: &Path, commit: &str) -> String {
    git(repository, &["log", "-1", "--format=%s", commit])
}

#[tokio::test]
async fn case_47() {
    let Some(case) = case("47") else { return };
    let here = Here::new();
    let repository = here.set_up(&case).0.join("repo.git");
    for (revision, wanted) in [
        ("2025-03-04-demo", Some("one")),
        ("2025-03-04-demo-2", Some("two")),
        ("2025.02-LTS-RC3", Some("three")),
        ("2025.05-RC3", Some("four")),
        ("2025.*", None),
    ] {
        let found = here.resolve(&local(&repository), revision).await;
        let found = found.map(|commit| subject(&repository, &commit));
        assert_eq!(found.as_deref().ok(), wanted, "{revision}: {found:?}");
    }
}

#[tokio::test]
async fn case_49() {
    let Some(case) = case("49") else { return };
    let here = Here::new();
    let repository = here.set_up(&case).0.join("repo.git");
    let access = local(&repository);
    let of = async |revision: &str| {
        let found = here.resolve(&access, revision).await;
        found.map(|commit| (subject(&repository, &commit), commit))
    };
    for (revision, wanted) in [
        ("HEAD", "two"),
        ("v1", "one"),
        ("refs/tags/same", "one"),
        ("refs/heads/same", "two"),
    ] {
        let (found, commit) = of(revision).await.expect(revision);
        assert_eq!(found, wanted, "{revision}");
        let kind = git(&repository, &["cat-file", "-t", &commit]);
        assert_eq!(kind, "commit", "{revision}");
    }
    let first = of("same").await;
    for _ in 0..200 {
        assert_eq!(of("same").await, first);
    }
}

/// Without LFS, with it, and with a server that does not have it.
#[tokio::test(flavor = "multi_thread")]
async fn case_51() {
    let Some(case) = case("51") else { return };
    let made = Here::new();
    let folder = made.repository("in", &case.join("in"), ["\0", ""]);
    fs::rename(folder.join("gitattributes"), folder.join(".gitattributes")).expect("renamed");
    let sha = crate::local::commit(&folder, "attributes");
    let bare = made.path("r.git");
    git(
        &folder,
        &["clone", "-q", "--bare", ".", bare.to_str().expect("UTF-8")],
    );
    let objects_of = |folder: &Path| -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(folder).expect("a folder").flatten();
        let object = |file: fs::DirEntry| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, fs::read(file.path()).expect("a file"))
        };
        files.map(object).collect()
    };
    let all = objects_of(&case.join("objects"));
    assert_eq!(all.len(), 2);
    for (is_on, served) in [
        (true, all),
        (true, BTreeMap::new()),
        (false, BTreeMap::new()),
    ] {
        let here = Here::new();
        let lfs = Lfs {
            objects: served.clone(),
            elsewhere: None,
        };
        let setup = Setup {
            lfs: Some(lfs),
            ..Setup::default()
        };
        let server = Server::start(made.dir.path(), setup);
        let access = RepoAccess {
            lfs: is_on,
            ..RepoAccess::public(server.url("/r.git"))
        };
        for (path, wanted) in [("chart", "from-lfs"), ("manifests", "plain-from-lfs")] {
            let made = here.render(&access, &sha, json!({"path": path})).await;
            if is_on && !served.is_empty() {
                let names: Vec<Value> = objects(&made.expect(path))
                    .iter()
                    .map(|object| object["metadata"]["name"].clone())
                    .collect();
                assert_eq!(names, [json!(wanted)], "{path}");
                continue;
            }
            let failed = made.expect_err("pointers");
            assert!(failed.contains("LFS"), "{path}: {failed}");
            let file = ["dep-0.1.0.tgz", "cm.yaml"][usize::from(path == "manifests")];
            assert!(is_on || failed.contains(file), "{path}: {failed}");
        }
    }
}

#[tokio::test]
async fn case_52() {
    let Some(case) = case("52") else { return };
    let here = Here::new();
    let made = here.set_up(&case).0.join("repo");
    let rows = rows(&case.join("links.txt"));
    assert_eq!(rows.len(), 11);
    for row in rows {
        let (name, verdict) = (&row[0], &row[2]);
        // Each alone.
        let alone = here.path(&format!("alone-{name}"));
        copied(&made, &alone, &|text| text);
        let kept = |path: &Path| {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let of = match name.as_str() {
                "chain.yaml" | "dots.yaml" => "inside.yaml",
                "through-link" => "dir",
                "loop-a" => "loop-b",
                _ => "",
            };
            file == *name || file == of
        };
        for link in fs::read_dir(alone.join("apps/web"))
            .expect("a folder")
            .flatten()
        {
            if !kept(&link.path()) {
                fs::remove_file(link.path()).expect("removed");
            }
        }
        fs::write(here.path("outside.yaml"), "who: outside\n").expect("a file");
        let web = |path: &str| alone.join("apps/chart").join(path);
        let chart = "apiVersion: v2\nname: web\nversion: 0.1.0\n";
        fs::create_dir_all(web("templates")).expect("a folder");
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  who: {{ .Values.who | quote }}\n";
        fs::write(web("Chart.yaml"), chart).expect("a file");
        fs::write(web("templates/cm.yaml"), template).expect("a file");
        fs::create_dir_all(alone.join("apps/plain")).expect("a folder");
        let plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
        fs::write(alone.join("apps/plain/cm.yaml"), plain).expect("a file");
        committed(&alone);

        let file = match name.as_str() {
            "dir" => "dir/values.yaml",
            "root" => "root/shared/values.yaml",
            name => name,
        };
        let read = format!("/apps/web/{file}");
        let read = json!({"path": "apps/chart", "helm": {"valueFiles": [read]}});
        let read = here.built(&alone, read).await;
        let all = json!({"path": "apps/web", "directory": {"recurse": true}});
        let unread = here.built(&alone, all).await;
        let beside = here.built(&alone, json!({"path": "apps/plain"})).await;
        if verdict.starts_with("refused") {
            // What has another name is no manifest.
            let is_manifest = name.ends_with(".yaml");
            for outcome in [Some(read), is_manifest.then_some(unread)]
                .into_iter()
                .flatten()
            {
                let failed = outcome.expect_err(name);
                assert!(failed.contains(name.as_str()), "{name}: {failed}");
            }
            continue;
        }
        assert!(
            unread.is_ok() && beside.is_ok(),
            "{name}: {unread:?} {beside:?}"
        );
        match verdict.contains("error when read") {
            true => assert!(read.is_err(), "{name}: {read:?}"),
            false => {
                let read = read.unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(read[0]["data"]["who"], json!("shared"), "{name}");
            }
        }
    }
    assert_eq!(
        documents(&text(&made.join("shared/values.yaml")))[0],
        json!({"who": "shared"})
    );
}

/// Nothing asks for more than the commits that it needs, also those that are old or abbreviated.
#[tokio::test(flavor = "multi_thread")]
async fn case_54() {
    let Some(case) = case("54") else { return };
    let here = Here::new();
    let folder = here.set_up(&case).0;
    let bare = folder.join("repo.git");
    let server = Server::start(&folder, Setup::default());
    let access = RepoAccess::public(server.url("/repo.git"));
    let mut commits = 0;
    let [main, old] = ["main", "old"].map(|name| git(&bare, &["rev-parse", name]));
    git(&bare, &["tag", "middle", "main~150"]);
    let full = git(&bare, &["rev-parse", "main~77"]);
    let short = git(&bare, &["rev-parse", "--short=10", "middle"]);
    for (revision, wanted) in [
        ("main", "n200"),
        ("old", "n3"),
        (&*full, "n123"),
        (&*short, "n50"),
    ] {
        let sha = here.resolve(&access, revision).await.expect(revision);
        let made = here.render(&access, &sha, json!({"path": "."})).await;
        let made = objects(&made.expect(revision));
        assert_eq!(made[0]["metadata"]["name"], json!(wanted));
        let full = git(&bare, &["rev-parse", revision]);
        let about = here.repos.metadata(&access, &full).await;
        assert_eq!(about.expect("a commit").message.trim(), wanted);
        commits += 1;
        let copied = crate::remote::commits_in(&here.path("cache"));
        assert!(
            copied <= commits,
            "{copied} commits for {commits} revisions"
        );
    }
    let is_meant = |file: &str| file == "other.yaml";
    let changed = here.repos.any_changed(&access, &old, &main, is_meant).await;
    assert!(!changed.expect("both are there"));
    assert_eq!(crate::remote::commits_in(&here.path("cache")), commits);
}

/// A report of users: URLs reach the server as they are written, and passwords byte for byte.
#[tokio::test(flavor = "multi_thread")]
async fn users_24() {
    let Some(case) = case("47") else { return };
    let users = case.join("../../users/24-repo-url-and-password");
    let here = Here::new();
    let server = FileServer::start();
    let host = server.url().replace("http://", "");
    let refused = Answer {
        status: 401,
        headers: vec!["WWW-Authenticate: Basic realm=\"git\"".to_owned()],
        ..Answer::default()
    };
    let secrets = documents(&text(&users.join("repositories.yaml")));
    let expected = &documents(&text(&users.join("expected.json")))[0];
    let passwords = text(&users.join("passwords.txt"));
    let ask = async |url: &str, username: &str, password: &str| {
        let access = RepoAccess {
            username: username.to_owned(),
            password: Secret::new(password),
            ..RepoAccess::public(url.replace("127.0.0.1:8099", &host))
        };
        let failed = here
            .resolve(&access, "HEAD")
            .await
            .expect_err("nobody is let in");
        assert!(
            password.is_empty() || !failed.contains(password),
            "{failed}"
        );
        server.received()
    };
    for (secret, wanted) in secrets.iter().zip(expected.as_array().expect("a list")) {
        let data = &secret["stringData"];
        let field = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let path = wanted["request_path"].as_str().expect("a path");
        let of_path = format!("{path}?service=git-upload-pack");
        server.serve(&of_path, refused.clone());
        let with_own = std::iter::once(field("password"));
        let all = passwords.lines().map(str::to_owned);
        let is_plain = field("username").is_empty();
        let tried: Vec<String> = match is_plain {
            true => vec![String::new()],
            false => with_own.chain(all).collect(),
        };
        for password in tried {
            let asked = ask(&field("url"), &field("username"), &password).await;
            assert!(asked.iter().any(|asked| asked.path == of_path), "{asked:?}");
            if is_plain {
                continue;
            }
            let header = basic(&field("username"), &password);
            let sent = asked.iter().map(|asked| asked.authorization.as_str());
            let sent: Vec<&str> = sent.filter(|header| !header.is_empty()).collect();
            assert!(!sent.is_empty(), "{password}: {asked:?}");
            assert!(
                sent.iter().all(|sent| *sent == header),
                "{password}: {sent:?}"
            );
        }
    }
}
