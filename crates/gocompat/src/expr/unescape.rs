//! The escape sequences of literals.
//!
//! Main function: [`unescape`].

const BAD: &str = "invalid char escape";

/// The bytes of a literal's content. In literals of bytes, an escape sequence is one byte.
///
/// # Errors
/// For a sequence that does not exist.
pub(super) fn unescape(content: &[char], quote: char, bytes: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(content.len());
    let mut at = 0;
    while let Some(&c) = content.get(at) {
        at += 1;
        if c == '\r' {
            at += usize::from(content.get(at) == Some(&'\n'));
            out.push(b'\n');
        } else if c != '\\' {
            push(&mut out, c);
        } else {
            let rest = content.get(at..).unwrap_or_default();
            at += escape(rest, quote, bytes, &mut out).ok_or(BAD)?;
        }
    }
    Ok(out)
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Writes what a sequence means, and tells its length.
fn escape(rest: &[char], quote: char, bytes: bool, out: &mut Vec<u8>) -> Option<usize> {
    let first = *rest.first()?;
    let simple = match first {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        c if c == quote => u8::try_from(c).ok()?,
        _ => return coded(rest, bytes, out),
    };
    out.push(simple);
    Some(1)
}

fn coded(rest: &[char], bytes: bool, out: &mut Vec<u8>) -> Option<usize> {
    let (digits, base, length) = match rest.first()? {
        'x' => (rest.get(1..3)?, 16, 3),
        '0'..='3' => (rest.get(..3)?, 8, 3),
        'u' if rest.get(1) == Some(&'{') && !bytes => {
            let end = rest.iter().position(|c| *c == '}')?;
            (
                rest.get(2..end).filter(|d| (1..=6).contains(&d.len()))?,
                16,
                end + 1,
            )
        }
        'u' if !bytes => (rest.get(1..5)?, 16, 5),
        'U' if !bytes => (rest.get(1..9)?, 16, 9),
        _ => return None,
    };
    let mut code = 0u32;
    for digit in digits {
        code = code.checked_mul(base)?.checked_add(digit.to_digit(base)?)?;
    }
    if bytes {
        out.push(u8::try_from(code).ok()?);
    } else if code > u32::from(char::MAX) {
        return None;
    } else {
        push(
            out,
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
        );
    }
    Some(length)
}
