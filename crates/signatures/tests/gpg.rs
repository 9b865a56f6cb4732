//! Signatures that the real gpg and ssh-keygen make, judged here as gpg judges them.

#![allow(
    clippy::disallowed_methods,
    reason = "a test works with files and the time of the machine"
)]

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};
use tiphys_signatures::{Check, Keyring, Verdict, check, key_id, parse};
use tiphys_testkit::{Gpg, ssh_keygen};

const TEXT: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nA change\n";

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_secs()).expect("a time")
}

fn keyring(keys: &[&str]) -> Keyring {
    let of = |text: &&str| {
        let key = parse(text, now()).expect("a key").remove(0);
        (key.id, key.data)
    };
    let texts: BTreeMap<String, String> = keys.iter().map(of).collect();
    let (keyring, faults) = Keyring::new(&texts, now());
    assert_eq!(faults, Vec::<String>::new());
    keyring
}

fn verdict(keyring: &Keyring, signature: &str, text: &[u8]) -> (Verdict, String) {
    let Check { verdict, key, .. } = check(keyring, signature.as_bytes(), text, now());
    (verdict, key)
}

#[test]
fn signatures_of_every_kind_of_key_are_good() {
    let Some(gpg) = Gpg::new() else { return };
    for (algorithm, sub_type) in [
        ("rsa2048", "rsa2048"),
        ("ed25519", "ed25519"),
        ("nistp256", "nistp256"),
        ("nistp384", "nistp384"),
        ("nistp521", "nistp521"),
        ("dsa2048", "dsa2048"),
    ] {
        let user = format!("{algorithm} <{algorithm}@example.org>");
        let fingerprint = gpg.generate(&user, algorithm, "never", &[]);
        let public = gpg.export(&fingerprint);
        let keys = parse(&public, now()).expect(algorithm);
        assert_eq!(keys.len(), 1);
        let id = key_id(&fingerprint).expect("a fingerprint").to_owned();
        let key = &keys[0];
        let shown = (&key.id, &key.fingerprint, &key.owner, key.sub_type.as_str());
        assert_eq!(shown, (&id, &fingerprint, &user, sub_type));
        let ring = keyring(&[&public]);
        let good = gpg.sign(&fingerprint, TEXT, &[]);
        assert_eq!(
            verdict(&ring, &good, TEXT),
            (Verdict::Good, id.clone()),
            "{algorithm}"
        );
        assert_eq!(
            verdict(&ring, &good, b"another"),
            (Verdict::Bad, id.clone())
        );
        assert_eq!(
            verdict(&Keyring::default(), &good, TEXT),
            (Verdict::MissingKey, id)
        );
    }
}

#[test]
fn subkeys_sign_and_encryption_keys_do_not() {
    let Some(gpg) = Gpg::new() else { return };
    let primary = gpg.generate("Sub <sub@example.org>", "ed25519", "never", &[]);
    for (algorithm, usage) in [("ed25519", "sign"), ("cv25519", "encr")] {
        gpg.run(
            &["--quick-add-key", &primary, algorithm, usage, "never"],
            b"",
        );
    }
    let fingerprints = gpg.fingerprints(&primary);
    assert_eq!(fingerprints.len(), 3);
    let signing = &fingerprints[1];
    let ring = keyring(&[&gpg.export(&primary)]);
    let signature = gpg.sign(signing, TEXT, &[]);
    let id = key_id(signing).expect("an id").to_owned();
    assert_eq!(verdict(&ring, &signature, TEXT), (Verdict::Good, id));
}

#[test]
fn what_expired_or_was_revoked_is_denied() {
    let Some(gpg) = Gpg::new() else { return };
    // Frozen: a time that runs starts anew in each call, and on a busy machine one call's key is
    // of the next one's future.
    let before = ["--faked-system-time", "20200101T000000!"];
    let expired = gpg.generate("Old <old@example.org>", "ed25519", "2020-06-01", &before);
    let by_expired = gpg.sign(&expired, TEXT, &before);
    let key = gpg.generate("Key <key@example.org>", "ed25519", "never", &before);
    let options = [&before[..], &["--default-sig-expire", "1d"]].concat();
    let past = gpg.sign(&key, TEXT, &options);
    let weak = gpg.sign(&key, TEXT, &["--digest-algo", "SHA1"]);
    let sub = gpg.generate("S <s@example.org>", "ed25519", "never", &before);
    gpg.run(
        &[
            &before[..],
            &["--quick-add-key", &sub, "ed25519", "sign", "2020-06-01"],
        ]
        .concat(),
        b"",
    );
    let subkey = gpg.fingerprints(&sub).remove(1);
    let by_subkey = gpg.sign(&subkey, TEXT, &before);
    let ring = keyring(&[&gpg.export(&expired), &gpg.export(&key), &gpg.export(&sub)]);
    let id = |fingerprint: &str| key_id(fingerprint).expect("an id").to_owned();
    assert_eq!(
        verdict(&ring, &by_expired, TEXT),
        (Verdict::ExpiredKey, id(&expired))
    );
    assert_eq!(
        verdict(&ring, &by_expired, b"x"),
        (Verdict::Bad, id(&expired))
    );
    assert_eq!(
        verdict(&ring, &past, TEXT),
        (Verdict::ExpiredSignature, id(&key))
    );
    assert_eq!(verdict(&ring, &weak, TEXT), (Verdict::Bad, id(&key)));
    assert_eq!(
        verdict(&ring, &by_subkey, TEXT),
        (Verdict::ExpiredKey, id(&subkey))
    );

    let good = gpg.sign(&key, TEXT, &[]);
    assert_eq!(verdict(&ring, &good, TEXT).0, Verdict::Good);
    gpg.revoke(&key);
    let ring = keyring(&[&gpg.export(&key)]);
    assert_eq!(verdict(&ring, &good, TEXT), (Verdict::RevokedKey, id(&key)));
}

#[test]
fn two_signatures_in_one_are_nobodys() {
    let Some(gpg) = Gpg::new() else { return };
    let (a, b) = (
        gpg.generate("A <a@example.org>", "ed25519", "never", &[]),
        gpg.generate("B <b@example.org>", "ed25519", "never", &[]),
    );
    let both = gpg.run(
        &[
            "--armor",
            "--local-user",
            &a,
            "--local-user",
            &b,
            "--detach-sign",
        ],
        TEXT,
    );
    let ring = keyring(&[&gpg.export(&a), &gpg.export(&b)]);
    let both = String::from_utf8(both).expect("text");
    assert_eq!(verdict(&ring, &both, TEXT), (Verdict::Bad, String::new()));
}

#[test]
fn one_text_may_have_several_keys() {
    let Some(gpg) = Gpg::new() else { return };
    let (a, b) = (
        gpg.generate("A <a@example.org>", "ed25519", "never", &[]),
        gpg.generate("B <b@example.org>", "ed25519", "never", &[]),
    );
    let together = gpg.export("example.org");
    let apart = format!("{}{}{}", gpg.export(&a), gpg.export(&b), gpg.export(&a));
    for text in [together, apart] {
        let keys = parse(&text, now()).expect("two keys");
        assert_eq!(keys.len(), 2);
        // Each by itself is read again.
        for key in &keys {
            assert_eq!(
                &parse(&key.data, now()).expect("one"),
                std::slice::from_ref(key)
            );
        }
        let texts = BTreeMap::from([(keys[0].id.clone(), text)]);
        let (_, faults) = Keyring::new(&texts, now());
        let expected = format!("{}: more than one key found in input data", keys[0].id);
        assert_eq!(faults, [expected]);
    }
    let secret = gpg.run(&["--armor", "--export-secret-keys", &a], b"");
    let secret = String::from_utf8(secret).expect("text");
    let refused = parse(&secret, now()).expect_err("a secret key").to_string();
    assert!(refused.starts_with("it is no public key"), "{refused}");
}

#[test]
fn ssh_signatures_are_known_by_the_fingerprint_of_their_key() {
    let dir = std::env::temp_dir().join(format!("tiphys-ssh-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let run = |arguments: &[&str]| ssh_keygen(&dir, arguments);
    for kind in ["ed25519", "ecdsa", "rsa"] {
        if run(&["-q", "-t", kind, "-N", "", "-f", kind]).is_none() {
            return;
        }
        let listed = run(&["-l", "-f", kind]).expect("its fingerprint");
        let fingerprint = listed.split(' ').nth(1).expect("a fingerprint").to_owned();
        assert!(tiphys_signatures::is_fingerprint(&fingerprint));
        std::fs::write(dir.join("text"), TEXT).expect("a file");
        for (namespace, expected) in [("git", Verdict::Good), ("file", Verdict::Bad)] {
            run(&["-q", "-Y", "sign", "-f", kind, "-n", namespace, "text"]);
            let signature = std::fs::read_to_string(dir.join("text.sig")).expect("a signature");
            std::fs::remove_file(dir.join("text.sig")).expect("it is there");
            let found = verdict(&Keyring::default(), &signature, TEXT);
            assert_eq!(found, (expected, fingerprint.clone()), "{kind} {namespace}");
            let of_another = verdict(&Keyring::default(), &signature, b"another").0;
            assert_eq!(of_another, Verdict::Bad);
        }
    }
    std::fs::remove_dir_all(&dir).expect("the folder is removed");
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let begin = "-----BEGIN PGP SIGNATURE-----\n\n";
    let long = format!(
        "{begin}{}\n-----END PGP SIGNATURE-----\n",
        "A".repeat(1 << 20)
    );
    let started = SystemTime::now();
    for text in [
        "",
        "-----BEGIN PGP SIGNATURE-----",
        "-----BEGIN SSH SIGNATURE-----",
        "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----",
        begin,
        "no signature",
        &long,
    ] {
        let expected = if text.is_empty() {
            Verdict::Unsigned
        } else {
            Verdict::Bad
        };
        let found = verdict(&Keyring::default(), text, TEXT);
        assert_eq!(found, (expected, String::new()), "{text:.40}");
    }
    let many = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n".repeat(100_000);
    for text in ["", "x", begin, &many, &"-----BEGIN PGP ".repeat(300_000)] {
        assert!(parse(text, now()).is_err(), "{text:.40}");
    }
    let took = started.elapsed().expect("time passes");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
