//! Cases whose answer differs from the recorded one on purpose. Main function: [`reason`].

/// By the beginnings of ids.
const INTENDED: [(&str, &str); 24] = [
    ("authz-ProjectService-ListLinks-existing", REFUSAL),
    ("authz-ProjectService-ListLinks-missing", REFUSAL),
    ("authz-CertificateService-CreateCertificate-upsert", UPSERT),
    ("authz-ClusterService-Create-upsert", UPSERT),
    (
        "authz-RepoCredsService-CreateRepositoryCredentials-upsert",
        UPSERT,
    ),
    (
        "authz-RepoCredsService-CreateWriteRepositoryCredentials-upsert",
        UPSERT,
    ),
    ("authz-ProjectService-CreateToken-missing", EXISTENCE),
    (
        "authz-RepoCredsService-UpdateRepositoryCredentials-existing",
        ESCAPED,
    ),
    (
        "authz-RepoCredsService-UpdateRepositoryCredentials-missing",
        ESCAPED,
    ),
    (
        "authz-RepoCredsService-UpdateWriteRepositoryCredentials-existing",
        ROUTED,
    ),
    (
        "authz-RepoCredsService-UpdateWriteRepositoryCredentials-missing",
        ROUTED,
    ),
    (
        "authz-RepoCredsService-DeleteWriteRepositoryCredentials-existing",
        ROUTED,
    ),
    (
        "authz-RepoCredsService-DeleteWriteRepositoryCredentials-missing",
        ROUTED,
    ),
    ("authz-RepositoryService-GetWrite-existing", ROUTED),
    ("authz-RepositoryService-GetWrite-missing", ROUTED),
    (
        "authz-RepositoryService-UpdateWriteRepository-existing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-UpdateWriteRepository-missing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-DeleteWriteRepository-existing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-DeleteWriteRepository-missing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-ValidateWriteAccess-existing",
        ROUTED,
    ),
    ("authz-RepositoryService-ValidateAccess-existing", ESCAPED),
    ("authz-RepositoryService-ValidateAccess-missing", ESCAPED),
    ("authz-RepositoryService-Create-new", SEGMENTS),
    ("authz-RepositoryService-CreateRepository-new", SEGMENTS),
];
const REFUSAL: &str = "a refusal is a refusal, not an internal error";
const UPSERT: &str = "replacing what exists needs the permission to update it";
const EXISTENCE: &str = "whether a project or role exists is not told to strangers";
const ESCAPED: &str = "the URL in a path is read unescaped, not as the client wrote it";
const ROUTED: &str = "an escaped URL in the path of these calls is found, not lost";
const SEGMENTS: &str = "a repository's URL has one form, without `.` segments";

/// Why the answer to a case is another one, if that is intended.
pub fn reason(id: &str) -> Option<&'static str> {
    let found = INTENDED
        .iter()
        .find(|(beginning, _)| id.starts_with(beginning));
    found.map(|(_, reason)| *reason)
}
