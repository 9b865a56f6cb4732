//! The files of a hydrated branch.

use super::message::Metadata;
use crate::RepoError;
use serde_json::Value;
use std::{
    any::Any,
    rc::Rc,
    sync::{Arc, LazyLock},
};
use tiphys_api::rpc::commit::HydratedManifestDetails;
use tiphys_gocompat::{
    document::Document,
    sprig::{self, Sources},
    template::{
        self, Budget, Functions, JsonForm, Limits, List, MissingKey, Named, Object, Options,
        Parsed, STRINGS, TemplateSet, Type, execute,
    },
    yaml,
};

pub const MANIFEST: &str = "manifest.yaml";
pub const METADATA: &str = "hydrator.metadata";
pub const README: &str = "README.md";
/// Hosts of Git fold what is generated.
pub const ATTRIBUTES: (&str, &str) = (
    ".gitattributes",
    "**/README.md linguist-generated=true\n**/hydrator.metadata linguist-generated=true",
);

const LIMITS: Limits = Limits {
    steps: 5_000_000,
    output: 1 << 20,
    memory: 16 << 20,
};

static FUNCTIONS: LazyLock<Arc<Functions>> = LazyLock::new(|| {
    let of_the_machine = ["env", "expandenv", "getHostByName"];
    let all = sprig::functions::<Sources>().into_iter();
    let mut functions = Functions::builtins();
    functions.extend(all.filter(|(name, _)| !of_the_machine.contains(name)));
    Arc::new(functions)
});

/// Objects as YAML, in their order, as go-yaml v3 prints them with an indentation of two.
pub fn manifests(objects: &[HydratedManifestDetails]) -> Result<Vec<u8>, RepoError> {
    let mut text = String::new();
    for object in objects {
        let value: Value = serde_json::from_str(&object.manifest_json).map_err(unreadable)?;
        // Not with its content: it may be a Secret.
        if value["kind"].as_str().is_none_or(str::is_empty) {
            return Err(unreadable("Object 'Kind' is missing"));
        }
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&yaml::to_string_v3(&Document::from(&value)));
    }
    Ok(text.into_bytes())
}

fn unreadable(why: impl std::fmt::Display) -> RepoError {
    RepoError::Unsupported(format!(
        "failed to write manifests: failed to write manifests: failed to unmarshal manifest: {why}"
    ))
}

/// The README of a folder, from its template.
pub fn readme(template: &str, metadata: &Metadata) -> Result<Vec<u8>, RepoError> {
    let data = Rc::new(OfReadme {
        repo_url: metadata.repo_url.clone(),
        dry_sha: metadata.dry_sha.clone(),
        commands: metadata.commands.clone(),
    });
    let text = render("readme", template, template::Value::Object(data)).map_err(|fault| {
        let why = match fault {
            Fault::Parse(e) => format!("failed to parse readme template: {e}"),
            Fault::Execute(e) => format!("failed to execute readme template: {e}"),
        };
        RepoError::Unsupported(format!(
            "failed to write manifests: failed to write readme: {why}"
        ))
    });
    text.map(String::into_bytes)
}

const METADATA_TYPE: Type = Type::Named(&Named {
    name: "hydrator.HydratorCommitMetadata",
    underlying: None,
});
const REFERENCES: Type = Type::Slice(&Type::Named(&Named {
    name: "v1alpha1.RevisionReference",
    underlying: None,
}));

/// What a README's template sees: the struct that `hydrator.metadata` is made from, with what is
/// said of one folder.
struct OfReadme {
    repo_url: String,
    dry_sha: String,
    commands: Vec<String>,
}

impl Object for OfReadme {
    fn go_type(&self) -> Type {
        METADATA_TYPE
    }

    fn fields(&self) -> Vec<(&'static str, template::Value)> {
        let of_commit = |name| (name, template::Value::from(""));
        vec![
            ("RepoURL", self.repo_url.as_str().into()),
            ("DrySHA", self.dry_sha.as_str().into()),
            ("Commands", self.commands().into()),
            of_commit("Author"),
            of_commit("Date"),
            of_commit("Subject"),
            of_commit("Body"),
            ("References", List::nil(REFERENCES).into()),
        ]
    }

    /// What is empty is left out.
    fn json(&self) -> JsonForm {
        let mut fields = Vec::new();
        for (name, text) in [("repoURL", &self.repo_url), ("drySha", &self.dry_sha)] {
            if !text.is_empty() {
                fields.push((name, text.as_str().into()));
            }
        }
        if !self.commands.is_empty() {
            fields.push(("commands", self.commands().into()));
        }
        JsonForm::Fields(fields)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OfReadme {
    fn commands(&self) -> List {
        match self.commands.is_empty() {
            true => List::nil(STRINGS),
            false => List::of(
                STRINGS,
                self.commands.iter().map(|c| c.as_str().into()).collect(),
            ),
        }
    }
}

/// What is wrong with a template.
pub enum Fault {
    Parse(template::Error),
    Execute(template::Error),
}

/// The result of a template with sprig, but for what would tell of this machine.
pub fn render(name: &str, text: &str, data: template::Value) -> Result<String, Fault> {
    let mut set = TemplateSet::new(name, Arc::clone(&FUNCTIONS));
    let parsed = Parsed::parse(name, text.as_bytes(), set.functions()).map_err(Fault::Parse)?;
    set.add_to_run(&parsed, name);
    let mut host = Sources {
        random: Box::new(|bytes| rand::fill(bytes)),
        now: jiff::Timestamp::now(),
        zone: || jiff::tz::TimeZone::UTC,
    };
    let budget = Budget::new(LIMITS);
    let options = Options {
        missing_key: MissingKey::Invalid,
        budget: &budget,
        host: &mut host,
    };
    let mut out = Vec::new();
    execute(&Arc::new(set), name, data, options, &mut out).map_err(Fault::Execute)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: &Value) -> HydratedManifestDetails {
        HydratedManifestDetails {
            manifest_json: value.to_string(),
        }
    }

    #[test]
    fn objects_stay_in_their_order() {
        let objects = [
            object(&json!({"kind": "Service", "spec": {"ports": [{"port": 80}]}})),
            object(&json!({"kind": "ConfigMap", "data": {"b": "2", "a": "1"}})),
        ];
        let text = manifests(&objects).expect("YAML");
        let text = String::from_utf8(text).expect("text");
        let expected = "kind: Service\nspec:\n  ports:\n    - port: 80\n---\ndata:\n  a: \"1\"\n  \
                        b: \"2\"\nkind: ConfigMap\n";
        assert_eq!(text, expected);
        assert_eq!(manifests(&[]).expect("YAML"), b"");
        let broken = HydratedManifestDetails {
            manifest_json: "{".to_owned(),
        };
        assert!(manifests(&[broken]).is_err());
    }

    #[test]
    fn an_object_without_a_kind_is_refused_without_its_content() {
        for broken in [
            json!({"data": {"k": "S3CRET"}}),
            json!({"kind": ""}),
            json!([]),
        ] {
            let refused = manifests(&[object(&broken)]).expect_err("it is refused");
            assert_eq!(
                refused.to_string(),
                "failed to write manifests: failed to write manifests: failed to unmarshal \
                 manifest: Object 'Kind' is missing"
            );
        }
    }

    #[test]
    fn a_readme_sees_a_struct() {
        let said = |template: &str, command: &str| {
            let commands = Vec::from_iter((!command.is_empty()).then(|| command.to_owned()));
            let text = readme(template, &Metadata::of_folder("r", "s", &commands));
            text.map(|text| String::from_utf8_lossy(&text).into_owned())
                .map_err(|e| e.to_string())
        };
        let json = r#"{"repoURL":"r","drySha":"s","commands":["a"]}"#;
        let typed = "hydrator.HydratorCommitMetadata";
        for (template, command, expected) in [
            ("{{ .RepoURL }} {{ .DrySHA }}{{ .Author }}", "", "r s"),
            ("{{ . }}", "a", "{r s [a]     []}"),
            ("{{ toJson . }}", "a", json),
            ("{{ toJson . }}", "", r#"{"repoURL":"r","drySha":"s"}"#),
            ("{{ toJson .Commands }}{{ .Commands }}", "", "null[]"),
            ("{{ printf \"%T\" . }}", "a", typed),
        ] {
            let found = said(template, command);
            assert_eq!(found.as_deref(), Ok(expected), "{template}");
        }
        let wrote = "failed to write manifests: failed to write readme: failed to";
        for (template, expected) in [
            (
                "{{ .Nope }}",
                "execute readme template: template: readme:1:3: executing \"readme\" at <.Nope>: \
                 can't evaluate field Nope in type hydrator.HydratorCommitMetadata",
            ),
            (
                "{{ .DrySHA.x }}",
                "execute readme template: template: readme:1:10: executing \"readme\" at \
                 <.DrySHA.x>: can't evaluate field x in type string",
            ),
            (
                "{{ toYaml . }}",
                "parse readme template: template: readme:1: function \"toYaml\" not defined",
            ),
        ] {
            assert_eq!(said(template, ""), Err(format!("{wrote} {expected}")));
        }
    }
}
