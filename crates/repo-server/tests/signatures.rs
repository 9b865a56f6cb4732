//! What is demanded of signatures, with commits that the real git and gpg signed.

use crate::world::{World, repo, request, text};
use tiphys_api::{
    project::{
        SourceIntegrity, SourceIntegrityGit, SourceIntegrityGitPolicy, SourceIntegrityGitPolicyGPG,
        SourceIntegrityGitPolicyRepo,
    },
    repository::RevisionMetadata,
    rpc::repo_server::{
        GitFilesRequest, GitFilesResponse, ManifestRequest, ManifestResponse,
        RepoServerRevisionMetadataRequest,
    },
};
use tiphys_testkit::Gpg;

fn demanded(url: &str, mode: &str, key: &str) -> Option<SourceIntegrity> {
    let policy = SourceIntegrityGitPolicy {
        repos: vec![SourceIntegrityGitPolicyRepo {
            url: url.to_owned(),
        }],
        gpg: Some(SourceIntegrityGitPolicyGPG {
            mode: mode.to_owned(),
            keys: vec![key.to_owned()],
        }),
    };
    Some(SourceIntegrity {
        git: Some(SourceIntegrityGit {
            policies: vec![policy],
        }),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_as_demanded_is_told() {
    // Without gpg the kit says so, and fails unless that is permitted.
    let Some(gpg) = Gpg::new() else { return };
    let world = World::plain().await;
    let path = world.dir.path().join("r");
    std::fs::create_dir_all(path.join("app")).expect("made");
    std::fs::write(path.join("app/a.yaml"), "").expect("written");
    let key = gpg.generate("Key <key@example.org>", "ed25519", "never", &[]);
    let id = key.get(24..).expect("a fingerprint").to_owned();
    gpg.git(&path, &["init", "-q", "-b", "main"]);
    gpg.git(&path, &["add", "-A"]);
    let commit = |sign: &str| {
        gpg.git(&path, &["commit", "-q", "--allow-empty", "-m", "x", sign]);
        gpg.git(&path, &["rev-parse", "HEAD"])
    };
    let unsigned = commit("--no-gpg-sign");
    let signed = commit(&format!("-S{key}"));
    let keys = world.dir.path().join("keys");
    std::fs::create_dir(&keys).expect("made");
    std::fs::write(keys.join(&id), gpg.export(&key)).expect("written");

    let generate = async |revision: &str, integrity: Option<SourceIntegrity>| {
        let asked = ManifestRequest {
            revision: revision.to_owned(),
            verify_signature: true,
            source_integrity: integrity,
            ..request(&path, "app")
        };
        let found: Result<ManifestResponse, _> = world.ask("GenerateManifest", &asked).await;
        found.map(|found| {
            let result = found.source_integrity_result;
            result.map(|result| result.checks[0].problems.clone())
        })
    };
    assert_eq!(
        generate(&signed, demanded("*", "head", &id)).await,
        Ok(Some(vec![]))
    );
    let strict = generate(&signed, demanded("*", "strict", &id)).await;
    let problem = format!("Failed verifying revision {unsigned} by ");
    let told = strict.expect("manifests").expect("a result");
    assert!(
        told[0].starts_with(&problem) && told[0].contains("unsigned"),
        "{told:?}"
    );
    let told = generate(&unsigned, demanded("*", "head", &id)).await;
    assert!(told.expect("manifests").expect("a result")[0].starts_with(&problem));
    let other = generate(&signed, demanded("*", "head", "0000000000000000")).await;
    let told = other.expect("manifests").expect("a result");
    assert!(told[0].contains("signed with unallowed key"), "{told:?}");
    let elsewhere = demanded("https://other.example.com/*", "head", &id);
    assert_eq!(generate(&unsigned, elsewhere).await, Ok(None));
    let odd = generate(&signed, demanded("*", "loud", &id)).await;
    assert!(odd.expect_err("unclear").1.contains("unknown GPG mode"));

    let metadata = RepoServerRevisionMetadataRequest {
        repo: repo(&text(&path)),
        revision: signed.clone(),
        check_signature: true,
        source_integrity: demanded("*", "head", &id),
    };
    let told: RevisionMetadata = world
        .ask("GetRevisionMetadata", &metadata)
        .await
        .expect("metadata");
    assert!(
        told.signature_info.starts_with("Good signature from"),
        "{told:?}"
    );
    assert!(told.source_integrity_result.is_some());

    // Files are content that is used at once: they are not handed out.
    let files = |revision: &str| GitFilesRequest {
        repo: repo(&text(&path)),
        revision: revision.to_owned(),
        source_integrity: demanded("*", "head", &id),
        ..GitFilesRequest::default()
    };
    let found: Result<GitFilesResponse, _> = world.ask("GetGitFiles", &files(&signed)).await;
    assert!(found.is_ok_and(|found| found.map.contains_key("app/a.yaml")));
    let refused: Result<GitFilesResponse, _> = world.ask("GetGitFiles", &files(&unsigned)).await;
    let (_, message) = refused.expect_err("unsigned");
    assert!(
        message.starts_with(&format!("GIT/GPG: {problem}")),
        "{message}"
    );
}
