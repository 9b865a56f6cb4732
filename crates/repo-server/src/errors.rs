//! How the failures of a repository reach a client: with the codes of Argo CD's repo-server, whose
//! clients repeat calls and decide by them.

use tiphys_repo::{RenderError, RepoError};
use tiphys_rpc::{ApiError, Code};

/// Most failures have no code of their own. In particular, an unreachable repository is not an
/// unavailable repo-server: its clients would repeat the call at once.
pub(crate) fn of_repo(e: RepoError) -> ApiError {
    let code = match &e {
        RepoError::Render(RenderError::NoValuesFile(_)) => Code::NotFound,
        RepoError::Unsupported(_) | RepoError::Render(RenderError::Unsupported(_)) => {
            Code::Unimplemented
        }
        RepoError::Internal(_) => Code::Internal,
        _ => return ApiError::plain(e.to_string()),
    };
    ApiError::new(code, e.to_string())
}

/// Adds what was being done, as Go does: before the message alone.
pub(crate) fn while_doing(doing: &str) -> impl Fn(RepoError) -> ApiError {
    move |e| {
        let e = of_repo(e);
        ApiError::new(e.code, format!("{doing}{}", e.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_argo_cds() {
        let unreachable = RepoError::Unreachable {
            url: "https://git.example.com/a".to_owned(),
            reason: "connection refused".to_owned(),
            is_away: true,
        };
        let glob = RenderError::NoValuesFile("envs/*.yaml".to_owned());
        for (e, code, message) in [
            (
                unreachable,
                Code::Unknown,
                "repository https://git.example.com/a cannot be reached: connection refused",
            ),
            (
                RepoError::RevisionNotFound {
                    revision: "x".to_owned(),
                },
                Code::Unknown,
                "unable to resolve 'x' to a commit SHA: revision not found",
            ),
            (
                glob.into(),
                Code::NotFound,
                "error resolving helm value files: values file glob \"envs/*.yaml\" matched no files",
            ),
            (
                RepoError::Unsupported("it".to_owned()),
                Code::Unimplemented,
                "it",
            ),
        ] {
            let told = of_repo(e);
            assert_eq!((told.code, told.message.as_str()), (code, message));
        }
        let e = while_doing("doing: ")(RepoError::Internal("x".to_owned()));
        assert_eq!((e.code, e.message.as_str()), (Code::Internal, "doing: x"));
    }
}
