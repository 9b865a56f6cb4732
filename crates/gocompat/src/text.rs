//! Text as Go's `unicode` and `strconv` see it.
//!
//! Main functions: [`quote`] (`%q`), [`float`] (`%v`), [`is_print`] and [`is_space`].

pub use crate::{printable::is_print, template::format::quote::quoted as quote};

use crate::template::format;

/// `unicode.IsSpace`.
pub fn is_space(c: char) -> bool {
    c.is_whitespace()
}

/// `strconv.QuoteRune`.
pub fn quote_rune(c: char) -> String {
    String::from_utf8_lossy(&format::quote::quote_rune(c, false)).into_owned()
}

/// A float as printed by `%v`: with an exponent below 1e-4 and from a million on.
pub fn float(f: f64) -> String {
    exponent(&format!("{f:e}"), f.to_string())
}

/// The same in 32 bits, as sigs.k8s.io/yaml converts a number where text is expected.
pub fn float32(f: f64) -> String {
    let f = f as f32;
    exponent(&format!("{f:e}"), f.to_string())
}

fn exponent(scientific: &str, plain: String) -> String {
    let Some((digits, power)) = scientific.split_once('e') else {
        return match plain.as_str() {
            "inf" => "+Inf".to_owned(),
            "-inf" => "-Inf".to_owned(),
            _ => plain,
        };
    };
    match power.parse::<i32>() {
        Ok(power) if !(-4..6).contains(&power) => format!(
            "{digits}e{}{:02}",
            if power < 0 { '-' } else { '+' },
            power.abs()
        ),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_go_prints_them() {
        for (f, want, want32) in [
            (0.0, "0", "0"),
            (1.0, "1", "1"),
            (100_000.0, "100000", "100000"),
            (1e6, "1e+06", "1e+06"),
            (12_345_678.9, "1.23456789e+07", "1.2345679e+07"),
            (0.0001, "0.0001", "0.0001"),
            (-0.000_01, "-1e-05", "-1e-05"),
            (1e300, "1e+300", "+Inf"),
        ] {
            assert_eq!((float(f), float32(f)), (want.to_owned(), want32.to_owned()));
        }
    }

    #[test]
    fn quotes_as_go_does() {
        assert_eq!(
            quote("a\"\\\n\u{7}\u{1b}é\u{200b}\u{10ffff} "),
            "\"a\\\"\\\\\\n\\a\\x1bé\\u200b\\U0010ffff \""
        );
        assert_eq!(
            (quote_rune('\''), quote_rune('"'), quote_rune('\n')),
            ("'\\''".into(), "'\"'".into(), "'\\n'".into())
        );
    }
}
