//! Limits the number and size of the warnings in a response. Main function: [`shown`].

/// The total number of characters above which each warning is truncated.
const ALL: usize = 4 * 1024;
/// The length of a truncated warning.
const ONE: usize = 256;

/// The warnings to send, without duplicates and without those that a header cannot hold; if there
/// are too many or they are too long, only their beginnings.
pub fn shown(warnings: &[String]) -> Vec<String> {
    let mut distinct: Vec<&str> = Vec::new();
    for text in warnings
        .iter()
        .filter(|text| !text.is_empty() && !text.contains(char::is_control))
    {
        if !distinct.contains(&text.as_str()) {
            distinct.push(text);
        }
    }
    let all: usize = distinct.iter().map(|text| text.chars().count()).sum();
    if all <= ALL {
        return distinct.into_iter().map(str::to_owned).collect();
    }
    let (mut told, mut whole) = (0, 0);
    let mut cut = Vec::new();
    for text in distinct {
        // The warnings that were already within the limit are truncated as well.
        if told >= ALL && whole > ALL {
            break;
        }
        whole += text.chars().count();
        let beginning: String = text.chars().take(ONE).collect();
        told += beginning.chars().count();
        cut.push(beginning);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_warnings_are_cut() {
        let warnings = |count: usize, length: usize| {
            (0..count)
                .map(|n| format!("{n:0length$}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&warnings(40, 100)), warnings(40, 100));
        assert_eq!(shown(&warnings(50, 100)).len(), 41);
        let long = shown(&warnings(30, 1000));
        assert_eq!((long.len(), long[0].len()), (16, 256));
        assert_eq!(
            shown(&["a".into(), "a\nb".into(), "a".into(), String::new()]),
            ["a"]
        );
    }
}
