//! Tokens of YAML 1.1, as recognized by libyaml and go-yaml v2.
//!
//! Main type: [`Scanner`]. A key without `?` is recognized only at its colon, so tokens wait in a
//! queue while the first of them may still be a key; indentation opens and closes blocks. Scalars
//! are scanned in `scalars.rs`, tags, anchors and directives in `tags.rs`.

use super::cursor::{Cursor, Mark};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    StreamEnd,
    Version(u8, u8),
    TagDirective {
        handle: String,
        prefix: String,
    },
    DocumentStart,
    DocumentEnd,
    BlockList,
    BlockMap,
    BlockEnd,
    FlowList,
    FlowListEnd,
    FlowMap,
    FlowMapEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'t str),
    Anchor(&'t str),
    Tag {
        handle: String,
        suffix: String,
    },
    Scalar {
        text: Cow<'t, str>,
        plain: bool,
        /// Behind `>`.
        folded: bool,
    },
}

/// Why a text is not YAML, with go-yaml's message.
#[derive(Debug)]
pub(super) struct Fault {
    pub problem: &'static str,
    pub at: Mark,
    /// Where the broken construct begins.
    pub context: Mark,
    /// Lines of the scanner are reported counted from 1, those of the parser from 0.
    pub of_scanner: bool,
}

/// Maximum number of characters between the beginning of a key and its colon.
const KEY_CHARACTERS: usize = 1024;

struct SimpleKey {
    possible: bool,
    /// In block context at its indentation: only a key is possible here.
    required: bool,
    token: usize,
    mark: Mark,
}

pub(super) struct Scanner<'t> {
    pub(super) cursor: Cursor<'t>,
    waiting: VecDeque<(Token<'t>, Mark)>,
    /// The number of tokens returned.
    taken: usize,
    ready: bool,
    /// The indentation of the block; -1 outside of all.
    pub(super) indent: isize,
    indents: Vec<isize>,
    /// Possible keys: one in the block context and one for every open bracket.
    keys: Vec<SimpleKey>,
    by_token: HashMap<usize, usize>,
    pub(super) key_allowed: bool,
}

pub(super) fn width(column: usize) -> isize {
    isize::try_from(column).unwrap_or(isize::MAX)
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str) -> Self {
        let none = SimpleKey {
            possible: false,
            required: false,
            token: 0,
            mark: Mark::default(),
        };
        Self {
            cursor: Cursor::new(text),
            waiting: VecDeque::new(),
            taken: 0,
            ready: false,
            indent: -1,
            indents: Vec::new(),
            keys: vec![none],
            by_token: HashMap::new(),
            key_allowed: true,
        }
    }

    pub fn peek(&mut self) -> Result<&(Token<'t>, Mark), Fault> {
        while !self.ready {
            if !self.waiting.is_empty() && !self.may_be_key()? {
                self.ready = true;
            } else {
                self.fetch()?;
            }
        }
        Ok(&self.waiting[0])
    }

    pub fn take(&mut self) -> Result<(Token<'t>, Mark), Fault> {
        self.peek()?;
        self.ready = false;
        self.taken += 1;
        Ok(self.waiting.pop_front().expect("peek puts a token there"))
    }

    pub(super) fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    pub(super) fn fault(&self, context: Mark, problem: &'static str) -> Fault {
        Fault {
            problem,
            at: self.cursor.mark,
            context,
            of_scanner: true,
        }
    }

    fn push(&mut self, token: Token<'t>, at: Mark) {
        self.waiting.push_back((token, at));
    }

    /// The number of the next token.
    fn next_number(&self) -> usize {
        self.taken + self.waiting.len()
    }

    /// Whether the first waiting token may still turn out to be a key.
    fn may_be_key(&mut self) -> Result<bool, Fault> {
        self.by_token
            .get(&self.taken)
            .copied()
            .map_or(Ok(false), |level| self.still_possible(level))
    }

    fn still_possible(&mut self, level: usize) -> Result<bool, Fault> {
        let now = self.cursor.mark;
        let key = &mut self.keys[level];
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line == now.line && key.mark.index + KEY_CHARACTERS >= now.index {
            return Ok(true);
        }
        key.possible = false;
        let (required, mark) = (key.required, key.mark);
        if required {
            Err(self.fault(mark, "could not find expected ':'"))
        } else {
            Ok(false)
        }
    }

    /// Records that a key may begin here.
    fn save_key(&mut self) -> Result<(), Fault> {
        if !self.key_allowed {
            return Ok(());
        }
        let mark = self.cursor.mark;
        let required = !self.in_flow() && self.indent == width(mark.column);
        let key = SimpleKey {
            possible: true,
            required,
            token: self.next_number(),
            mark,
        };
        self.drop_key()?;
        let level = self.keys.len() - 1;
        self.by_token.insert(key.token, level);
        self.keys[level] = key;
        Ok(())
    }

    /// Drops the possible key: it is not one.
    fn drop_key(&mut self) -> Result<(), Fault> {
        let level = self.keys.len() - 1;
        let key = &mut self.keys[level];
        if std::mem::replace(&mut key.possible, false) {
            let (required, mark, token) = (key.required, key.mark, key.token);
            if required {
                return Err(self.fault(mark, "could not find expected ':'"));
            }
            self.by_token.remove(&token);
        }
        Ok(())
    }

    /// Opens a block at a column, unless one is open there: at the end of the queue or before a
    /// token.
    fn roll(&mut self, column: usize, before: Option<usize>, token: Token<'t>, at: Mark) {
        if self.in_flow() || self.indent >= width(column) {
            return;
        }
        self.indents.push(self.indent);
        self.indent = width(column);
        self.insert(before, token, at);
    }

    /// Inserts a token before the one with a number, unless that was already returned.
    fn insert(&mut self, before: Option<usize>, token: Token<'t>, at: Mark) {
        let index = before
            .and_then(|number| number.checked_sub(self.taken))
            .unwrap_or(self.waiting.len());
        self.waiting.insert(index, (token, at));
    }

    /// Closes the blocks deeper than a column.
    fn unroll(&mut self, column: isize) {
        while !self.in_flow() && self.indent > column {
            self.push(Token::BlockEnd, self.cursor.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch(&mut self) -> Result<(), Fault> {
        self.skip_to_token();
        let (at, first) = (self.cursor.mark, self.cursor.peek());
        self.unroll(width(at.column));
        let alone = self.cursor.ends_ahead(1);
        match first {
            0 => self.stream_end(),
            b'%' if at.column == 0 => {
                self.leave_blocks()?;
                let directive = self.directive()?;
                self.push(directive, at);
                Ok(())
            }
            b'-' if self.cursor.at_document_mark(b'-') => self.document_mark(Token::DocumentStart),
            b'.' if self.cursor.at_document_mark(b'.') => self.document_mark(Token::DocumentEnd),
            b'[' => self.flow_start(Token::FlowList),
            b'{' => self.flow_start(Token::FlowMap),
            b']' => self.flow_end(Token::FlowListEnd),
            b'}' => self.flow_end(Token::FlowMapEnd),
            b',' => {
                self.drop_key()?;
                self.indicator(Token::FlowEntry, true)
            }
            b'-' if alone => self.block_entry(),
            b'?' if alone || self.in_flow() => self.key(),
            b':' if alone || self.in_flow() => self.value(),
            b'|' | b'>' if !self.in_flow() => {
                self.drop_key()?;
                self.key_allowed = true;
                let scalar = self.block_scalar()?;
                self.push(scalar, at);
                Ok(())
            }
            b'*' => self.maybe_key(|scanner| scanner.anchor().map(Token::Alias)),
            b'&' => self.maybe_key(|scanner| scanner.anchor().map(Token::Anchor)),
            b'!' => self.maybe_key(Self::tag),
            b'\'' | b'"' => self.maybe_key(Self::quoted),
            b'%' | b'@' | b'`' | b'|' | b'>' | b'\t' => {
                Err(self.fault(at, "found character that cannot start any token"))
            }
            _ => self.maybe_key(Self::plain),
        }
    }

    /// Skips blanks, comments and line breaks. A tab is not permitted where a key might begin.
    fn skip_to_token(&mut self) {
        loop {
            while self.cursor.peek() == b' '
                || (self.cursor.peek() == b'\t' && (self.in_flow() || !self.key_allowed))
            {
                self.cursor.skip();
            }
            self.cursor.skip_comment();
            if self.cursor.take_break().is_empty() {
                return;
            }
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    /// A token of one character; `key_allowed`: whether a key may follow.
    fn indicator(&mut self, token: Token<'t>, key_allowed: bool) -> Result<(), Fault> {
        self.key_allowed = key_allowed;
        let at = self.cursor.mark;
        self.cursor.skip();
        self.push(token, at);
        Ok(())
    }

    /// A token that may be a key, but after which no key can begin.
    fn maybe_key(
        &mut self,
        scan: impl FnOnce(&mut Self) -> Result<Token<'t>, Fault>,
    ) -> Result<(), Fault> {
        self.save_key()?;
        self.key_allowed = false;
        let at = self.cursor.mark;
        let token = scan(self)?;
        self.push(token, at);
        Ok(())
    }

    fn leave_blocks(&mut self) -> Result<(), Fault> {
        self.unroll(-1);
        self.drop_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn stream_end(&mut self) -> Result<(), Fault> {
        if self.cursor.mark.column > 0 {
            self.cursor.mark.column = 0;
            self.cursor.mark.line += 1;
        }
        self.leave_blocks()?;
        self.push(Token::StreamEnd, self.cursor.mark);
        Ok(())
    }

    fn document_mark(&mut self, token: Token<'t>) -> Result<(), Fault> {
        self.leave_blocks()?;
        let at = self.cursor.mark;
        self.cursor.skip_by(3);
        self.push(token, at);
        Ok(())
    }

    fn flow_start(&mut self, token: Token<'t>) -> Result<(), Fault> {
        self.save_key()?;
        self.keys.push(SimpleKey {
            possible: false,
            required: false,
            token: self.next_number(),
            mark: self.cursor.mark,
        });
        self.indicator(token, true)
    }

    fn flow_end(&mut self, token: Token<'t>) -> Result<(), Fault> {
        self.drop_key()?;
        if self.in_flow()
            && let Some(key) = self.keys.pop()
        {
            self.by_token.remove(&key.token);
        }
        self.indicator(token, false)
    }

    fn block_entry(&mut self) -> Result<(), Fault> {
        let at = self.cursor.mark;
        if !self.in_flow() && !self.key_allowed {
            return Err(self.fault(at, "block sequence entries are not allowed in this context"));
        }
        self.roll(at.column, None, Token::BlockList, at);
        self.drop_key()?;
        self.indicator(Token::BlockEntry, true)
    }

    fn key(&mut self) -> Result<(), Fault> {
        let at = self.cursor.mark;
        if !self.in_flow() && !self.key_allowed {
            return Err(self.fault(at, "mapping keys are not allowed in this context"));
        }
        self.roll(at.column, None, Token::BlockMap, at);
        self.drop_key()?;
        self.indicator(Token::Key, !self.in_flow())
    }

    fn value(&mut self) -> Result<(), Fault> {
        let (at, level) = (self.cursor.mark, self.keys.len() - 1);
        if self.still_possible(level)? {
            let key = &mut self.keys[level];
            key.possible = false;
            let (number, mark) = (key.token, key.mark);
            self.insert(Some(number), Token::Key, mark);
            self.roll(mark.column, Some(number), Token::BlockMap, mark);
            self.by_token.remove(&number);
            return self.indicator(Token::Value, false);
        }
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.fault(at, "mapping values are not allowed in this context"));
            }
            self.roll(at.column, None, Token::BlockMap, at);
        }
        self.indicator(Token::Value, !self.in_flow())
    }
}
