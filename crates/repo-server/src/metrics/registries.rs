//! The requests to registries for OCI sources. Main type: [`Registries`].

use super::{Histogram, count, histogram, observe};
use std::collections::BTreeMap;
use tiphys_repo::{Contact, RegistryRequest};
use tiphys_rpc::counts::{Counts, family};

/// Requests and those that failed.
#[derive(Default)]
pub(super) struct Registries {
    requests: Counts<2>,
    durations: Histogram,
    failed: BTreeMap<RegistryRequest, Counts<2>>,
    failed_of_repositories: BTreeMap<RegistryRequest, Counts<1>>,
}

/// The failures that are counted by revision, too, with Argo CD's names and texts.
const OF_REVISIONS: [(RegistryRequest, &str, &str); 3] = [
    (
        RegistryRequest::Extract,
        "argocd_oci_extract_fail_total",
        "Number of OCI extract requests failures by repo server",
    ),
    (
        RegistryRequest::ResolveRevision,
        "argocd_oci_resolve_revision_fail_total",
        "Number of OCI resolve revision requests failures by repo server",
    ),
    (
        RegistryRequest::DigestMetadata,
        "argocd_oci_digest_metadata_fail_total",
        "Number of OCI digest metadata requests failures by repo server",
    ),
];

/// The others.
const OF_REPOSITORIES: [(RegistryRequest, &str, &str); 2] = [
    (
        RegistryRequest::GetTags,
        "argocd_oci_get_tags_fail_total",
        "Number of OCI get tags failures by repo server",
    ),
    (
        RegistryRequest::TestRepo,
        "argocd_oci_test_repo_fail_total",
        "Number of OCI test repo requests failures by repo server",
    ),
];

impl Registries {
    pub fn add(&mut self, request: RegistryRequest, contact: &Contact<'_>) {
        let (repository, revision) = (contact.repository, contact.revision);
        let kind = match request {
            RegistryRequest::Extract => "extract",
            RegistryRequest::ResolveRevision => "resolve-revision",
            RegistryRequest::DigestMetadata => "digest-metadata",
            RegistryRequest::GetTags => "get-tags",
            RegistryRequest::TestRepo => "test-repo",
        };
        count(&mut self.requests, [repository, kind]);
        observe(&mut self.durations, [repository, kind], contact.took);
        if !contact.is_failed {
            return;
        }
        if OF_REVISIONS.iter().any(|(of, ..)| *of == request) {
            let failed = self.failed.entry(request).or_default();
            count(failed, [repository, revision]);
        } else {
            let failed = self.failed_of_repositories.entry(request).or_default();
            count(failed, [repository]);
        }
    }

    pub fn write(&self, out: &mut String) {
        let (name, help) = (
            "argocd_oci_request_total",
            "Number of OCI requests performed by repo server",
        );
        let labels = ["repo", "request_type"];
        family(out, (name, "counter"), help, &labels, &self.requests);
        let (name, help) = (
            "argocd_oci_request_duration_seconds",
            "OCI requests duration seconds.",
        );
        histogram(out, (name, help), "request_type", &self.durations);
        let none = Counts::new();
        for (request, name, help) in OF_REVISIONS {
            let counts = self.failed.get(&request).unwrap_or(&none);
            let labels = ["repo", "revision"];
            family(out, (name, "counter"), help, &labels, counts);
        }
        let none = Counts::new();
        for (request, name, help) in OF_REPOSITORIES {
            let counts = self.failed_of_repositories.get(&request).unwrap_or(&none);
            family(out, (name, "counter"), help, &["repo"], counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tiphys_repo::ContactKind;

    #[test]
    fn requests_have_argo_cds_names() {
        let mut registries = Registries::default();
        let mut add = |request, revision, is_failed| {
            let contact = Contact {
                repository: "ghcr.io/org/app",
                kind: ContactKind::Registry(request),
                revision,
                took: Duration::from_millis(300),
                is_failed,
            };
            registries.add(request, &contact);
        };
        add(RegistryRequest::Extract, "sha256:1", false);
        add(RegistryRequest::Extract, "sha256:2", true);
        add(RegistryRequest::ResolveRevision, "1.x", true);
        add(RegistryRequest::DigestMetadata, "sha256:1", true);
        add(RegistryRequest::GetTags, "", true);
        add(RegistryRequest::TestRepo, "", true);
        let mut text = String::new();
        registries.write(&mut text);
        let repo = r#"repo="ghcr.io/org/app""#;
        for line in [
            format!(r#"argocd_oci_request_total{{{repo},request_type="extract"}} 2"#),
            format!(r#"argocd_oci_request_total{{{repo},request_type="resolve-revision"}} 1"#),
            format!(r#"argocd_oci_request_total{{{repo},request_type="digest-metadata"}} 1"#),
            format!(r#"argocd_oci_request_total{{{repo},request_type="get-tags"}} 1"#),
            format!(r#"argocd_oci_request_total{{{repo},request_type="test-repo"}} 1"#),
            format!(
                r#"argocd_oci_request_duration_seconds_bucket{{{repo},request_type="extract",le="0.25"}} 0"#
            ),
            format!(
                r#"argocd_oci_request_duration_seconds_bucket{{{repo},request_type="extract",le="0.5"}} 2"#
            ),
            format!(r#"argocd_oci_extract_fail_total{{{repo},revision="sha256:2"}} 1"#),
            format!(r#"argocd_oci_resolve_revision_fail_total{{{repo},revision="1.x"}} 1"#),
            format!(r#"argocd_oci_digest_metadata_fail_total{{{repo},revision="sha256:1"}} 1"#),
            format!("argocd_oci_get_tags_fail_total{{{repo}}} 1"),
            format!("argocd_oci_test_repo_fail_total{{{repo}}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            !text.contains(r#"extract_fail_total{repo="ghcr.io/org/app",revision="sha256:1"}"#),
            "{text}"
        );
    }
}
