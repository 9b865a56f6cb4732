//! Generates `src/gotypes/table.txt`: the struct tags of Go's fields of the built-in kinds.
//!
//! `cargo run --example go_types -- MODULES VERSION > src/gotypes/table.txt`, where MODULES holds
//! `api@VERSION`, `apimachinery@VERSION`, `apiextensions-apiserver@VERSION` and
//! `kube-aggregator@VERSION` as the Go module cache does (`$(go env GOMODCACHE)/k8s.io`). Only
//! facts are extracted: names, numbers, types.

#![allow(
    clippy::disallowed_methods,
    reason = "a generator reads and writes files"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tiphys_apimachinery::schema;

/// A field as it is declared.
struct Field {
    name: String,
    number: String,
    flags: String,
    go_type: String,
    package: String,
}

#[derive(Default)]
struct Sources {
    structs: BTreeMap<String, Vec<Field>>,
    /// Named types that are not structs, with their underlying type and their package.
    named: BTreeMap<String, (String, String)>,
    imports: BTreeMap<String, BTreeMap<String, String>>,
}

const SPECIAL: &[(&str, &str)] = &[
    ("meta/v1.Time", "T"),
    ("meta/v1.MicroTime", "U"),
    ("meta/v1.Duration", "D"),
    ("meta/v1.FieldsV1", "F"),
    ("api/resource.Quantity", "Q"),
    ("util/intstr.IntOrString", "I"),
    ("pkg/runtime.RawExtension", "R"),
    ("pkg/types.UID", "s"),
    ("pkg/types.NodeName", "s"),
    ("apiextensions/v1.JSON", "R"),
    ("apiextensions/v1.JSONSchemaPropsOrArray", "J"),
    ("apiextensions/v1.JSONSchemaPropsOrBool", "K"),
    ("apiextensions/v1.JSONSchemaPropsOrStringArray", "P"),
];

fn short_package(path: &str) -> String {
    let parts: Vec<&str> = path.rsplit('/').take(2).collect();
    parts.iter().rev().copied().collect::<Vec<_>>().join("/")
}

fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let rest = &tags[tags.find(&format!("{key}:\""))? + key.len() + 2..];
    rest.split('"').next()
}

impl Sources {
    fn read(&mut self, folder: &Path, package: &str) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .and_then(|n| n.to_str())
                .unwrap_or("")
                .to_owned();
            let skipped = ["_test.go", "generated", "_doc_"]
                .iter()
                .any(|word| name.contains(word));
            if name.ends_with(".go") && !skipped {
                self.read_file(&std::fs::read_to_string(&path)?, package);
            }
        }
        Ok(())
    }

    fn read_file(&mut self, text: &str, package: &str) {
        let mut current: Option<String> = None;
        for line in text.lines() {
            if let Some(name) = line
                .strip_prefix("type ")
                .and_then(|l| l.strip_suffix(" struct {"))
            {
                current = Some(format!("{package}.{name}"));
                self.structs.entry(format!("{package}.{name}")).or_default();
            } else if let Some(name) = line
                .strip_prefix("type ")
                .and_then(|l| l.strip_suffix(" struct{}"))
            {
                self.structs.entry(format!("{package}.{name}")).or_default();
            } else if line.starts_with('}') {
                current = None;
            } else if let Some(declaration) = line.strip_prefix("type ") {
                if let Some((name, target)) = declaration.split_once(' ') {
                    self.named.insert(
                        format!("{package}.{name}"),
                        (target.trim().to_owned(), package.to_owned()),
                    );
                }
            } else if let Some(owner) = &current {
                if let Some(field) = Self::field(line, package) {
                    self.structs.entry(owner.clone()).or_default().push(field);
                }
            } else if let Some(path) = line
                .trim()
                .strip_suffix('"')
                .filter(|l| l.contains("\"k8s.io/"))
            {
                let (alias, path) = path.split_once('"').unwrap_or(("", path));
                let alias = if alias.trim().is_empty() {
                    path.rsplit('/').next().unwrap_or(path)
                } else {
                    alias.trim()
                };
                self.imports
                    .entry(package.to_owned())
                    .or_default()
                    .insert(alias.to_owned(), short_package(path));
            }
        }
    }

    fn field(line: &str, package: &str) -> Option<Field> {
        let line = line.trim();
        if line.starts_with("//") {
            return None;
        }
        let (declaration, tags) = line.split_once('`')?;
        let protobuf = tag(tags, "protobuf")?;
        let mut json = tag(tags, "json")?.split(',');
        let name = json.next().unwrap_or("").to_owned();
        let options: Vec<&str> = json.collect();
        let mut words = declaration.split_whitespace();
        let (first, second) = (words.next()?, words.next());
        let go_type = second.unwrap_or(first);
        let number = protobuf.split(',').nth(1)?.to_owned();
        let mut flags = String::new();
        for (flag, is_set) in [
            ('p', go_type.starts_with('*')),
            ('o', options.contains(&"omitempty")),
            ('z', options.contains(&"omitzero")),
            ('n', name.is_empty()),
        ] {
            if is_set {
                flags.push(flag);
            }
        }
        let in_protobuf = || {
            protobuf
                .split("name=")
                .nth(1)
                .and_then(|rest| rest.split(',').next())
                .unwrap_or(first)
        };
        let name = if name.is_empty() {
            in_protobuf().to_owned()
        } else {
            name
        };
        let go_type = go_type.trim_start_matches('*').to_owned();
        Some(Field {
            name,
            number,
            flags,
            go_type,
            package: package.to_owned(),
        })
    }

    /// The name of a type in Go's error messages; `None` for a type with its own decoder, which
    /// messages never name.
    fn shown(&self, go_type: &str, package: &str) -> Option<String> {
        if let Some(item) = go_type.strip_prefix("[]") {
            return Some(format!("[]{}", self.shown_item(item, package)?));
        }
        if let Some((key, value)) = go_type
            .strip_prefix("map[")
            .and_then(|rest| rest.split_once(']'))
        {
            return Some(format!(
                "map[{}]{}",
                self.shown(key, package)?,
                self.shown_item(value, package)?
            ));
        }
        if let Some(target) = go_type.strip_prefix('*') {
            return Some(format!("*{}", self.shown(target, package)?));
        }
        if go_type == "byte" {
            return Some("uint8".into());
        }
        if !go_type.contains('.') && !go_type.starts_with(char::is_uppercase) {
            return Some(go_type.to_owned());
        }
        let full = self.full_name(go_type, package);
        if full != "pkg/types.UID"
            && full != "pkg/types.NodeName"
            && SPECIAL.iter().any(|(name, _)| *name == full)
        {
            return None;
        }
        if let Some((alias, of)) = self
            .named
            .get(&full)
            .and_then(|(target, of)| Some((target.strip_prefix("= ")?, of)))
        {
            return self.shown(alias, of);
        }
        full.split_once('/').map(|(_, name)| name.to_owned())
    }

    /// The element type of a list or map is named in messages, even if it has its own decoder.
    fn shown_item(&self, go_type: &str, package: &str) -> Option<String> {
        let named = || {
            self.full_name(go_type, package)
                .split_once('/')
                .map(|(_, name)| name.to_owned())
        };
        self.shown(go_type, package).or_else(named)
    }

    fn full_name(&self, go_type: &str, package: &str) -> String {
        match go_type.split_once('.') {
            Some((alias, name)) => {
                let imported = self
                    .imports
                    .get(package)
                    .and_then(|i| i.get(alias))
                    .cloned()
                    .unwrap_or_else(|| alias.to_owned());
                format!("{imported}.{name}")
            }
            None => format!("{package}.{go_type}"),
        }
    }

    /// The type in the table's notation. Struct types are added to `found`.
    fn resolve(&self, go_type: &str, package: &str, found: &mut Vec<String>) -> String {
        if go_type == "[]byte" {
            return "y".into();
        }
        if let Some(item) = go_type.strip_prefix("[]") {
            return format!(
                "[]{}",
                self.resolve(item.trim_start_matches('*'), package, found)
            );
        }
        if let Some(rest) = go_type.strip_prefix("map[") {
            let value = rest.split_once(']').map_or("", |(_, v)| v);
            return format!("{{}}{}", self.resolve(value, package, found));
        }
        match go_type {
            "string" => return "s".into(),
            "bool" => return "b".into(),
            "int32" | "uint32" => return "i".into(),
            "int64" | "int" => return "l".into(),
            "float64" => return "d".into(),
            _ => {}
        }
        let full = self.full_name(go_type, package);
        if let Some((_, word)) = SPECIAL.iter().find(|(name, _)| *name == full) {
            return (*word).into();
        }
        if let Some((target, of)) = self.named.get(&full) {
            return self.resolve(target.trim_start_matches("= "), of, found);
        }
        assert!(
            self.structs.contains_key(&full),
            "{go_type} in {package} ({full}) is not known"
        );
        found.push(full.clone());
        full
    }
}

/// The Go name that the reader of the table assumes for a type by default.
fn in_go(ty: &str) -> String {
    if let Some(item) = ty.strip_prefix("[]") {
        return format!("[]{}", in_go(item));
    }
    if let Some(value) = ty.strip_prefix("{}") {
        return format!("map[string]{}", in_go(value));
    }
    match ty {
        "s" => "string".into(),
        "b" => "bool".into(),
        "i" => "int32".into(),
        "l" => "int64".into(),
        "y" => "[]uint8".into(),
        "Q" => "resource.Quantity".into(),
        "T" => "v1.Time".into(),
        "R" => "v1.JSON".into(),
        message => message.split('/').next_back().unwrap_or(message).to_owned(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let modules = arguments
        .next()
        .ok_or("the folder of the Go modules is missing")?;
    let version = arguments.next().ok_or("the version is missing")?;
    let api = Path::new(&modules).join(format!("api@{version}"));
    let meta = Path::new(&modules).join(format!("apimachinery@{version}/pkg/apis/meta/v1"));
    let extensions =
        Path::new(&modules).join(format!("apiextensions-apiserver@{version}/pkg/apis"));
    let registration = Path::new(&modules).join(format!("kube-aggregator@{version}/pkg/apis"));
    let mut sources = Sources::default();
    sources.read(&meta, "meta/v1")?;
    let mut roots = BTreeSet::from(["meta/v1.DeleteOptions".to_owned()]);
    for resource in schema::resources() {
        let subs = resource
            .subresources
            .iter()
            .map(|s| (s.group, s.version, s.kind));
        for (group, version, kind) in
            subs.chain([(resource.group, resource.version, resource.kind)])
        {
            let folder = if group.is_empty() {
                "core"
            } else {
                group.split('.').next().unwrap_or(group)
            };
            let package = format!("{folder}/{version}");
            let path = match folder {
                "apiextensions" => extensions.join(&package),
                "apiregistration" => registration.join(&package),
                _ => api.join(&package),
            };
            if !path.is_dir() {
                continue;
            }
            if !sources.imports.contains_key(&package) {
                sources.read(&path, &package)?;
            }
            roots.insert(format!("{package}.{kind}"));
        }
    }
    let mut out = BTreeMap::new();
    let mut queue: Vec<String> = roots
        .into_iter()
        .filter(|r| sources.structs.contains_key(r))
        .collect();
    while let Some(name) = queue.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let mut lines = Vec::new();
        for field in sources
            .structs
            .get(&name)
            .map(Vec::as_slice)
            .unwrap_or_default()
        {
            let ty = sources.resolve(&field.go_type, &field.package, &mut queue);
            let flags = if field.flags.is_empty() {
                "-"
            } else {
                &field.flags
            };
            let shown = sources
                .shown(&field.go_type, &field.package)
                .filter(|shown| *shown != in_go(&ty));
            lines.push(format!(
                "{} {} {flags} {ty}{}",
                field.name,
                field.number,
                shown.map_or_else(String::new, |s| format!(" {s}"))
            ));
        }
        out.insert(name, lines);
    }
    println!(
        "# Made by examples/go_types.rs from k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator {version}."
    );
    for (name, lines) in out {
        println!(">{name}");
        lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}
