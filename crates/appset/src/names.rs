//! Names made of any text. Main functions: [`normalize`] and [`slugify`].

mod ascii;

/// The longest name that Kubernetes accepts.
const LONGEST_NAME: usize = 253;

/// The longest slug of a branch: it leaves room for suffixes in a label.
pub(crate) const LONGEST_SLUG: usize = 50;

/// Lower case, with everything outside `[a-z0-9.-]` replaced by `-`, cut to 253 bytes and without
/// `-` and `.` at its ends.
pub fn normalize(text: &str) -> String {
    let mut name: String = text
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '.' | '-') => c,
            // The letters outside ASCII whose lower case is in it, for Go.
            '\u{130}' => 'i',
            '\u{212a}' => 'k',
            _ => '-',
        })
        .collect();
    name.truncate(LONGEST_NAME);
    name.trim_matches(['-', '.']).to_owned()
}

/// How a slug is made.
pub(crate) struct Slug {
    pub max: usize,
    /// Cuts at the end of a word.
    pub smart: bool,
    /// Replaces `_` too.
    pub no_underscores: bool,
}

impl Slug {
    /// A text of `[a-z0-9-_]` as gosimple/slug makes it for English.
    pub fn make(&self, text: &str) -> String {
        let mut slug = String::with_capacity(text.len());
        for c in text.trim().chars() {
            match c {
                '_' if self.no_underscores => slug.push('-'),
                '&' => slug.push_str("and"),
                '@' => slug.push_str("at"),
                '"' | '\'' | '\u{2019}' => {}
                _ if c.is_ascii() => slug.push(c.to_ascii_lowercase()),
                _ => slug.push_str(ascii::of(c)),
            }
        }
        if !self.smart {
            slug.truncate(self.max);
        }
        let mut out = String::with_capacity(slug.len());
        for c in slug.chars() {
            let c = match c {
                'a'..='z' | '0'..='9' | '_' => c,
                _ => '-',
            };
            if c != '-' || !out.ends_with('-') {
                out.push(c);
            }
        }
        let out = out.trim_matches(['-', '_']);
        if self.smart && self.max > 0 && out.len() > self.max {
            let cut = out.as_bytes()[..=self.max].iter().rposition(|b| *b == b'-');
            return out[..cut.unwrap_or(self.max)].to_owned();
        }
        out.to_owned()
    }
}

/// A slug of at most `max` bytes; a `smart` one is cut at the end of a word.
pub fn slugify(text: &str, max: usize, smart: bool) -> String {
    let slug = Slug {
        max,
        smart,
        no_underscores: false,
    };
    slug.make(&normalize(text))
}

#[cfg(test)]
mod tests {
    use super::{Slug, normalize};

    #[test]
    fn letters_outside_ascii_are_written_in_ascii_in_slugs_only() {
        let slug = Slug {
            max: 50,
            smart: true,
            no_underscores: true,
        };
        for (branch, wanted) in [
            ("feature/Größe_ändern", "feature-grosse-andern"),
            ("fix/перевод", "fix-perevod"),
            ("\u{1f680} launch", "launch"),
        ] {
            assert_eq!(slug.make(branch), wanted);
        }
        assert_eq!(normalize("Größe"), "gr--e");
        assert_eq!(normalize("\u{130}X-\u{212a}"), "ix-k");
    }
}
