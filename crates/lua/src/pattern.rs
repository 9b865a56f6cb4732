//! Lua patterns with step counting: the C implementation cannot be interrupted, and a short pattern
//! can backtrack for hours.
//!
//! Main types: [`Pattern`] and [`Found`]. Works on bytes, not characters; supports `%f` in addition
//! to the patterns in the Lua 5.1 manual.

use std::ops::Range;

/// Maximum number of captures, as in Lua.
const CAPTURES: usize = 32;
/// Maximum recursion depth of matching.
const DEPTH: usize = 200;
/// The end of a position capture; a `%1` that refers to it matches nothing.
const NO_TEXT: usize = usize::MAX;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("malformed pattern ({0})")]
    Malformed(&'static str),
    #[error("invalid capture index")]
    CaptureIndex,
    #[error("invalid pattern capture")]
    Capture,
    #[error("unfinished capture")]
    Unfinished,
    #[error("too many captures")]
    TooManyCaptures,
    #[error("pattern too complex")]
    TooComplex,
    /// The caller's counter stopped the search.
    #[error("stopped")]
    Stopped,
}

/// A parsed pattern.
#[derive(Debug)]
pub struct Pattern {
    anchored: bool,
    items: Vec<Item>,
    captures: usize,
}

/// A match; offsets are in bytes, starting at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub range: Range<usize>,
    pub captures: Vec<Capture>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    Text(Range<usize>),
    /// `()`.
    Position(usize),
}

#[derive(Debug)]
enum Item {
    Single(Class, Repeat),
    Open(usize),
    Close(usize),
    Position(usize),
    Back(usize),
    Balanced(u8, u8),
    Frontier(Class),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Repeat {
    Once,
    Optional,
    Many,
    AtLeastOnce,
    Few,
}

#[derive(Debug)]
enum Class {
    Any,
    Byte(u8),
    /// A letter after `%`.
    Named(u8),
    Set(bool, Vec<Member>),
}

#[derive(Debug)]
enum Member {
    Range(u8, u8),
    Named(u8),
}

impl Class {
    fn holds(&self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Byte(own) => *own == byte,
            Self::Named(name) => named(*name, byte),
            Self::Set(negated, members) => {
                let is_member = |m: &Member| match m {
                    Member::Range(low, high) => (low..=high).contains(&&byte),
                    Member::Named(name) => named(*name, byte),
                };
                members.iter().any(is_member) != *negated
            }
        }
    }
}

fn named(name: u8, byte: u8) -> bool {
    let holds = match name.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte == b' ' || (9..=13).contains(&byte),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return name == byte,
    };
    holds != name.is_ascii_uppercase()
}

struct Parser<'a> {
    rest: &'a [u8],
    items: Vec<Item>,
    /// For each capture, whether it is closed.
    closed: Vec<bool>,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn item(&mut self, first: u8) -> Result<Item, PatternError> {
        Ok(match first {
            b'(' if self.rest.first() == Some(&b')') => {
                self.next();
                Item::Position(self.capture(true)?)
            }
            b'(' => Item::Open(self.capture(false)?),
            b')' => {
                let open = self
                    .closed
                    .iter()
                    .rposition(|closed| !closed)
                    .ok_or(PatternError::Capture)?;
                self.closed[open] = true;
                Item::Close(open)
            }
            b'$' if self.rest.is_empty() => Item::End,
            b'%' => match self
                .next()
                .ok_or(PatternError::Malformed("ends with '%'"))?
            {
                digit @ b'0'..=b'9' => self.back(digit)?,
                b'b' => match (self.next(), self.next()) {
                    (Some(open), Some(close)) => Item::Balanced(open, close),
                    _ => return Err(PatternError::Malformed("missing arguments to '%b'")),
                },
                b'f' => match self.next() {
                    Some(b'[') => Item::Frontier(self.set()?),
                    _ => return Err(PatternError::Malformed("missing '[' after '%f' in pattern")),
                },
                name => self.repeated(Class::Named(name)),
            },
            b'[' => {
                let set = self.set()?;
                self.repeated(set)
            }
            b'.' => self.repeated(Class::Any),
            byte => self.repeated(Class::Byte(byte)),
        })
    }

    fn capture(&mut self, closed: bool) -> Result<usize, PatternError> {
        if self.closed.len() == CAPTURES {
            return Err(PatternError::TooManyCaptures);
        }
        self.closed.push(closed);
        Ok(self.closed.len() - 1)
    }

    fn back(&self, digit: u8) -> Result<Item, PatternError> {
        let index = usize::from(digit - b'0').checked_sub(1);
        let index = index.filter(|i| self.closed.get(*i) == Some(&true));
        index.map(Item::Back).ok_or(PatternError::CaptureIndex)
    }

    fn repeated(&mut self, class: Class) -> Item {
        let repeat = match self.rest.first() {
            Some(b'?') => Repeat::Optional,
            Some(b'*') => Repeat::Many,
            Some(b'+') => Repeat::AtLeastOnce,
            Some(b'-') => Repeat::Few,
            _ => return Item::Single(class, Repeat::Once),
        };
        self.next();
        Item::Single(class, repeat)
    }

    /// Parses a set after `[`. A `]` in first position is a member.
    fn set(&mut self) -> Result<Class, PatternError> {
        const UNCLOSED: PatternError = PatternError::Malformed("missing ']'");
        let negated = self.rest.first() == Some(&b'^');
        if negated {
            self.next();
        }
        let mut members = Vec::new();
        loop {
            let member = match self.next().ok_or(UNCLOSED)? {
                b']' if !members.is_empty() => return Ok(Class::Set(negated, members)),
                b'%' => Member::Named(self.next().ok_or(UNCLOSED)?),
                low => match self.rest {
                    [b'-', high, ..] if *high != b']' => {
                        self.rest = &self.rest[2..];
                        Member::Range(low, *high)
                    }
                    _ => Member::Range(low, low),
                },
            };
            members.push(member);
        }
    }
}

impl Pattern {
    pub fn parse(text: &[u8]) -> Result<Self, PatternError> {
        let anchored = text.first() == Some(&b'^');
        let mut parser = Parser {
            rest: &text[usize::from(anchored)..],
            items: Vec::new(),
            closed: Vec::new(),
        };
        while let Some(first) = parser.next() {
            let item = parser.item(first)?;
            parser.items.push(item);
        }
        if parser.closed.contains(&false) {
            return Err(PatternError::Unfinished);
        }
        Ok(Self {
            anchored,
            items: parser.items,
            captures: parser.closed.len(),
        })
    }

    pub fn is_anchored(&self) -> bool {
        self.anchored
    }

    /// The first match that starts at `from` or later. `step` is called before each comparison and
    /// stops the search by returning `false`.
    pub fn find(
        &self,
        text: &[u8],
        from: usize,
        step: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Found>, PatternError> {
        let mut search = Search {
            items: &self.items,
            text,
            captures: vec![(0, 0); self.captures],
            depth: 0,
            step,
        };
        for start in from..=text.len() {
            if let Some(end) = search.items_from(0, start)? {
                return Ok(Some(self.found(start..end, &search.captures)));
            }
            if self.anchored {
                break;
            }
        }
        Ok(None)
    }

    fn found(&self, range: Range<usize>, captures: &[(usize, usize)]) -> Found {
        let positions: Vec<usize> = self
            .items
            .iter()
            .filter_map(|i| {
                if let Item::Position(n) = i {
                    Some(*n)
                } else {
                    None
                }
            })
            .collect();
        let capture = |(n, (start, end)): (usize, &(usize, usize))| {
            if positions.contains(&n) {
                Capture::Position(*start)
            } else {
                Capture::Text(*start..*end)
            }
        };
        Found {
            range,
            captures: captures.iter().enumerate().map(capture).collect(),
        }
    }
}

struct Search<'a> {
    items: &'a [Item],
    text: &'a [u8],
    /// Start and end of each capture; values from a failed attempt are overwritten by the
    /// successful one.
    captures: Vec<(usize, usize)>,
    depth: usize,
    step: &'a mut dyn FnMut() -> bool,
}

type Step = Result<Option<usize>, PatternError>;

impl Search<'_> {
    /// The end of a match of the items from `item` on that starts at `at`.
    fn items_from(&mut self, item: usize, at: usize) -> Step {
        if self.depth == DEPTH {
            return Err(PatternError::TooComplex);
        }
        self.depth += 1;
        let end = self.try_items(item, at);
        self.depth -= 1;
        end
    }

    fn try_items(&mut self, mut item: usize, mut at: usize) -> Step {
        let items = self.items;
        while let Some(next) = items.get(item) {
            self.count()?;
            let end = match next {
                Item::Single(class, repeat) => match repeat {
                    Repeat::Once => self.is(class, at).then_some(at + 1),
                    Repeat::Optional => {
                        if self.is(class, at)
                            && let Some(end) = self.items_from(item + 1, at + 1)?
                        {
                            return Ok(Some(end));
                        }
                        Some(at)
                    }
                    Repeat::Many => return self.many(class, item + 1, at, at),
                    Repeat::AtLeastOnce => {
                        return if self.is(class, at) {
                            self.many(class, item + 1, at + 1, at + 1)
                        } else {
                            Ok(None)
                        };
                    }
                    Repeat::Few => return self.few(class, item + 1, at),
                },
                Item::Open(n) => {
                    self.captures[*n].0 = at;
                    Some(at)
                }
                Item::Position(n) => {
                    self.captures[*n] = (at, NO_TEXT);
                    Some(at)
                }
                Item::Close(n) => {
                    self.captures[*n].1 = at;
                    Some(at)
                }
                Item::Back(n) => self.again(*n, at)?,
                Item::Balanced(open, close) => self.balanced(*open, *close, at)?,
                Item::Frontier(class) => {
                    let before = at.checked_sub(1).map_or(0, |b| self.text[b]);
                    let here = self.text.get(at).copied().unwrap_or(0);
                    (!class.holds(before) && class.holds(here)).then_some(at)
                }
                Item::End => (at == self.text.len()).then_some(at),
            };
            match end {
                Some(end) => at = end,
                None => return Ok(None),
            }
            item += 1;
        }
        Ok(Some(at))
    }

    fn count(&mut self) -> Result<(), PatternError> {
        if (self.step)() {
            Ok(())
        } else {
            Err(PatternError::Stopped)
        }
    }

    fn is(&self, class: &Class, at: usize) -> bool {
        self.text.get(at).is_some_and(|byte| class.holds(*byte))
    }

    /// Matches as many as possible from `at` on, then fewer, but at least up to `least`.
    fn many(&mut self, class: &Class, rest: usize, mut at: usize, least: usize) -> Step {
        while self.is(class, at) {
            self.count()?;
            at += 1;
        }
        loop {
            self.count()?;
            if let Some(end) = self.items_from(rest, at)? {
                return Ok(Some(end));
            }
            if at == least {
                return Ok(None);
            }
            at -= 1;
        }
    }

    fn few(&mut self, class: &Class, rest: usize, mut at: usize) -> Step {
        loop {
            self.count()?;
            if let Some(end) = self.items_from(rest, at)? {
                return Ok(Some(end));
            }
            if !self.is(class, at) {
                return Ok(None);
            }
            at += 1;
        }
    }

    /// Matches the text of a capture again.
    fn again(&mut self, capture: usize, at: usize) -> Step {
        let (start, end) = self.captures[capture];
        let Some(held) = self.text.get(start..end) else {
            return Ok(None);
        };
        for _ in 0..held.len() / 64 {
            self.count()?;
        }
        Ok(self.text[at..].starts_with(held).then_some(at + held.len()))
    }

    fn balanced(&mut self, open: u8, close: u8, at: usize) -> Step {
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut level = 1;
        for (i, byte) in self.text.iter().enumerate().skip(at + 1) {
            self.count()?;
            if *byte == close {
                level -= 1;
                if level == 0 {
                    return Ok(Some(i + 1));
                }
            } else if *byte == open {
                level += 1;
            }
        }
        Ok(None)
    }
}
