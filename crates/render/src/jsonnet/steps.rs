//! Counting what a program does, since the library counts nothing but the depth of its stack.
//!
//! Main function: [`with_steps`]. It writes into a program's text, wherever something can be done
//! again and again, an `importstr` of a name that no file has: in every function, and in every
//! round of a comprehension. That import is asked of us each time, so we count, and end a program
//! by refusing it. What one call of a function of `std`, or one operator, does is not counted.

use rsjsonnet_lang::{
    arena::Arena,
    interner::StrInterner,
    lexer::Lexer,
    span::SpanManager,
    token::{STokenKind as T, TokenKind},
};

/// What is imported to count a step. No path of a file has a line break as its name.
pub(super) const STEP: &str = "\n";

/// A program that counts, and where it was written into.
pub(super) struct Counted {
    pub(super) text: Vec<u8>,
    /// Offsets in the new text with the bytes that were written there, in their order.
    inserted: Vec<(usize, usize)>,
}

impl Counted {
    /// The offset in the original text.
    pub(super) fn original(&self, offset: usize) -> usize {
        let before = self.inserted.iter().take_while(|(at, _)| *at < offset);
        let more: usize = before.map(|(at, length)| (*length).min(offset - at)).sum();
        offset - more
    }
}

/// An open bracket.
struct Level {
    opened_by: T,
    /// What the parser calls itself for since the last comma.
    nested: usize,
    /// It is the list of a function's parameters.
    of_function: bool,
    /// It has a comprehension.
    has_for: bool,
}

/// `None`: the program nests deeper than allowed. The parser calls itself for brackets, for what
/// begins with some words, and for what follows a value; it has no limit of its own, and a stack
/// that overflows ends the process. A text that has no tokens is left as it is: the library says
/// why.
pub(super) fn with_steps(content: &[u8], nesting: usize) -> Option<Counted> {
    const IN_FUNCTION: &str = r#" assert (importstr "\n")=="";"#;
    const IN_COMPREHENSION: &str = r#" if (importstr "\n")=="" "#;
    let mut insertions: Vec<(usize, &str)> = Vec::new();
    let mut levels = vec![Level {
        opened_by: T::LeftBrace,
        nested: 0,
        of_function: false,
        has_for: false,
    }];
    let mut depth = 0;
    // The last two tokens.
    let mut before = [None; 2];
    for (token, start, end) in tokens(content) {
        match token {
            T::LeftParen | T::LeftBracket | T::LeftBrace => {
                count(&mut levels, &mut depth);
                levels.push(Level {
                    opened_by: token,
                    nested: 0,
                    of_function: before[1] == Some(T::Function),
                    has_for: false,
                });
            }
            T::RightParen | T::RightBracket | T::RightBrace => {
                let closed = if levels.len() > 1 { levels.pop() } else { None };
                if let Some(closed) = closed {
                    depth -= closed.nested;
                    if closed.has_for {
                        insertions.push((start, IN_COMPREHENSION));
                    }
                    if closed.of_function {
                        insertions.push((end, IN_FUNCTION));
                    }
                }
            }
            T::Comma => {
                if let Some(level) = levels.last_mut() {
                    depth -= std::mem::take(&mut level.nested);
                }
            }
            T::For => {
                if let Some(level) = levels.last_mut() {
                    // The library makes all rounds of one `for` before it looks at what follows.
                    if level.has_for {
                        insertions.push((start, IN_COMPREHENSION));
                    }
                    level.has_for = true;
                }
            }
            T::Local | T::Function | T::If | T::Else | T::Assert | T::Error | T::Dot => {
                count(&mut levels, &mut depth);
            }
            // `f(x) = …`
            T::Eq if before[1] == Some(T::RightParen) => insertions.push((end, IN_FUNCTION)),
            // `f(x): …`; in square brackets it is a slice. After an assertion's condition it is
            // its message, where a step does no harm.
            T::Colon | T::ColonColon | T::ColonColonColon
                if before[1] == Some(T::RightParen)
                    && levels.last().is_some_and(|l| l.opened_by == T::LeftBrace) =>
            {
                insertions.push((end, IN_FUNCTION));
            }
            _ => {}
        }
        if depth > nesting {
            return None;
        }
        before = [before[1], Some(token)];
    }
    Some(written(content, &insertions))
}

fn count(levels: &mut [Level], depth: &mut usize) {
    if let Some(level) = levels.last_mut() {
        level.nested += 1;
        *depth += 1;
    }
}

/// The words and signs of a program with their places; `T::Null` is anything else.
fn tokens(content: &[u8]) -> Vec<(T, usize, usize)> {
    let (arena, ast_arena) = (Arena::new(), Arena::new());
    let interner = StrInterner::new();
    let mut spans = SpanManager::new();
    let (context, _) = spans.insert_source_context(content.len());
    let lexer = Lexer::new(&arena, &ast_arena, &interner, &mut spans, context, content);
    let Ok(tokens) = lexer.lex_to_eof(false) else {
        return Vec::new();
    };
    tokens
        .iter()
        .map(|token| {
            let (_, start, end) = spans.get_span(token.span);
            match token.kind {
                TokenKind::Simple(kind) => (kind, start, end),
                _ => (T::Null, start, end),
            }
        })
        .collect()
}

fn written(content: &[u8], insertions: &[(usize, &str)]) -> Counted {
    let mut counted = Counted {
        text: Vec::with_capacity(content.len()),
        inserted: Vec::new(),
    };
    let mut copied = 0;
    for (at, text) in insertions {
        counted.text.extend_from_slice(&content[copied..*at]);
        copied = *at;
        counted.inserted.push((counted.text.len(), text.len()));
        counted.text.extend_from_slice(text.as_bytes());
    }
    counted.text.extend_from_slice(&content[copied..]);
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_where_programs_go_round() {
        for (program, want) in [
            ("local f(x) = x; f(1)", "local f(x) =@ x; f(1)"),
            ("function(x, y=(1)) x", "function(x, y=(1))@ x"),
            ("{ f(x):: x, 'g'(): 1 }", "{ f(x)::@ x, 'g'():@ 1 }"),
            (
                "[x for x in a for y in (b)]",
                "[x for x in a #for y in (b)#]",
            ),
            ("{[x]: 1 for x in a if x}", "{[x]: 1 for x in a if x#}"),
            ("a[(x):(y)]", "a[(x):(y)]"),
            ("a[f(x)::2] == (1)", "a[f(x)::2] == (1)"),
            ("'function(x) x' // f(x) = 1", "'function(x) x' // f(x) = 1"),
            ("f(x=1, y=g(2))", "f(x=1, y=g(2))"),
            ("'no end", "'no end"),
        ] {
            let counted = with_steps(program.as_bytes(), 100).expect("not deep");
            let text = String::from_utf8(counted.text.clone()).expect("text");
            let text = text
                .replace(r#" assert (importstr "\n")=="";"#, "@")
                .replace(r#" if (importstr "\n")=="" "#, "#");
            assert_eq!(text, want);
            let end = counted.text.len();
            assert_eq!(counted.original(end), program.len(), "{program}");
        }
    }

    #[test]
    fn only_what_is_nested_counts() {
        let deep = |text: &str, end: &str, times| {
            let program = format!("{}x{}", text.repeat(times), end.repeat(times));
            with_steps(program.as_bytes(), 100).is_none()
        };
        for (text, end) in [("(", ")"), ("local a = 1;", ""), ("{a:", "}"), ("", ".a")] {
            assert!(!deep(text, end, 90), "{text}");
            assert!(deep(text, end, 110), "{text}");
        }
        assert!(!deep("[(1), {a: 1}.a, if true then 1, ", "]", 30));
        let long = format!("[{}]", "(1), a.b, ".repeat(1000));
        assert!(with_steps(long.as_bytes(), 100).is_some());
    }
}
