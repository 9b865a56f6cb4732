//! Names made of any text. Main functions: [`normalize`] and [`slug`].

/// The longest name that Kubernetes accepts.
const LONGEST_NAME: usize = 253;

/// The longest slug of a branch: it leaves room for suffixes in a label.
pub(crate) const LONGEST_SLUG: usize = 50;

/// Lower case, with everything outside `[a-z0-9.-]` replaced by `-`, cut to 253 bytes and without
/// `-` and `.` at its ends.
pub fn normalize(text: &str) -> String {
    let mut name: String = text
        .to_lowercase()
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '.' | '-' => c,
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
    /// A text of `[a-z0-9-_]` as gosimple/slug makes it for English. Letters outside ASCII become
    /// `-`.
    pub fn make(&self, text: &str) -> String {
        let mut slug = String::with_capacity(text.len());
        for c in text.trim().chars() {
            match c {
                '_' if self.no_underscores => slug.push('-'),
                '&' => slug.push_str("and"),
                '@' => slug.push_str("at"),
                '"' | '\'' | '\u{2019}' => {}
                _ => slug.extend(c.to_lowercase()),
            }
        }
        if !self.smart && slug.len() >= self.max {
            slug.truncate(
                (0..=self.max)
                    .rfind(|at| slug.is_char_boundary(*at))
                    .unwrap_or(0),
            );
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
