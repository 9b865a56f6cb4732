//! Reads the characters of a line up to the next special one.
//!
//! Main type: [`Scanner`].

pub(super) struct Scanner<'a> {
    rest: &'a str,
    /// A backslash escapes the next character.
    escapes: bool,
}

impl<'a> Scanner<'a> {
    pub fn new(rest: &'a str, escapes: bool) -> Self {
        Self { rest, escapes }
    }

    /// The text before one of `stops`, and which one it was; None at the end of the line.
    pub fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return (text, None),
                Some(c) if stops.contains(&c) => return (text, Some(c)),
                Some('\\') if self.escapes => match self.next() {
                    None => return (text, None),
                    Some(c) => text.push(c),
                },
                Some(c) => text.push(c),
            }
        }
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}
