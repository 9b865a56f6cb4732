//! Clients of gRPC that this API cannot serve. Main function: [`turned_away`].

use crate::{ApiError, Code};
use std::sync::LazyLock;
use tiphys_gocompat::semver::{Constraints, Version};

/// How Argo CD's own clients call themselves.
const CLIENT: &str = "argocd-client";
/// What the first clients sent, which said nothing of themselves.
const LEGACY: [&str; 2] = ["grpc-go/1.15.0", "grpc-go/1.10.0"];
/// The versions that are served: the same as in Argo CD.
static SERVED: LazyLock<Constraints> =
    LazyLock::new(|| Constraints::parse(">= 1.4.0").expect("a constraint"));

/// Why a client with this user agent, such as `argocd-client/v3.6.0 grpc-go/1.70.0`, is turned away.
/// Clients of other makes are served.
pub fn turned_away(user_agent: &str) -> Option<ApiError> {
    let agents: Vec<&str> = user_agent.split_whitespace().collect();
    if let [only] = agents.as_slice()
        && LEGACY.contains(only)
    {
        return Some(unsatisfied(&SERVED.to_string()));
    }
    let (agent, version) = agents.iter().find_map(|agent| {
        let (name, version) = agent.split_once('/')?;
        (name == CLIENT && !version.contains('/')).then_some((*agent, version))
    })?;
    let (release, _) = version.split_once('-').unwrap_or((version, ""));
    let Ok(release) = Version::parse(release) else {
        let why = format!("could not parse version from user-agent: {agent}");
        return Some(ApiError::invalid(why));
    };
    let reasons = SERVED.validate(&release).err()?;
    Some(unsatisfied(&reasons.join("\n")))
}

fn unsatisfied(why: &str) -> ApiError {
    let why = format!("unsatisfied client version constraint: {why}");
    ApiError::new(Code::FailedPrecondition, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_of_argo_cd_that_are_too_old_or_unreadable_are_turned_away() {
        for (agent, want) in [
            ("", None),
            ("curl/8.0", None),
            ("argocd-client", None),
            ("argocd-client/v3.6.0+37ee009 grpc-go/1.70.0", None),
            ("argocd-client/v1.4.0-rc1", None),
            ("grpc-go/1.15.0 other/1", None),
            ("grpc-go/1.15.0", Some(Code::FailedPrecondition)),
            (
                "grpc-go/1.70.0 argocd-client/v1.3.9",
                Some(Code::FailedPrecondition),
            ),
            ("argocd-client/abc", Some(Code::InvalidArgument)),
        ] {
            let code = turned_away(agent).map(|error| error.code);
            assert_eq!(code, want, "{agent}");
        }
        let error = turned_away("argocd-client/abc").expect("an error");
        assert_eq!(
            error.message,
            "could not parse version from user-agent: argocd-client/abc"
        );
    }
}
