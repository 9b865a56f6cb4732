//! `vars`: replaces `$(NAME)` in fields with a value of an object.
//!
//! Main type: [`Vars`].

use super::config::FieldSpec;
use super::edit_nodes::split_field_path;
use super::fault::{Res, fail};
use super::fields::Fields;
use super::ids::{Gvk, ResId};
use super::kustomization::Var;
use super::resmap::ResMap;
use super::tree::{Id, Kind, Tag, Tree};
use std::collections::BTreeMap;
use tiphys_gocompat::yaml::tree::Style;

#[derive(Clone, Debug, Default)]
pub(super) struct Vars(BTreeMap<String, Var>);

/// The value of a var.
#[derive(Clone, Debug)]
struct Value {
    text: String,
    tag: Tag,
}

impl Vars {
    /// Adds vars and records them on the objects they read from.
    pub fn add(&mut self, tree: &Tree, map: &mut ResMap, vars: &[Var]) -> Res<()> {
        self.add_own(tree, map, vars).map_err(|fault| {
            let shown: Vec<String> = vars.iter().map(written).collect();
            fault.within(format!("merging vars [{}]", shown.join(" ")))
        })
    }

    fn add_own(&mut self, tree: &Tree, map: &mut ResMap, vars: &[Var]) -> Res<()> {
        for var in vars {
            let id = ResId {
                gvk: gvk(var),
                name: var.objref.name.clone(),
                namespace: var.objref.namespace.clone(),
            };
            // Without a namespace, any namespace matches.
            let exact = !id.namespace.is_empty() || id.gvk.is_cluster_scoped();
            let found = map.by_any_id(tree, Some(&id.name), |other| {
                if exact {
                    id.is_same(other)
                } else {
                    id.name == other.name && id.gvk == other.gvk
                }
            })?;
            match found.as_slice() {
                [] => {}
                [index] => map.list[*index].vars.push(var.name.clone()),
                many => {
                    return fail!(
                        "found {} resId matches for var {} (unable to disambiguate)",
                        many.len(),
                        shown(var)
                    );
                }
            }
        }
        for var in vars {
            self.insert(var.clone())?;
        }
        Ok(())
    }

    pub fn add_all(&mut self, other: Self) -> Res<()> {
        other.0.into_values().try_for_each(|var| self.insert(var))
    }

    fn insert(&mut self, mut var: Var) -> Res<()> {
        if self.0.contains_key(&var.name) {
            return fail!("var '{}' already encountered", var.name);
        }
        if var.fieldref.field_path.is_empty() {
            "metadata.name".clone_into(&mut var.fieldref.field_path);
        }
        self.0.insert(var.name.clone(), var);
        Ok(())
    }

    /// Replaces all vars in the fields that may have them.
    pub fn resolve(&self, tree: &mut Tree, map: &ResMap, specs: &[FieldSpec]) -> Res<()> {
        let mut values = BTreeMap::new();
        let step = 1 + (map.list.len() + self.0.len()) / 16;
        for (name, var) in &self.0 {
            tree.clock.spend(step)?;
            values.insert(name.as_str(), value_of(tree, map, var)?);
        }
        if values.is_empty() {
            return Ok(());
        }
        for (_, object) in map.objects() {
            for spec in specs {
                Fields::EXISTING.apply(tree, object.0, spec, &mut |tree, field| {
                    replace(tree, field, &values)
                })?;
            }
            tree.check()?;
        }
        Ok(())
    }
}

fn gvk(var: &Var) -> Gvk {
    let target = &var.objref;
    if target.api_version.is_empty() {
        return Gvk::new(&target.group, &target.version, &target.kind);
    }
    let parts: Vec<&str> = target.api_version.split('/').collect();
    match parts.as_slice() {
        [group, version] => Gvk::new(group, version, &target.kind),
        [version] => Gvk::new(&target.group, version, &target.kind),
        _ => Gvk::new(&target.group, &target.version, &target.kind),
    }
}

fn shown(var: &Var) -> String {
    shown_of(var, &gvk(var))
}

/// The var as it is in the file: its `apiVersion` has not been divided yet.
fn written(var: &Var) -> String {
    let target = &var.objref;
    shown_of(var, &Gvk::new(&target.group, &target.version, &target.kind))
}

fn shown_of(var: &Var, gvk: &Gvk) -> String {
    format!("{{{} {gvk} {{{}}}}}", var.name, var.fieldref.field_path)
}

/// The value; `None` if it is not a scalar.
fn value_of(tree: &mut Tree, map: &ResMap, var: &Var) -> Res<Option<Value>> {
    let mut with = map.list.iter().filter(|r| r.vars.contains(&var.name));
    let Some(object) = with.find_map(super::resource::Resource::object) else {
        return fail!(
            "var '{}' cannot be mapped to a field in the set of known resources",
            shown(var)
        );
    };
    let path = with_indices(&split_field_path(&var.fieldref.field_path));
    let missing = || {
        fail!(
            "field specified in var '{}' not found in corresponding resource",
            shown(var)
        )
    };
    let Ok(Some(found)) = tree.lookup(object.0, &path) else {
        return missing();
    };
    if tree.kind(found) != Kind::Scalar {
        return Ok(None);
    }
    let node = tree.at(found);
    let text = node.text.clone();
    let value = |text: String, tag| Ok(Some(Value { text, tag }));
    match &node.tag {
        Tag::Int => match text.parse::<i64>() {
            Ok(number) => value(number.to_string(), Tag::Int),
            Err(_) => missing(),
        },
        Tag::Float => match text.parse::<f64>() {
            Ok(number) => value(format!("{number}"), Tag::Float),
            Err(_) => missing(),
        },
        Tag::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "false" => value(text.to_ascii_lowercase(), Tag::Bool),
            _ => missing(),
        },
        _ => value(text, Tag::Str),
    }
}

/// Splits `name[1]` into two parts.
fn with_indices(path: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    for part in path {
        let index = part
            .strip_suffix(']')
            .and_then(|rest| rest.rsplit_once('['));
        match index {
            Some((name, index))
                if index.bytes().all(|b| b.is_ascii_digit()) && !index.is_empty() =>
            {
                if !name.is_empty() {
                    parts.push(name.to_owned());
                }
                parts.push(index.to_owned());
            }
            _ => parts.push(part.clone()),
        }
    }
    parts
}

type Values<'v> = BTreeMap<&'v str, Option<Value>>;

fn replace(tree: &mut Tree, field: Id, values: &Values<'_>) -> Res<()> {
    if tree.is_null(field) {
        return Ok(());
    }
    match tree.kind(field) {
        Kind::Scalar => {
            if tree.is_text(field) {
                replace_in(tree, field, values);
            }
            Ok(())
        }
        Kind::Map => {
            let entries: Vec<_> = tree.entries(field).collect();
            for (key, value) in entries {
                if !tree.is_text(key) {
                    return fail!(
                        "invalid map key: value='{}', tag='{}'",
                        tree.text(key),
                        tree.at(key).tag.name()
                    );
                }
                if tree.is_text(value) {
                    replace_in(tree, value, values);
                }
            }
            Ok(())
        }
        Kind::List => {
            for element in tree.elements(field) {
                if !tree.is_text(element) {
                    return fail!("invalid value type expect a string");
                }
                replace_in(tree, element, values);
            }
            Ok(())
        }
        Kind::None => fail!("invalid type encountered"),
    }
}

fn replace_in(tree: &mut Tree, id: Id, values: &Values<'_>) {
    let new = replaced(tree.text(id), values);
    let style = match new.tag {
        Tag::Str if new.text.contains('\n') => Style::Literal,
        _ => Style::Plain,
    };
    let node = tree.at_mut(id);
    (node.text, node.tag, node.style) = (new.text, new.tag, style);
}

/// Replaces the vars in a text; a text that is only a var gets the var's type.
fn replaced(text: &str, values: &Values<'_>) -> Value {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        let Some(next) = rest[at + 1..].chars().next() else {
            break;
        };
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        match next {
            '$' => {
                out.push('$');
                rest = &behind[1..];
            }
            '(' => match behind.find(')') {
                Some(end) => {
                    let name = &behind[1..end];
                    let whole = format!("$({name})");
                    let value = values.get(name).and_then(Option::as_ref);
                    if whole == text {
                        return value.cloned().unwrap_or(Value {
                            text: whole,
                            tag: Tag::Str,
                        });
                    }
                    match value {
                        Some(value) => out.push_str(&value.text),
                        None => out.push_str(&whole),
                    }
                    rest = &behind[end + 1..];
                }
                None => {
                    out.push_str("$(");
                    rest = &behind[1..];
                }
            },
            next => {
                out.push('$');
                out.push(next);
                rest = &behind[next.len_utf8()..];
            }
        }
    }
    out.push_str(rest);
    Value {
        text: out,
        tag: Tag::Str,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vars_are_replaced_in_texts() {
        let number = Value {
            text: "5".to_owned(),
            tag: Tag::Int,
        };
        let values = BTreeMap::from([("N", Some(number))]);
        for (text, want, tag) in [
            ("$(N)", "5", Tag::Int),
            ("a$(N)b", "a5b", Tag::Str),
            ("$(M)", "$(M)", Tag::Str),
            ("$$(N)", "$(N)", Tag::Str),
            ("$(N", "$(N", Tag::Str),
            ("$x$", "$x$", Tag::Str),
        ] {
            let new = replaced(text, &values);
            assert_eq!((new.text.as_str(), new.tag), (want, tag), "{text}");
        }
        assert_eq!(
            with_indices(&["a[1]".into(), "[k=v]".into()]),
            ["a", "1", "[k=v]"]
        );
    }
}
