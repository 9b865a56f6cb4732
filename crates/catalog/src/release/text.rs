//! Values as a text of their user: what stays keeps its order and comments. Main function:
//! [`without`].

use super::{merge::Values, parse_values};
use tiphys_gocompat::yaml;

/// The text without some keys. `values` are what is left: where lines alone do not say that, it is
/// they that are printed.
pub(super) fn without(text: &str, dropped: &[Vec<String>], values: &Values) -> String {
    if dropped.is_empty() {
        return text.to_owned();
    }
    if values.is_empty() {
        return String::new();
    }
    let left = lines_without(text, dropped);
    if parse_values(&left, "").is_ok_and(|read| read == *values) {
        return left;
    }
    yaml::to_string(&values.clone().into())
}

fn lines_without(text: &str, dropped: &[Vec<String>]) -> String {
    let mut kept: Vec<&str> = Vec::new();
    // The keys that a line is within, with their columns.
    let mut path: Vec<(usize, String)> = Vec::new();
    // The column of the key that is being left out.
    let mut leaving: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        let column = line.len() - line.trim_start().len();
        if content.is_empty() || content.starts_with('#') {
            if leaving.is_none_or(|of| column <= of) {
                kept.push(line);
            }
            continue;
        }
        if let Some(of) = leaving {
            if column > of || column == of && content.starts_with('-') {
                continue;
            }
            leaving = None;
        }
        path.retain(|(of, _)| *of < column);
        if let Some(key) = key(content) {
            path.push((column, key));
        }
        let keys = path.iter().map(|(_, key)| key);
        if dropped.iter().any(|gone| gone.iter().eq(keys.clone())) {
            leaving = Some(column);
            remove_comment(&mut kept, column);
            path.pop();
            continue;
        }
        kept.push(line);
    }
    kept.concat()
}

/// The comment directly above a key goes with it; the one at the head of the file stays.
fn remove_comment(kept: &mut Vec<&str>, column: usize) {
    let is_of = |line: &&str| {
        line.trim_start().starts_with('#') && line.len() - line.trim_start().len() == column
    };
    let length = kept.iter().rev().take_while(|line| is_of(line)).count();
    if length < kept.len() {
        kept.truncate(kept.len() - length);
    }
}

fn key(content: &str) -> Option<String> {
    let end = content.find(": ").or_else(|| {
        let end = content.len().checked_sub(1)?;
        content.ends_with(':').then_some(end)
    })?;
    Some(content[..end].trim().trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Ours.\nname: web # short\nimage:\n  # A mirror.\n  repository: mirror\n  \
        # Old.\n  tag: 1.0.0\nargs:\n- a\n- b\nlast: {x: 1}\n";

    #[test]
    fn comments_and_order_stay() {
        for (dropped, left) in [
            (vec![], TEXT.to_owned()),
            (
                vec!["image.tag"],
                TEXT.replace("  # Old.\n  tag: 1.0.0\n", ""),
            ),
            (vec!["args"], TEXT.replace("args:\n- a\n- b\n", "")),
            (vec!["name"], TEXT.replace("name: web # short\n", "")),
            // Not on a line of its own.
            (
                vec!["last.x", "name"],
                "args:\n- a\n- b\nimage:\n  repository: mirror\n  tag: 1.0.0\nlast:\n  z: 1\n"
                    .to_owned(),
            ),
        ] {
            let text = if dropped.contains(&"last.x") {
                TEXT.replace("{x: 1}", "{x: 1, z: 1}")
            } else {
                TEXT.to_owned()
            };
            let mut values = parse_values(&text, "values").expect("YAML");
            let dropped: Vec<Vec<String>> = dropped
                .iter()
                .map(|path| path.split('.').map(str::to_owned).collect())
                .collect();
            for path in &dropped {
                let (last, above) = path.split_last().expect("a path");
                let mut table = &mut values;
                for key in above {
                    table = table[key].as_object_mut().expect("a table");
                }
                table.remove(last);
            }
            assert_eq!(without(&text, &dropped, &values), left, "{dropped:?}");
        }
    }

    #[test]
    fn nothing_left_is_no_text() {
        let dropped = [vec!["a".to_owned()]];
        assert_eq!(without("a: 1\n", &dropped, &Values::new()), "");
    }
}
