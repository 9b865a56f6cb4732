//! What the settings say of Kustomize, for a source. There is one version of it, which is built in:
//! another one can be asked for by the name that it is registered under, and is then replaced by
//! this one, with a warning.
//!
//! Main type: [`KustomizeVersions`]; main function: [`build_options`].

use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{repository::KustomizeOptions, source::ApplicationSource};
use tiphys_render::{RenderError, kustomize::VERSION};

/// The names of the registered versions (`kustomize.version.NAME`). `None`: nothing is known about
/// them, and every name is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KustomizeVersions(Option<Arc<BTreeSet<String>>>);

impl KustomizeVersions {
    pub fn of(options: &KustomizeOptions) -> Self {
        let names = options.versions.iter().filter_map(|v| v.name.clone());
        Self(Some(Arc::new(names.collect())))
    }

    /// A warning, if a source is rendered by another version than the one that it asks for: its own
    /// version, or that of the files which override it.
    ///
    /// # Errors
    /// It asks for a version that is not registered.
    pub fn check(&self, named: &str) -> Result<Option<String>, RenderError> {
        let is_own = named.trim_start_matches('v') == VERSION.trim_start_matches('v');
        if named.is_empty() || is_own {
            return Ok(None);
        }
        if self.0.as_ref().is_some_and(|known| !known.contains(named)) {
            return Err(RenderError::Source(format!(
                "kustomize version {named} is not registered"
            )));
        }
        Ok(Some(format!(
            "kustomize version {named} is asked for, and {VERSION} is used, which is built in"
        )))
    }
}

/// The flags of `kustomize build`: those of the version that the source names, if it has some.
pub fn build_options(options: &KustomizeOptions, source: &ApplicationSource) -> String {
    let named = named(source);
    let of_version = options
        .versions
        .iter()
        .find(|v| !named.is_empty() && v.name.as_deref() == Some(named))
        .and_then(|v| v.build_options.clone())
        .filter(|options| !options.is_empty());
    of_version
        .or_else(|| options.build_options.clone())
        .unwrap_or_default()
}

fn named(source: &ApplicationSource) -> &str {
    let kustomize = source.kustomize.as_ref();
    kustomize.map_or("", |kustomize| kustomize.version.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(version: &str) -> ApplicationSource {
        serde_json::from_value(json!({"repoURL": "r", "kustomize": {"version": version}}))
            .expect("a source")
    }

    fn options() -> KustomizeOptions {
        serde_json::from_value(json!({
            "BuildOptions": "--a",
            "Versions": [
                {"name": "v4.5.7", "path": "/bin/kustomize4", "buildOptions": "--b"},
                {"name": "plain", "path": "/bin/kustomize"},
            ],
        }))
        .expect("options")
    }

    #[test]
    fn a_version_is_registered_or_built_in() {
        let known = KustomizeVersions::of(&options());
        let replaced = |name: &str| {
            format!("kustomize version {name} is asked for, and v5.8.1 is used, which is built in")
        };
        for (version, warning) in [
            ("", None),
            ("v5.8.1", None),
            ("5.8.1", None),
            ("v4.5.7", Some(replaced("v4.5.7"))),
            ("plain", Some(replaced("plain"))),
        ] {
            assert_eq!(known.check(version), Ok(warning), "{version}");
        }
        let refused = known.check("v1.2.3").expect_err("not registered");
        assert_eq!(
            refused.to_string(),
            "kustomize version v1.2.3 is not registered"
        );
        let unknown = KustomizeVersions::default().check("v1.2.3");
        assert_eq!(unknown, Ok(Some(replaced("v1.2.3"))));
    }

    #[test]
    fn a_version_may_have_flags_of_its_own() {
        for (version, flags) in [("", "--a"), ("v4.5.7", "--b"), ("plain", "--a")] {
            assert_eq!(
                build_options(&options(), &source(version)),
                flags,
                "{version}"
            );
        }
    }
}
