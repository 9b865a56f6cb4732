//! Reports 02 and 05: where the addresses of an index lead, and who gets the credentials.

use crate::{
    reports::{report, text},
    world::{World, sha},
};
use std::{sync::Arc, time::Duration};
use tiphys_catalog::sync::CatalogSync;
use tiphys_repo::{ChartRemote, RemoteOptions, RepoAccess, Secret};
use tiphys_testkit::{
    charts::{Answer, FileServer, basic, index, plain_chart},
    registry::{HELM_LAYER, Registry},
};

fn remote(access: RepoAccess, pass_credentials: bool) -> ChartRemote {
    let options = RemoteOptions {
        pass_credentials,
        agent: String::new(),
        timeout: Duration::from_secs(30),
    };
    ChartRemote::new(access, options)
}

#[test]
fn relative_urls() {
    let Some(folder) = report("02-relative-urls") else {
        return;
    };
    let table = text(&folder, "urls.tsv");
    let mut rows = 0;
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [repository, written, asked] = columns[..] else {
            panic!("three columns: {line}");
        };
        // A registry is asked in another way, by the same address.
        let asked = if asked.starts_with("oci pull") {
            written
        } else {
            asked
        };
        let found = remote(RepoAccess::public(repository), false).address(written);
        assert_eq!(found.expect(line), asked, "{line}");
        rows += 1;
    }
    assert!(rows >= 10);
}

/// As the last row of report 02 says: an index whose charts are in a registry.
#[tokio::test(flavor = "multi_thread")]
async fn charts_of_an_index_may_be_in_a_registry() {
    let (world, registry) = (World::new(), Registry::start());
    let readme = [("README.md", "in a registry")];
    let archive = plain_chart("a", "1.0.0", &readme);
    registry.push("acme/a", "1.0.0", HELM_LAYER, &archive);
    let written = format!("oci://{}/acme/a:1.0.0", registry.host());
    let entries = [("a", "1.0.0", &*written, &*sha(&archive))];
    let text = index(&entries);
    world.server.serve("/charts/index.yaml", text.as_str());
    let report = world.sync().await.expect("synced");
    assert_eq!((report.files, report.failed_files), (1, 0));
    assert_eq!(world.readme("a", "1.0.0").as_deref(), Some("in a registry"));
}

/// A server whose archives are redirected: to the same one, and to another.
fn redirected(server: &FileServer, other: &FileServer) {
    for (path, to) in [
        ("/redirect-to-same", format!("{}/top.tgz", server.url())),
        ("/redirect-to-18458", format!("{}/redirected", other.url())),
    ] {
        let answer = Answer {
            status: 302,
            headers: vec![format!("Location: {to}")],
            ..Answer::default()
        };
        server.serve(path, answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_and_hosts() {
    let Some(folder) = report("05-credentials-and-hosts") else {
        return;
    };
    let table = text(&folder, "table.tsv");
    let archive = plain_chart("a", "1.0.0", &[]);
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [written, plain, passed] = columns[..] else {
            panic!("three columns: {line}");
        };
        for (pass_credentials, wanted) in [(false, plain), (true, passed)] {
            let mut world = World::new();
            let other = FileServer::start();
            redirected(&world.server, &other);
            let port = |server: &FileServer| {
                let url = server.url();
                url.rsplit(':').next().unwrap_or_default().to_owned()
            };
            let written = match written.starts_with("http") {
                false => written.to_owned(),
                // Only what is a port of the case, not the name of a path.
                true => written
                    .replace(":18457", &format!(":{}", port(&world.server)))
                    .replace(":18458", &format!(":{}", port(&other))),
            };
            for path in ["/charts/charts/rel.tgz", "/top.tgz", "/redirected"] {
                world.server.serve(path, archive.clone());
                other.serve(path, archive.clone());
            }
            let entries = [("a", "1.0.0", &*written, &*sha(&archive))];
            world
                .server
                .serve("/charts/index.yaml", index(&entries).as_str());
            world.access.username = "u".to_owned();
            world.access.password = Secret::new("p4ss");
            let remote = remote(world.access.clone(), pass_credentials);
            let repository = world.repository.clone();
            let sync = CatalogSync::new(Arc::clone(&world.store), remote, repository);
            let report = sync.run().await.expect("synced");
            assert_eq!((report.files, report.failed_files), (1, 0), "{line}");
            let mut received = world.server.received();
            received.extend(other.received());
            let (of_index, of_archive): (Vec<_>, Vec<_>) = received
                .into_iter()
                .partition(|request| request.path == "/charts/index.yaml");
            let sent = of_index
                .iter()
                .all(|r| r.authorization == basic("u", "p4ss"));
            assert!(sent && of_index.len() == 1, "the index itself: {line}");
            let got: Vec<&str> = of_archive
                .iter()
                .map(|r| match r.authorization.is_empty() {
                    true => "no",
                    false => "yes",
                })
                .collect();
            let wanted = wanted.replace("then no at 18458", "no");
            assert_eq!(got.join(", "), wanted, "{line} {pass_credentials}");
        }
    }
}
