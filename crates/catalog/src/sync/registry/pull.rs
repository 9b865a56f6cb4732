//! Pulling tags.

use super::{super::files::patiently, Source, known::Known};
use crate::{
    CatalogError, blocking,
    files::{Extracted, extract},
    index::NAME_BYTES,
    model::{Maintainer, storable},
};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use tiphys_gocompat::yaml::{self, Duplicates};

/// Tags that are asked for, or pulled, at the same time.
const CONCURRENCY: usize = 5;

/// The fields of Chart.yaml that are shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub name: String,
    pub version: String,
    pub app_version: String,
    pub description: String,
    pub home: String,
    pub icon: String,
    pub deprecated: bool,
    pub keywords: Option<Vec<String>>,
    pub sources: Option<Vec<String>>,
    pub maintainers: Option<Vec<Maintainer>>,
    pub annotations: Option<BTreeMap<String, String>>,
}

/// A tag that was pulled.
pub(super) struct Pulled {
    pub tag: String,
    pub digest: String,
    pub metadata: Metadata,
    pub files: Extracted,
}

/// What a tag stands for.
pub(super) enum Found {
    Pulled(Box<Pulled>),
    /// A version that was read under the same digest.
    Same(String),
}

/// A tag, its digest, and what it stands for.
pub(super) type Answer = (String, String, Result<Found, CatalogError>);

/// Asks for the digests of some tags that were read. Returns those that changed.
pub(super) async fn looked_again(
    source: &Source,
    name: &str,
    known: &mut Known,
) -> HashMap<String, String> {
    let looks = stream::iter(known.due()).map(|tag| async move {
        let digest = patiently(|| source.remote.digest(name, &tag)).await;
        (tag, digest)
    });
    let found: Vec<_> = looks.buffered(CONCURRENCY).collect().await;
    let now = Timestamp::now().as_millisecond();
    let mut changed = HashMap::new();
    for (tag, digest) in found {
        let Some(read) = known.0.get_mut(&tag) else {
            continue;
        };
        match digest {
            Ok(Some(digest)) if read.digest.is_empty() => read.digest = digest,
            Ok(Some(digest)) if digest != read.digest => {
                let before = &read.digest;
                tracing::warn!(
                    chart = name,
                    tag,
                    before,
                    now = digest,
                    "a tag was replaced"
                );
                changed.insert(tag, digest);
                continue;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(chart = name, tag, %error, "a tag is not looked at"),
        }
        read.looked_at = now;
    }
    changed
}

/// Reads tags, each digest once. `digests`: those that are known already.
pub(super) async fn pull_all(
    source: &Source,
    name: &str,
    tags: &[String],
    (digests, known): (&mut HashMap<String, String>, &Known),
) -> Vec<Answer> {
    let asked: Vec<(String, Option<String>)> = tags
        .iter()
        .map(|tag| (tag.clone(), digests.remove(tag)))
        .collect();
    let asked = stream::iter(asked).map(|(tag, digest)| async move {
        let digest = match digest {
            Some(digest) => Ok(digest),
            None => digest_of(source, name, &tag).await,
        };
        (tag, digest)
    });
    let asked: Vec<_> = asked.buffered(CONCURRENCY).collect().await;
    let (mut wanted, mut later, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let mut claimed = HashSet::new();
    for (tag, digest) in asked {
        match digest {
            Err(e) => answers.push((tag, String::new(), Err(e))),
            Ok(digest) => match known.version_at(&digest) {
                Some(version) => answers.push((tag, digest, Ok(Found::Same(version)))),
                None if claimed.insert(digest.clone()) => wanted.push((tag, digest)),
                None => later.push((tag, digest)),
            },
        }
    }
    let pulls = stream::iter(wanted).map(|(tag, digest)| async move {
        let pulled = pull(source, name, (&tag, &digest)).await;
        (tag, digest, pulled)
    });
    let pulled: Vec<_> = pulls.buffered(CONCURRENCY).collect().await;
    let mut versions = HashMap::new();
    for (tag, digest, pulled) in pulled {
        let version = pulled
            .as_ref()
            .map(|pulled| pulled.metadata.version.clone());
        versions.insert(digest.clone(), version.map_err(ToString::to_string));
        let pulled = pulled.map(|pulled| Found::Pulled(Box::new(pulled)));
        answers.push((tag, digest, pulled));
    }
    for (tag, digest) in later {
        let same = match versions.get(&digest) {
            Some(Ok(version)) => Ok(Found::Same(version.clone())),
            Some(Err(why)) => Err(CatalogError::Invalid(why.clone())),
            None => Err(CatalogError::NotFound(format!("{name}:{tag}"))),
        };
        answers.push((tag, digest, same));
    }
    answers
}

async fn digest_of(source: &Source, name: &str, tag: &str) -> Result<String, CatalogError> {
    let digest = patiently(|| source.remote.digest(name, tag)).await?;
    digest.ok_or_else(|| CatalogError::NotFound(format!("{name}:{tag}")))
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|item| each_text(item, change)),
        _ => {}
    }
}

async fn pull(
    source: &Source,
    name: &str,
    (tag, digest): (&str, &str),
) -> Result<Pulled, CatalogError> {
    let found = patiently(|| source.remote.chart_at(name, digest.to_owned())).await?;
    let tag = tag.to_owned();
    blocking(move || {
        let invalid = |why: String| CatalogError::Invalid(why);
        let files = extract(&found.archive).map_err(|e| invalid(e.to_string()))?;
        let limits = yaml::Limits::default();
        let metadata = yaml::parse_document(&files.chart_yaml, &limits, Duplicates::LastWins);
        let mut metadata = metadata.map_err(|e| invalid(format!("Chart.yaml: {e}")))?;
        each_text(&mut metadata, &mut |text| *text = storable(text));
        let metadata = Metadata::deserialize(&metadata);
        let metadata = metadata.map_err(|e| invalid(format!("Chart.yaml: {e}")))?;
        if metadata.name.is_empty() || metadata.version.is_empty() {
            return Err(invalid("Chart.yaml has no name or no version".to_owned()));
        }
        if metadata.name.len().max(metadata.version.len()) > NAME_BYTES {
            let why = format!("Chart.yaml: name or version has more than {NAME_BYTES} bytes");
            return Err(invalid(why));
        }
        Ok(Pulled {
            tag,
            digest: found.digest,
            metadata,
            files,
        })
    })
    .await
}
