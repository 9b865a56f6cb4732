//! Cases 35 to 45, which are about charts and their values.

use super::{Here, anything, case, copied, documents, local, objects, packed, rows, text};
use crate::local::{commit, git};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, path::Path};
use tiphys_repo::{ClusterFacts, ManifestRequest, RefSource, RepoAccess, Since};
use tiphys_testkit::{
    charts::{FileServer, index, plain_chart},
    registry::{HELM_LAYER, Registry},
};

/// Serves a chart's folder in some versions below `/pk`.
fn serve(server: &FileServer, folder: &Path, versions: &[&str]) {
    let name = folder.file_name().expect("a name").to_string_lossy();
    let files: Vec<String> = versions.iter().map(|v| format!("{name}-{v}.tgz")).collect();
    for (version, file) in versions.iter().zip(&files) {
        server.serve(&format!("/pk/{file}"), packed(folder, version));
    }
    let entries = versions.iter().zip(&files);
    let entries: Vec<_> = entries
        .map(|(version, file)| (&*name, *version, file.as_str(), ""))
        .collect();
    server.serve("/pk/index.yaml", index(&entries).as_str());
}

/// What a revision of a chart resolves to, and what is rendered.
async fn chart(
    here: &Here,
    access: &RepoAccess,
    (name, revision): (&str, &str),
) -> (Result<String, String>, Result<Vec<Value>, String>) {
    let source = json!({"repoURL": access.url, "chart": name});
    let of = serde_json::from_value(source.clone()).expect("a source");
    let found = here
        .repos
        .resolve_source(access, &of, revision, Since::now());
    let found = found.await.map_err(|e| e.to_string());
    match found {
        Err(e) => (Err(e.clone()), Err(e)),
        Ok(found) => {
            let made = here.render(access, &found.sha, source).await;
            (Ok(found.sha), made.map(|made| objects(&made)))
        }
    }
}

/// The versions of charts that something rendered says.
fn version_in(objects: &[Value]) -> String {
    let data = &objects.first().expect("an object")["data"];
    let version = data["version"].as_str().or(data["v"].as_str());
    version.unwrap_or_else(|| panic!("{data}")).to_owned()
}

fn holds(result: &Result<String, String>, wanted: &str, what: &str) {
    match wanted.strip_prefix("error: ") {
        None => assert_eq!(result.as_deref(), Ok(wanted), "{what}"),
        Some(wanted) => {
            let failed = result.as_ref().expect_err(what);
            assert!(failed.contains(wanted), "{what}: {failed}");
        }
    }
}

#[tokio::test]
async fn case_35() {
    let Some(case) = case("35") else { return };
    let (here, server) = (Here::new(), FileServer::start());
    let versions = text(&case.join("versions.txt"));
    let versions: Vec<&str> = versions.lines().collect();
    serve(&server, &case.join("chart/demo"), &versions);
    let access = RepoAccess::public(format!("{}/pk", server.url()));
    for row in rows(&case.join("revisions.txt")) {
        let (found, made) = chart(&here, &access, ("demo", &row[0])).await;
        holds(&found, &row[1], &row[0]);
        if let Some(wanted) = row.get(2) {
            let made = made.map(|objects| version_in(&objects));
            holds(&made, wanted, &row[0]);
        }
    }
}

#[tokio::test]
async fn case_36() {
    let Some(case) = case("36") else { return };
    let (here, registry) = (Here::new(), Registry::start());
    let tags = text(&case.join("tags.txt"));
    let tags: Vec<&str> = tags.lines().collect();
    registry.tags("charts/demo", &tags);
    let versions = text(&case.join("versions.txt"));
    for version in versions.lines() {
        let archive = packed(&case.join("chart/demo"), version);
        let tag = version.replace('+', "_");
        registry.push("charts/demo", &tag, HELM_LAYER, &archive);
    }
    let access = RepoAccess {
        plain_http: true,
        ..RepoAccess::public(format!("{}/charts", registry.host()))
    };
    for (revision, wanted) in [
        ("*", "1.2.3"),
        (">=1.0.0-0", "1.2.3"),
        ("<1.2.3", "1.2.2+b1"),
        ("1.2.2+b1", "1.2.2+b1"),
        ("1.2.3-rc1+abc", "1.2.3-rc1+abc"),
        ("1.2.2", "error: not found"),
        ("1.2.2_b1", "error: "),
    ] {
        let (_, made) = chart(&here, &access, ("demo", revision)).await;
        let made = made.map(|objects| version_in(&objects));
        holds(&made, wanted, revision);
    }
}

#[tokio::test]
async fn case_38() {
    let Some(case) = case("38") else { return };
    let (server, other) = (FileServer::start(), FileServer::start());
    let bare = |server: &FileServer| server.url().replace("http://", "");
    let archive = packed(&case.join("chart/demo"), "1.2.3");
    for folder in ["a", "b", "c", "d", "e", "f"] {
        let path = format!("rel/{folder}/index.yaml");
        let index = text(&case.join("www").join(&path));
        let index = index.replace("OTHER", &bare(&other));
        server.serve(&format!("/{path}"), index.as_str());
        server.serve(&format!("/{path}?token=t1"), index.as_str());
    }
    let mut number = 0;
    for row in rows(&case.join("requests.txt")) {
        number += 1;
        // An index is read once, however its repository is written.
        let here = Here::new();
        let (url, is_there) = (
            row[1].replace("BASE", ""),
            row.len() < 3 || row[2].starts_with("(index"),
        );
        let elsewhere = format!("http://{}", bare(&other));
        let url = url.replace("http://OTHER", &elsewhere);
        let (of, path) = match url.strip_prefix(&elsewhere) {
            Some(path) => (&other, path),
            None => (&server, url.as_str()),
        };
        if is_there {
            of.serve(path, archive.clone());
        }
        server.paths();
        other.paths();
        let access = RepoAccess::public(row[0].replace("BASE", &server.url()));
        let (_, made) = chart(&here, &access, ("demo", "1.2.3")).await;
        assert_eq!(made.is_ok(), is_there, "{}: {made:?}", row[0]);
        let asked = of.paths();
        assert!(
            asked.iter().any(|asked| asked == path),
            "{}: {asked:?}",
            row[0]
        );
        if let Some(index) = row
            .get(2)
            .and_then(|rest| rest.strip_prefix("(index: BASE"))
        {
            let index = index.trim_end_matches(')');
            assert!(asked.iter().any(|asked| asked == index), "{asked:?}");
        }
        let archives = asked.iter().filter(|asked| asked.contains(".tgz"));
        assert!(archives.count() <= 1 || !is_there, "{asked:?}");
    }
    assert_eq!(number, 8);
}

#[tokio::test]
async fn case_40() {
    let Some(case) = case("40") else { return };
    let here = Here::new();
    let repository = here.repository("in", &case, ["\0", ""]);
    for name in ["a", "b"] {
        let source = json!({"path": name, "helm": {"releaseName": "r"}});
        let built = here.built(&repository, source).await;
        let expected = text(&case.join(format!("expected-{name}.yaml")));
        assert_eq!(built, Ok(documents(&expected)), "{name}");
    }
}

#[tokio::test]
async fn case_42() {
    let Some(case) = case("42") else { return };
    let (here, server) = (Here::new(), FileServer::start());
    serve(&server, &case.join("dep"), &["0.1.4", "0.1.9"]);
    let url = format!("{}/pk", server.url());
    let repository = here.path("in");
    copied(&case, &repository, &|text| {
        text.replace("http://REPO", &url)
    });
    // As `helm dependency update` writes it while there is no 0.1.9.
    let dependency = |version: &str| json!({"name": "dep", "version": version, "repository": url});
    let sums = format!(
        r#"[[{{"name":"dep","version":"0.1.x","repository":"{url}","alias":"other"}}],[{{"name":"dep","version":"0.1.4","repository":"{url}"}}]]"#
    );
    let sum: String = Sha256::digest(sums)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let lock = json!({"dependencies": [dependency("0.1.4")], "digest": format!("sha256:{sum}")});
    crate::local::write(&repository, "b/Chart.lock", &lock.to_string());
    git(&repository, &["init", "-q"]);
    commit(&repository, "one");

    let failed = here.built(&repository, json!({"path": "a"})).await;
    let failed = failed.expect_err("a stale lock");
    let wanted = text(&case.join("expected-error.txt"));
    assert!(failed.contains(wanted.trim()), "{failed}");
    assert_eq!(server.paths(), [""; 0], "nothing is fetched");
    for (name, version) in [("b", "0.1.4"), ("c", "0.1.9")] {
        let built = here.built(&repository, json!({"path": name})).await;
        let built = built.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(version_in(&built), version, "{name}");
    }
    server.paths();
    let access = local(&repository);
    let sha = here.resolve(&access, "HEAD").await.expect("a commit");
    let made = here.render(&access, &sha, json!({"path": "d"})).await;
    let made = made.expect("what is in charts/");
    assert_eq!(version_in(&objects(&made)), "0.1.4");
    assert_eq!(server.paths(), [""; 0], "nothing is fetched");
}

#[tokio::test]
async fn case_44() {
    let Some(case) = case("44") else { return };
    let (here, server) = (Here::new(), FileServer::start());
    for folder in ["bad", "digest"] {
        let path = format!("{folder}/index.yaml");
        let index = text(&case.join("www").join(&path));
        server.serve(&format!("/{path}"), index.as_str());
    }
    for version in ["1.2.2", "1.2.3"] {
        let archive = plain_chart("demo", version, &[]);
        server.serve(&format!("/pk/demo-{version}.tgz"), archive);
    }
    let access = |folder: &str| RepoAccess::public(format!("{}/{folder}", server.url()));
    for folder in ["bad", "digest"] {
        let (_, made) = chart(&here, &access(folder), ("demo", "1.x")).await;
        let made = made.unwrap_or_else(|e| panic!("{folder}: {e}"));
        assert_eq!(version_in(&made), "1.2.3", "{folder}");
    }
    let (_, made) = chart(&here, &access("bad"), ("other", "1.x")).await;
    let failed = made.expect_err("a chart without entries");
    assert!(failed.contains("not found"), "{failed}");
}

#[tokio::test]
async fn case_45() {
    let Some(case) = case("45") else { return };
    let (here, server) = (Here::new(), FileServer::start());
    server.serve("/values.yaml", "who: from-http\n");
    let own = here.repository("own", &case.join("own"), ["\0", ""]);
    let other = here.repository("other", &case.join("other"), ["\0", ""]);
    std::fs::write(here.path("outside.yaml"), "who: outside\n").expect("a file");
    let before = git(&own, &["rev-parse", "HEAD"]);
    let sha = commit(&own, "two");
    let (own, other) = (local(&own), local(&other));
    let of_other = here.resolve(&other, "HEAD").await.expect("a commit");
    let mut number = 0;
    for row in rows(&case.join("order.txt")) {
        number += 1;
        let (list, rest) = row[0].split_once(']').expect("a list");
        let list = list.replace("https://host", &server.url());
        let files: Value = serde_json::from_str(&format!("{list}]")).expect("a list");
        let reference = match rest.contains("another revision") {
            false => RefSource {
                access: other.clone(),
                sha: of_other.clone(),
            },
            true => RefSource {
                access: own.clone(),
                sha: before.clone(),
            },
        };
        let source = json!({
            "repoURL": own.url,
            "path": "apps/web",
            "helm": {"valueFiles": files, "ignoreMissingValueFiles": rest.contains("ignoreMissing")},
        });
        let request = ManifestRequest {
            access: own.clone(),
            source: serde_json::from_value(source).expect("a source"),
            sha: sha.clone(),
            app_name: "shop".to_owned(),
            several: true,
            refs: BTreeMap::from([("values".to_owned(), reference)]),
            others: anything(),
            cluster_facts: ClusterFacts {
                value_file_schemes: vec!["http".to_owned(), "https".to_owned()],
                ..ClusterFacts::default()
            },
            ..ManifestRequest::default()
        };
        let made = here.rendered(request).await;
        match row[1].strip_prefix("error: ") {
            Some(wanted) => {
                let failed = made.expect_err(&row[0]);
                let wanted = wanted.split(" (").next().unwrap_or(wanted);
                // Some are no texts: Helm says that a file cannot be opened.
                let wanted = match wanted {
                    // On purpose no error here (docs/guide/repo-server.md): the file isn't there.
                    wanted if wanted.contains("a different revision") => "open conf/web.yaml",
                    "not found" => "no such file or directory",
                    "no file matches the pattern none-*.yaml" => "\"none-*.yaml\" matched no files",
                    wanted => wanted,
                };
                assert!(failed.contains(wanted), "{}: {failed}", row[0]);
            }
            None => {
                let made = made.unwrap_or_else(|e| panic!("{}: {e}", row[0]));
                let wanted = row.get(2).map_or("from-http", String::as_str);
                assert_eq!(
                    objects(&made)[0]["data"]["who"],
                    json!(wanted),
                    "{}",
                    row[0]
                );
            }
        }
    }
    assert_eq!(number, 16);
}

/// A report of users: parameters with commas and dots. They are stored as `cli::reports::parameters`
/// says, or applied as they are.
#[tokio::test]
async fn users_18() {
    let Some(case) = case("35") else { return };
    let users = case.join("../../users/18-parameters-with-commas");
    let here = Here::new();
    let repository = here.repository("in", &users, ["\0", ""]);
    let mut parameters = json!([
        {"name": "schedule", "value": r"0 6\,18 * * *"},
        {"name": "names", "value": r"Consumer1\, Consumer2\, Consumer3"},
        {"name": r"annotations.sidecar\.example\.test/inject", "value": "false", "forceString": true},
        {"name": "text", "value": "k=v=w"},
    ]);
    let applied = documents(&text(&users.join("parameters-by-manifest.yaml"))).remove(0);
    let all = parameters.as_array_mut().expect("a list");
    all.extend(applied.as_array().expect("a list").clone());
    let source = json!({"path": "chart", "helm": {"parameters": parameters}});
    let built = here.built(&repository, source).await.expect("rendered");
    let values = built[0]["data"]["all"].as_str().expect("a text");
    let values: Value = serde_json::from_str(values).expect("JSON");
    let wanted: Value =
        serde_json::from_str(&text(&users.join("expected-values.json"))).expect("JSON");
    assert_eq!(values, wanted);
}
