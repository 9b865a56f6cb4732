//! A position in a text that moves forward, by characters and by lines.
//!
//! Main type: [`Cursor`]. Of the grammar of YAML 1.1 it only knows blanks and line breaks.

/// A position; everything counts from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub line: usize,
    pub column: usize,
    /// Of the character in the text.
    pub index: usize,
}

pub(super) struct Cursor<'t> {
    text: &'t str,
    byte: usize,
    pub mark: Mark,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            byte: 0,
            mark: Mark::default(),
        }
    }

    /// The byte at this offset ahead; 0 after the end. The text contains no NUL.
    pub fn ahead(&self, by: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.byte + by)
            .copied()
            .unwrap_or(0)
    }

    pub fn peek(&self) -> u8 {
        self.ahead(0)
    }

    pub fn at_blank(&self) -> bool {
        matches!(self.peek(), b' ' | b'\t')
    }

    pub fn at_break(&self) -> bool {
        self.break_ahead(0) > 0
    }

    pub fn at_end(&self) -> bool {
        self.peek() == 0
    }

    /// A break or the end.
    pub fn at_line_end(&self) -> bool {
        self.at_end() || self.at_break()
    }

    /// Whether a word ends at this offset ahead.
    pub fn ends_ahead(&self, by: usize) -> bool {
        matches!(self.ahead(by), b' ' | b'\t' | 0) || self.break_ahead(by) > 0
    }

    /// The length in bytes of the line break at this offset ahead; 0 if there is none.
    fn break_ahead(&self, by: usize) -> usize {
        match self.ahead(by) {
            b'\r' if self.ahead(by + 1) == b'\n' => 2,
            b'\r' | b'\n' => 1,
            0xC2 if self.ahead(by + 1) == 0x85 => 2,
            0xE2 if self.ahead(by + 1) == 0x80 && matches!(self.ahead(by + 2), 0xA8 | 0xA9) => 3,
            _ => 0,
        }
    }

    pub fn break_follows(&self) -> bool {
        self.break_ahead(1) > 0
    }

    /// Whether the line so far is three times the given character (`---` or `...`), followed by a
    /// blank.
    pub fn at_document_mark(&self, mark: u8) -> bool {
        self.mark.column == 0 && (0..3).all(|by| self.ahead(by) == mark) && self.ends_ahead(3)
    }

    /// Skips one character that is not a line break.
    pub fn skip(&mut self) {
        let first = self.peek();
        self.byte += match first {
            0..0x80 => usize::from(first > 0),
            0x80..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        self.mark.column += 1;
        self.mark.index += 1;
    }

    pub fn skip_by(&mut self, characters: usize) {
        (0..characters).for_each(|_| self.skip());
    }

    pub fn skip_blanks(&mut self) {
        while self.at_blank() {
            self.skip();
        }
    }

    /// Skips a comment, up to the end of its line.
    pub fn skip_comment(&mut self) {
        if self.peek() == b'#' {
            self.run(|cursor| !cursor.at_line_end());
        }
    }

    /// Skips a line break; returns the text that represents it, which is empty if there is none.
    pub fn take_break(&mut self) -> &'t str {
        let bytes = self.break_ahead(0);
        if bytes == 0 {
            return "";
        }
        let found = &self.text[self.byte..self.byte + bytes];
        self.byte += bytes;
        self.mark = Mark {
            line: self.mark.line + 1,
            column: 0,
            index: self.mark.index + found.chars().count(),
        };
        if bytes == 3 { found } else { "\n" }
    }

    /// Skips characters while the condition is true, none of them a line break.
    pub fn run(&mut self, holds: impl Fn(&Self) -> bool) -> &'t str {
        let start = self.byte;
        while !self.at_end() && holds(self) {
            self.skip();
        }
        &self.text[start..self.byte]
    }

    /// The beginning of a slice that [`Cursor::since`] ends.
    pub fn start(&self) -> usize {
        self.byte
    }

    pub fn since(&self, start: usize) -> &'t str {
        &self.text[start..self.byte]
    }
}
