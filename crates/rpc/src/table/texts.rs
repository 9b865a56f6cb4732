//! Which fields of a request message are text of its query or path. Main type: [`Texts`].

use std::collections::BTreeMap;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Query,
    Path,
}

/// The fields of a message that are text, or have some below them.
#[derive(Debug, Default)]
pub struct Texts(BTreeMap<String, Text>);

#[derive(Debug)]
pub(super) enum Text {
    Whole(Given),
    Fields(Texts),
}

impl Texts {
    /// Notes that the field at a path is text.
    pub(super) fn add(&mut self, path: &[&str], given: Given) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        let mut texts = self;
        for name in above {
            let below = texts.0.entry((*name).to_owned());
            match below.or_insert_with(|| Text::Fields(Self::default())) {
                Text::Fields(fields) => texts = fields,
                Text::Whole(_) => return,
            }
        }
        texts.0.insert((*last).to_owned(), Text::Whole(given));
    }

    /// The field of that name, in any case.
    pub(super) fn of(&self, name: &str) -> Option<&Text> {
        let in_any_case = || {
            let mut all = self.0.iter();
            let found = all.find(|(own, _)| own.eq_ignore_ascii_case(name));
            found.map(|(_, text)| text)
        };
        self.0.get(name).or_else(in_any_case)
    }
}
