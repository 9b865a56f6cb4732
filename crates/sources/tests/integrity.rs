//! What a project demands of signatures, answered for commits and tags that the real git and gpg made.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::{
    AppProject,
    repository::{Repository, RevisionMetadata},
    source::ApplicationSource,
};
use tiphys_cluster::Settings;
use tiphys_engine::integrity::fault;
use tiphys_repo::{
    ErrorKind, Manifests, RemoteVerdict, RepoError, RepoOptions, RepoServer, RepoServerOptions,
    Repos, Since,
};
use tiphys_signatures::key_id;
use tiphys_sources::{AppRequest, SourceRequest, Sources};
use tiphys_testkit::Gpg;

struct World {
    dir: tempfile::TempDir,
    gpg: Gpg,
    sources: Sources,
    settings: Arc<Mutex<Arc<Settings>>>,
    project: Arc<Mutex<Option<Arc<AppProject>>>>,
}

impl World {
    fn new(signatures: bool) -> Option<Self> {
        let gpg = Gpg::new()?;
        let dir = tempfile::tempdir().expect("a folder");
        let settings = Arc::new(Mutex::new(Arc::new(Settings::default())));
        let project = Arc::new(Mutex::new(Some(Arc::new(AppProject::default()))));
        let options = RepoOptions {
            signatures,
            ..RepoOptions::default()
        };
        let repos = Repos::with_options(dir.path().join("cache"), options);
        let (known, of) = (Arc::clone(&settings), Arc::clone(&project));
        let sources = Sources::with(
            repos,
            None,
            move || known.lock().expect("settings").clone(),
            move |_| of.lock().expect("a project").clone(),
        );
        let made = Self {
            dir,
            gpg,
            sources,
            settings,
            project,
        };
        std::fs::create_dir(made.tree()).expect("a folder");
        made.git(&["init", "-q", "-b", "main"]);
        std::fs::write(made.tree().join("a.yaml"), "kind: A\n").expect("a file");
        made.git(&["add", "a.yaml"]);
        Some(made)
    }

    fn tree(&self) -> PathBuf {
        self.dir.path().join("r")
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.gpg.git(&self.tree(), arguments)
    }

    fn commit(&self, key: Option<&str>) -> String {
        let signed = key.map_or("--no-gpg-sign".to_owned(), |key| format!("-S{key}"));
        self.git(&["commit", "-q", "--allow-empty", "-m", "A change", &signed]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The keys of argocd-gpg-keys-cm.
    fn know(&self, keys: &[&str]) {
        let of = |key: &&str| (key_id(key).expect("an id").to_owned(), self.gpg.export(key));
        let settings = Settings {
            gpg_keys: keys.iter().map(of).collect::<BTreeMap<_, _>>(),
            ..Settings::default()
        };
        *self.settings.lock().expect("settings") = Arc::new(settings);
    }

    fn demand(&self, spec: serde_json::Value) {
        let project = serde_json::json!({"metadata": {"name": "team"}, "spec": spec});
        let project = serde_json::from_value(project).expect("a project");
        *self.project.lock().expect("a project") = Some(Arc::new(project));
    }

    fn request(&self, revision: &str) -> SourceRequest {
        let source = ApplicationSource {
            repo_url: self.tree().display().to_string(),
            path: ".".to_owned(),
            ..ApplicationSource::default()
        };
        SourceRequest {
            app: Arc::new(AppRequest {
                project: "team".to_owned(),
                ..AppRequest::default()
            }),
            repository: Repository::default(),
            source,
            revision: revision.to_owned(),
        }
    }

    /// The text of the condition; None: nothing is wrong, or nothing is demanded.
    async fn fault(&self, named: &str) -> Result<Option<String>, RepoError> {
        let named_request = self.request(named);
        let before = tiphys_sources::Before::default();
        let sha = self.sources.pin(&named_request, &before, Since::now());
        let request = self.request(&sha.await?);
        let manifests = self.rendered(&request.revision);
        let found = self.sources.integrity(&request, named, &manifests).await?;
        Ok(found.and_then(|found| fault(&found, None)))
    }

    /// As far as it matters: the commit that was rendered.
    fn rendered(&self, sha: &str) -> Manifests {
        Manifests::empty(sha)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_gets_only_what_is_signed_as_it_demands() {
    let Some(world) = World::new(true) else {
        return;
    };
    let key = world
        .gpg
        .generate("Key <k@example.org>", "ed25519", "never", &[]);
    let id = key_id(&key).expect("an id").to_owned();
    let unsigned = world.commit(None);
    let signed = world.commit(Some(&key));
    let keys = serde_json::json!({"signatureKeys": [{"keyID": id}]});
    let text = |sha: &str, what: &str, key: &str| {
        Some(format!(
            "GIT/GPG: Failed verifying revision {sha} by 'A U Thor <a@example.org>': {what} (key_id={key})"
        ))
    };
    // Nothing is demanded.
    assert_eq!(world.fault(&unsigned).await.expect("an answer"), None);
    world.demand(keys.clone());
    let before = world.sources.trust("team");
    for (sha, expected) in [
        (&unsigned, text(&unsigned, "unsigned", "")),
        (
            &signed,
            text(&signed, "signed with key not in keyring", &id),
        ),
    ] {
        assert_eq!(world.fault(sha).await.expect("an answer"), expected);
    }
    world.know(&[&key]);
    // What was decided with other keys does not count any more.
    assert!(before != world.sources.trust("team"));
    assert!(world.sources.trust("team") == world.sources.trust("team"));
    for (named, expected) in [
        (signed.as_str(), None),
        ("main", None),
        (&unsigned, text(&unsigned, "unsigned", "")),
    ] {
        assert_eq!(world.fault(named).await.expect("an answer"), expected);
    }
    world.git(&["tag", "-a", "-m", "x", "v1"]);
    let of_tag = "GIT/GPG: Failed verifying revision v1 by 'A U Thor \"<a@example.org>\"': unsigned (key_id=)";
    assert_eq!(
        world.fault("v1").await.expect("an answer").as_deref(),
        Some(of_tag)
    );

    // Another key than the permitted one; then every commit before it.
    let policy = |mode: &str, keys: &[&str]| {
        serde_json::json!({"sourceIntegrity": {"git": {"policies": [
            {"repos": [{"url": "*"}], "gpg": {"mode": mode, "keys": keys}}
        ]}}})
    };
    for (spec, expected) in [
        (
            policy("head", &[]),
            text(&signed, "signed with unallowed key", &id),
        ),
        (policy("head", &[&key]), None),
        (policy("strict", &[&key]), text(&unsigned, "unsigned", "")),
        (policy("none", &[]), None),
    ] {
        world.demand(spec.clone());
        assert_eq!(
            world.fault(&signed).await.expect("an answer"),
            expected,
            "{spec}"
        );
    }

    // Without an answer nothing is permitted.
    world.demand(policy("Strict", &[&key]));
    let error = world.fault(&signed).await.expect_err("an unknown mode");
    assert_eq!(
        error.to_string(),
        "unknown GPG mode \"Strict\" configured for GIT source integrity"
    );
    world.demand(keys);
    let gone = world
        .fault("0123456789012345678901234567890123456789")
        .await;
    assert_eq!(gone.expect_err("no commit").kind(), ErrorKind::User);
    *world.project.lock().expect("a project") = None;
    let missing = world.fault(&signed).await.expect_err("no project");
    assert!(matches!(missing, RepoError::NoProject { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metadata_of_a_commit_says_who_signed_it() {
    let Some(world) = World::new(true) else {
        return;
    };
    let key = world
        .gpg
        .generate("Key <k@example.org>", "rsa2048", "never", &[]);
    let id = key_id(&key).expect("an id").to_owned();
    let (unsigned, signed) = (world.commit(None), world.commit(Some(&key)));
    let info = async |sha: &str| {
        let repository = Repository {
            repo: world.tree().display().to_string(),
            ..Repository::default()
        };
        let project = world.project.lock().expect("a project").clone();
        let project = project.expect("a project");
        let of = world
            .sources
            .signed(RevisionMetadata::default(), &project, &repository, sha);
        let of = of.await.expect("an answer");
        let checks = of
            .source_integrity_result
            .map(|result| result.checks[0].problems.len());
        (of.signature_info, checks)
    };
    assert_eq!(info(&signed).await, (String::new(), None));
    world.demand(serde_json::json!({"signatureKeys": [{"keyID": id}]}));
    let missing = format!(
        "Found signature made with RSA key {id}, but verification result was invalid: 'gpg: Can't check signature: No public key'"
    );
    assert_eq!(info(&signed).await, (missing, Some(1)));
    world.know(&[&key]);
    let good = format!("Good signature from A U Thor <a@example.org> key {id}");
    assert_eq!(info(&signed).await, (good, Some(0)));
    let none =
        format!("Target revision {unsigned} in Git is not signed, but a signature is required");
    assert_eq!(info(&unsigned).await, (none, Some(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verification_can_be_switched_off_for_a_process() {
    let Some(world) = World::new(false) else {
        return;
    };
    let unsigned = world.commit(None);
    world.demand(serde_json::json!({"signatureKeys": [{"keyID": "0000000000000000"}]}));
    for _ in 0..2 {
        assert_eq!(world.fault(&unsigned).await.expect("an answer"), None);
    }
}

/// Sources whose manifests come from a repo-server, which is not asked here, in a project.
fn remote(spec: &serde_json::Value) -> Sources {
    let server = RepoServer::new(RepoServerOptions {
        address: "localhost:1".to_owned(),
        timeout: Duration::ZERO,
        plaintext: true,
        trusted: Vec::new(),
        identity: None,
    });
    let project = serde_json::json!({"metadata": {"name": "team"}, "spec": spec});
    let project: AppProject = serde_json::from_value(project).expect("a project");
    let project = Arc::new(project);
    Sources::with(
        Repos::with_options("unused", RepoOptions::default()),
        Some(server.expect("an address")),
        Arc::default,
        move |_| Some(project.clone()),
    )
}

#[tokio::test]
async fn what_a_repo_server_found_counts() {
    const KEY: &str = "4AEE18F83AFDEB23";
    let keys = serde_json::json!({"signatureKeys": [{"keyID": KEY}]});
    let strict = serde_json::json!({"sourceIntegrity": {"git": {"policies": [
        {"repos": [{"url": "*"}], "gpg": {"mode": "strict", "keys": [KEY]}}
    ]}}});
    let elsewhere = serde_json::json!({"sourceIntegrity": {"git": {"policies": [
        {"repos": [{"url": "https://other.example.org/*"}], "gpg": {"mode": "strict", "keys": [KEY]}}
    ]}}});
    let nothing = serde_json::json!({});
    let printed = |key: &str| {
        format!(
            "gpg: Signature made Wed Feb 26 23:22:34 2020 CET\ngpg:                using RSA key {key}\n\
             gpg: Good signature from \"May <may@example.org>\" [ultimate]\n"
        )
    };
    let checks = |problems: &[&[&str]]| {
        let checks = problems
            .iter()
            .map(|problems| serde_json::json!({"name": "GIT/GPG", "problems": problems}));
        let checks = serde_json::Value::from_iter(checks);
        serde_json::from_value(serde_json::json!({"checks": checks})).expect("a result")
    };
    let unknown =
        "GIT/GPG: Failed verifying revision abc: the repo-server does not know sourceIntegrity";
    let unsigned = "Target revision abc in Git is not signed, but a signature is required";
    let other = "Found good signature made with RSA key 0000000000000000, but this key is not allowed in AppProject";
    for (spec, integrity, verify_result, expected) in [
        (&strict, Some(checks(&[&[]])), String::new(), None),
        (
            &strict,
            Some(checks(&[&["b: unsigned"]])),
            String::new(),
            Some("GIT/GPG: b: unsigned"),
        ),
        // One check that found nothing does not speak for the others.
        (
            &strict,
            Some(checks(&[&[], &["c"]])),
            printed(KEY),
            Some("GIT/GPG: c"),
        ),
        // No answer is no permission, whatever git printed.
        (&strict, Some(checks(&[])), String::new(), Some(unknown)),
        (&strict, None, printed(KEY), Some(unknown)),
        (&keys, None, String::new(), Some(unsigned)),
        (&keys, Some(checks(&[])), String::new(), Some(unsigned)),
        (&keys, None, printed("0000000000000000"), Some(other)),
        (&keys, None, printed(KEY), None),
        (
            &keys,
            Some(checks(&[&["c"]])),
            printed(KEY),
            Some("GIT/GPG: c"),
        ),
        (&nothing, None, String::new(), None),
        (&elsewhere, None, String::new(), None),
    ] {
        let sources = remote(spec);
        let request = SourceRequest {
            app: Arc::new(AppRequest {
                project: "team".to_owned(),
                ..AppRequest::default()
            }),
            repository: Repository::default(),
            source: ApplicationSource {
                repo_url: "https://git.example.org/r.git".to_owned(),
                path: ".".to_owned(),
                ..ApplicationSource::default()
            },
            revision: "abc".to_owned(),
        };
        let mut manifests = Manifests::empty("abc");
        let what = format!("{spec} {integrity:?} {verify_result:?}");
        manifests.told = RemoteVerdict {
            integrity,
            verify_result,
        };
        let found = sources.integrity(&request, "main", &manifests).await;
        let found = found
            .expect("an answer")
            .and_then(|found| fault(&found, None));
        assert_eq!(found.as_deref(), expected, "{what}");
    }
}
