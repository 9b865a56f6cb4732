//! Shared setup of several tests.

use serde_json::Value;
use tiphys_gocompat::yaml;

const CRDS: [&str; 2] = [
    include_str!("../../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../../deploy/crds/appproject-crd.yaml"),
];

/// Where CRDs are created.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The CRDs of our records.
pub fn definitions() -> impl Iterator<Item = Value> {
    CRDS.into_iter().map(|text| {
        yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
            .expect("our own file")
    })
}
