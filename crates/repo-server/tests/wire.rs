//! The bytes on the wire: fields by their numbers in Argo CD's repository.proto, encoded and decoded
//! here by hand.

use crate::world::{World, text};

/// A field of bytes or text.
fn field(number: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let mut out = varint(u64::from(number << 3 | 2));
    out.extend(varint(value.len() as u64));
    out.extend(value);
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
    out
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

/// The fields of a message, with numbers as text.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes);
        let value = match tag & 7 {
            0 => read_varint(&mut bytes).to_string().into_bytes(),
            2 => {
                let size = usize::try_from(read_varint(&mut bytes)).expect("small");
                let (value, rest) = bytes.split_at(size);
                bytes = rest;
                value.to_vec()
            }
            other => panic!("wire type {other}"),
        };
        found.push((tag >> 3, value));
    }
    found
}

/// The only text with a number.
fn one(body: &[u8], number: u64) -> String {
    let all = fields(body);
    let mut with: Vec<_> = all.into_iter().filter(|(n, _)| *n == number).collect();
    assert_eq!(with.len(), 1, "field {number}");
    String::from_utf8(with.remove(0).1).expect("text")
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[tokio::test(flavor = "multi_thread")]
async fn manifests_have_argo_cds_numbers() {
    let world = World::plain().await;
    let (path, sha) = world.repository("repository", &[("app/a.yaml", CONFIG_MAP)]);
    // Repository.repo, ApplicationSource.repoURL and .path.
    let repo = field(1, text(&path));
    let source = [field(1, text(&path)), field(2, "app")].concat();
    let request = [
        field(1, repo),
        field(2, "main"),
        field(4, "app.kubernetes.io/instance"),
        field(5, "web"),
        field(8, "prod"),
        field(10, source),
        field(14, "1.33"),
        field(15, "v1"),
        field(19, "annotation"),
        field(24, "*"),
        field(25, "default"),
        field(27, "here"),
    ]
    .concat();
    let found = world
        .raw("repository.RepoServerService/GenerateManifest", &request)
        .await;
    assert_eq!(found.status, "0", "{found:?}");
    assert_eq!(
        one(&found.body, 1),
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"argocd.argoproj.io/installation-id":"here","argocd.argoproj.io/tracking-id":"web:/ConfigMap:prod/a"},"name":"a"}}"#
    );
    assert_eq!(one(&found.body, 4), sha);
    assert_eq!(one(&found.body, 6), "Directory");
    assert_eq!(fields(&found.body).len(), 3, "nothing else is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_calls_have_argo_cds_numbers() {
    let world = World::plain().await;
    let (path, sha) = world.repository("repository", &[("a", "a")]);
    let repo = field(1, field(1, text(&path)));
    let call = |method: &str| format!("repository.RepoServerService/{method}");

    let tested = world.raw(&call("TestRepository"), &repo).await;
    assert_eq!((tested.status.as_str(), tested.body.len()), ("0", 0));

    let refs = world.raw(&call("ListRefs"), &repo).await;
    assert_eq!(fields(&refs.body), [(1, b"main".to_vec())]);

    let request = [repo.clone(), field(2, &sha)].concat();
    let metadata = world.raw(&call("GetRevisionMetadata"), &request).await;
    assert_eq!(metadata.status, "0", "{metadata:?}");
    assert!(one(&metadata.body, 1).contains('<'), "the author");
    assert_eq!(one(&metadata.body, 4), "Add the example");
    let named = [repo.clone(), field(2, "main")].concat();
    let refused = world.raw(&call("GetRevisionMetadata"), &named).await;
    assert_eq!(refused.message, "revision main must be resolved");

    // ResolveRevisionRequest.app: Application.spec.source.repoURL.
    let app = field(2, field(2, field(1, field(1, text(&path)))));
    let request = [repo.clone(), app, field(3, "main")].concat();
    let resolved = world.raw(&call("ResolveRevision"), &request).await;
    assert_eq!(one(&resolved.body, 1), sha);
    assert_eq!(one(&resolved.body, 2), format!("main ({sha})"));

    let version = world.raw("version.VersionService/Version", &[]).await;
    assert_eq!(one(&version.body, 1), "v1.2.3");
    assert_eq!(
        one(&version.body, 7),
        "rustc",
        "a controller tells ours by it"
    );
    let health = world.raw("grpc.health.v1.Health/Check", &[]).await;
    assert_eq!(fields(&health.body), [(1, b"1".to_vec())]);
    let unknown = world.raw(&call("Nothing"), &[]).await;
    assert_eq!(unknown.status, "12");
    let typed = field(1, [field(1, text(&path)), field(11, "svn")].concat());
    let refused = world.raw(&call("TestRepository"), &typed).await;
    assert_eq!(refused.status, "2", "{refused:?}");
}
