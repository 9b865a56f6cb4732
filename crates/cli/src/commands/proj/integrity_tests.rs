//! What the verbs of source integrity make of a project, and how they show it.

use super::*;
use serde_json::json;

const ONE: &str = "ABCDEF0123456789";
const TWO: &str = "1234567890ABCDEF";

fn project() -> AppProject {
    let of = |url: &str| json!({"repos": [{"url": url}], "gpg": {"mode": "head", "keys": [ONE]}});
    serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"sourceIntegrity": {"git": {"policies": [of("a"), of("b"), of("c")]}}},
    }))
    .expect("a project")
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn policies_need_a_mode_and_keys_an_id() {
    for (mode, message) in [
        ("", "gpg-mode must be set"),
        ("bad", "gpg-mode must be one of: strict, head, none"),
    ] {
        let refused = policy(texts(&["x"]), mode, &[]);
        assert_eq!(refused.err().as_deref(), Some(message));
    }
    let refused = policy(Vec::new(), "head", &texts(&["x"])).err();
    let message = "invalid GPG key ID 'x': 'x' is not a valid GnuPG key ID";
    assert_eq!(refused.as_deref(), Some(message));
    let made = policy(texts(&["*"]), "strict", &texts(&[ONE, TWO])).expect("a policy");
    let expected = "ID  GPG-MODE  GPG-KEYS                            REPO-URLS\n\
                    0   strict    ABCDEF0123456789, 1234567890ABCDEF  *\n";
    assert_eq!(rows(&[made]), expected);
    let bare = "ID  GPG-MODE  GPG-KEYS  REPO-URLS\n0   <none>    <none>    <none>\n";
    assert_eq!(rows(&[SourceIntegrityGitPolicy::default()]), bare);
}

#[test]
fn edits_replace_or_add_and_delete() {
    let edit = |edits: Edits| {
        let mut policy = existing(&mut project()).expect("policies")[0].clone();
        edits.apply(&mut policy)?;
        let gpg = policy.gpg.expect("it stays");
        let urls: Vec<String> = policy.repos.into_iter().map(|r| r.url).collect();
        Ok((urls, gpg.mode, gpg.keys))
    };
    let changed = edit(Edits {
        gpg_mode: "strict".into(),
        add_repo_url: texts(&["a", "z"]),
        add_gpg_key: texts(&[ONE, TWO]),
        ..Default::default()
    });
    let expected = (texts(&["a", "z"]), "strict".to_owned(), texts(&[ONE, TWO]));
    assert_eq!(changed, Ok(expected));
    let emptied = edit(Edits {
        delete_repo_url: texts(&["a"]),
        delete_gpg_key: texts(&[ONE]),
        ..Default::default()
    });
    assert_eq!(emptied, Ok((Vec::new(), "head".to_owned(), Vec::new())));
    let replaced = edit(Edits {
        repo_url: texts(&["y"]),
        gpg_key: texts(&[TWO]),
        ..Default::default()
    });
    let expected = (texts(&["y"]), "head".to_owned(), texts(&[TWO]));
    assert_eq!(replaced, Ok(expected));
    for (edits, name) in [
        (
            Edits {
                gpg_key: texts(&[ONE]),
                add_gpg_key: texts(&[TWO]),
                ..Default::default()
            },
            "gpg-key",
        ),
        (
            Edits {
                repo_url: texts(&["a"]),
                delete_repo_url: texts(&["a"]),
                ..Default::default()
            },
            "repo-url",
        ),
    ] {
        let message =
            format!("option --{name}, cannot be combined with --add-{name} or --delete-{name}");
        assert_eq!(edit(edits), Err(message));
    }
}

#[test]
fn policies_are_deleted_by_their_numbers() {
    let mut p = project();
    let left = |p: &mut AppProject| existing(p).map(|list| list[0].repos[0].url.clone());
    for (id, message) in [
        ("x", "invalid POLICY_ID 'x'"),
        ("3", "the POLICY_ID 3 is out of range (0-2)"),
        ("-1", "the POLICY_ID -1 is out of range (0-2)"),
    ] {
        let refused = delete(&mut p, &texts(&["0", id]));
        assert_eq!(refused, Err(message.to_owned()));
    }
    assert_eq!(
        delete(&mut p, &texts(&["2", "0", "2"])),
        Ok("0, 2".to_owned())
    );
    assert_eq!(left(&mut p), Ok("b".to_owned()));
    assert_eq!(delete(&mut p, &texts(&["0"])), Ok("0".to_owned()));
    assert_eq!(p.spec.source_integrity, None);
    let message = "no source integrity git policies defined for project \"p\"";
    assert_eq!(left(&mut p), Err(message.to_owned()));
}
