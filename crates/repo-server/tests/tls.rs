//! Who may connect.

use crate::world::{World, request};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tiphys_repo::{RepoServer, RepoServerOptions};
use tiphys_rpc::{Tls, TlsRules};

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).expect("a name")
}

/// An authority: its certificate, and what signs with it.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = params("authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), Issuer::new(params, key))
}

/// A certificate and its key.
fn issued(by: &Issuer<'static, KeyPair>, name: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let certificate = params(name).signed_by(&key, by).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_checked_on_both_sides() {
    let (authority_pem, authority) = authority();
    let (chain, key) = issued(&authority, "localhost");
    let rules = TlsRules {
        client_authorities: Some(authority_pem.clone()),
        ..TlsRules::default()
    };
    let tls = Tls::Pem { chain, key }.with(&rules).expect("usable");
    let world = World::with(tls).await;
    let (path, _) = world.repository("repository", &[("a/a.yaml", "")]);
    let file = |name: &str, content: &str| {
        let path = world.dir.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    };
    let trusted = file("ca.crt", &authority_pem);
    let (ours, our_key) = issued(&authority, "controller");
    let (_, stranger) = self::authority();
    let (foreign, foreign_key) = issued(&stranger, "controller");
    let client = |identity: Option<(&str, &str, &str)>| {
        let identity = identity.map(|(name, certificate, key)| {
            let path = |end: &str| format!("{name}.{end}");
            (file(&path("crt"), certificate), file(&path("key"), key))
        });
        let options = RepoServerOptions {
            plaintext: false,
            trusted: vec![trusted.clone()],
            identity,
            ..world.client_options()
        };
        RepoServer::new(options).expect("an address")
    };
    let asked = request(&path, "a");
    let known = client(Some(("ours", &ours, &our_key)));
    assert!(known.manifests(&asked).await.is_ok());
    for other in [None, Some(("foreign", &*foreign, &*foreign_key))] {
        let e = client(other).manifests(&asked).await.expect_err("refused");
        assert!(e.retryable(), "no connection: {e}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_its_own_will_do() {
    let world = World::with(Tls::SelfSigned(vec!["localhost".to_owned()])).await;
    let (path, _) = world.repository("repository", &[("a/a.yaml", "")]);
    let options = RepoServerOptions {
        plaintext: false,
        ..world.client_options()
    };
    let client = RepoServer::new(options).expect("an address");
    assert!(client.manifests(&request(&path, "a")).await.is_ok());
}
