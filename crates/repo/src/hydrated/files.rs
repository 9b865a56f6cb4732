//! The files of a hydrated branch.

use super::message::Metadata;
use crate::RepoError;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tiphys_api::rpc::commit::HydratedManifestDetails;
use tiphys_gocompat::{
    document::Document,
    sprig::{self, Sources},
    template::{Budget, Functions, Limits, MissingKey, Options, Parsed, TemplateSet, execute},
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
        let value: Value = serde_json::from_str(&object.manifest_json)
            .map_err(|e| RepoError::Unsupported(format!("failed to unmarshal manifest: {e}")))?;
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&yaml::to_string_v3(&Document::from(&value)));
    }
    Ok(text.into_bytes())
}

/// The README of a folder, from its template.
pub fn readme(template: &str, metadata: &Metadata) -> Result<Vec<u8>, RepoError> {
    let data = json!({
        "RepoURL": metadata.repo_url,
        "DrySHA": metadata.dry_sha,
        "Commands": metadata.commands,
        "Author": metadata.author,
        "Date": metadata.date,
        "Subject": metadata.subject,
        "Body": metadata.body,
        "References": metadata.references,
    });
    render("readme", template, &data).map(String::into_bytes)
}

/// The result of a template with sprig, but for what would tell of this machine.
pub fn render(name: &str, template: &str, data: &Value) -> Result<String, RepoError> {
    let failed = |e: tiphys_gocompat::template::Error| {
        RepoError::Unsupported(format!("failed to parse template: {e}"))
    };
    let mut set = TemplateSet::new(name, Arc::clone(&FUNCTIONS));
    let parsed = Parsed::parse(name, template.as_bytes(), set.functions()).map_err(failed)?;
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
    let data = tiphys_gocompat::template::Value::from_json(data);
    execute(&Arc::new(set), name, data, options, &mut out).map_err(failed)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
