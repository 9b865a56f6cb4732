//! GenerateManifestWithFiles: what is sent is rendered, and nothing of it leads out.

use crate::world::{World, request};
use std::path::Path;
use tiphys_api::rpc::repo_server::{
    ManifestFileChunk, ManifestFileMetadata, ManifestRequest, ManifestRequestWithFiles,
    ManifestResponse,
};
use tiphys_testkit::{
    archive::{TarEntry, gzip, tar},
    registry::digest,
};

const METHOD: &str = "GenerateManifestWithFiles";
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn first(request: ManifestRequest) -> ManifestRequestWithFiles {
    ManifestRequestWithFiles {
        request: Some(request),
        ..ManifestRequestWithFiles::default()
    }
}

fn metadata(checksum: &str) -> ManifestRequestWithFiles {
    ManifestRequestWithFiles {
        metadata: Some(ManifestFileMetadata {
            checksum: checksum.to_owned(),
            size: 0,
        }),
        ..ManifestRequestWithFiles::default()
    }
}

fn chunks(archive: &[u8]) -> Vec<ManifestRequestWithFiles> {
    let chunk = |bytes: &[u8]| ManifestRequestWithFiles {
        chunk: Some(ManifestFileChunk {
            chunk: bytes.to_vec(),
        }),
        ..ManifestRequestWithFiles::default()
    };
    archive.chunks(1024).map(chunk).collect()
}

fn checksum(archive: &[u8]) -> String {
    digest(archive).trim_start_matches("sha256:").to_owned()
}

/// All that a client sends for a folder of an archive.
fn all(archive: &[u8], folder: &str) -> Vec<ManifestRequestWithFiles> {
    let request = request(Path::new("https://git.example.com/r.git"), folder);
    let mut all = vec![first(request), metadata(&checksum(archive))];
    all.extend(chunks(archive));
    all
}

async fn send(
    world: &World,
    messages: &[ManifestRequestWithFiles],
) -> Result<ManifestResponse, (String, String)> {
    world.stream(METHOD, messages, true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_rendered() {
    let world = World::plain().await;
    let files = [
        TarEntry::folder("app/"),
        TarEntry::symlink("app/link.yaml", "../base/a.yaml"),
        TarEntry::file("base/a.yaml", CONFIG_MAP),
    ];
    let archive = gzip(&tar(&files));
    for _ in 0..2 {
        let found = send(&world, &all(&archive, "app"))
            .await
            .expect("manifests");
        assert_eq!(
            (found.revision.as_str(), found.source_type.as_str()),
            ("streamed", "Directory")
        );
        assert!(
            found.manifests[0].contains("web:/ConfigMap:prod/a"),
            "{found:?}"
        );
    }
    let missing = send(&world, &all(&archive, "none"))
        .await
        .expect_err("no folder");
    assert_eq!(
        missing,
        ("2".to_owned(), "none: app path does not exist".to_owned())
    );
    let outside = send(&world, &all(&archive, "../x"))
        .await
        .expect_err("outside");
    assert_eq!(outside.1, "../x: app path outside root");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_archives_are_refused() {
    let world = World::plain().await;
    let file = |name| TarEntry::file(name, CONFIG_MAP);
    let link = |name, target| TarEntry::symlink(name, target);
    let tgz = "error receiving manifest file stream: error decompressing tgz file: ";
    let out = "streamed files contains out-of-bounds symlinks. file: ";
    let large = "0".repeat(5 << 20);
    let many: Vec<TarEntry<'_>> = (0..100_001).map(|_| TarEntry::folder("x/")).collect();
    for (entries, expected) in [
        (
            vec![file("../a.yaml")],
            format!("{tgz}illegal filepath in archive: ../a.yaml"),
        ),
        (
            vec![file("/etc/a.yaml")],
            format!("{tgz}illegal filepath in archive: /etc/a.yaml"),
        ),
        (
            vec![file("a/../../b")],
            format!("{tgz}illegal filepath in archive: a/../../b"),
        ),
        (vec![link("a", "/etc/passwd")], format!("{out}a")),
        (vec![link("a/b", "../../x")], format!("{out}a/b")),
        (
            vec![link("l", "d"), file("l/x")],
            format!("{tgz}illegal filepath in archive: l/x"),
        ),
        (
            vec![TarEntry::file("a", &large)],
            format!("{tgz}it unpacks to more than 4194304 bytes"),
        ),
        (
            vec![TarEntry::claiming("a", 1 << 40)],
            format!("{tgz}it unpacks to more than 4194304 bytes"),
        ),
        (many, format!("{tgz}it has more than 100000 files")),
    ] {
        let archive = gzip(&tar(&entries));
        let (status, message) = send(&world, &all(&archive, "")).await.expect_err("refused");
        assert_eq!((status.as_str(), message), ("2", expected));
    }
    let (_, message) = send(&world, &all(b"no gzip", ""))
        .await
        .expect_err("refused");
    assert!(message.starts_with(tgz), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_streams_are_refused() {
    let world = World::plain().await;
    let archive = gzip(&tar(&[TarEntry::file("a.yaml", CONFIG_MAP)]));
    let good = all(&archive, "");
    let begin = "error receiving manifest file stream: ";
    let [request, told] = [good[0].clone(), good[1].clone()];
    let mut wrong = good.clone();
    wrong[1] = metadata("0000");
    let calculated = checksum(&archive);
    let wrong_checksum = format!(
        "error receiving tgz file: file checksum validation error: calc {calculated} sent 0000"
    );
    let mut too_large = vec![request.clone(), told.clone()];
    too_large.extend(chunks(&vec![0; (1 << 20) + 1]));
    for (messages, expected) in [
        (vec![], "failed to receive header: EOF"),
        (
            vec![told.clone()],
            "error getting stream request: request is nil",
        ),
        (vec![request.clone()], "failed to receive header: EOF"),
        (
            vec![request.clone(), request.clone()],
            "error getting stream metadata: metadata is nil",
        ),
        (
            vec![request.clone(), told.clone(), told.clone()],
            "error receiving tgz file: stream request chunk is nil",
        ),
        (wrong, &wrong_checksum),
        (
            too_large,
            "error receiving tgz file: file exceeded max size of 1048576 bytes",
        ),
    ] {
        let (status, message) = send(&world, &messages).await.expect_err("refused");
        assert_eq!(
            (status.as_str(), message),
            ("2", format!("{begin}{expected}"))
        );
    }
    // One that does not end is ended.
    let endless: Result<ManifestResponse, _> = world.stream(METHOD, &good, false).await;
    let (status, message) = endless.expect_err("it does not end");
    assert_ne!(status, "0", "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_sends_files() {
    let world = World::plain().await;
    let large = format!("{CONFIG_MAP}data: {{text: {}}}\n", "x".repeat(300_000));
    let archive = gzip(&tar(&[TarEntry::file("app/a.yaml", &large)]));
    let path = world.dir.path().join("archive.tgz");
    std::fs::write(&path, &archive).expect("written");
    let asked = request(Path::new("https://git.example.com/r.git"), "app");
    let send = async |checksum: &str| {
        let file = std::fs::File::open(&path).expect("it is there");
        let client = world.client();
        client
            .manifests_of_files(asked.clone(), (file, checksum))
            .await
    };
    let found = send(&checksum(&archive)).await.expect("manifests");
    assert_eq!(
        (found.revision.as_str(), found.objects.len()),
        ("streamed", 1)
    );
    let e = send("0000").await.expect_err("another checksum");
    let expected = "rpc error: code = Unknown desc = error receiving manifest file stream: error receiving tgz file: file checksum validation error: ";
    assert!(e.to_string().starts_with(expected), "{e}");
}
