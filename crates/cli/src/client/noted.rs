//! What a client notes in the status of a call, so that advice can be given on it. Main function:
//! [`noted`].

use super::{grpc, web};
use crate::failure::hint::{CALL, UNREACHED};
use tonic::{Status, metadata::AsciiMetadataValue};

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

#[cfg(test)]
mod tests {
    use super::{super::cause, *};
    use crate::failure::hint::{NO_SERVER, of};
    use tonic::Code;

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
            (
                Code::FailedPrecondition,
                "/application.ApplicationService/Rollback",
                "--sync-policy none",
            ),
            (
                Code::Unknown,
                "/application.ApplicationService/RunResourceActionV2",
                "`tiphys app actions list APP`",
            ),
            (Code::PermissionDenied, APP, "`tiphys app list`"),
            (Code::PermissionDenied, REPOSITORY, "`tiphys repo list`"),
            (
                Code::PermissionDenied,
                "/account.AccountService/UpdatePassword",
                "`tiphys account can-i` says",
            ),
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
        let words = Status::unavailable("error reading from server: refused");
        assert_ne!(of(&noted(words, REPOSITORY)), NO_SERVER, "somebody said so");
        let unreached = cause::broken("refused");
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
