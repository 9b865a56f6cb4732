//! The live objects that a command line names: by type and name, by labels, or by files. Main
//! function: [`live`].

use super::{
    HintedError,
    read::{self, Rules},
    source::FileArgs,
};
use crate::kubectl::{failure::Trouble, kube::Target};
use serde::Deserialize;
use std::sync::Arc;
use tiphys_apimachinery::{Object, selector::LabelSelector};
use tiphys_cluster::{
    Kind,
    apply::{Failure, Item},
    request::Call,
};

/// How many objects the server lists at once.
const PAGE: &str = "500";

/// What a command line names.
pub struct Wanted<'a> {
    /// `TYPE NAME...`, `TYPE/NAME...`, or only types.
    pub words: &'a [String],
    pub files: &'a FileArgs,
    /// All objects of the types.
    pub all: bool,
    /// Only objects with these labels.
    pub selector: &'a str,
}

/// A live object, and the file that named it, if any.
pub struct Live {
    pub object: Object,
    pub kind: Arc<Kind>,
    pub source: String,
}

impl Wanted<'_> {
    /// Whether types are named, and no objects.
    pub fn is_bulk(&self, target: &Target) -> bool {
        let one_type = matches!(self.words, [only] if !only.contains('/'));
        // As in kubectl, a namespace on the command line is all of its objects.
        self.all || !self.selector.is_empty() || (one_type && target.enforce)
    }

    /// What contradicts itself, in kubectl's words.
    fn check(&self) -> Result<(), Trouble> {
        if self.all && !self.selector.is_empty() {
            return Err(Trouble::text(format!(
                "found non-empty label selector {:?} with previously set 'all' parameter. ",
                self.selector
            )));
        }
        LabelSelector::parse(self.selector).map_err(|e| {
            Trouble::text(format!(
                "the provided selector {:?} is not valid: {e}",
                self.selector
            ))
        })?;
        let by_name = self.words.iter().any(|word| word.contains('/'));
        let problem = match (self.files.is_given(), self.words) {
            (true, []) => return self.files.check(),
            (true, _) if by_name => {
                "resource/name arguments cannot be provided when a path is specified"
            }
            (true, _) => {
                "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"
            }
            (false, [_, ..]) => return Ok(()),
            (false, []) if self.all || !self.selector.is_empty() => {
                "at least one resource must be specified to use a selector"
            }
            (false, []) => return self.files.check(),
        };
        Err(Trouble::text(problem))
    }

    /// The types, where no objects are named.
    fn types(&self) -> Result<&str, Trouble> {
        let problem = match self.words {
            [only] if !only.contains('/') => return Ok(only),
            words if words.iter().any(|word| word.contains('/')) => {
                "selectors and the all flag cannot be used when passing resource/name arguments"
            }
            _ => "name cannot be provided when a selector is specified",
        };
        Err(Trouble::text(problem))
    }
}

/// Reads them.
pub async fn live(wanted: &Wanted<'_>, target: &Target) -> Result<Vec<Live>, HintedError> {
    wanted.check()?;
    let mut found = Vec::new();
    if wanted.words.is_empty() {
        for item in objects(wanted.files, wanted.selector, target).await? {
            let (namespace, name) = (item.object.namespace(), item.object.name());
            let object = get(target, &item.kind, namespace, name).await?;
            found.push(Live {
                object,
                kind: item.kind,
                source: item.source,
            });
        }
        return Ok(found);
    }
    if wanted.is_bulk(target) {
        for resource in wanted.types()?.split(',') {
            let kind = kind(target, resource)?;
            for object in list(target, &kind, wanted.selector).await? {
                found.push(Live {
                    object,
                    kind: kind.clone(),
                    source: String::new(),
                });
            }
        }
        return Ok(found);
    }
    for (resource, name) in pairs(wanted.words)? {
        let kind = kind(target, &resource)?;
        let object = get(target, &kind, &target.namespace, &name).await?;
        found.push(Live {
            object,
            kind,
            source: String::new(),
        });
    }
    Ok(found)
}

/// The objects of files.
pub async fn objects(
    files: &FileArgs,
    selector: &str,
    target: &Target,
) -> Result<Vec<Item>, HintedError> {
    let rules = Rules {
        validate: false,
        selector: selector.to_owned(),
    };
    let found = read::read(files, target, &rules).await?;
    match found.trouble {
        Some(trouble) => Err(HintedError {
            trouble,
            hints: found.hints,
        }),
        None => Ok(found.items),
    }
}

/// One object, as it is now.
pub async fn get(
    target: &Target,
    kind: &Kind,
    namespace: &str,
    name: &str,
) -> Result<Object, Failure> {
    let call = Call::get(kind.object_path(namespace, name));
    Ok(target.discovery.cluster().http().json(&call).await?)
}

fn kind(target: &Target, resource: &str) -> Result<Arc<Kind>, Trouble> {
    let kind = target.discovery.kinds().find(resource).cloned();
    kind.ok_or_else(|| {
        Trouble::text(format!(
            "the server doesn't have a resource type {resource:?}"
        ))
    })
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    items: Vec<Object>,
    #[serde(default)]
    metadata: PageMeta,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default, rename = "continue")]
    next: String,
}

async fn list(target: &Target, kind: &Kind, selector: &str) -> Result<Vec<Object>, Failure> {
    let mut all = Vec::new();
    let mut next = String::new();
    loop {
        let call = Call::get(kind.collection_path(&target.namespace))
            .query("labelSelector", selector)
            .query("limit", PAGE)
            .query("continue", &next);
        let page: Page = target.discovery.cluster().http().json(&call).await?;
        for mut object in page.items {
            // The items of a list may omit their kind.
            let map = &mut object.0;
            map.entry("apiVersion")
                .or_insert_with(|| kind.gvk.api_version().into());
            map.entry("kind")
                .or_insert_with(|| kind.gvk.kind.clone().into());
            all.push(object);
        }
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(all);
        }
    }
}

/// `deployment web other` and `deployment/web service/api`.
fn pairs(words: &[String]) -> Result<Vec<(String, String)>, Trouble> {
    if words.iter().all(|w| w.contains('/')) {
        let split = |w: &String| w.split_once('/').map(|(t, n)| (t.to_owned(), n.to_owned()));
        return Ok(words.iter().filter_map(split).collect());
    }
    if words.iter().any(|w| w.contains('/')) {
        return Err(Trouble::text("name the objects as TYPE NAME or TYPE/NAME"));
    }
    match words {
        [types, names @ ..] if !names.is_empty() => Ok(types
            .split(',')
            .flat_map(|resource| names.iter().map(|n| (resource.to_owned(), n.clone())))
            .collect()),
        _ => Err(Trouble::text(
            "resource(s) were provided, but no name was specified",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(words: &str, all: bool, selector: &str, file: Option<&str>) -> Option<String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let files = FileArgs {
            filenames: file.into_iter().map(str::to_owned).collect(),
            ..FileArgs::default()
        };
        let wanted = Wanted {
            words: &words,
            files: &files,
            all,
            selector,
        };
        let bulk = all || !selector.is_empty();
        let checked = wanted.check().and_then(|()| match words.is_empty() {
            true => Ok(()),
            false if bulk => wanted.types().map(drop),
            false => pairs(&words).map(drop),
        });
        checked.err().map(|trouble| trouble.report())
    }

    #[test]
    fn contradictions_are_told_as_kubectl_does() {
        for (words, all, selector, file, expected) in [
            ("cm", true, "", None, None),
            ("cm,secret", false, "a=b", None, None),
            ("cm/a cm/b", false, "", None, None),
            ("", false, "a=b", Some("a.yaml"), None),
            (
                "cm",
                true,
                "a=b",
                None,
                Some(
                    "found non-empty label selector \"a=b\" with previously set 'all' parameter. ",
                ),
            ),
            (
                "cm a",
                true,
                "",
                None,
                Some("name cannot be provided when a selector is specified"),
            ),
            (
                "cm/a",
                false,
                "a=b",
                None,
                Some(
                    "selectors and the all flag cannot be used when passing resource/name arguments",
                ),
            ),
            (
                "",
                true,
                "",
                None,
                Some("at least one resource must be specified to use a selector"),
            ),
            (
                "cm",
                false,
                "",
                None,
                Some("resource(s) were provided, but no name was specified"),
            ),
            (
                "cm/a",
                false,
                "",
                Some("a.yaml"),
                Some("resource/name arguments cannot be provided when a path is specified"),
            ),
            ("", false, "", None, Some("must specify one of -f and -k")),
        ] {
            let expected = expected.map(|text| format!("error: {text}\n"));
            assert_eq!(problem(words, all, selector, file), expected, "{words:?}");
        }
    }

    #[test]
    fn several_types_have_the_names_each() {
        let words = ["cm,secret", "a", "b"].map(str::to_owned);
        let found = pairs(&words).expect("types and names");
        let found: Vec<String> = found.iter().map(|(t, n)| format!("{t}/{n}")).collect();
        assert_eq!(found, ["cm/a", "cm/b", "secret/a", "secret/b"]);
    }
}
