//! Texts that were parsed: a template has the same few for each of thousands of Applications.
//! Main type: [`Texts`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tiphys_gocompat::template::{Error, Functions, TemplateSet};

/// The name of a template in error texts.
pub(super) const NAME: &str = "base";

/// How many texts are kept, and of how many bytes. Those of a generator may differ for each element
/// of another one.
const MOST: usize = 256;
const MOST_BYTES: usize = 1 << 20;

/// The texts that use the same functions.
pub(super) struct Texts {
    functions: fn() -> &'static Arc<Functions>,
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    sets: HashMap<String, Arc<TemplateSet>>,
    bytes: usize,
}

impl Texts {
    pub fn new(functions: fn() -> &'static Arc<Functions>) -> Self {
        Self {
            functions,
            known: RefCell::default(),
        }
    }

    /// The template that a text is.
    pub fn parsed(&self, text: &str) -> Result<Arc<TemplateSet>, Error> {
        if let Some(set) = self.known.borrow().sets.get(text) {
            return Ok(set.clone());
        }
        let mut set = TemplateSet::new(NAME, (self.functions)().clone());
        set.parse(NAME, text.as_bytes())?;
        let set = Arc::new(set);
        self.known.borrow_mut().keep(text, &set);
        Ok(set)
    }
}

impl Known {
    fn keep(&mut self, text: &str, set: &Arc<TemplateSet>) {
        if text.len() > MOST_BYTES {
            return;
        }
        if self.sets.len() >= MOST || self.bytes + text.len() > MOST_BYTES {
            *self = Self::default();
        }
        self.bytes += text.len();
        self.sets.insert(text.to_owned(), set.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::functions;

    #[test]
    fn a_text_is_parsed_once_and_few_are_kept() {
        let texts = Texts::new(functions::table);
        let first = texts.parsed("{{.a}}").expect("a template");
        let again = texts.parsed("{{.a}}").expect("a template");
        assert!(Arc::ptr_eq(&first, &again));
        for number in 0..=MOST {
            texts.parsed(&format!("{{{{.a}}}}{number}")).expect("one");
        }
        assert!(texts.known.borrow().sets.len() <= MOST);
        for number in 0..4 {
            let long = format!("{{{{.a}}}}{number}{}", "x".repeat(MOST_BYTES / 3));
            texts.parsed(&long).expect("a long one");
            let known = texts.known.borrow();
            let bytes: usize = known.sets.keys().map(String::len).sum();
            assert_eq!(known.bytes, bytes);
            assert!(bytes <= MOST_BYTES && known.sets.contains_key(&long));
        }
        let longest = format!("{{{{.a}}}}{}", "x".repeat(MOST_BYTES));
        texts.parsed(&longest).expect("one that is not kept");
        assert!(!texts.known.borrow().sets.contains_key(&longest));
        assert!(texts.parsed("{{").is_err());
    }
}
