//! kubeapps' asset-syncer as a program: what it says of a database that it does not reach.

use std::net::{Ipv4Addr, TcpListener};
use tiphys_catalog::asset_syncer::{Surroundings, run};

const SECRET: &str = "s3cr3t";

/// What each command says before it exits with 1.
async fn refused(address: &str) -> String {
    let commands: [&[&str]; 3] = [
        &["sync", "r", "http://127.0.0.1:1/charts", "helm"],
        &["delete", "r"],
        &["invalidate-cache"],
    ];
    let surroundings = Surroundings {
        database_password: SECRET.into(),
        ..Surroundings::default()
    };
    let mut said = Vec::new();
    for command in commands {
        let words = command.iter().map(|word| (*word).to_owned());
        let address = [format!("--database-url={address}")];
        let words: Vec<String> = words.chain(address).collect();
        let why = run(&words, &surroundings).await.expect_err(&words[0]);
        said.push(why.to_string());
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_none_is_named() {
    for (address, shown) in [
        ("", ""),
        ("db", "db"),
        ("db:", "db:"),
        ("db:port", "db:port"),
        ("db:65536", "db:65536"),
        ("one:two:5432", "one:two:5432"),
        ("user:s3cr3t@db:5432", "db:5432"),
    ] {
        let wanted = format!("error: can't parse database URL: {shown}");
        assert_eq!(refused(address).await, wanted, "{address:?}");
    }
    let why = refused("postgres://user:s3cr3t@db:port/charts").await;
    assert!(why.starts_with("error: the database's URL: "), "{why}");
    assert!(!why.contains(SECRET), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let place = format!("127.0.0.1:{port}");
    let url = format!("postgres://user:{SECRET}@{place}/charts");
    for address in [&place, &url] {
        let why = refused(address).await;
        assert!(
            why.starts_with(&format!("error: database at {place}: ")),
            "{why}"
        );
        assert!(why.contains("refused"), "{why}");
        assert!(!why.contains(SECRET), "{why}");
    }
}
