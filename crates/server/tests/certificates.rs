//! Host keys and certificates of repository servers, through REST and gRPC.

use crate::common::{FINGERPRINT, HOST_KEY, OTHER_HOST_KEY, World};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};
use tiphys_api::{
    repository::RepositoryCertificateList, rpc::certificate::RepositoryCertificateCreateRequest,
};
use tiphys_server::ports::Store as _;

const PATH: &str = "/api/v1/certificates";
const KNOWN_HOSTS: &str = "argocd-ssh-known-hosts-cm";
const TLS: &str = "argocd-tls-certs-cm";
/// `CN=git.example.com`, self-signed, with an RSA key.
const PEM: &str = "\
-----BEGIN CERTIFICATE-----
MIIDFTCCAf2gAwIBAgIUdU+vQkozPz/Re8yDi0jJa07DWQYwDQYJKoZIhvcNAQEL
BQAwGjEYMBYGA1UEAwwPZ2l0LmV4YW1wbGUuY29tMB4XDTI2MTEyNTEyNTcyM1oX
DTM2MTEyMjEyNTcyM1owGjEYMBYGA1UEAwwPZ2l0LmV4YW1wbGUuY29tMIIBIjAN
BgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAh0gY9ih1MR58KfjKUELBsLSRsjfV
UiVQSS9/gbKY1CHbgE6yJxmOY6rrNUao+F1avPU17VdQmP0kUdPODwkuZPQF3Dma
N7EIvK5+3LXkAWY5yivtYY16fM/RlOiQ5JXZZY25KbNgb0YHQ4MOiWg35NIzcPep
nPG8sYtcv9Iw4XJ02Y3ujV4CD6SedYCmTahxRHPHix4mSdWyRb96bddTC6AMzZNe
DaZduEERDgTDXxkgDTefDqvqw3elwSI8rtSXoXEvGFIP5XNtv1iYm3F6AW8adnjt
ci9VfG2qg2UoNajDJMJbdlyOd+cGj1orjtDcxFkjWAgX9aWPFy96Rvry+QIDAQAB
o1MwUTAdBgNVHQ4EFgQUHC4+ERqB8nngqKOPW7N2Vp8yLlEwHwYDVR0jBBgwFoAU
HC4+ERqB8nngqKOPW7N2Vp8yLlEwDwYDVR0TAQH/BAUwAwEB/zANBgkqhkiG9w0B
AQsFAAOCAQEALHaSIispN+jkwIGzukTV5fnUzY5WbNx61XaUtk0oGUQ4uubad+hP
DCkNKR/IO5vKxbJa5nA+4xwQBoEVhfl36CFfX/wP3xTD5Oed4clzwJzx8mxdEr5A
jPcBRMqr2oxvm74wl923F9UW17X87lR14epIklQxrmzU0jiUJdS3P/scErpJ/GgU
xaWTAoHu6Y/BvxWg3fy4dbpHUyK0BS/g/NTNztSWCMaZ8TlbUBjkWSDGMFHaytpm
6duiQLETq+da50XZjKHXYfJla9n6veX+KTJJqxZZ7aWu8b9oUxhLlLbaBuhD37YG
4AawOAuO775U2LsX7O7FJG9oZl4dLaVWlA==
-----END CERTIFICATE-----
";

fn ssh(host: &str, kind: &str, key: &str) -> Value {
    json!({"serverName": host, "certType": "ssh", "certSubType": kind, "certData": STANDARD.encode(key)})
}

fn https(server: &str, pem: &str) -> Value {
    json!({"serverName": server, "certType": "https", "certData": STANDARD.encode(pem)})
}

async fn add(world: &World, items: &[Value], upsert: bool) -> (u16, Value) {
    let path = format!("{PATH}?upsert={upsert}");
    world
        .rest(Method::POST, &path, Some(json!({"items": items})))
        .await
}

/// Host, type, type of the key and the rest of what is selected.
async fn list(world: &World, query: &str) -> Vec<[String; 4]> {
    let path = format!("{PATH}?{query}");
    let (status, list) = world.rest(Method::GET, &path, None).await;
    assert_eq!(status, 200, "{list}");
    let items = list["items"].as_array().expect("a list");
    let row = |item: &Value| {
        assert_eq!(item["certData"], Value::Null, "keys are not listed");
        ["serverName", "certType", "certSubType", "certInfo"]
            .map(|field| item[field].as_str().expect("a text").to_owned())
    };
    items.iter().map(row).collect()
}

async fn hosts(world: &World, query: &str) -> Vec<String> {
    let rows = list(world, query).await;
    rows.into_iter()
        .map(|[host, kind, ..]| format!("{host} {kind}"))
        .collect()
}

async fn known_hosts(world: &World) -> String {
    let read = world.store.read_config_map(KNOWN_HOSTS).await;
    let data = read.expect("it can be read").data;
    data.get("ssh_known_hosts").cloned().unwrap_or_default()
}

/// Writes a ConfigMap as a person does with kubectl.
async fn write(world: &World, name: &str, key: &str, value: &str) {
    let version = world
        .store
        .read_config_map(name)
        .await
        .expect("it can be read")
        .version;
    let values = [(key.to_owned(), Some(value.to_owned()))].into();
    let written = world.store.set_in_config_map(name, &version, &values);
    written.await.expect("it can be written");
}

#[tokio::test]
async fn what_is_added_is_listed() {
    let world = World::start().await;
    // Neither ConfigMap exists.
    assert!(list(&world, "").await.is_empty());
    let items = [
        ssh("new.example.com", "ssh-ed25519", HOST_KEY),
        https("git.example.com", PEM),
    ];
    let (status, created) = add(&world, &items, false).await;
    assert_eq!(status, 200, "{created}");
    assert_eq!(created["items"][0]["certInfo"], FINGERPRINT);
    assert_eq!(
        created["items"][1],
        json!({"serverName": "git.example.com", "certType": "https",
        "certSubType": "", "certData": STANDARD.encode(PEM), "certInfo": ""})
    );
    let fingerprint = format!("SHA256:{FINGERPRINT}");
    assert_eq!(
        list(&world, "").await,
        [
            [
                "new.example.com",
                "ssh",
                "ssh-ed25519",
                fingerprint.as_str()
            ],
            ["git.example.com", "https", "rsa", "CN=git.example.com"],
        ]
    );
    assert_eq!(
        known_hosts(&world).await,
        format!("new.example.com ssh-ed25519 {HOST_KEY}\n")
    );
    let stored = world.store.read_config_map(TLS).await.expect("it is there");
    assert_eq!(
        stored.data.get("git.example.com").map(String::as_str),
        Some(PEM)
    );
    // The same once more adds nothing.
    let (status, again) = add(&world, &items, false).await;
    assert_eq!((status, &again["items"]), (200, &json!([])));
}

#[tokio::test]
async fn what_differs_needs_upsert() {
    let world = World::start().await;
    write(
        &world,
        KNOWN_HOSTS,
        "ssh_known_hosts",
        &format!("# ours\ngit.example.com ssh-ed25519 {OTHER_HOST_KEY}\n"),
    )
    .await;
    write(&world, TLS, "git.example.com", "old").await;
    let key = ssh("git.example.com", "ssh-ed25519", HOST_KEY);
    let certificate = https("git.example.com", PEM);
    let cases = [
        (
            &key,
            "key for 'git.example.com' (subtype: 'ssh-ed25519') already exists, and upsert was not specified",
        ),
        (
            &certificate,
            "TLS certificate for server 'git.example.com' already exists, and upsert was not specified",
        ),
    ];
    for (item, told) in cases {
        let (status, refused) = add(&world, std::slice::from_ref(item), false).await;
        assert_eq!((status, &refused["message"]), (500, &json!(told)));
    }
    assert!(known_hosts(&world).await.contains(OTHER_HOST_KEY));
    let (status, replaced) = add(&world, &[key, certificate], true).await;
    assert_eq!(
        (status, replaced["items"].as_array().map(Vec::len)),
        (200, Some(2))
    );
    // Comments stay.
    assert_eq!(
        known_hosts(&world).await,
        format!("# ours\ngit.example.com ssh-ed25519 {HOST_KEY}\n")
    );
    assert_eq!(list(&world, "certType=https").await[0][2], "rsa");
}

#[tokio::test]
async fn lists_are_filtered() {
    let world = World::start().await;
    let items = [
        ssh("git.example.com", "ssh-ed25519", HOST_KEY),
        ssh("[ssh.example.com]:2222", "ssh-ed25519", HOST_KEY),
        https("git.example.com", PEM),
        https("git.example.org", PEM),
    ];
    assert_eq!(add(&world, &items, false).await.0, 200);
    let (a, b) = ("git.example.com ssh", "[ssh.example.com]:2222 ssh");
    let (c, d) = ("git.example.com https", "git.example.org https");
    let cases: [(&str, &[&str]); 11] = [
        ("", &[a, b, c, d]),
        ("hostNamePattern=git*", &[a, c, d]),
        ("hostNamePattern=*.com", &[a, c]),
        ("hostNamePattern=[ssh.example.com]:2222", &[b]),
        ("hostNamePattern=nope", &[]),
        ("certType=ssh", &[a, b]),
        ("certType=https", &[c, d]),
        ("certType=tls&hostNamePattern=*.org", &[d]),
        ("certType=bogus", &[]),
        ("certType=ssh&certSubType=ssh-rsa", &[]),
        ("certType=*&certSubType=ssh-ed25519", &[a, b, c, d]),
    ];
    for (query, want) in cases {
        let query = query.replace('[', "%5B").replace(']', "%5D");
        assert_eq!(hosts(&world, &query).await, want, "{query}");
    }
}

#[tokio::test]
async fn what_is_selected_is_removed() {
    let world = World::start().await;
    let items = [
        ssh("git.example.com", "ssh-ed25519", HOST_KEY),
        ssh("ssh.example.com", "ssh-ed25519", HOST_KEY),
        https("git.example.com", PEM),
        https("two.example.com", &format!("{PEM}{PEM}")),
    ];
    assert_eq!(add(&world, &items, false).await.0, 200);
    let remove = async |query: &str| {
        let path = format!("{PATH}?{query}");
        let (status, removed) = world.rest(Method::DELETE, &path, None).await;
        assert_eq!(status, 200, "{removed}");
        removed["items"].clone()
    };
    assert_eq!(remove("hostNamePattern=nope").await, json!([]));
    let mut key = ssh("git.example.com", "ssh-ed25519", HOST_KEY);
    key["certInfo"] = "".into();
    assert_eq!(
        remove("hostNamePattern=git.example.com&certType=ssh").await,
        json!([key])
    );
    assert_eq!(
        known_hosts(&world).await,
        format!("ssh.example.com ssh-ed25519 {HOST_KEY}\n")
    );
    // Each certificate of a server is named.
    let two = remove("hostNamePattern=two*").await;
    assert_eq!(two.as_array().map(Vec::len), Some(2), "{two}");
    assert_eq!(
        hosts(&world, "").await,
        ["ssh.example.com ssh", "git.example.com https"]
    );
    remove("").await;
    assert!(hosts(&world, "").await.is_empty());
}

#[tokio::test]
async fn what_is_invalid_is_refused() {
    let world = World::start().await;
    let block =
        |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    let good = ssh("good.example.com", "ssh-ed25519", HOST_KEY);
    let new = "new.example.com";
    let cases = [
        (
            ssh("bad host", "ssh-ed25519", HOST_KEY),
            "invalid hostname in request: bad host",
        ),
        (
            ssh("[bad host]:22", "ssh-ed25519", HOST_KEY),
            "invalid hostname in request: bad host",
        ),
        (https("-x", PEM), "invalid hostname in request: -x"),
        (https(new, "nope"), "no valid PEM data received"),
        (
            https(new, &block("!")),
            "could not decode PEM data from input",
        ),
        (
            https(new, &block("bm9wZQ==")),
            "could not parse X509 data from input",
        ),
        (ssh(new, "ssh-ed25519", "nope"), "ssh: short read"),
        (
            ssh(new, "ssh-rsa", HOST_KEY),
            "ssh: known hosts key type mismatch: human-readable type \"ssh-rsa\", encoded type \"ssh-ed25519\"",
        ),
        // A line break would add a line that nobody has checked.
        (
            ssh(new, "ssh-ed25519", &format!("{HOST_KEY}\n*")),
            "ssh: invalid entry in known_hosts data",
        ),
        (
            json!({"serverName": new, "certType": "pgp"}),
            "unknown certificate type: pgp",
        ),
    ];
    for (item, told) in cases {
        let (status, refused) = add(&world, &[good.clone(), item], false).await;
        assert_eq!((status, &refused["message"]), (500, &json!(told)));
    }
    assert!(
        hosts(&world, "").await.is_empty(),
        "nothing of such a request is stored"
    );
    let rpc = "/certificate.CertificateService/CreateCertificate";
    let empty = RepositoryCertificateCreateRequest::default();
    let answer = world.grpc::<_, RepositoryCertificateList>(rpc, empty).await;
    assert_eq!(
        answer.expect_err("nothing is asked for").message(),
        "missing payload in request"
    );
}

#[tokio::test]
async fn what_is_stored_broken_is_shown_as_such() {
    let world = World::start().await;
    write(&world, TLS, "git.example.com", "nope").await;
    write(
        &world,
        KNOWN_HOSTS,
        "ssh_known_hosts",
        "h ssh-rsa nope\nnot an-entry\n",
    )
    .await;
    assert_eq!(
        list(&world, "").await,
        [
            ["h", "ssh", "ssh-rsa", "ssh: short read"],
            [
                "git.example.com",
                "https",
                "invalid",
                "could not decode PEM data from input"
            ],
        ]
    );
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let world = World::start().await;
    *world.store.conflicts.lock().expect("not poisoned") = 3;
    let key = ssh("git.example.com", "ssh-ed25519", HOST_KEY);
    assert_eq!(add(&world, std::slice::from_ref(&key), false).await.0, 200);
    *world.store.conflicts.lock().expect("not poisoned") = 100;
    let other = ssh("ssh.example.com", "ssh-ed25519", HOST_KEY);
    assert_eq!(add(&world, &[other], false).await.0, 409);
    *world.store.conflicts.lock().expect("not poisoned") = 0;
    assert_eq!(hosts(&world, "").await, ["git.example.com ssh"]);
}
