//! An acknowledged write survives `kill -9`: a child process writes and is killed, then its data
//! folder is opened.

use crate::server::support::{get, post, start};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tiphys_embedded_kube::Data;

const FOLDER: &str = "TIPHYS_TEST_FOLDER";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The child: writes until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "a process that the next test kills"]
async fn writer() {
    let folder = std::env::var(FOLDER).expect("the parent names the folder");
    let kube = start(Data::Dir(folder.into())).await;
    let router = kube.router();
    for i in 0.. {
        let name = format!("m{i}");
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"i": i.to_string()}});
        let (code, answer) = post(&router, MAPS, &body).await;
        assert_eq!(code, 201, "{answer}");
        println!(
            "ack {name} {}",
            answer["metadata"]["resourceVersion"]
                .as_str()
                .expect("a revision")
        );
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut last_revision = 0;
    for round in 0..3 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "server::durability::writer",
                "--nocapture",
                "--ignored",
            ])
            .env(FOLDER, folder.path().join(round.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let acks = output
            .lines()
            .map_while(Result::ok)
            .filter(|l| l.starts_with("ack "))
            .take(40 + 35 * round);
        let acked: Vec<String> = acks.collect();
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        let kube = start(Data::Dir(folder.path().join(round.to_string()))).await;
        let router = kube.router();
        for line in &acked {
            let words: Vec<&str> = line.split(' ').collect();
            let (code, found) = get(&router, &format!("{MAPS}/{}", words[1])).await;
            assert_eq!(code, 200, "{line} was acknowledged and is gone");
            assert_eq!(found["metadata"]["resourceVersion"], words[2]);
            last_revision = last_revision.max(words[2].parse::<u64>().expect("a number"));
        }
        assert_eq!(acked.len(), 40 + 35 * round);
        // A revision is never used twice.
        let (_, next) = post(
            &router,
            MAPS,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}}),
        )
        .await;
        let next: u64 = next["metadata"]["resourceVersion"]
            .as_str()
            .expect("a revision")
            .parse()
            .expect("a number");
        let acked_last: u64 = acked
            .last()
            .and_then(|l| l.rsplit(' ').next()?.parse().ok())
            .expect("a number");
        assert!(next > acked_last);
        kube.shutdown().await;
    }
}
