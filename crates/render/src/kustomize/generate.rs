//! ConfigMaps and Secrets generated from files, literals and environment files, and the hashes in
//! their names.
//!
//! Main functions: [`make`] and [`hash`].

use super::Build;
use super::fault::{Res, fail};
use super::kustomization::GeneratorArgs;
use super::loader::Loader;
use super::resource::{BEHAVIOR, NEEDS_HASH, Object, Texts};
use super::tree::{Id, Kind, Tag, Tree};
use base64::Engine as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use tiphys_gocompat::json::to_string;
use tiphys_gocompat::yaml::tree::Style;

/// Maximum line length in an environment file; everything after a longer line is lost, as in
/// kustomize.
const LONGEST_LINE: usize = 64 * 1024;

/// Generates a ConfigMap or a Secret.
pub(super) fn make<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    args: &GeneratorArgs,
    kind: &str,
) -> Res<Object> {
    if args.name.is_empty() {
        return fail!("a configmap must have a name");
    }
    let pairs = pairs(build, loader, args).map_err(|fault| fault.within("loading KV pairs"))?;
    let mut data: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (key, value) in pairs {
        if data.contains_key(&key) {
            return fail!("configmap {} illegally repeats the key `{key}`", args.name);
        }
        data.insert(key, value);
    }
    let tree = &mut build.tree;
    let root = tree.empty(Kind::Map);
    let object = Object(root);
    for (name, text) in [("apiVersion", "v1"), ("kind", kind)] {
        let value = tree.scalar(text, Tag::Str);
        tree.set_field(root, name, Some(value))?;
    }
    let name = tree.scalar(&args.name, Tag::Str);
    tree.set_at(root, &["metadata"], "name", name)?;
    if !args.namespace.is_empty() {
        let namespace = tree.scalar(&args.namespace, Tag::Str);
        tree.set_at(root, &["metadata"], "namespace", namespace)?;
    }
    if kind == "Secret" {
        let class = if args.r#type.is_empty() {
            "Opaque"
        } else {
            &args.r#type
        };
        let class = tree.scalar(class, Tag::Str);
        tree.set_field(root, "type", Some(class))?;
        tree.lookup_or_create(root, &["data"], Kind::Map)?;
        for (key, value) in &data {
            tree.clock.spend(1 + data.len() / 16)?;
            let value = data_node(tree, lines_of_base64(value));
            tree.set_at(root, &["data"], key, value)?;
        }
    } else {
        let step = 1 + data.len() / 16;
        for (key, value) in data {
            tree.clock.spend(step)?;
            let (field, text) = match String::from_utf8(value) {
                Ok(text) => ("data", text),
                Err(error) => ("binaryData", lines_of_base64(error.as_bytes())),
            };
            let value = data_node(tree, text);
            tree.set_at(root, &[field], &key, value)?;
        }
    }
    options(tree, object, args)?;
    Ok(object)
}

fn options(tree: &mut Tree, object: Object, args: &GeneratorArgs) -> Res<()> {
    let options = args.options.as_ref();
    if let Some(options) = options {
        for (name, text) in &options.labels {
            object.set_label(tree, name, text)?;
        }
        for (name, text) in &options.annotations {
            object.annotate(tree, name, text)?;
        }
        if options.immutable {
            let value = tree.scalar("true", Tag::Bool);
            tree.set_field(object.0, "immutable", Some(value))?;
        }
    }
    if !options.is_some_and(|options| options.disable_name_suffix_hash) {
        object.enable(tree, NEEDS_HASH)?;
    }
    let behavior = match args.behavior.as_str() {
        known @ ("create" | "replace" | "merge") => known,
        _ => "unspecified",
    };
    let mut annotations = object.annotations(tree);
    annotations.insert(BEHAVIOR.to_owned(), behavior.to_owned());
    object.set_annotations(tree, &annotations)
}

/// Puts texts under `data` or `binaryData`.
pub(super) fn set_data(tree: &mut Tree, root: Id, field: &str, texts: &Texts) -> Res<()> {
    for (key, text) in texts {
        tree.clock.spend(1 + texts.len() / 16)?;
        let value = data_node(tree, text.clone());
        tree.set_at(root, &[field], key, value)?;
    }
    Ok(())
}

fn data_node(tree: &mut Tree, text: String) -> Id {
    let lines = text.contains('\n');
    let value = tree.scalar(text, Tag::Str);
    if lines {
        tree.at_mut(value).style = Style::Literal;
    }
    value
}

/// Base64 in lines of 70 characters, unless one line is enough.
fn lines_of_base64(bytes: &[u8]) -> String {
    const LINE: usize = 70;
    let whole = base64::engine::general_purpose::STANDARD.encode(bytes);
    if whole.len() < LINE {
        return whole;
    }
    let lines = whole.as_bytes().chunks(LINE);
    let lines = lines.map(|line| format!("{}\n", String::from_utf8_lossy(line)));
    lines.collect()
}

type Pairs = Vec<(String, Vec<u8>)>;

fn pairs<'a>(build: &mut Build<'a>, loader: &Loader<'a>, args: &GeneratorArgs) -> Res<Pairs> {
    let mut pairs = Vec::new();
    let listed = |all: &[String]| format!("[{}]", all.join(" "));
    for path in &args.envs {
        let read = loader
            .load(build, path)
            .and_then(|content| env_pairs(&content));
        let context = || format!("env source files: {}", listed(&args.envs));
        pairs.extend(read.map_err(|fault| fault.within(context()))?);
    }
    for literal in &args.literals {
        let Some((key, value)) = literal.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return fail!(
                "literal sources {}: invalid literal source {literal}, expected key=value",
                listed(&args.literals)
            );
        };
        pairs.push((key.to_owned(), without_quotes(value).into()));
    }
    for source in &args.files {
        let context = || format!("file sources: {}", listed(&args.files));
        let (key, path) = file_source(source).map_err(|fault| fault.within(context()))?;
        let content = loader.load(build, path);
        let content = content.map_err(|fault| fault.within(context()))?;
        pairs.push((key.to_owned(), content));
    }
    Ok(pairs)
}

fn without_quotes(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    if text.len() < 2 {
        return text;
    }
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn file_source(source: &str) -> Res<(&str, &str)> {
    match source.matches('=').count() {
        0 => {
            let trimmed = source.trim_end_matches('/');
            Ok((trimmed.rsplit('/').next().unwrap_or(trimmed), source))
        }
        1 => match source.split_once('=') {
            Some(("", path)) => {
                fail!("missing key name for file path {path:?} in source {source:?}")
            }
            Some((key, "")) => {
                fail!("missing file path for key name {key:?} in source {source:?}")
            }
            Some(parts) => Ok(parts),
            None => fail!("source {source:?} has no key"),
        },
        _ => fail!("source {source:?} key name or file path contains '='"),
    }
}

fn env_pairs(content: &[u8]) -> Res<Pairs> {
    let mut pairs = Vec::new();
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate() {
        if line.len() > LONGEST_LINE {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = std::str::from_utf8(line) else {
            return fail!("line {index} has invalid utf8 bytes");
        };
        let line = if index == 0 {
            line.strip_prefix('\u{FEFF}').unwrap_or(line)
        } else {
            line
        };
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // A name without a value would be read from the environment, but builds have none.
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if !key.is_empty() {
            pairs.push((key.to_owned(), value.into()));
        }
    }
    Ok(pairs)
}

/// The ten-character hash of the content of a ConfigMap or Secret, or of the whole object for other
/// kinds.
pub(super) fn hash(tree: &Tree, object: Object) -> Res<String> {
    let kind = tree.field_text(object.0, "kind");
    let value = |field: &str| -> Res<Value> {
        Ok(match tree.field(object.0, field) {
            None => json!(""),
            Some(id) if tree.kind(id) == Kind::Scalar => json!(tree.text(id)),
            Some(id) => match tree.json(id)? {
                map @ Value::Object(_) => map,
                _ => Value::Null,
            },
        })
    };
    let mut hashed = Map::new();
    hashed.insert("kind".to_owned(), json!(kind));
    // kustomize looks for a field that is called metadata/name.
    hashed.insert("name".to_owned(), json!(""));
    hashed.insert("data".to_owned(), value("data")?);
    let text = match kind {
        "ConfigMap" | "Secret" => {
            let more = if kind == "Secret" {
                hashed.insert("type".to_owned(), value("type")?);
                "stringData"
            } else {
                "binaryData"
            };
            let more_value = value(more)?;
            if more_value.is_object() {
                hashed.insert(more.to_owned(), more_value);
            }
            to_string(&Value::Object(hashed))
        }
        _ => to_string(&tree.json(object.0)?),
    };
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest
        .iter()
        .take(5)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let letter = |c| match c {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        c => c,
    };
    Ok(hex.chars().map(letter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_broken_into_lines() {
        assert_eq!(lines_of_base64(b"abc"), "YWJj");
        let long = lines_of_base64(&[0; 100]);
        assert_eq!(long.lines().map(str::len).collect::<Vec<_>>(), [70, 66]);
    }

    #[test]
    fn sources_are_taken_apart() {
        assert_eq!(without_quotes("\"a'"), "\"a'");
        assert_eq!(without_quotes("'a b'"), "a b");
        assert_eq!(file_source("a/b.txt").expect("right"), ("b.txt", "a/b.txt"));
        assert_eq!(file_source("k=a/b").expect("right"), ("k", "a/b"));
        for wrong in ["=a", "a=", "a=b=c"] {
            assert!(file_source(wrong).is_err());
        }
        let env = env_pairs(b"\xEF\xBB\xBFA=\"1\"\n # x\n\nB\nC=a=b\r\n").expect("right");
        let env: Vec<_> = env
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_slice()))
            .collect();
        assert_eq!(env, [("A", &b"\"1\""[..]), ("B", b""), ("C", b"a=b")]);
    }
}
