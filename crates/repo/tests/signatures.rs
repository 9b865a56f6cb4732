//! Commits and tags signed by the real git with the real gpg and ssh-keygen, from a server on loopback.

use std::{collections::BTreeMap, path::PathBuf, process::Command, sync::Arc, time::SystemTime};
use tiphys_repo::{RepoAccess, RepoError, Repos, Signature, SignatureQuestion, Signatures, Since};
use tiphys_signatures::{Keyring, Verdict, key_id};
use tiphys_testkit::{
    Gpg,
    git_server::{Server, Setup},
    signed, ssh_keygen,
};

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_secs()).expect("a time")
}

struct World {
    dir: tempfile::TempDir,
    gpg: Gpg,
    key: String,
    other: String,
    repos: Repos,
    server: Server,
    access: RepoAccess,
}

impl World {
    fn new() -> Option<Self> {
        let gpg = Gpg::new()?;
        let dir = tempfile::tempdir().expect("a folder");
        let server = Server::start(dir.path(), Setup::default());
        let made = Self {
            key: gpg.generate("Key <key@example.org>", "ed25519", "never", &[]),
            other: gpg.generate("Other <other@example.org>", "ed25519", "never", &[]),
            gpg,
            repos: Repos::new(dir.path().join("cache")),
            access: RepoAccess::public(server.url("/r")),
            server,
            dir,
        };
        std::fs::create_dir(made.tree()).expect("a folder");
        made.git(&["init", "-q", "-b", "main"]);
        Some(made)
    }

    fn tree(&self) -> PathBuf {
        self.dir.path().join("r")
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.gpg.git(&self.tree(), arguments)
    }

    /// A commit, signed by a key or by none.
    fn commit(&self, message: &str, key: Option<&str>) -> String {
        let signed = key.map_or("--no-gpg-sign".to_owned(), |key| format!("-S{key}"));
        self.git(&["commit", "-q", "--allow-empty", "-m", message, &signed]);
        self.head()
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    fn keyring(&self, keys: &[&str]) -> Arc<Keyring> {
        let texts: BTreeMap<String, String> = keys
            .iter()
            .map(|key| (key_id(key).expect("an id").to_owned(), self.gpg.export(key)))
            .collect();
        let (keyring, faults) = Keyring::new(&texts, now());
        assert!(faults.is_empty(), "{faults:?}");
        Arc::new(keyring)
    }

    /// Good signatures by `key` are permitted.
    fn question(&self, sha: &str, named: &str, deep: bool) -> SignatureQuestion {
        let permitted = id(&self.key);
        SignatureQuestion {
            sha: sha.to_owned(),
            named: named.to_owned(),
            tag_prefix: String::new(),
            deep,
            keyring: self.keyring(&[&self.key, &self.other]),
            permits: Arc::new(move |s: &Signature| {
                s.check.verdict == Verdict::Good && s.check.key == permitted
            }),
            now: now(),
        }
    }

    async fn ask(&self, question: SignatureQuestion) -> Result<Signatures, RepoError> {
        // What was pushed a moment ago.
        self.repos.refs(&self.access, Since::now()).await?;
        self.repos.signatures(&self.access, question).await
    }

    async fn verdict(&self, sha: &str, named: &str) -> (Verdict, String, String) {
        let found = self.ask(self.question(sha, named, false)).await;
        let first = found.expect("an answer").first;
        (first.check.verdict, first.check.key, first.revision)
    }

    /// The commits of a history that are not permitted, by their messages.
    async fn refused(&self, sha: &str) -> Vec<String> {
        let found = self.ask(self.question(sha, sha, true)).await;
        let found = found.expect("an answer").refused;
        let message = |s: &Signature| self.git(&["log", "-1", "--format=%s", &s.revision]);
        let mut messages: Vec<String> = found.iter().map(message).collect();
        messages.sort();
        messages
    }
}

fn id(fingerprint: &str) -> String {
    key_id(fingerprint).expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commits_are_judged_by_their_signature() {
    let Some(world) = World::new() else { return };
    let unsigned = world.commit("unsigned", None);
    let signed = world.commit("signed", Some(&world.key));
    let by_other = world.commit("by another", Some(&world.other));
    let ids = (id(&world.key), id(&world.other));
    for (sha, verdict, key) in [
        (&unsigned, Verdict::Unsigned, ""),
        (&signed, Verdict::Good, ids.0.as_str()),
        (&by_other, Verdict::Good, &ids.1),
    ] {
        let expected = (verdict, key.to_owned(), sha.clone());
        assert_eq!(world.verdict(sha, "main").await, expected);
    }
    let mut question = world.question(&signed, "main", false);
    let found = world.ask(question.clone()).await.expect("an answer");
    assert_eq!(found.first.author, "A U Thor <a@example.org>");
    assert_eq!(found.refused, []);
    question.sha = by_other.clone();
    let found = world.ask(question.clone()).await.expect("an answer");
    assert_eq!(found.refused, [found.first]);

    // Without the key.
    question.sha = signed.clone();
    question.keyring = world.keyring(&[&world.other]);
    let found = world.ask(question).await.expect("an answer");
    assert_eq!(found.first.check.verdict, Verdict::MissingKey);

    // A signature that belongs to another commit.
    let text = world.git(&["cat-file", "commit", &signed]);
    let forged = text.replace("\nsigned", "\nforged");
    std::fs::write(world.tree().join("forged"), format!("{forged}\n")).expect("a file");
    let forged = world.git(&["hash-object", "-t", "commit", "-w", "forged"]);
    world.git(&["update-ref", "refs/heads/forged", &forged]);
    let expected = (Verdict::Bad, ids.0, forged.clone());
    assert_eq!(world.verdict(&forged, "forged").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_annotated_tag_is_judged_in_place_of_its_commit() {
    let Some(world) = World::new() else { return };
    let (key, other) = (world.key.clone(), world.other.clone());
    let unsigned = world.commit("unsigned", None);
    world.git(&["tag", "-s", "-u", &key, "-m", "x", "signed-tag"]);
    world.git(&["tag", "-s", "-u", &key, "-m", "x", "1.0.0"]);
    world.git(&["tag", "-s", "-u", &other, "-m", "x", "by-other"]);
    world.git(&["tag", "light"]);
    let signed = world.commit("signed", Some(&key));
    world.git(&["tag", "-a", "-m", "x", "unsigned-tag"]);
    world.git(&["tag", "light-of-signed"]);
    world.git(&["tag", "-s", "-u", &key, "-m", "x", "old"]);
    let old = world.git(&["rev-parse", "refs/tags/old"]);
    // The tag of one version under the name of another.
    world.git(&["update-ref", "refs/tags/new", &old]);
    // A branch with the name of a tag.
    world.git(&["branch", "signed-tag"]);
    let (key, other, none) = (id(&key), id(&other), String::new());
    for (sha, named, verdict, key, revision) in [
        (&unsigned, "signed-tag", Verdict::Good, &key, "signed-tag"),
        (
            &unsigned,
            "refs/tags/signed-tag",
            Verdict::Good,
            &key,
            "signed-tag",
        ),
        (&unsigned, "1.*", Verdict::Good, &key, "1.0.0"),
        (&unsigned, "by-other", Verdict::Good, &other, "by-other"),
        (&unsigned, "light", Verdict::Unsigned, &none, &unsigned),
        (&unsigned, &unsigned, Verdict::Unsigned, &none, &unsigned),
        (
            &signed,
            "unsigned-tag",
            Verdict::Unsigned,
            &none,
            "unsigned-tag",
        ),
        (&signed, "light-of-signed", Verdict::Good, &key, &signed),
        (&signed, &signed, Verdict::Good, &key, &signed),
        (&signed, "new", Verdict::Bad, &key, "new"),
        // A tag of another commit says nothing about this one.
        (&signed, "signed-tag", Verdict::Good, &key, &signed),
        (&unsigned, "old", Verdict::Unsigned, &none, &unsigned),
        (
            &signed,
            "refs/heads/signed-tag",
            Verdict::Good,
            &key,
            &signed,
        ),
    ] {
        let expected = (verdict, key.clone(), revision.to_owned());
        assert_eq!(world.verdict(sha, named).await, expected, "{named}");
    }
    let found = world
        .ask(world.question(&unsigned, "signed-tag", false))
        .await;
    assert_eq!(
        found.expect("an answer").first.author,
        "A U Thor \"<a@example.org>\""
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_strict_history_ends_at_its_seals() {
    let Some(world) = World::new() else { return };
    let (key, other) = (world.key.clone(), world.other.clone());
    world.commit("a unsigned", None);
    world.commit("b signed", Some(&key));
    let fork = world.commit("c unsigned", None);
    let head = world.commit("d by another", Some(&other));
    // The copy has only the commit at first.
    let head_only = world.verdict(&head, "main").await;
    assert_eq!(head_only.0, Verdict::Good);
    let all = ["a unsigned", "c unsigned", "d by another"];
    assert_eq!(world.refused(&head).await, all);

    // What has no good signature seals nothing.
    world.commit("e\n\nArgocd-gpg-seal: trust me", None);
    let head = world.commit("f signed", Some(&key));
    assert_eq!(world.refused(&head).await, [&all[..], &["e"]].concat());

    let seal = world.commit("g\n\nargocd-GPG-seal: reviewed", Some(&key));
    assert_eq!(world.refused(&seal).await, [""; 0]);
    world.commit("h unsigned", None);
    let head = world.commit("i signed", Some(&key));
    assert_eq!(world.refused(&head).await, ["h unsigned"]);

    // A branch from before the seal: where it began is looked at, and nothing before it.
    world.git(&["checkout", "-q", "-b", "side", &fork]);
    world.commit("j signed", Some(&key));
    let merge = [
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "k merge",
        &format!("-S{key}"),
        &head,
    ];
    world.git(&merge);
    let head = world.head();
    assert_eq!(world.refused(&head).await, ["c unsigned", "h unsigned"]);

    // A seal by a key that is not permitted is looked at itself.
    let by_other = world.commit("l\n\nArgocd-gpg-seal: mine", Some(&other));
    assert_eq!(world.refused(&by_other).await, ["l"]);
    let again = world.commit("m signed", Some(&key));
    assert_eq!(world.refused(&again).await, ["l"]);

    // The tag and the history.
    world.git(&["tag", "-a", "-m", "x", "unsigned-tag"]);
    let found = world
        .ask(world.question(&again, "unsigned-tag", true))
        .await;
    let refused = found.expect("an answer").refused;
    let revisions: Vec<&str> = refused.iter().map(|s| s.revision.as_str()).collect();
    assert_eq!(revisions, ["unsigned-tag", by_other.as_str()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_the_history_or_the_commit_there_is_no_answer() {
    let Some(world) = World::new() else { return };
    for message in ["a", "b", "c"] {
        world.commit(message, Some(&world.key));
    }
    let head = world.head();
    let shallow = world.dir.path().join("shallow");
    let from = format!("file://{}", world.tree().display());
    world.git(&[
        "clone",
        "-q",
        "--depth",
        "1",
        &from,
        &shallow.display().to_string(),
    ]);
    for url in [world.server.url("/shallow"), shallow.display().to_string()] {
        let access = RepoAccess::public(&url);
        let question = world.question(&head, &head, true);
        let refused = world.repos.signatures(&access, question).await;
        let refused = refused.expect_err("it is not complete").to_string();
        let expected = format!("the history of {head} is not complete");
        assert!(refused.ends_with(&expected), "{refused}");
    }
    let gone = "0123456789012345678901234567890123456789";
    let missing = world.ask(world.question(gone, gone, false)).await;
    assert!(matches!(missing, Err(RepoError::CommitMissing { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ssh_signatures_of_git_are_known() {
    let Some(world) = World::new() else { return };
    let key = world.dir.path().join("ssh");
    let path = key.display().to_string();
    let made = ssh_keygen(
        world.dir.path(),
        &["-q", "-t", "ed25519", "-N", "", "-f", &path],
    );
    if made.is_none() {
        return;
    }
    let listed = ssh_keygen(world.dir.path(), &["-l", "-f", &path]);
    let listed = listed.expect("its fingerprint");
    let fingerprint = listed.split(' ').nth(1).expect("a fingerprint").to_owned();
    let signing = format!("user.signingkey={path}.pub");
    let ssh = ["-c", "gpg.format=ssh", "-c", &signing];
    let commit = ["commit", "-q", "--allow-empty", "-S", "-m", "by ssh"];
    world.git(&[&ssh[..], &commit[..]].concat());
    let tag = ["tag", "-s", "-m", "x", "by-ssh"];
    world.git(&[&ssh[..], &tag[..]].concat());
    let sha = world.head();
    for (named, revision) in [("main", sha.as_str()), ("by-ssh", "by-ssh")] {
        let expected = (Verdict::Good, fingerprint.clone(), revision.to_owned());
        assert_eq!(world.verdict(&sha, named).await, expected);
    }
}

/// Recorded once from the real programs: they must be judged so wherever the tests run.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recorded_commits_are_judged_as_ever() {
    let key = tiphys_signatures::parse(signed::KEY, now())
        .expect("a key")
        .remove(0);
    let (keyring, faults) = Keyring::new(&BTreeMap::from([(key.id.clone(), key.data)]), now());
    assert!(faults.is_empty(), "{faults:?}");
    let dir = tempfile::tempdir().expect("a folder");
    let empty = Repos::init_example(dir.path(), [("a", "b")]).expect("a repository");
    let git = |arguments: &[&str]| {
        let out = Command::new("git")
            .current_dir(dir.path())
            .args(arguments)
            .output();
        let out = out.expect("git runs");
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{arguments:?}: {error}");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    assert_eq!(empty.len(), 40);
    git(&["hash-object", "-w", "-t", "tree", "--stdin"]);
    for (commit, verdict) in [(signed::GOOD, Verdict::Good), (signed::BAD, Verdict::Bad)] {
        let file = dir.path().join("commit");
        std::fs::write(&file, commit).expect("a file");
        let sha = git(&["hash-object", "-w", "-t", "commit", "commit"]);
        let question = SignatureQuestion {
            sha: sha.clone(),
            named: sha,
            tag_prefix: String::new(),
            deep: false,
            keyring: Arc::new(keyring.clone()),
            permits: Arc::new(|_| true),
            now: now(),
        };
        let access = RepoAccess::public(dir.path().display().to_string());
        let found = Repos::new(dir.path().join("unused"))
            .signatures(&access, question)
            .await;
        let check = found.expect("an answer").first.check;
        assert_eq!((check.verdict, &check.key), (verdict, &key.id), "{commit}");
    }
}
