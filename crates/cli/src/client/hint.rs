//! Advice for a user at a terminal whose call failed. Main function: [`of`], which decides by the
//! status, by the call, and by whether the server itself answered. It must not read messages.

use super::{grpc, web};
use tonic::{Code, Status, metadata::AsciiMetadataValue};

/// Where a status has the path of its call. It is set here, whatever the server sent.
const CALL: &str = "tiphys-call";
/// Set if no server answered.
const UNREACHED: &str = "tiphys-unreached";

/// For a server that nothing was heard of.
pub const NO_SERVER: &str =
    "is the server running, and its address right? `tiphys context` shows which one is asked";

/// Notes which call a status is the answer to. `path` is `/package.Service/Method`.
pub fn noted(mut status: Status, path: &'static str) -> Status {
    let is_unreached = grpc::is_of_transport(&status) || web::is_of_transport(&status);
    let metadata = status.metadata_mut();
    metadata.insert(CALL, AsciiMetadataValue::from_static(path));
    metadata.remove(UNREACHED);
    if is_unreached {
        metadata.insert(UNREACHED, AsciiMetadataValue::from_static("true"));
    }
    status
}

/// What a user may do about it; empty if nothing is known.
pub fn of(status: &Status) -> &'static str {
    let path = status.metadata().get(CALL);
    let path = path.and_then(|path| path.to_str().ok()).unwrap_or_default();
    let service = path
        .trim_start_matches('/')
        .split('.')
        .next()
        .unwrap_or_default();
    let is_unreached = status.metadata().contains_key(UNREACHED);
    match (status.code(), service) {
        (Code::Unauthenticated, "session") => {
            "check the name and the password; after too many attempts an account is locked for a \
             while. `tiphys login SERVER --sso` signs in with the server's identity provider"
        }
        (Code::Unauthenticated, _) => "log in with `tiphys login SERVER`",
        (Code::Unavailable, _) if is_unreached => NO_SERVER,
        (Code::Unavailable, "repository" | "repocreds") => UNREACHED_REPOSITORY,
        (Code::Unavailable, "cluster") => {
            "the server cannot reach the cluster: check its address as seen from the server"
        }
        (Code::NotFound, service) => list(service),
        (Code::PermissionDenied, "session") => "this account may not log in; an admin can say why",
        (Code::PermissionDenied, "application" | "applicationset" | "project" | "cluster") => {
            "either there is no such object, or your account may not do this: `tiphys account \
             can-i` says which"
        }
        (Code::PermissionDenied, _) => "`tiphys account can-i` says what your account may do",
        (Code::Unimplemented, _) => {
            "the server does not have this call; STATUS.md lists what works"
        }
        (Code::ResourceExhausted, _) => "the server has too much to do, or limits you: try later",
        (Code::DeadlineExceeded, _) => "the server takes too long; its log may say why",
        // What a repository did not accept is not one of gRPC's codes.
        (Code::Unknown | Code::FailedPrecondition, "repository" | "repocreds") => {
            UNREACHED_REPOSITORY
        }
        _ => "",
    }
}

const UNREACHED_REPOSITORY: &str = "the server could not use the repository: check address and \
     credentials as seen from the server, and `tiphys cert list` for its certificate";

/// The command that lists what there is of the kind that a service is about.
fn list(service: &str) -> &'static str {
    match service {
        "application" => "check the name; `tiphys app list` shows the Applications you may see",
        "applicationset" => "check the name; `tiphys appset list` shows the ApplicationSets",
        "project" => "check the name; `tiphys proj list` shows the projects you may see",
        "cluster" => "check the name; `tiphys cluster list` shows the clusters you may see",
        "repository" => "check the address; `tiphys repo list` shows the repositories",
        "repocreds" => "check the address; `tiphys repocreds list` shows the templates",
        "certificate" => "`tiphys cert list` shows the certificates",
        "gpgkey" => "check the key's id; `tiphys gpg list` shows the keys",
        "account" => "check the name; `tiphys account list` shows the accounts",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str = "/application.ApplicationService/Get";
    const REPOSITORY: &str = "/repository.RepositoryService/CreateRepository";

    #[test]
    fn hints_are_about_what_was_asked() {
        let table = [
            (Code::NotFound, APP, "tiphys app list"),
            (
                Code::NotFound,
                "/project.ProjectService/Get",
                "tiphys proj list",
            ),
            (
                Code::NotFound,
                "/cluster.ClusterService/Get",
                "tiphys cluster list",
            ),
            (Code::Unauthenticated, APP, "tiphys login SERVER`"),
            (
                Code::Unauthenticated,
                "/session.SessionService/Create",
                "the password",
            ),
            (Code::Unavailable, REPOSITORY, "the repository"),
            (Code::Unknown, REPOSITORY, "the repository"),
            (Code::PermissionDenied, APP, "no such object"),
        ];
        for (code, path, expected) in table {
            let status = noted(Status::new(code, "any words"), path);
            assert!(of(&status).contains(expected), "{code:?} {path}");
        }
        let project = noted(Status::not_found("x"), "/project.ProjectService/Get");
        assert!(!of(&project).contains("app list"));
        assert_eq!(of(&noted(Status::internal("x"), APP)), "");
    }

    /// Only then is the address of the server in doubt.
    #[test]
    fn a_server_that_answers_is_there() {
        let answered = noted(
            Status::unavailable("no route to the repository"),
            REPOSITORY,
        );
        assert_ne!(of(&answered), NO_SERVER);
        let mut silent = Status::from_error(Box::new(std::io::Error::other("refused")));
        silent = Status::new(Code::Unavailable, silent.message().to_owned());
        assert_ne!(of(&silent), NO_SERVER, "nobody noted it");
        let unreached = Status::unavailable("error reading from server: refused");
        assert_eq!(of(&noted(unreached, REPOSITORY)), NO_SERVER);
    }

    #[test]
    fn a_server_cannot_choose_the_hint() {
        let mut status = Status::not_found("x");
        let metadata = status.metadata_mut();
        metadata.insert(CALL, AsciiMetadataValue::from_static("/session.S/Create"));
        metadata.insert(UNREACHED, AsciiMetadataValue::from_static("true"));
        let status = noted(status, APP);
        assert!(of(&status).contains("tiphys app list"));
        assert!(!status.metadata().contains_key(UNREACHED));
    }
}
