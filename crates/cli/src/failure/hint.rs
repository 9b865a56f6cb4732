//! Advice for a user at a terminal whose call failed. Main function: [`of`], which decides by the
//! status, by the call, and by whether the server itself answered. It must not read messages.

use tonic::{Code, Status};

/// Where a status has the path of its call. The client sets it, whatever the server sent.
pub const CALL: &str = "tiphys-call";
/// Set if no server answered.
pub const UNREACHED: &str = "tiphys-unreached";

/// For a server that nothing was heard of.
pub const NO_SERVER: &str =
    "is the server running, and its address right? `tiphys context` shows which one is asked";

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
        (Code::FailedPrecondition, "application") if path.ends_with("/Rollback") => {
            "a rollback needs automatic syncs to be off, which would undo it: `tiphys app set APP \
             --sync-policy none`"
        }
        (Code::Unknown, "application") if path.contains("/RunResourceAction") => {
            "`tiphys app actions list APP` shows the actions that its resources have"
        }
        (Code::PermissionDenied, "session") => "this account may not log in; an admin can say why",
        (Code::PermissionDenied, service) => denied(service),
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

/// What one may not see looks not there, so that a mistyped name is answered in this way, too.
fn denied(service: &str) -> &'static str {
    match service {
        "application" => {
            "either there is no such Application (`tiphys app list` shows those you may see), or \
             your account may not do this (`tiphys account can-i`)"
        }
        "applicationset" => {
            "either there is no such ApplicationSet (`tiphys appset list` shows those you may \
             see), or your account may not do this (`tiphys account can-i`)"
        }
        "project" => {
            "either there is no such project (`tiphys proj list` shows those you may see), or \
             your account may not do this (`tiphys account can-i`)"
        }
        "cluster" => {
            "either there is no such cluster (`tiphys cluster list` shows those you may see), or \
             your account may not do this (`tiphys account can-i`)"
        }
        "repository" => {
            "either there is no such repository (`tiphys repo list` shows those you may see), or \
             your account may not do this (`tiphys account can-i`)"
        }
        _ => "`tiphys account can-i` says what your account may do",
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
