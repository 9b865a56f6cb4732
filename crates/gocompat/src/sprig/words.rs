//! Case conversions of words.
//!
//! Main functions: [`separated`] (snake and kebab case), [`pascal`], [`title`] and [`swap_case`].

use super::strings::{lower, upper};
use regex::Regex;
use std::sync::LazyLock;

/// The width in bytes of the first character; 1 for a byte that is not UTF-8.
pub(super) fn width(bytes: &[u8]) -> usize {
    let head = &bytes[..bytes.len().min(4)];
    let chunk = head.utf8_chunks().next();
    chunk
        .and_then(|c| c.valid().chars().next())
        .map_or(1, char::len_utf8)
}

fn runes(bytes: &[u8]) -> Vec<char> {
    String::from_utf8_lossy(bytes).chars().collect()
}

fn bytes(runes: impl IntoIterator<Item = char>) -> Vec<u8> {
    runes.into_iter().collect::<String>().into_bytes()
}

fn class(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern")
}

fn is(class: &LazyLock<Regex>, c: char) -> bool {
    class.is_match(c.encode_utf8(&mut [0; 4]))
}

static PUNCTUATION: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{P}"));
static TITLE: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{Lt}"));
static UPPER: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{Lu}"));
static LOWER: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{Ll}"));
static LETTER: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{L}"));
static DIGIT: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{Nd}"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{N}"));

pub(super) fn is_upper(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_uppercase()
    } else {
        is(&UPPER, c)
    }
}

fn is_lower(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_lowercase()
    } else {
        is(&LOWER, c)
    }
}

pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        is(&LETTER, c)
    }
}

pub(super) fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_digit()
    } else {
        is(&DIGIT, c)
    }
}

fn is_punctuation(c: char) -> bool {
    is(&PUNCTUATION, c)
}

/// A letter of a script with words, which Chinese, Japanese and Korean are not.
fn is_alphabetic(c: char) -> bool {
    is_letter(c)
        && !matches!(c, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}')
}

/// `unicode.ToTitle`, which differs from upper case for digraph letters.
fn title_case(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        c => upper(c),
    }
}

/// `strings.Title`: capitalizes each letter after a character that is not part of a word.
pub(super) fn title(text: &[u8]) -> Vec<u8> {
    let mut before = ' ';
    let mut out = Vec::with_capacity(text.len());
    for c in runes(text) {
        let separated = match before {
            c if c.is_ascii() => !(c.is_ascii_alphanumeric() || c == '_'),
            c => !is_letter(c) && !is_digit(c) && c.is_whitespace(),
        };
        out.push(if separated { title_case(c) } else { c });
        before = c;
    }
    bytes(out)
}

/// Converts the first letter of each word to lower case.
pub(super) fn untitle(text: &[u8]) -> Vec<u8> {
    let mut first = true;
    bytes(runes(text).into_iter().map(|c| {
        let start = first && !c.is_whitespace();
        first = c.is_whitespace();
        if start { lower(c) } else { c }
    }))
}

/// The first byte of each word, each as a character.
pub(super) fn initials(text: &[u8]) -> Vec<u8> {
    let mut gap = true;
    bytes(text.iter().map(|b| char::from(*b)).filter(|c| {
        let start = gap && !c.is_whitespace();
        gap = c.is_whitespace();
        start
    }))
}

/// Removes spaces; if there are any, every byte becomes a character of its own.
pub(super) fn without_spaces(text: &[u8]) -> Vec<u8> {
    let kept: Vec<char> = text
        .iter()
        .map(|b| char::from(*b))
        .filter(|c| !c.is_whitespace())
        .collect();
    if kept.len() == text.len() {
        text.to_vec()
    } else {
        bytes(kept)
    }
}

pub(super) fn swap_case(text: &[u8]) -> Vec<u8> {
    let mut space = true;
    bytes(runes(text).into_iter().map(|c| {
        if is_upper(c) || is(&TITLE, c) {
            space = false;
            lower(c)
        } else if is_lower(c) {
            let start = std::mem::take(&mut space);
            if start { title_case(c) } else { upper(c) }
        } else {
            space = c.is_whitespace();
            c
        }
    }))
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// `UpperCamelCase`: leading connectors, and all but one of several adjacent ones, stay.
pub(super) fn pascal(text: &[u8]) -> Vec<u8> {
    let mut rest = runes(text).into_iter().peekable();
    let mut out = String::new();
    while let Some(c) = rest.next_if(|c| is_connector(*c)) {
        out.push(c);
    }
    let Some(first) = rest.next() else {
        // Only connectors: the last one is written twice.
        let last = out.chars().last();
        out.extend(last);
        return out.into_bytes();
    };
    // Further upper case letters after the first one of a word belong to that word.
    let mut capitals = is_upper(first);
    let mut last = upper(first);
    for c in rest {
        let before = last;
        last = c;
        match (is_connector(before), is_connector(c)) {
            (true, true) => out.push(before),
            (true, false) => {
                capitals = is_upper(c);
                last = upper(c);
            }
            (false, _) => {
                if capitals {
                    if is_upper(c) {
                        last = lower(c);
                    } else {
                        capitals = false;
                    }
                }
                out.push(before);
            }
        }
    }
    out.push(last);
    out.into_bytes()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

impl Word {
    fn of(c: char) -> Self {
        match c {
            char::REPLACEMENT_CHARACTER => Word::None,
            c if is_connector(c) => Word::Connector,
            c if is_punctuation(c) => Word::Punctuation,
            c if is_upper(c) => Word::Upper,
            c if is_alphabetic(c) => Word::Letters,
            c if is(&NUMBER, c) => Word::Number,
            _ => Word::Other,
        }
    }

    fn in_word(self) -> bool {
        matches!(self, Word::Letters | Word::Number)
    }

    /// Whether a connector is inserted before it.
    fn apart(self) -> bool {
        !matches!(self, Word::Connector | Word::Punctuation)
    }
}

/// Takes the next word.
fn next_word(rest: &mut &[char]) -> (Word, Vec<char>) {
    let text = *rest;
    let Some(&first) = text.first() else {
        return (Word::None, Vec::new());
    };
    let kind = Word::of(first);
    let run = |from: usize, holds: &dyn Fn(char) -> bool| {
        from + text[from..].iter().take_while(|c| holds(**c)).count()
    };
    let small = |c: char| is_alphabetic(c) && !is_upper(c);
    let end = match kind {
        Word::None => 1,
        Word::Upper if text.get(1).is_some_and(|c| is_upper(*c)) => {
            let end = run(1, &is_upper);
            // The last one begins the next word.
            end - usize::from(text.get(end).is_some_and(|c| is_alphabetic(*c)))
        }
        Word::Upper | Word::Letters => run(1, &small),
        Word::Other => run(1, &|c| {
            !(is_connector(c) || is_alphabetic(c) || is(&NUMBER, c) || is_punctuation(c))
        }),
        _ => run(1, &|c| Word::of(c) == kind),
    };
    *rest = &text[end..];
    (kind, text[..end].to_vec())
}

fn write(out: &mut String, kind: Word, word: &[char], connector: char) {
    out.extend(word.iter().map(|c| match kind {
        Word::Upper | Word::Connector if is_connector(*c) => connector,
        Word::Upper | Word::Connector if is_upper(*c) => lower(*c),
        _ => *c,
    }));
}

/// Words in lower case with a connector between them; numbers belong to adjacent words.
pub(super) fn separated(text: &[u8], connector: char) -> Vec<u8> {
    let runes = runes(text);
    let mut rest = &runes[..];
    let mut out = String::new();
    let (mut kind, mut word) = next_word(&mut rest);
    while !rest.is_empty() {
        if kind != Word::Connector {
            write(&mut out, kind, &word, connector);
        }
        let (before, last) = (kind, std::mem::take(&mut word));
        (kind, word) = next_word(&mut rest);
        match before {
            Word::Number => {
                (kind, word) = through_word(&mut out, kind, word, &mut rest, connector);
                if kind != Word::None && kind.apart() {
                    out.push(connector);
                }
            }
            Word::Connector => write(&mut out, before, &last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if kind.apart() {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = std::mem::take(&mut word);
                (kind, word) = next_word(&mut rest);
                if kind == Word::Letters {
                    out.push(connector);
                    write(&mut out, Word::Number, &number, connector);
                    (kind, word) = through_word(&mut out, kind, word, &mut rest, connector);
                    if kind != Word::None && kind.apart() {
                        out.push(connector);
                    }
                } else {
                    write(&mut out, Word::Number, &number, connector);
                    if kind.apart() {
                        out.push(connector);
                    }
                }
            }
        }
    }
    write(&mut out, kind, &word, connector);
    out.into_bytes()
}

/// Writes adjacent letters and numbers; returns the rest.
fn through_word(
    out: &mut String,
    mut kind: Word,
    mut word: Vec<char>,
    rest: &mut &[char],
    connector: char,
) -> (Word, Vec<char>) {
    while kind.in_word() {
        write(out, kind, &word, connector);
        (kind, word) = next_word(rest);
    }
    (kind, word)
}
