//! Reading an AppRepository without a Job.

use crate::{
    CatalogError, Filter, Form, RepoId, Store,
    asset_syncer::{Surroundings, authorization},
    opening::Opening,
    sync::CatalogSync,
};
use std::sync::Arc;
use tiphys_api::AppRepository;
use tiphys_repo::Secret;

/// The key of a docker config in a Secret.
pub(super) const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// What the Secrets of an AppRepository say.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The value of `auth.header`.
    pub header: Secret,
    /// The value of `auth.customCA`.
    pub authorities: String,
}

/// What reads an AppRepository.
///
/// # Errors
/// The docker config, the authorities or the URL cannot be used.
pub fn open(
    repository: &AppRepository,
    credentials: Credentials,
    store: Arc<Store>,
) -> Result<CatalogSync, CatalogError> {
    let (meta, spec) = (&repository.metadata, &repository.spec);
    let key = spec.auth.header.as_ref().map(|r| &*r.secret_key_ref.key);
    let mut surroundings = Surroundings::default();
    if key == Some(DOCKER_CONFIG) {
        surroundings.docker_config = credentials.header;
    } else {
        surroundings.authorization = credentials.header;
    }
    let authorization = authorization(&surroundings);
    let authorization = authorization.map_err(|e| CatalogError::Invalid(e.to_string()))?;
    let ca_data = credentials.authorities;
    if spec.auth.custom_ca.is_some() && !ca_data.contains("-----BEGIN CERTIFICATE-----") {
        let why = "the Secret of auth.customCA has no certificate";
        return Err(CatalogError::Invalid(why.to_owned()));
    }
    let filter = Filter {
        jq: spec.filter_rule.jq.clone(),
        variables: spec.filter_rule.variables.clone(),
    };
    filter.compile()?;
    let opening = Opening {
        id: RepoId::new(&meta.namespace, &meta.name),
        url: spec.url.clone(),
        is_registry: spec.form != "helm",
        oci_repositories: spec.oci_repositories.clone(),
        form: Form::Helm,
        filter,
        authorization,
        ca_data,
        skip_tls: spec.tls_insecure_skip_verify,
        pass_credentials: spec.pass_credentials,
        proxy: String::new(),
        agent: String::new(),
    };
    opening.open(store)
}
