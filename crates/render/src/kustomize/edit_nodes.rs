//! Looking up, creating and setting nodes, with the rules shared by kustomize's steps.

use super::fault::{Res, fail};
use super::tree::{Id, Kind, Node, Tag, Tree};
use tiphys_gocompat::yaml::tree::{Style, is_not_text_v2};

impl Tree {
    /// A field of a map; `None` if the map is missing or null.
    pub fn get(&self, id: Id, name: &str) -> Res<Option<Id>> {
        if self.is_null(id) {
            return Ok(None);
        }
        self.expect(id, Kind::Map)?;
        Ok(self.field(id, name))
    }

    /// The node at a path. Parts are names, indices, `-` (the last) and `[name=value]`.
    pub fn lookup<S: AsRef<str>>(&mut self, id: Id, path: &[S]) -> Res<Option<Id>> {
        self.lookup_or_create(id, path, Kind::None)
    }

    /// Like `lookup`, but missing nodes are created, the last one with this kind (unless there is
    /// none).
    pub fn lookup_or_create<S: AsRef<str>>(
        &mut self,
        id: Id,
        path: &[S],
        create: Kind,
    ) -> Res<Option<Id>> {
        let parts = path.iter().map(|part| part.as_ref().trim());
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let mut found = id;
        for (index, part) in parts.iter().enumerate() {
            let next = parts.get(index + 1).copied().unwrap_or_default();
            match self.step(found, part, next, create)? {
                Some(id) => found = id,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn step(&mut self, id: Id, part: &str, next: &str, create: Kind) -> Res<Option<Id>> {
        if let Some(index) = atoi(part) {
            let Ok(index) = usize::try_from(index) else {
                return fail!("array index {index} cannot be negative");
            };
            self.expect(id, Kind::List)?;
            return Ok(self.at(id).content.get(index).copied());
        }
        if part == "-" {
            self.expect(id, Kind::List)?;
            return Ok(self.elements(id).last().copied());
        }
        if part == "*" {
            return fail!("wildcard is not supported in PathGetter");
        }
        if is_list_index(part) {
            let (name, value) = split_index(part)?;
            return self.find_or_append(id, name, value, create);
        }
        if let Some(found) = self.get(id, part)? {
            return Ok(Some(found));
        }
        if create == Kind::None || self.is_null(id) {
            return Ok(None);
        }
        let value = self.empty(part_kind(next, create));
        self.set_field(id, part, Some(value))?;
        Ok(Some(value))
    }

    fn find_or_append(&mut self, id: Id, name: &str, value: &str, create: Kind) -> Res<Option<Id>> {
        if let Some(found) = self.find_element(id, &[name], &[value])? {
            return Ok(Some(found));
        }
        if create == Kind::None {
            return Ok(None);
        }
        let element = self.element(name, value);
        self.at_mut(id).content.push(element);
        Ok(Some(element))
    }

    /// A list element with only its key; without a name, the scalar itself.
    pub fn element(&mut self, name: &str, value: &str) -> Id {
        let value = self.scalar(value, Tag::Open);
        if name.is_empty() {
            return value;
        }
        let key = self.scalar(name, Tag::Open);
        let mut map = Node::new(Kind::Map);
        map.content = vec![key, value];
        self.add(map)
    }

    /// The first element with these values; an empty key refers to the element itself.
    pub fn find_element<K, V>(&self, list: Id, keys: &[K], values: &[V]) -> Res<Option<Id>>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        self.expect(list, Kind::List)?;
        let first_key = keys.first().map_or("", AsRef::as_ref);
        let elements = self.elements(list);
        if first_key.is_empty() {
            let wanted = values.first().map_or("", AsRef::as_ref);
            return Ok(elements.into_iter().find(|id| self.text(*id) == wanted));
        }
        if keys.len() != values.len() {
            return fail!("length of keys must equal length of values when MatchAnyValue is false");
        }
        let has = |id: Id| {
            keys.iter().zip(values).all(|(key, value)| {
                let found = self.field(id, key.as_ref());
                found.is_some_and(|found| self.text(found) == value.as_ref())
            })
        };
        let maps = elements
            .into_iter()
            .filter(|id| self.kind(*id) == Kind::Map && !self.is_null(*id));
        Ok(maps.into_iter().find(|id| has(*id)))
    }

    /// Sets a field; `None` or a null clears it. An existing field keeps its node and style,
    /// whatever the new value is.
    pub fn set_field(&mut self, id: Id, name: &str, value: Option<Id>) -> Res<()> {
        self.set_field_keeping(id, name, value, false, Style::Plain)
    }

    /// Like `set_field`; with `keep`, a null is set like any other value. A new key has the style.
    pub fn set_field_keeping(
        &mut self,
        id: Id,
        name: &str,
        value: Option<Id>,
        keep: bool,
        key_style: Style,
    ) -> Res<()> {
        let value = match value {
            Some(value) if keep || !self.is_null(value) => value,
            _ => return self.clear(id, name),
        };
        self.quote_if_ambiguous(value);
        if let Some(found) = self.get(id, name)? {
            self.keep_style(found, value);
            self.assign(found, value);
            return Ok(());
        }
        let key = self.add(Node {
            style: key_style,
            ..Node::scalar(name, Tag::Open)
        });
        self.at_mut(id).content.extend([key, value]);
        Ok(())
    }

    /// Sets the text of a scalar, which keeps its style but not its tag.
    pub fn set_scalar(&mut self, id: Id, value: Id) -> Res<()> {
        self.quote_if_ambiguous(value);
        self.expect(id, Kind::Scalar)?;
        if self.is_null(value) {
            return Ok(());
        }
        self.keep_style(id, value);
        self.assign(id, value);
        Ok(())
    }

    /// Gives a value the style of what it replaces. An explicit tag is a part of the style.
    fn keep_style(&mut self, replaced: Id, value: Id) {
        let Node { style, tagged, .. } = *self.at(replaced);
        let node = self.at_mut(value);
        (node.style, node.tagged) = (style, tagged);
    }

    pub fn set_scalar_text(&mut self, id: Id, text: &str, tag: Tag) -> Res<()> {
        let value = self.scalar(text, tag);
        self.set_scalar(id, value)
    }

    /// Quotes a string that YAML 1.1 would not parse as a string.
    fn quote_if_ambiguous(&mut self, id: Id) {
        let plain = self.at(id).style == Style::Plain && !self.at(id).tagged;
        if plain && self.is_text(id) && is_not_text_v2(self.text(id)) {
            self.at_mut(id).style = Style::Double;
        }
    }

    /// Removes the first entry with this name.
    pub fn clear(&mut self, id: Id, name: &str) -> Res<()> {
        self.expect(id, Kind::Map)?;
        let at = self.entries(id).position(|(key, _)| self.text(key) == name);
        if let Some(at) = at {
            self.at_mut(id).content.drain(2 * at..2 * at + 2);
        }
        Ok(())
    }

    /// Sets, replaces or (with `None`) removes the elements with these values. Elements that are
    /// null or empty maps are dropped.
    pub fn set_element(
        &mut self,
        list: Id,
        element: Option<Id>,
        keys: &[String],
        values: &[String],
    ) -> Res<()> {
        self.expect(list, Kind::List)?;
        let by_map = keys.first().is_some_and(|key| !key.is_empty())
            && values.first().is_some_and(|value| !value.is_empty());
        let (mut kept, mut matched) = (Vec::new(), false);
        for id in self.elements(list) {
            if self.is_empty_map(id) {
                continue;
            }
            if by_map && self.kind(id) != Kind::Map {
                kept.push(id);
                continue;
            }
            if !self.has_values(id, keys, values)? {
                if !values.is_empty() {
                    kept.push(id);
                }
                continue;
            }
            matched = true;
            kept.extend(element);
        }
        if let Some(element) = element
            && !self.is_null(element)
            && !matched
        {
            kept.push(element);
        }
        self.at_mut(list).content = kept;
        Ok(())
    }

    fn has_values(&self, id: Id, keys: &[String], values: &[String]) -> Res<bool> {
        let none = [String::new()];
        let keys = if keys.is_empty() { &none[..] } else { keys };
        let mut last = None;
        for (index, key) in keys.iter().enumerate() {
            if let Some(value) = values.get(index) {
                last = Some(self.matches(id, key, value)?);
            }
            if last != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn matches(&self, id: Id, key: &str, value: &str) -> Res<bool> {
        if self.is_null(id) {
            return Ok(false);
        }
        if key.is_empty() {
            self.expect(id, Kind::Scalar)?;
            return Ok(self.text(id) == value);
        }
        self.expect(id, Kind::Map)?;
        // An empty value matches anything.
        let found = self.field(id, key);
        Ok(found.is_some_and(|found| value.is_empty() || self.text(found) == value))
    }

    /// Sets a field in the map at a path, creating missing maps.
    pub fn set_at(&mut self, id: Id, path: &[&str], name: &str, value: Id) -> Res<()> {
        match self.lookup_or_create(id, path, Kind::Map)? {
            Some(map) => self.set_field(map, name, Some(value)),
            None => Ok(()),
        }
    }
}

/// The kind of node in which the next part of a path is looked up.
pub(super) fn part_kind(next: &str, last: Kind) -> Kind {
    if is_list_index(next) || is_index(next) {
        Kind::List
    } else if next.is_empty() {
        last
    } else {
        Kind::Map
    }
}

pub(super) fn is_list_index(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

pub(super) fn is_index(part: &str) -> bool {
    atoi(part).is_some_and(|index| index >= 0)
}

pub(super) fn atoi(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// `name` and `value` of `[name=value]`.
pub(super) fn split_index(part: &str) -> Res<(&str, &str)> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    match inner.split_once('=') {
        Some(parts) => Ok(parts),
        None => fail!("list path element must contain fieldName=fieldValue for element to match"),
    }
}

/// Splits a path; a delimiter after a backslash is part of the name.
pub(super) fn split_path(path: &str, delimiter: char) -> Vec<String> {
    let mut parts = path.split(delimiter);
    let mut first = parts.next().unwrap_or_default();
    if first.is_empty()
        && let Some(second) = parts.next()
    {
        first = second;
    }
    let mut split = vec![first.to_owned()];
    for part in parts {
        match split.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => split.push(part.to_owned()),
        }
    }
    split
}

/// Splits a path at dots, except within brackets.
pub(super) fn split_field_path(path: &str) -> Vec<String> {
    let mut parts = split_path(path, '.').into_iter();
    let mut split = Vec::new();
    while let Some(part) = parts.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            split.push(part);
            continue;
        }
        let mut whole = part;
        for part in parts.by_ref() {
            whole.push('.');
            whole.push_str(&part);
            if part.ends_with(']') {
                break;
            }
        }
        if whole.contains('=') {
            split.push(whole);
        } else {
            split.push(whole.trim_matches(['[', ']']).to_owned());
        }
    }
    split
}
