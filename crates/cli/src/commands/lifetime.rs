//! How long a token is valid, as `--expires-in` says it. Main function: [`seconds`].

use crate::client::Failure;

/// Seconds of an amount and a unit, such as `12h` or `7d`.
pub fn seconds(text: &str) -> Result<i64, Failure> {
    let wrong = || {
        Failure::error(format!(
            "invalid since format '{text}', expected format <duration><unit> (e.g. 3h)"
        ))
    };
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let (amount, unit) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .ok_or_else(wrong)?;
    if !amount.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let amount: i64 = amount.parse().map_err(|_| wrong())?;
    amount.checked_mul(*unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_and_a_unit() {
        for (text, expected) in [("0s", 0), ("90m", 5_400), ("12h", 43_200), ("7d", 604_800)] {
            assert_eq!(seconds(text).ok(), Some(expected), "{text}");
        }
        for text in [
            "",
            "h",
            "1",
            "-1h",
            "+1h",
            "1.5h",
            "1h30m",
            "1w",
            "99999999999999999d",
        ] {
            let expected = format!(
                "invalid since format '{text}', expected format <duration><unit> (e.g. 3h)"
            );
            let refused = seconds(text).map_err(|e| (e.code, e.message));
            assert_eq!(refused, Err((20, expected)));
        }
    }
}
