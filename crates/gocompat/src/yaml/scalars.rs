//! The texts of scalars: plain, quoted, and the blocks after `|` and `>`.

use super::cursor::Mark;
use super::scan::{Fault, Scanner, Token, width};
use std::borrow::Cow;

/// A text that is borrowed from the input until a part of it needs processing.
struct Text<'t> {
    start: usize,
    written: Option<String>,
    plain: &'t str,
}

impl<'t> Text<'t> {
    fn at(start: usize) -> Self {
        Self {
            start,
            written: None,
            plain: "",
        }
    }

    /// The owned text to append to.
    fn written(&mut self) -> &mut String {
        self.written.get_or_insert_with(|| self.plain.to_owned())
    }

    fn finish(self) -> Cow<'t, str> {
        self.written.map_or(Cow::Borrowed(self.plain), Cow::Owned)
    }
}

/// Line breaks between two parts of a text.
#[derive(Default)]
struct Breaks<'t> {
    first: &'t str,
    more: String,
}

impl Breaks<'_> {
    /// A single line break becomes a space; from several, one is dropped.
    fn fold(&mut self, text: &mut String) {
        if self.first != "\n" {
            text.push_str(self.first);
        } else if self.more.is_empty() {
            text.push(' ');
        }
        text.push_str(&self.more);
        self.first = "";
        self.more.clear();
    }
}

/// How trailing line breaks of a block are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl<'t> Scanner<'t> {
    pub(super) fn plain(&mut self) -> Result<Token<'t>, Fault> {
        let (start_mark, indent, in_flow) = (self.cursor.mark, self.indent + 1, self.in_flow());
        let mut text = Text::at(self.cursor.start());
        let (mut breaks, mut broken, mut blanks) = (Breaks::default(), false, "");
        while !(self.cursor.at_document_mark(b'-')
            || self.cursor.at_document_mark(b'.')
            || self.cursor.peek() == b'#')
        {
            let run = self.cursor.run(|cursor| {
                let ends = match cursor.peek() {
                    b':' => cursor.ends_ahead(1),
                    b',' | b'?' | b'[' | b']' | b'{' | b'}' => in_flow,
                    _ => cursor.ends_ahead(0),
                };
                !ends
            });
            if !run.is_empty() {
                if std::mem::replace(&mut broken, false) {
                    breaks.fold(text.written());
                    text.written().push_str(run);
                } else if let Some(written) = &mut text.written {
                    written.push_str(blanks);
                    written.push_str(run);
                } else {
                    text.plain = self.cursor.since(text.start);
                }
                blanks = "";
            }
            if !self.cursor.at_blank() && !self.cursor.at_break() {
                break;
            }
            while self.cursor.at_blank() || self.cursor.at_break() {
                if self.cursor.at_break() {
                    blanks = "";
                    self.take_break(&mut breaks, &mut broken);
                } else if !broken {
                    let start = self.cursor.start();
                    self.cursor.skip_blanks();
                    blanks = self.cursor.since(start);
                } else if self.cursor.peek() == b'\t' && width(self.cursor.mark.column) < indent {
                    return Err(self.fault(
                        start_mark,
                        "found a tab character that violates indentation",
                    ));
                } else {
                    self.cursor.skip();
                }
            }
            if !in_flow && width(self.cursor.mark.column) < indent {
                break;
            }
        }
        if broken {
            self.key_allowed = true;
        }
        Ok(Token::Scalar {
            text: text.finish(),
            plain: true,
            folded: false,
        })
    }

    fn take_break(&mut self, breaks: &mut Breaks<'t>, broken: &mut bool) {
        let found = self.cursor.take_break();
        if std::mem::replace(broken, true) {
            breaks.more.push_str(found);
        } else {
            breaks.first = found;
        }
    }

    pub(super) fn quoted(&mut self) -> Result<Token<'t>, Fault> {
        let (start_mark, quote) = (self.cursor.mark, self.cursor.peek());
        self.cursor.skip();
        let mut text = Text::at(self.cursor.start());
        loop {
            if self.cursor.at_document_mark(b'-') || self.cursor.at_document_mark(b'.') {
                return Err(self.fault(start_mark, "found unexpected document indicator"));
            }
            if self.cursor.at_end() {
                return Err(self.fault(start_mark, "found unexpected end of stream"));
            }
            let mut broken = self.quoted_word(quote, &mut text, start_mark)?;
            if self.cursor.peek() == quote {
                break;
            }
            let (mut breaks, mut blanks) = (Breaks::default(), "");
            while self.cursor.at_blank() || self.cursor.at_break() {
                if self.cursor.at_break() {
                    self.take_break(&mut breaks, &mut broken);
                } else {
                    let start = self.cursor.start();
                    self.cursor.skip_blanks();
                    blanks = self.cursor.since(start);
                }
            }
            if broken {
                breaks.fold(text.written());
            } else if let Some(written) = &mut text.written {
                written.push_str(blanks);
            } else {
                text.plain = self.cursor.since(text.start);
            }
        }
        self.cursor.skip();
        Ok(Token::Scalar {
            text: text.finish(),
            plain: false,
            folded: false,
        })
    }

    /// The characters up to a blank or the closing quote. Returns whether they end with an escaped
    /// line break.
    fn quoted_word(&mut self, quote: u8, text: &mut Text<'t>, start: Mark) -> Result<bool, Fault> {
        while !self.cursor.ends_ahead(0) {
            let run = self.cursor.run(|cursor| {
                !(cursor.peek() == quote
                    || cursor.peek() == b'\\' && quote == b'"'
                    || cursor.ends_ahead(0))
            });
            if let Some(written) = &mut text.written {
                written.push_str(run);
            } else {
                text.plain = self.cursor.since(text.start);
            }
            let next = self.cursor.peek();
            if next == b'\'' && quote == b'\'' && self.cursor.ahead(1) == b'\'' {
                text.written().push('\'');
                self.cursor.skip_by(2);
            } else if next == b'\\' && quote == b'"' {
                if self.cursor.break_follows() {
                    text.written();
                    self.cursor.skip();
                    self.cursor.take_break();
                    return Ok(true);
                }
                let escaped = self.escape(start)?;
                text.written().push(escaped);
            } else {
                break;
            }
        }
        Ok(false)
    }

    fn escape(&mut self, start: Mark) -> Result<char, Fault> {
        let digits = match self.cursor.ahead(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => 0,
        };
        let simple = match self.cursor.ahead(1) {
            b'0' => '\0',
            b'a' => '\x07',
            b'b' => '\x08',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\x0B',
            b'f' => '\x0C',
            b'r' => '\r',
            b'e' => '\x1B',
            c @ (b' ' | b'"' | b'\'' | b'\\') => char::from(c),
            b'N' => '\u{85}',
            b'_' => '\u{A0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            _ if digits > 0 => '\0',
            _ => return Err(self.fault(start, "found unknown escape character")),
        };
        self.cursor.skip_by(2);
        if digits == 0 {
            return Ok(simple);
        }
        let mut code = 0_u32;
        for by in 0..digits {
            let digit = char::from(self.cursor.ahead(by)).to_digit(16);
            let digit = digit
                .ok_or_else(|| self.fault(start, "did not find expected hexdecimal number"))?;
            code = code << 4 | digit;
        }
        let escaped = char::from_u32(code)
            .ok_or_else(|| self.fault(start, "found invalid Unicode character escape code"))?;
        self.cursor.skip_by(digits);
        Ok(escaped)
    }

    pub(super) fn block_scalar(&mut self) -> Result<Token<'t>, Fault> {
        let (start, literal) = (self.cursor.mark, self.cursor.peek() == b'|');
        self.cursor.skip();
        let (chomp, deeper) = self.block_header(start)?;
        let mut indent = deeper.map(|deeper| self.indent.max(0) + deeper);
        let (mut text, mut first, mut more) = (String::new(), "", String::new());
        let mut was_blank = false;
        self.block_breaks(&mut indent, &mut more, start)?;
        while Some(width(self.cursor.mark.column)) == indent && !self.cursor.at_end() {
            let blank = self.cursor.at_blank();
            if !literal && first == "\n" && !was_blank && !blank {
                if more.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(first);
            }
            text.push_str(&more);
            more.clear();
            was_blank = blank;
            text.push_str(self.cursor.run(|cursor| !cursor.at_break()));
            first = self.cursor.take_break();
            self.block_breaks(&mut indent, &mut more, start)?;
        }
        if chomp != Chomp::Strip {
            text.push_str(first);
        }
        if chomp == Chomp::Keep {
            text.push_str(&more);
        }
        Ok(Token::Scalar {
            text: Cow::Owned(text),
            plain: false,
            folded: !literal,
        })
    }

    /// The header after `|`: how trailing breaks are handled, and the explicit indentation, if
    /// given.
    fn block_header(&mut self, start: Mark) -> Result<(Chomp, Option<isize>), Fault> {
        let (mut chomp, mut deeper) = (None, None);
        for _ in 0..2 {
            match self.cursor.peek() {
                sign @ (b'+' | b'-') if chomp.is_none() => {
                    chomp = Some(if sign == b'+' {
                        Chomp::Keep
                    } else {
                        Chomp::Strip
                    })
                }
                b'0' if deeper.is_none() => {
                    return Err(self.fault(start, "found an indentation indicator equal to 0"));
                }
                digit @ b'1'..=b'9' if deeper.is_none() => deeper = Some(isize::from(digit - b'0')),
                _ => break,
            }
            self.cursor.skip();
        }
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.at_line_end() {
            return Err(self.fault(start, "did not find expected comment or line break"));
        }
        self.cursor.take_break();
        Ok((chomp.unwrap_or(Chomp::Clip), deeper))
    }

    /// Skips indentation and empty lines; detects the indentation if it is unknown.
    fn block_breaks(
        &mut self,
        indent: &mut Option<isize>,
        breaks: &mut String,
        start: Mark,
    ) -> Result<(), Fault> {
        let mut deepest = 0;
        loop {
            let inside = |column: usize| indent.is_none_or(|indent| width(column) < indent);
            while inside(self.cursor.mark.column) && self.cursor.peek() == b' ' {
                self.cursor.skip();
            }
            deepest = deepest.max(width(self.cursor.mark.column));
            if inside(self.cursor.mark.column) && self.cursor.peek() == b'\t' {
                return Err(self.fault(
                    start,
                    "found a tab character where an indentation space is expected",
                ));
            }
            match self.cursor.take_break() {
                "" => break,
                found => breaks.push_str(found),
            }
        }
        indent.get_or_insert(deepest.max(self.indent + 1).max(1));
        Ok(())
    }
}
