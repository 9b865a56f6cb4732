//! Properties of nodes and documents: anchors, aliases, tags and directives.

use super::cursor::Mark;
use super::scan::{Fault, Scanner, Token};

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

impl<'t> Scanner<'t> {
    /// The name of an anchor or alias.
    pub(super) fn anchor(&mut self) -> Result<&'t str, Fault> {
        let start = self.cursor.mark;
        self.cursor.skip();
        let name = self.cursor.run(|cursor| is_name(cursor.peek()));
        let ends = self.cursor.ends_ahead(0) || b"?:,]}%@`".contains(&self.cursor.peek());
        if name.is_empty() || !ends {
            return Err(self.fault(
                start,
                "did not find expected alphabetic or numeric character",
            ));
        }
        Ok(name)
    }

    pub(super) fn tag(&mut self) -> Result<Token<'t>, Fault> {
        let start = self.cursor.mark;
        let (handle, suffix) = if self.cursor.ahead(1) == b'<' {
            self.cursor.skip_by(2);
            let suffix = self.tag_uri("", start)?;
            if self.cursor.peek() != b'>' {
                return Err(self.fault(start, "did not find the expected '>'"));
            }
            self.cursor.skip();
            (String::new(), suffix)
        } else {
            let handle = self.tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                (handle.to_owned(), self.tag_uri("", start)?)
            } else {
                // What looked like a handle is the beginning of the name.
                match self.tag_uri(handle, start)? {
                    suffix if suffix.is_empty() => (String::new(), "!".to_owned()),
                    suffix => ("!".to_owned(), suffix),
                }
            }
        };
        if !self.cursor.ends_ahead(0) {
            return Err(self.fault(start, "did not find expected whitespace or line break"));
        }
        Ok(Token::Tag { handle, suffix })
    }

    fn tag_handle(&mut self, of_directive: bool, start: Mark) -> Result<&'t str, Fault> {
        if self.cursor.peek() != b'!' {
            return Err(self.fault(start, "did not find expected '!'"));
        }
        let from = self.cursor.start();
        self.cursor.skip();
        self.cursor.run(|cursor| is_name(cursor.peek()));
        if self.cursor.peek() == b'!' {
            self.cursor.skip();
        } else if of_directive && self.cursor.since(from) != "!" {
            return Err(self.fault(start, "did not find expected '!'"));
        }
        Ok(self.cursor.since(from))
    }

    /// The rest of a tag after the part already read, which begins with a `!` that is not part of
    /// it.
    fn tag_uri(&mut self, head: &str, start: Mark) -> Result<String, Fault> {
        let mut uri = head.as_bytes().get(1..).unwrap_or_default().to_vec();
        let mut found = !head.is_empty();
        while is_name(self.cursor.peek()) || b";/?:@&=+$,.!~*'()[]%".contains(&self.cursor.peek()) {
            if self.cursor.peek() == b'%' {
                self.uri_escape(&mut uri, start)?;
            } else {
                uri.push(self.cursor.peek());
                self.cursor.skip();
            }
            found = true;
        }
        if !found {
            return Err(self.fault(start, "did not find expected tag URI"));
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// The octets of one character.
    fn uri_escape(&mut self, uri: &mut Vec<u8>, start: Mark) -> Result<(), Fault> {
        let mut wanted = None;
        while wanted != Some(0) {
            let digit = |by| {
                char::from(self.cursor.ahead(by))
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            };
            let (b'%', Some(high), Some(low)) = (self.cursor.peek(), digit(1), digit(2)) else {
                return Err(self.fault(start, "did not find URI escaped octet"));
            };
            let octet = high << 4 | low;
            wanted = match (wanted, octet) {
                (None, ..0x80) => Some(0),
                (None, 0xC0..0xE0) => Some(1),
                (None, 0xE0..0xF0) => Some(2),
                (None, 0xF0..0xF8) => Some(3),
                (None, _) => {
                    return Err(self.fault(start, "found an incorrect leading UTF-8 octet"));
                }
                (Some(more), 0x80..0xC0) => Some(more - 1),
                (Some(_), _) => {
                    return Err(self.fault(start, "found an incorrect trailing UTF-8 octet"));
                }
            };
            uri.push(octet);
            self.cursor.skip_by(3);
        }
        Ok(())
    }

    pub(super) fn directive(&mut self) -> Result<Token<'t>, Fault> {
        let start = self.cursor.mark;
        self.cursor.skip();
        let name = self.cursor.run(|cursor| is_name(cursor.peek()));
        if name.is_empty() {
            return Err(self.fault(start, "could not find expected directive name"));
        }
        if !self.cursor.ends_ahead(0) {
            return Err(self.fault(start, "found unexpected non-alphabetical character"));
        }
        let token = match name {
            "YAML" => self.version(start)?,
            "TAG" => self.tag_directive(start)?,
            _ => return Err(self.fault(start, "found unknown directive name")),
        };
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.at_line_end() {
            return Err(self.fault(start, "did not find expected comment or line break"));
        }
        self.cursor.take_break();
        Ok(token)
    }

    fn version(&mut self, start: Mark) -> Result<Token<'t>, Fault> {
        self.cursor.skip_blanks();
        let major = self.version_number(start)?;
        if self.cursor.peek() != b'.' {
            return Err(self.fault(start, "did not find expected digit or '.' character"));
        }
        self.cursor.skip();
        Ok(Token::Version(major, self.version_number(start)?))
    }

    fn version_number(&mut self, start: Mark) -> Result<u8, Fault> {
        let mut number = None;
        for length in 0.. {
            let digit = self.cursor.peek();
            if !digit.is_ascii_digit() {
                break;
            }
            if length == 2 {
                return Err(self.fault(start, "found extremely long version number"));
            }
            number = Some(number.unwrap_or(0) * 10 + (digit - b'0'));
            self.cursor.skip();
        }
        number.ok_or_else(|| self.fault(start, "did not find expected version number"))
    }

    fn tag_directive(&mut self, start: Mark) -> Result<Token<'t>, Fault> {
        self.cursor.skip_blanks();
        let handle = self.tag_handle(true, start)?.to_owned();
        if !self.cursor.at_blank() {
            return Err(self.fault(start, "did not find expected whitespace"));
        }
        self.cursor.skip_blanks();
        let prefix = self.tag_uri("", start)?;
        if !self.cursor.ends_ahead(0) {
            return Err(self.fault(start, "did not find expected whitespace or line break"));
        }
        Ok(Token::TagDirective { handle, prefix })
    }
}
