//! Translates Go's regular expressions to the syntax of the regex crate.
//!
//! Main function: [`translate`]. They differ in details: Perl classes and word boundaries are ASCII
//! in Go, `\Q…\E` and octal escapes exist, a brace that is not a repetition is literal, and
//! repeating a repetition is an error. Error texts are Go's.

/// Deepest nesting of groups; Go's is 1000.
const DEPTH: usize = 250;
/// Maximum count of a repetition.
const REPEATS: u32 = 1000;

pub(crate) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        whole: pattern,
        rest: pattern,
        out: String::new(),
        depth: 0,
        last: Last::Nothing,
    };
    translator.run()?;
    Ok(translator.out)
}

/// What a repetition would apply to.
#[derive(Clone, Copy)]
enum Last<'p> {
    Nothing,
    Atom,
    /// A repetition, and the text from it on.
    Repeat(&'p str),
}

struct Translator<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    depth: usize,
    last: Last<'p>,
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.chars().next() {
            let here = self.rest;
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => self.plain("|", Last::Nothing),
                '^' | '$' | '.' => self.plain(&here[..1], Last::Atom),
                '*' | '+' | '?' => self.repeat(&here[1..], &here[..1])?,
                '{' => self.brace()?,
                '[' => self.class()?,
                '\\' => self.escape()?,
                c => {
                    self.rest = &here[c.len_utf8()..];
                    self.literal(c);
                }
            }
        }
        if self.depth > 0 {
            return Err(format!("missing closing ): `{}`", self.whole));
        }
        Ok(())
    }

    fn plain(&mut self, written: &str, last: Last<'p>) {
        self.rest = &self.rest[1..];
        self.out.push_str(written);
        self.last = last;
    }

    fn literal(&mut self, c: char) {
        push_literal(&mut self.out, c);
        self.last = Last::Atom;
    }

    fn open(&mut self) -> Result<(), String> {
        let here = self.rest;
        if here.starts_with("(?") {
            return self.open_special();
        }
        self.plain("(", Last::Nothing);
        self.deeper()
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH {
            Err(format!("expression nests too deeply: `{}`", self.whole))
        } else {
            Ok(())
        }
    }

    /// A named group, or flags.
    fn open_special(&mut self) -> Result<(), String> {
        let here = self.rest;
        if let Some(body) = here
            .strip_prefix("(?P<")
            .or_else(|| here.strip_prefix("(?<"))
        {
            let Some((name, after)) = body.split_once('>') else {
                return Err(format!("invalid named capture: `{here}`"));
            };
            let valid =
                !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
            if !valid {
                return Err(format!(
                    "invalid named capture: `{}`",
                    &here[..here.len() - after.len()]
                ));
            }
            // In Go a name may begin with a digit.
            self.out.push_str(&format!(
                "(?P<{}{name}>",
                if name.starts_with(|c: char| c.is_ascii_digit()) {
                    "_"
                } else {
                    ""
                }
            ));
            self.rest = after;
            self.last = Last::Nothing;
            return self.deeper();
        }
        let (mut negated, mut flagged) = (false, false);
        for (index, c) in here.char_indices().skip(2) {
            let end = index + c.len_utf8();
            let unsupported = || {
                Err(format!(
                    "invalid or unsupported Perl syntax: `{}`",
                    &here[..end]
                ))
            };
            match c {
                'i' | 'm' | 's' | 'U' => flagged = true,
                '-' if !negated => (negated, flagged) = (true, false),
                ':' | ')' if negated && !flagged => return unsupported(),
                ':' | ')' => {
                    self.out.push_str(&here[..end]);
                    self.rest = &here[end..];
                    self.last = Last::Nothing;
                    return if c == ':' { self.deeper() } else { Ok(()) };
                }
                _ => return unsupported(),
            }
        }
        Err(format!("missing closing ): `{}`", self.whole))
    }

    fn close(&mut self) -> Result<(), String> {
        if self.depth == 0 {
            return Err(format!("unexpected ): `{}`", self.whole));
        }
        self.depth -= 1;
        self.plain(")", Last::Atom);
        Ok(())
    }

    /// A repetition that ends where `after` begins.
    fn repeat(&mut self, after: &'p str, written: &str) -> Result<(), String> {
        let here = self.rest;
        let (after, lazy) = after
            .strip_prefix('?')
            .map_or((after, ""), |after| (after, "?"));
        let length = |from: &str| from.len() - after.len();
        match self.last {
            Last::Repeat(from) => {
                return Err(format!(
                    "invalid nested repetition operator: `{}`",
                    &from[..length(from)]
                ));
            }
            Last::Nothing => {
                return Err(format!(
                    "missing argument to repetition operator: `{}`",
                    &here[..length(here)]
                ));
            }
            Last::Atom => {}
        }
        self.out.push_str(written);
        self.out.push_str(lazy);
        self.rest = after;
        self.last = Last::Repeat(here);
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`; any other brace is literal.
    fn brace(&mut self) -> Result<(), String> {
        let here = self.rest;
        let Some((inner, after)) = here[1..].split_once('}') else {
            return self.lone_brace();
        };
        let (least, most) = inner
            .split_once(',')
            .map_or((inner, None), |(least, most)| (least, Some(most)));
        let number = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_digit())
                && (text == "0" || !text.starts_with('0'))
        };
        if !number(least) || !most.is_none_or(|most| most.is_empty() || number(most)) {
            return self.lone_brace();
        }
        let count = |text: &str| text.parse::<u32>().ok().filter(|n| *n <= REPEATS);
        let valid = match (count(least), most) {
            (None, _) => false,
            (Some(_), None | Some("")) => true,
            (Some(least), Some(most)) => count(most).is_some_and(|most| least <= most),
        };
        if !valid {
            return Err(format!(
                "invalid repeat count: `{}`",
                &here[..inner.len() + 2]
            ));
        }
        self.repeat(after, &here[..inner.len() + 2])
    }

    fn lone_brace(&mut self) -> Result<(), String> {
        self.rest = &self.rest[1..];
        self.literal('{');
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let here = self.rest;
        let Some(c) = here[1..].chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let known = match c {
            'A' | 'z' => Some(&here[..2]),
            'b' => Some(r"(?-u:\b)"),
            'B' => Some(r"(?-u:\B)"),
            'C' => return Err("invalid escape sequence: `\\C`".to_owned()),
            _ => perl_class(c),
        };
        if let Some(known) = known {
            self.out.push_str(known);
            self.rest = &here[2..];
            self.last = Last::Atom;
            return Ok(());
        }
        match c {
            'Q' => {
                let (quoted, after) = here[2..].split_once("\\E").unwrap_or((&here[2..], ""));
                quoted.chars().for_each(|c| self.literal(c));
                self.rest = after;
            }
            'p' | 'P' => {
                let (class, after) = unicode_class(here)?;
                self.out.push_str(&class);
                self.rest = after;
                self.last = Last::Atom;
            }
            _ => {
                let (c, after) = escaped(here)?;
                self.literal(c);
                self.rest = after;
            }
        }
        Ok(())
    }

    /// A class in brackets.
    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let missing = || format!("missing closing ]: `{whole}`");
        let (negated, mut rest) = whole[1..]
            .strip_prefix('^')
            .map_or((false, &whole[1..]), |rest| (true, rest));
        self.out.push_str(if negated { "[^" } else { "[" });
        let mut first = true;
        loop {
            if rest.is_empty() {
                return Err(missing());
            }
            if rest.starts_with(']') && !first {
                break;
            }
            // A dash is literal only at the ends, unless Perl classes are enabled, as they are
            // here.
            first = false;
            if let Some((class, after)) = inner_class(rest)? {
                self.out.push_str(&class);
                rest = after;
                continue;
            }
            let start = rest;
            let (low, after) = class_character(rest, whole)?;
            rest = after;
            push_literal(&mut self.out, low);
            if rest.len() >= 2 && rest.starts_with('-') && !rest[1..].starts_with(']') {
                let (high, after) = class_character(&rest[1..], whole)?;
                rest = after;
                if high < low {
                    return Err(format!(
                        "invalid character class range: `{}`",
                        &start[..start.len() - rest.len()]
                    ));
                }
                self.out.push('-');
                push_literal(&mut self.out, high);
            }
        }
        self.out.push(']');
        self.rest = &rest[1..];
        self.last = Last::Atom;
        Ok(())
    }
}

fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() || c.is_whitespace() || c.is_control() {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    } else {
        out.push(c);
    }
}

/// The class of `\d` and similar.
fn perl_class(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\x0c\r ]",
        'S' => r"[^\t\n\x0c\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// A class inside brackets: `\d`, `\pL` or `[:alpha:]`.
fn inner_class(text: &str) -> Result<Option<(String, &str)>, String> {
    if text.starts_with("[:")
        && let Some(end) = text[2..].find(":]")
    {
        let (name, after) = (&text[..end + 4], &text[end + 4..]);
        let plain = name[2..name.len() - 2].trim_start_matches('^');
        let known = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "word", "xdigit",
        ];
        if !known.contains(&plain) {
            return Err(format!("invalid character class range: `{name}`"));
        }
        return Ok(Some((name.to_owned(), after)));
    }
    let Some(c) = text.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
        return Ok(None);
    };
    if let Some(class) = perl_class(c) {
        return Ok(Some((class.to_owned(), &text[2..])));
    }
    if matches!(c, 'p' | 'P') {
        unicode_class(text).map(Some)
    } else {
        Ok(None)
    }
}

fn class_character<'t>(text: &'t str, whole: &str) -> Result<(char, &'t str), String> {
    match text.chars().next() {
        None => Err(format!("missing closing ]: `{whole}`")),
        Some('\\') => escaped(text),
        Some(c) => Ok((c, &text[c.len_utf8()..])),
    }
}

/// `\pN`, `\p{Greek}` and their negations.
fn unicode_class(text: &str) -> Result<(String, &str), String> {
    let invalid = |range: &str| Err(format!("invalid character class range: `{range}`"));
    let Some(first) = text[2..].chars().next() else {
        return invalid(text);
    };
    let (name, after) = match first {
        '{' => match text[3..].split_once('}') {
            Some(parts) => parts,
            None => return invalid(text),
        },
        c => text[2..].split_at(c.len_utf8()),
    };
    let (negated, plain) = name
        .strip_prefix('^')
        .map_or((false, name), |plain| (true, plain));
    let negated = negated != text.starts_with("\\P");
    let class = format!("\\{}{{{plain}}}", if negated { 'P' } else { 'p' });
    if plain.contains(['=', ':', '!']) || regex::Regex::new(&class).is_err() {
        return invalid(&text[..text.len() - after.len()]);
    }
    Ok((class, after))
}

/// The character of an escape sequence.
fn escaped(text: &str) -> Result<(char, &str), String> {
    let Some(c) = text[1..].chars().next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let after = &text[1 + c.len_utf8()..];
    let invalid = |after: &str| {
        Err(format!(
            "invalid escape sequence: `{}`",
            &text[..text.len() - after.len()]
        ))
    };
    let simple = match c {
        'a' => '\x07',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        'x' => return hexadecimal(after).map_or_else(invalid, Ok),
        '0'..='7' => {
            // A single digit other than 0 would be a backreference.
            if c != '0' && !after.starts_with(|d: char| ('0'..='7').contains(&d)) {
                return invalid(after);
            }
            let digits = text[1..]
                .bytes()
                .take(3)
                .take_while(|b| (b'0'..=b'7').contains(b))
                .count();
            let code = u32::from_str_radix(&text[1..1 + digits], 8).unwrap_or(0);
            return Ok((char::from_u32(code).unwrap_or('\0'), &text[1 + digits..]));
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return invalid(after),
    };
    Ok((simple, after))
}

/// `41` or `{263a}`; or the text after the error.
fn hexadecimal(text: &str) -> Result<(char, &str), &str> {
    if let Some(body) = text.strip_prefix('{') {
        let len = body.bytes().take_while(u8::is_ascii_hexdigit).count();
        let after = &body[len..];
        let code = u32::from_str_radix(&body[..len], 16)
            .ok()
            .and_then(char::from_u32);
        return match (code, after.strip_prefix('}')) {
            (Some(c), Some(after)) => Ok((c, after)),
            _ => Err(after.get(1..).unwrap_or("")),
        };
    }
    let digits = text
        .get(..2)
        .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
        Some(byte) => Ok((char::from(byte), &text[2..])),
        None => Err(text.get(1..).unwrap_or("")),
    }
}
