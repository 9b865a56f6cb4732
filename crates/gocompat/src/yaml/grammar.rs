//! From tokens to events: the structure of a document by the grammar of YAML 1.1.
//!
//! Main function: [`first_document`]. Only the first document of a text is parsed, and at most one
//! token after it is read.

use super::cursor::Mark;
use super::scan::{Fault, Scanner, Token};
use super::{Limits, YamlError};
use std::borrow::Cow;
use std::collections::HashMap;

/// The properties of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Properties<'t> {
    pub anchor: Option<&'t str>,
    /// `!!str` and the like, `!`, or any other tag.
    pub tag: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event<'t> {
    Scalar {
        text: Cow<'t, str>,
        properties: Properties<'t>,
        implicit: bool,
        /// Written as a block whose lines are folded.
        folded: bool,
    },
    List(Properties<'t>),
    Map(Properties<'t>),
    /// The end of a list or map.
    End,
    Alias(&'t str),
}

/// Receives the events.
pub(super) trait Handler<'t> {
    fn event(&mut self, event: Event<'t>, at: Mark) -> Result<(), YamlError>;
    fn located(&self, fault: &Fault) -> YamlError;
}

const YAML_TAGS: &str = "tag:yaml.org,2002:";
/// The non-specific tag `!`.
const NO_TAG: &str = "!";
/// Every tag with its handle gets a copy of the prefix.
const MAX_TAG_PREFIX: usize = 256;
const LONG_TAG_PREFIX: &str = "the prefix of a %TAG directive is longer than 256 bytes";
const NO_CONTENT: &str = "did not find expected node content";

struct Grammar<'t, 'h> {
    tokens: Scanner<'t>,
    /// Tag handles and their prefixes.
    tags: HashMap<String, String>,
    depth: usize,
    max_depth: usize,
    handler: &'h mut dyn Handler<'t>,
}

pub(super) fn first_document<'t>(
    text: &'t str,
    limits: &Limits,
    handler: &mut dyn Handler<'t>,
) -> Result<(), YamlError> {
    Grammar {
        tokens: Scanner::new(text),
        tags: HashMap::new(),
        depth: 0,
        max_depth: limits.depth,
        handler,
    }
    .document()
}

impl<'t> Grammar<'t, '_> {
    fn located<T>(&self, result: Result<T, Fault>) -> Result<T, YamlError> {
        result.map_err(|fault| self.handler.located(&fault))
    }

    fn peek(&mut self) -> Result<(&Token<'t>, Mark), YamlError> {
        match self.tokens.peek() {
            Ok((token, at)) => Ok((token, *at)),
            Err(fault) => Err(self.handler.located(&fault)),
        }
    }

    fn take(&mut self) -> Result<(Token<'t>, Mark), YamlError> {
        let taken = self.tokens.take();
        self.located(taken)
    }

    /// Whether the next token satisfies a condition.
    fn next_is(&mut self, wanted: impl Fn(&Token<'t>) -> bool) -> Result<bool, YamlError> {
        Ok(wanted(self.peek()?.0))
    }

    fn fail<T>(&mut self, context: Mark, problem: &'static str) -> Result<T, YamlError> {
        let at = self.peek()?.1;
        self.located(Err(Fault {
            problem,
            at,
            context,
            of_scanner: false,
        }))
    }

    fn empty(&mut self, at: Mark) -> Result<(), YamlError> {
        self.handler.event(
            Event::Scalar {
                text: Cow::Borrowed(""),
                properties: Properties::default(),
                implicit: true,
                folded: false,
            },
            at,
        )
    }

    fn document(&mut self) -> Result<(), YamlError> {
        match self.peek()?.0 {
            Token::StreamEnd => return Ok(()),
            Token::Version(..) | Token::TagDirective { .. } | Token::DocumentStart => {
                self.directives()?;
                let at = self.peek()?.1;
                if !self.next_is(|token| *token == Token::DocumentStart)? {
                    return self.fail(at, "did not find expected <document start>");
                }
                self.take()?;
                let ends = |token: &Token<'_>| {
                    use Token::{DocumentEnd, DocumentStart, StreamEnd, TagDirective, Version};
                    matches!(
                        token,
                        Version(..) | TagDirective { .. } | DocumentStart | DocumentEnd | StreamEnd
                    )
                };
                if self.next_is(ends)? {
                    let at = self.peek()?.1;
                    self.empty(at)?;
                } else {
                    self.node(true, false)?;
                }
            }
            _ => {
                self.directives()?;
                self.node(true, false)?;
            }
        }
        self.peek().map(drop)
    }

    fn directives(&mut self) -> Result<(), YamlError> {
        let mut version = false;
        loop {
            let (token, at) = self.peek()?;
            match token {
                Token::Version(..) if version => {
                    return self.fail(at, "found duplicate %YAML directive");
                }
                Token::Version(1, 1) => version = true,
                Token::Version(..) => return self.fail(at, "found incompatible YAML document"),
                Token::TagDirective { handle, prefix } => {
                    if prefix.len() > MAX_TAG_PREFIX {
                        return self.fail(at, LONG_TAG_PREFIX);
                    }
                    let tag = (handle.clone(), prefix.clone());
                    if self.tags.insert(tag.0, tag.1).is_some() {
                        return self.fail(at, "found duplicate %TAG directive");
                    }
                }
                _ => break,
            }
            self.take()?;
        }
        for (handle, prefix) in [(NO_TAG, NO_TAG), ("!!", YAML_TAGS)] {
            self.tags
                .entry(handle.to_owned())
                .or_insert_with(|| prefix.to_owned());
        }
        Ok(())
    }

    /// The anchor and the tag of a node, in any order.
    fn properties(&mut self) -> Result<Properties<'t>, YamlError> {
        let (mut properties, mut tag) = (Properties::default(), None);
        loop {
            match self.peek()?.0 {
                Token::Anchor(_) if properties.anchor.is_none() => {}
                Token::Tag { .. } if tag.is_none() => {}
                _ => break,
            }
            match self.take()? {
                (Token::Anchor(name), _) => properties.anchor = Some(name),
                (Token::Tag { handle, suffix }, at) => tag = Some((handle, suffix, at)),
                _ => {}
            }
        }
        if let Some((handle, suffix, at)) = tag {
            properties.tag = Some(self.resolved(&handle, &suffix, at)?);
        }
        Ok(properties)
    }

    fn resolved(&mut self, handle: &str, suffix: &str, at: Mark) -> Result<String, YamlError> {
        let full = if handle.is_empty() {
            suffix.to_owned()
        } else {
            let known = self
                .tags
                .get(handle)
                .map(|prefix| format!("{prefix}{suffix}"));
            match known {
                Some(full) => full,
                None => {
                    return self.located(Err(Fault {
                        problem: "found undefined tag handle",
                        at,
                        context: at,
                        of_scanner: false,
                    }));
                }
            }
        };
        Ok(match full.strip_prefix(YAML_TAGS) {
            Some(short) => format!("!!{short}"),
            // Not one of the standard tags, although it looks like one.
            None if full.starts_with("!!") => format!("!{full}"),
            None => full,
        })
    }

    /// A node, in a block or between brackets; below a key, a list may be unindented.
    fn node(&mut self, block: bool, indentless: bool) -> Result<(), YamlError> {
        let start = self.peek()?.1;
        if let Token::Alias(name) = *self.peek()?.0 {
            self.take()?;
            return self.handler.event(Event::Alias(name), start);
        }
        let properties = self.properties()?;
        match self.peek()?.0 {
            Token::BlockEntry if indentless => {
                self.nested(Event::List(properties), start, Self::indentless_list)
            }
            Token::FlowList => self.nested(Event::List(properties), start, Self::flow_list),
            Token::FlowMap => self.nested(Event::Map(properties), start, Self::flow_map),
            Token::BlockList if block => {
                self.nested(Event::List(properties), start, Self::block_list)
            }
            Token::BlockMap if block => self.nested(Event::Map(properties), start, Self::block_map),
            Token::Scalar { .. } => {
                let (
                    Token::Scalar {
                        text,
                        plain,
                        folded,
                    },
                    _,
                ) = self.take()?
                else {
                    return Ok(());
                };
                let implicit = properties.tag.as_ref().map_or(plain, |tag| tag == NO_TAG);
                self.handler.event(
                    Event::Scalar {
                        text,
                        properties,
                        implicit,
                        folded,
                    },
                    start,
                )
            }
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                let implicit = properties.tag.is_none();
                self.handler.event(
                    Event::Scalar {
                        text: Cow::Borrowed(""),
                        properties,
                        implicit,
                        folded: false,
                    },
                    start,
                )
            }
            _ => self.fail(start, NO_CONTENT),
        }
    }

    fn nested(
        &mut self,
        event: Event<'t>,
        at: Mark,
        content: fn(&mut Self) -> Result<Mark, YamlError>,
    ) -> Result<(), YamlError> {
        if self.depth >= self.max_depth {
            let mut error = self
                .located::<()>(Err(Fault {
                    problem: "",
                    at,
                    context: at,
                    of_scanner: false,
                }))
                .expect_err("it is one");
            error.too_deep(self.max_depth);
            return Err(error);
        }
        self.depth += 1;
        self.handler.event(event, at)?;
        let end = content(self)?;
        self.handler.event(Event::End, end)?;
        self.depth -= 1;
        Ok(())
    }

    fn block_list(&mut self) -> Result<Mark, YamlError> {
        let start = self.take()?.1;
        loop {
            match self.peek()? {
                (Token::BlockEntry, at) => {
                    self.take()?;
                    if self.next_is(|token| matches!(token, Token::BlockEntry | Token::BlockEnd))? {
                        self.empty(at)?;
                    } else {
                        self.node(true, false)?;
                    }
                }
                (Token::BlockEnd, _) => return Ok(self.take()?.1),
                _ => return self.fail(start, "did not find expected '-' indicator"),
            }
        }
    }

    fn indentless_list(&mut self) -> Result<Mark, YamlError> {
        while let (Token::BlockEntry, at) = self.peek()? {
            self.take()?;
            if self.next_is(|token| {
                matches!(
                    token,
                    Token::BlockEntry | Token::Key | Token::Value | Token::BlockEnd
                )
            })? {
                self.empty(at)?;
            } else {
                self.node(true, false)?;
            }
        }
        Ok(self.peek()?.1)
    }

    fn block_map(&mut self) -> Result<Mark, YamlError> {
        let start = self.take()?.1;
        loop {
            match self.peek()? {
                (Token::Key, at) => {
                    self.take()?;
                    self.block_part(at)?;
                    match self.peek()? {
                        (Token::Value, at) => {
                            self.take()?;
                            self.block_part(at)?;
                        }
                        (_, at) => self.empty(at)?,
                    }
                }
                (Token::BlockEnd, _) => return Ok(self.take()?.1),
                _ => return self.fail(start, "did not find expected key"),
            }
        }
    }

    /// A key or a value in a block, or an empty node in its place.
    fn block_part(&mut self, at: Mark) -> Result<(), YamlError> {
        if self.next_is(|token| matches!(token, Token::Key | Token::Value | Token::BlockEnd))? {
            self.empty(at)
        } else {
            self.node(true, true)
        }
    }

    fn flow_list(&mut self) -> Result<Mark, YamlError> {
        let start = self.take()?.1;
        let mut first = true;
        loop {
            if !self.next_is(|token| *token == Token::FlowListEnd)? && !first {
                if !self.next_is(|token| *token == Token::FlowEntry)? {
                    return self.fail(start, "did not find expected ',' or ']'");
                }
                self.take()?;
            }
            first = false;
            match self.peek()? {
                (Token::FlowListEnd, _) => return Ok(self.take()?.1),
                (Token::Key, at) => {
                    self.take()?;
                    self.nested(Event::Map(Properties::default()), at, Self::single_pair)?;
                }
                _ => self.node(false, false)?,
            }
        }
    }

    /// The only entry of a map written in a list as `[a: b]`.
    fn single_pair(&mut self) -> Result<Mark, YamlError> {
        let ends = |token: &Token<'_>| matches!(token, Token::FlowEntry | Token::FlowListEnd);
        if self.next_is(|token| *token == Token::Value || ends(token))? {
            // go-yaml loses the position of the key's end.
            let at = self.take()?.1;
            self.empty(at)?;
        } else {
            self.node(false, false)?;
        }
        self.flow_value(ends)?;
        Ok(self.peek()?.1)
    }

    /// The value after a key between brackets, if there is one.
    fn flow_value(&mut self, ends: impl Fn(&Token<'t>) -> bool) -> Result<(), YamlError> {
        let (token, at) = self.peek()?;
        if *token == Token::Value {
            self.take()?;
            if !self.next_is(ends)? {
                return self.node(false, false);
            }
        }
        self.empty(at)
    }

    fn flow_map(&mut self) -> Result<Mark, YamlError> {
        let start = self.take()?.1;
        let mut first = true;
        let ends = |token: &Token<'_>| matches!(token, Token::FlowEntry | Token::FlowMapEnd);
        loop {
            if !self.next_is(|token| *token == Token::FlowMapEnd)? && !first {
                if !self.next_is(|token| *token == Token::FlowEntry)? {
                    return self.fail(start, "did not find expected ',' or '}'");
                }
                self.take()?;
            }
            first = false;
            match self.peek()? {
                (Token::FlowMapEnd, _) => return Ok(self.take()?.1),
                (Token::Key, _) => {
                    self.take()?;
                    let at = self.peek()?.1;
                    if self.next_is(|token| *token == Token::Value || ends(token))? {
                        self.empty(at)?;
                    } else {
                        self.node(false, false)?;
                    }
                    self.flow_value(ends)?;
                }
                _ => {
                    self.node(false, false)?;
                    let at = self.peek()?.1;
                    self.empty(at)?;
                }
            }
        }
    }
}
