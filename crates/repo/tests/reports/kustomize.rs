//! Cases 33 and 34: remote bases, and the options of Applications. What `kustomize build` prints is
//! compared where the command line is tested.

use super::{Here, case, committed, documents, rows, text};
use serde_json::{Value, json};
use std::fs;
use tiphys_testkit::git_server::{Server, Setup};

#[tokio::test(flavor = "multi_thread")]
async fn case_33() {
    let Some(case) = case("33") else { return };
    let here = Here::new();
    let (folder, printed) = here.set_up(&case);
    let sha = printed.lines().next().expect("a commit").to_owned();
    // Of this machine's files nothing is a base.
    let server = Server::start(&folder, Setup::default());
    let remote = server.url("/repo.git");
    for (number, row) in rows(&case.join("urls.txt")).iter().enumerate() {
        let url = row[0].replace("REPO", &remote).replace("SHA", &sha);
        let url = url.replace("SHORT", &sha[..8]);
        let over = here.path(&format!("over-{number}"));
        fs::create_dir(&over).expect("a folder");
        let kustomization = format!("resources:\n- {url}\n");
        fs::write(over.join("kustomization.yaml"), kustomization).expect("a file");
        committed(&over);
        let built = here.built(&over, json!({"path": "."})).await;
        match row[1].split_once("fails") {
            None => {
                let built = built.unwrap_or_else(|e| panic!("{url}: {e}"));
                let name = format!("{}remote", row[1]);
                assert_eq!(built[0]["metadata"]["name"], json!(name), "{url}");
            }
            Some((_, wanted)) => {
                let failed = built.expect_err(&url);
                let wanted = wanted.trim_start_matches(": ");
                assert!(failed.contains(wanted), "{url}: {failed}");
            }
        }
    }
}

#[tokio::test]
async fn case_34() {
    let Some(case) = case("34") else { return };
    let here = Here::new();
    let repository = here.repository("in", &case, ["\0", ""]);
    let options = &documents(&text(&case.join("app.yaml")))[0];
    let options = options.as_object().expect("a map");
    assert_eq!(options.len(), 5);
    for (name, options) in options {
        let source = json!({"path": &name[..1], "kustomize": options});
        let built: Result<Vec<Value>, String> = here.built(&repository, source).await;
        let expected = case.join(format!("expected-{name}.yaml"));
        if name == "a" {
            let failed = built.expect_err("the label is there");
            let wanted = text(&case.join("expected-error-a.txt"));
            assert!(failed.contains(wanted.trim()), "{failed}");
        } else {
            assert_eq!(built, Ok(documents(&text(&expected))), "{name}");
        }
    }
}
