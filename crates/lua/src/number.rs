//! Numbers as texts, the way Argo CD's Lua, which is written in Go, writes and reads them. Only
//! `..` and arithmetic with texts, which the virtual machine does by itself, keep its own way.
//!
//! Main functions: [`text`] and [`parse`].

/// The first whole number that is too large for 64 bits.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Whole numbers have no exponent; others have all their digits, and an exponent as Go's `%v`.
pub fn text(n: f64) -> String {
    if n.is_nan() {
        return "NaN".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if n.fract() == 0.0 && (-TOO_LARGE..TOO_LARGE).contains(&n) {
        return (n as i64).to_string();
    }
    let scientific = format!("{n:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match power.parse::<i32>() {
        Ok(power) if !(-4..6).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.abs())
        }
        _ => n.to_string(),
    }
}

/// What `tonumber` makes of a text. An exponent needs a decimal point; without a base, `0x` means
/// 16.
pub fn parse(text: &[u8], base: Option<i64>) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_matches([' ', '\n', '\t']);
    if text.contains('.') {
        return text.parse().ok().filter(|n: &f64| n.is_finite());
    }
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match (base, hexadecimal) {
        (Some(base), _) => (text, u32::try_from(base).ok()?),
        (None, Some(digits)) => (digits, 16),
        (None, None) => (text, 10),
    };
    if !(2..=36).contains(&base) {
        return None;
    }
    i64::from_str_radix(digits, base).ok().map(|n| n as f64)
}
