//! An object that is stored for a long time and rarely read.
//!
//! Main type: [`Kept`]. As trees of maps, objects take many times the memory of their JSON.

use crate::{Object, packed::PackedText};
use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// An object: a tree while it is in use, compressed JSON after [`Kept::rest`]. Its names are always
/// available.
pub struct Kept {
    head: Head,
    state: Mutex<State>,
}

enum State {
    Tree(Arc<Object>),
    /// The tree is shared between concurrent readers.
    Text(PackedText, Weak<Object>),
}

/// The fields that are read most often, concatenated.
struct Head {
    text: Box<str>,
    ends: [u32; 6],
}

impl Head {
    fn of(object: &Object) -> Self {
        let fields = [
            object.api_version(),
            object.kind(),
            object.namespace(),
            object.name(),
            object.uid(),
            object.resource_version(),
        ];
        let mut end = 0;
        let ends = fields.map(|field| {
            end += field.len();
            u32::try_from(end).expect("names of less than 4 GiB")
        });
        Self {
            text: fields.concat().into(),
            ends,
        }
    }

    fn field(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start as usize..self.ends[index] as usize]
    }
}

impl Kept {
    pub fn api_version(&self) -> &str {
        self.head.field(0)
    }

    pub fn group(&self) -> &str {
        crate::gvk::split_api_version(self.api_version()).0
    }

    pub fn kind(&self) -> &str {
        self.head.field(1)
    }

    /// Empty for cluster scope.
    pub fn namespace(&self) -> &str {
        self.head.field(2)
    }

    pub fn name(&self) -> &str {
        self.head.field(3)
    }

    pub fn uid(&self) -> &str {
        self.head.field(4)
    }

    pub fn resource_version(&self) -> &str {
        self.head.field(5)
    }

    /// The whole object.
    pub fn object(&self) -> Arc<Object> {
        match &mut *self.state() {
            State::Tree(object) => object.clone(),
            State::Text(text, shared) => shared.upgrade().unwrap_or_else(|| {
                let object = Arc::new(serde_json::from_str(&text.read()).expect("written by us"));
                *shared = Arc::downgrade(&object);
                object
            }),
        }
    }

    pub fn json(&self) -> String {
        match &*self.state() {
            State::Tree(object) => json(object),
            State::Text(text, _) => text.read().into_owned(),
        }
    }

    /// Drops the tree until the object is read again.
    pub fn rest(&self) {
        let mut state = self.state();
        if let State::Tree(object) = &*state {
            let text = State::Text(PackedText::new(&json(object)), Arc::downgrade(object));
            let tree = mem::replace(&mut *state, text);
            drop(state);
            drop(tree);
        }
    }

    /// Size of the compressed text; zero while it is a tree.
    pub fn bytes_held(&self) -> usize {
        match &*self.state() {
            State::Tree(_) => 0,
            State::Text(text, _) => text.bytes_held(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn json(object: &Object) -> String {
    serde_json::to_string(object).expect("a JSON map can be written as JSON")
}

impl From<Object> for Kept {
    fn from(object: Object) -> Self {
        Self {
            head: Head::of(&object),
            state: Mutex::new(State::Tree(Arc::new(object))),
        }
    }
}

/// Equal objects are equal, whether compressed or not.
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.head.text == other.head.text && self.object() == other.object()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.object(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(text: &str) -> Object {
        let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"});
        Object::from_value(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"t": text}}))
            .expect("a map")
    }

    #[test]
    fn at_rest_it_is_small_and_gives_back_what_it_got() {
        let whole = object(&"lorem ipsum ".repeat(200));
        let kept = Kept::from(whole.clone());
        let names = || {
            [
                kept.group(),
                kept.api_version(),
                kept.kind(),
                kept.namespace(),
                kept.name(),
                kept.uid(),
                kept.resource_version(),
            ]
        };
        assert_eq!(
            names(),
            ["apps", "apps/v1", "Deployment", "n", "a", "u", "7"]
        );
        assert_eq!((&*kept.object(), kept.json()), (&whole, json(&whole)));
        kept.rest();
        kept.rest();
        assert!(
            (1..400).contains(&kept.bytes_held()),
            "{}",
            kept.bytes_held()
        );
        assert_eq!((&*kept.object(), kept.json()), (&whole, json(&whole)));
        assert_eq!(kept, Kept::from(whole));
        assert_ne!(kept, Kept::from(object("other")));
    }

    #[test]
    fn those_who_look_into_it_share_one_tree() {
        let kept = Kept::from(object("short"));
        let before = kept.object();
        kept.rest();
        let tree = kept.object();
        assert!(Arc::ptr_eq(&tree, &before) && Arc::ptr_eq(&tree, &kept.object()));
    }
}
