//! Sets of a Job's indexes, as `0-2,5`.

use std::collections::BTreeSet;

/// Parses `0-2,5`; invalid parts are ignored.
pub fn parse(text: &str) -> BTreeSet<i64> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse::<i64>().ok()?..=to.parse::<i64>().ok()?.min(100_000))
    };
    text.split(',').filter_map(range).flatten().collect()
}

pub fn print(set: &BTreeSet<i64>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for index in set {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == *index => *to = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let print = |(from, to): (i64, i64)| match to - from {
        0 => from.to_string(),
        1 => format!("{from},{to}"),
        _ => format!("{from}-{to}"),
    };
    ranges.into_iter().map(print).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_and_printed_as_ranges() {
        for text in ["", "0", "0,1", "0-2,5", "1-3,7,8,10-12"] {
            assert_eq!(print(&parse(text)), text);
        }
    }
}
