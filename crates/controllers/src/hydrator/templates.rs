//! The templates of messages and READMEs, from the settings or our own.

use tiphys_cluster::Settings;

const MESSAGE: &str = "\
{{ trunc 7 .metadata.drySha }}: {{ .metadata.subject }}
{{ with .metadata.body }}
{{ . }}
{{ end }}
{{ range .metadata.references }}{{ with .commit }}{{ with .author -}}
Co-authored-by: {{ . }}
{{ end }}{{ end }}{{ end -}}
{{ with .metadata.author -}}
Co-authored-by: {{ . }}
{{ end -}}
";

const README: &str = "\
# Hydrated manifests

`manifest.yaml` is generated. Change its source in {{ .RepoURL }} instead;
this one was rendered from commit {{ .DrySHA }}:

```shell
git clone {{ .RepoURL }} dry && cd dry
git checkout {{ .DrySHA }}
{{ range .Commands }}{{ . }}
{{ end }}```
";

pub fn message(settings: &Settings) -> &str {
    let own = settings.get("sourceHydrator.commitMessageTemplate");
    if own.is_empty() { MESSAGE } else { own }
}

pub fn readme(settings: &Settings) -> &str {
    let own = settings.get("sourceHydrator.readmeMessageTemplate");
    if own.is_empty() { README } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_api::repository::RevisionMetadata;
    use tiphys_repo::commit_message;

    #[test]
    fn the_message_names_commit_subject_and_author() {
        let commit = |message: &str| RevisionMetadata {
            author: "Ann <ann@example.com>".to_owned(),
            message: message.to_owned(),
            ..RevisionMetadata::default()
        };
        let said = |message: &str| {
            let dry = ("https://git.example/r", "0123456789abcdef");
            let text = commit_message(MESSAGE, dry, Some(&commit(message))).expect("it renders");
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines
        };
        let short = said("Scale");
        assert_eq!(short[0], "0123456: Scale");
        assert_eq!(
            short.last().map(String::as_str),
            Some("Co-authored-by: Ann <ann@example.com>")
        );
        assert!(said("Scale\n\nMore.").contains(&"More.".to_owned()));
    }
}
