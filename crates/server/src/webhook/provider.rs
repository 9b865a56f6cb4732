//! Identifies the sender of a webhook and checks its secret. Comparing secrets does not reveal
//! through timing where they differ.

use super::{Refusal, SECURITY_HIGH};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use http::{HeaderMap, header::AUTHORIZATION};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The `webhook.*` values of argocd-secret, without empty ones.
pub type Secrets = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    AzureDevOps,
    Gogs,
    GitHub,
    GitLab,
    Bitbucket,
    BitbucketServer,
    /// GitHub's registry.
    Ghcr,
    Harbor,
}

impl Provider {
    /// The order matters: Gogs also sends GitHub's header, and Bitbucket that of Bitbucket Server.
    /// Harbor has no header and is recognised by its secret alone.
    pub fn of(headers: &HeaderMap, secrets: &Secrets) -> Option<Self> {
        let has = |name| !text(headers, name).is_empty();
        let package = text(headers, "x-github-event") == "package";
        let marks = [
            (has("x-vss-activityid"), Self::AzureDevOps),
            (has("x-gogs-event"), Self::Gogs),
            (has("x-github-event") && !package, Self::GitHub),
            (has("x-gitlab-event"), Self::GitLab),
            (has("x-hook-uuid"), Self::Bitbucket),
            (has("x-event-key"), Self::BitbucketServer),
            (package, Self::Ghcr),
        ];
        let marked = marks
            .into_iter()
            .find(|(is_it, _)| *is_it)
            .map(|(_, provider)| provider);
        marked.or_else(|| is_harbor(headers, secrets).then_some(Self::Harbor))
    }

    /// Whether it reports images and charts rather than commits.
    pub fn is_registry(self) -> bool {
        matches!(self, Self::Ghcr | Self::Harbor)
    }

    /// Whether Argo CD's controller of ApplicationSets takes its events.
    pub fn is_for_sets(self) -> bool {
        matches!(self, Self::GitHub | Self::GitLab | Self::AzureDevOps)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::AzureDevOps => "Azure DevOps",
            Self::Gogs => "Gogs",
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Bitbucket | Self::BitbucketServer => "BitBucket",
            Self::Ghcr | Self::Harbor => "Registry",
        }
    }

    /// The name of the check in the log.
    pub fn proof(self) -> &'static str {
        match self {
            Self::AzureDevOps => "basic auth",
            Self::GitLab => "token",
            Self::Bitbucket => "UUID",
            Self::Gogs | Self::GitHub | Self::BitbucketServer | Self::Ghcr | Self::Harbor => "HMAC",
        }
    }

    /// The event named in the header.
    pub fn event(self, headers: &HeaderMap) -> &str {
        match self {
            Self::AzureDevOps | Self::Ghcr | Self::Harbor => "",
            Self::Gogs => text(headers, "x-gogs-event"),
            Self::GitHub => text(headers, "x-github-event"),
            Self::GitLab => text(headers, "x-gitlab-event"),
            Self::Bitbucket | Self::BitbucketServer => text(headers, "x-event-key"),
        }
    }

    /// Whether the event is supported. Azure DevOps names it in the content.
    pub fn knows_event(self, headers: &HeaderMap) -> bool {
        match (self, self.event(headers)) {
            (Self::AzureDevOps | Self::Ghcr | Self::Harbor, _)
            | (Self::Gogs, "push")
            | (Self::GitHub, "push" | "ping" | "pull_request")
            | (
                Self::GitLab,
                "Push Hook" | "Tag Push Hook" | "Merge Request Hook" | "System Hook",
            )
            | (Self::Bitbucket, "repo:push")
            | (Self::BitbucketServer, "repo:refs_changed" | "diagnostics:ping") => true,
            (
                Self::Gogs | Self::GitHub | Self::GitLab | Self::Bitbucket | Self::BitbucketServer,
                _,
            ) => false,
        }
    }

    /// Checks secrets that are sent in headers.
    pub fn check_headers(self, headers: &HeaderMap, secrets: &Secrets) -> Result<(), Refusal> {
        let secret = |key: &str| secrets.get(key).map_or(&[][..], Vec::as_slice);
        let known = match self {
            Self::AzureDevOps => {
                let (user, password) = (
                    secret("webhook.azuredevops.username"),
                    secret("webhook.azuredevops.password"),
                );
                let right = |(u, p): (Vec<u8>, Vec<u8>)| same(&u, user) & same(&p, password);
                (user.is_empty() && password.is_empty()) || basic(headers).is_some_and(right)
            }
            Self::GitLab => {
                let token = secret("webhook.gitlab.secret");
                token.is_empty() || same(text(headers, "x-gitlab-token").as_bytes(), token)
            }
            Self::Bitbucket => {
                let uuid = secret("webhook.bitbucket.uuid");
                uuid.is_empty() || same(text(headers, "x-hook-uuid").as_bytes(), uuid)
            }
            Self::Gogs | Self::GitHub | Self::BitbucketServer | Self::Ghcr | Self::Harbor => true,
        };
        if known { Ok(()) } else { Err(Refusal::Secret) }
    }

    /// Checks signatures of the content.
    pub fn check_content(
        self,
        headers: &HeaderMap,
        content: &[u8],
        secrets: &Secrets,
    ) -> Result<(), Refusal> {
        let (key, header, prefix) = match self {
            Self::Gogs => ("webhook.gogs.secret", "x-gogs-signature", ""),
            Self::GitHub => ("webhook.github.secret", "x-hub-signature-256", "sha256="),
            // A ping is not signed.
            Self::BitbucketServer if self.event(headers) == "diagnostics:ping" => return Ok(()),
            Self::BitbucketServer => (
                "webhook.bitbucketserver.secret",
                "x-hub-signature",
                "sha256=",
            ),
            Self::Ghcr => ("webhook.github.secret", "x-hub-signature-256", "sha256="),
            Self::AzureDevOps | Self::GitLab | Self::Bitbucket | Self::Harbor => return Ok(()),
        };
        let wrong = if self.is_registry() {
            Refusal::Unauthorized
        } else {
            Refusal::Secret
        };
        let Some(secret) = secrets.get(key) else {
            return Ok(());
        };
        let signature = text(headers, header);
        if signature.is_empty() {
            return Err(if self.is_registry() {
                wrong
            } else {
                Refusal::Failed
            });
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| wrong)?;
        mac.update(content);
        let signature = hex(signature.strip_prefix(prefix).unwrap_or(signature)).ok_or(wrong)?;
        mac.verify_slice(&signature).map_err(|_| wrong)
    }
}

/// Whether the request's authorization is Harbor's secret. Without a configured secret, no request
/// counts as Harbor's.
fn is_harbor(headers: &HeaderMap, secrets: &Secrets) -> bool {
    let (given, secret) = (
        headers.get(AUTHORIZATION).map_or(&[][..], |v| v.as_bytes()),
        secrets.get("webhook.harbor.secret"),
    );
    let Some(secret) = secret.filter(|_| !given.is_empty()) else {
        return false;
    };
    let known = same(given, secret);
    if !known {
        tracing::info!(
            security = SECURITY_HIGH,
            "Harbor webhook auth header mismatch"
        );
    }
    known
}

pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default()
}

fn basic(headers: &HeaderMap) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = text(headers, AUTHORIZATION.as_str()).split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let both = STANDARD.decode(encoded).ok()?;
    let colon = both.iter().position(|b| *b == b':')?;
    Some((both[..colon].to_vec(), both[colon + 1..].to_vec()))
}

/// Compares digests, so that timing reveals nothing about the secret.
fn same(given: &[u8], secret: &[u8]) -> bool {
    Sha256::digest(given) == Sha256::digest(secret)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect();
    let digits = digits.filter(|d| d.len() % 2 == 0)?;
    Some(
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_hexadecimal() {
        assert_eq!(hex("00fFa1"), Some(vec![0, 255, 161]));
        for broken in ["0", "0g", "é0", "sha256="] {
            assert_eq!(hex(broken), None, "{broken}");
        }
    }
}
