//! Merges `.argocd-source.yaml` and `.argocd-source-<application>.yaml` from the Application's
//! folder into its source.
//!
//! Main function: [`merge`].

use crate::{RenderError, SourceFiles, files::join};
use tiphys_api::source::ApplicationSource;
use tiphys_apimachinery::patch::json_merge;
use tiphys_gocompat::yaml::{self, Duplicates};

/// Such a file has a few lines.
fn limits() -> yaml::Limits {
    yaml::Limits {
        bytes: 1 << 20,
        ..Default::default()
    }
}

/// The source with both files merged into it. They cannot change its repository, revision, path or
/// chart.
pub fn merge(
    files: &dyn SourceFiles,
    folder: &str,
    source: &ApplicationSource,
    app: &str,
) -> Result<ApplicationSource, RenderError> {
    let mut merged = source.clone();
    let of_app = (!app.is_empty()).then(|| format!(".argocd-source-{app}.yaml"));
    for name in [".argocd-source.yaml".to_owned()].into_iter().chain(of_app) {
        if let Some(text) = files.read(&join(folder, &name))? {
            let failed = |why: String| {
                RenderError::Source(format!(
                    "error getting app source type: error while parsing source parameters: {name}: {why}"
                ))
            };
            merged = overlay(&merged, &text).map_err(failed)?;
        }
    }
    merged.chart.clone_from(&source.chart);
    merged.path.clone_from(&source.path);
    merged.repo_url.clone_from(&source.repo_url);
    merged.target_revision.clone_from(&source.target_revision);
    Ok(merged)
}

fn overlay(source: &ApplicationSource, text: &[u8]) -> Result<ApplicationSource, String> {
    let patch =
        yaml::parse_document(text, &limits(), Duplicates::LastWins).map_err(|e| e.to_string())?;
    let base = serde_json::to_value(source).map_err(|e| e.to_string())?;
    // An empty file changes nothing.
    let merged = if patch.is_null() {
        base
    } else {
        json_merge::apply(&base, &patch).map_err(|e| e.to_string())?
    };
    serde_json::from_value(merged).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryFiles;
    use tiphys_api::source::{ApplicationSourceHelm, HelmParameter};

    fn merged(files: &[(&str, &str)]) -> Result<ApplicationSource, String> {
        let parameter = |name: &str, value: &str| HelmParameter {
            name: name.into(),
            value: value.into(),
            force_string: false,
        };
        let helm = ApplicationSourceHelm {
            release_name: "r".into(),
            parameters: vec![parameter("a", "1")],
            ..Default::default()
        };
        let source = ApplicationSource {
            path: "app".into(),
            repo_url: "u".into(),
            helm: Some(helm.into()),
            ..Default::default()
        };
        merge(
            &MemoryFiles::new(files.iter().copied()),
            "app",
            &source,
            "web",
        )
        .map_err(|e| e.to_string())
    }

    #[test]
    fn the_applications_own_file_comes_last() {
        let general = "helm:\n  parameters:\n  - {name: a, value: \"2\"}\n  releaseName: general\npath: elsewhere\nrepoURL: evil\n";
        let own = "helm:\n  releaseName: own\n";
        let found = merged(&[
            ("app/.argocd-source.yaml", general),
            ("app/.argocd-source-web.yaml", own),
            ("app/.argocd-source-x.yaml", "a: ["),
        ])
        .expect("merged");
        let helm = found.helm.expect("still there");
        assert_eq!(
            (
                helm.release_name.as_str(),
                helm.parameters[0].value.as_str()
            ),
            ("own", "2")
        );
        assert_eq!(
            (found.path.as_str(), found.repo_url.as_str()),
            ("app", "u"),
            "where it comes from is not theirs to say"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let begin = "error getting app source type: error while parsing source parameters: .argocd-source.yaml: ";
        for text in ["a: [", "helm: 5", "- list", "helm: {parameters: text}"] {
            let error = merged(&[("app/.argocd-source.yaml", text)]).expect_err(text);
            assert!(error.starts_with(begin), "{error}");
        }
        assert!(merged(&[("app/.argocd-source.yaml", "# nothing\n")]).is_ok());
    }
}
