//! Mail addresses as Go's net/mail reads and prints them, but for groups, domain literals and
//! names in comments. Main function: [`canonical`].

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Longest encoded text of RFC 2047 in one word.
const MOST_ENCODED: usize = 75 - "=?utf-8?q?".len() - "?=".len();

/// An address as `mail.Address` prints it: `"Ann" <ann@example.com>`. `None`: it is none.
pub fn canonical(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t']);
    if let Some((address, "")) = bare(text) {
        return Some(format!("<{address}>"));
    }
    let (name, rest) = phrase(text)?;
    let (address, rest) = bare(rest.strip_prefix('<')?)?;
    if rest != ">" {
        return None;
    }
    Some(match name.as_str() {
        "" => format!("<{address}>"),
        name => format!("{} <{address}>", shown(name)),
    })
}

/// `local@domain` as it is printed, and what comes after it.
fn bare(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let (local, rest) = match text.strip_prefix('"') {
        Some(text) => quoted(text).filter(|(local, _)| !local.is_empty())?,
        None => {
            let (local, rest) = atom(text);
            (dotted(local)?.to_owned(), rest)
        }
    };
    let rest = rest.strip_prefix('@')?.trim_start_matches([' ', '\t']);
    let (domain, rest) = atom(rest);
    let domain = dotted(domain)?;
    let is_plain = dotted(&local).is_some() && local.chars().all(is_of_atom);
    let local = if is_plain { local } else { in_quotes(&local) };
    Some((format!("{local}@{domain}"), rest))
}

/// The words before an address in angle brackets.
fn phrase(text: &str) -> Option<(String, &str)> {
    let (mut words, mut rest) = (Vec::new(), text);
    while !rest.is_empty() && !rest.starts_with('<') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(text) => quoted(text)?,
            None => match atom(rest) {
                ("", _) => return None,
                (word, after) => (word.to_owned(), after),
            },
        };
        words.push(word);
        rest = after.trim_start_matches([' ', '\t']);
    }
    Some((words.join(" "), rest))
}

/// What is in quotes whose first one was taken off, and what comes after them.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let c = match c {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => chars.next()?.1,
            c => c,
        };
        if c.is_ascii_control() && c != '\t' {
            return None;
        }
        out.push(c);
    }
    None
}

/// The characters of an atom, dots among them, and what comes after them.
fn atom(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !is_of_atom(c)).unwrap_or(text.len()))
}

/// An atom whose dots are within it, one at a time.
fn dotted(atom: &str) -> Option<&str> {
    let is_valid = !atom.is_empty() && atom.split('.').all(|part| !part.is_empty());
    is_valid.then_some(atom)
}

fn is_of_atom(c: char) -> bool {
    !c.is_ascii_control() && c != ' ' && !"()<>[]:;@\\,\"".contains(c)
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A name in front of an address.
fn shown(name: &str) -> String {
    if name.chars().all(|c| matches!(c, ' '..='~' | '\t')) {
        return in_quotes(name);
    }
    if name.contains(|c: char| "\"#$%&'(),.:;<>@[]^`{|}~".contains(c)) {
        let most = MOST_ENCODED / 4 * 3;
        return words('b', name, most, char::len_utf8, |text| {
            STANDARD.encode(text)
        });
    }
    let length = |c: char| if is_plain(c) { 1 } else { 3 * c.len_utf8() };
    words('q', name, MOST_ENCODED, length, |text| {
        text.chars().map(escaped).collect()
    })
}

/// A name in as many encoded words as it takes.
fn words(
    kind: char,
    name: &str,
    most: usize,
    length: impl Fn(char) -> usize,
    encode: impl Fn(&str) -> String,
) -> String {
    let (mut parts, mut size) = (vec![String::new()], 0);
    for c in name.chars() {
        if size + length(c) > most {
            parts.push(String::new());
            size = 0;
        }
        size += length(c);
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    let words = parts
        .iter()
        .map(|part| format!("=?utf-8?{kind}?{}?=", encode(part)));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether one byte of an encoded word stands for it.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') && !matches!(c, '=' | '?' | '_')
}

fn escaped(c: char) -> String {
    if c == ' ' {
        return "_".to_owned();
    }
    if is_plain(c) {
        return c.to_string();
    }
    let mut bytes = [0; 4];
    let bytes = c.encode_utf8(&mut bytes).bytes();
    bytes.map(|b| format!("={b:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_form() {
        for (text, expected) in [
            ("ann@example.com", "<ann@example.com>"),
            ("<ann@example.com>", "<ann@example.com>"),
            ("Ann <ann@example.com>", "\"Ann\" <ann@example.com>"),
            ("Ann  B. C <a@b>", "\"Ann B. C\" <a@b>"),
            ("\"B, \\\"Ann\\\"\"<a@b>", "\"B, \\\"Ann\\\"\" <a@b>"),
            ("\"a b\"@c", "<\"a b\"@c>"),
            ("Zoë B <z@e.x>", "=?utf-8?q?Zo=C3=AB_B?= <z@e.x>"),
            ("Zoë B. <z@e.x>", "=?utf-8?b?Wm/DqyBCLg==?= <z@e.x>"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
        let long = "é".repeat(20);
        let of_ten = "=C3=A9".repeat(10);
        let expected = format!("=?utf-8?q?{of_ten}?= =?utf-8?q?{of_ten}?= <a@b>");
        assert_eq!(canonical(&format!("{long} <a@b>")), Some(expected));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "ann",
            "@b",
            "a@",
            "a..b@c",
            ".a@b",
            "a@b.",
            "<a@b",
            "Ann <a@b> x",
            "a@b c",
            "Ann <>",
            "\"Ann <a@b>",
            "a@b, c@d",
            "a b@c",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
