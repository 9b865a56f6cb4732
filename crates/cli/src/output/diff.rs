//! Differences of two texts in the format of the `diff` tool without options. Main function:
//! [`normal`].

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// `2c2`, `5,6d4` and `3a4` blocks with `<` and `>` lines; empty if the texts are equal.
pub fn normal(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut out = String::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (o, n) = (op.old_range(), op.new_range());
        let command = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { .. } => format!("{}d{}", range(o.start, o.end), n.start),
            DiffOp::Insert { .. } => format!("{}a{}", o.start, range(n.start, n.end)),
            DiffOp::Replace { .. } => {
                format!("{}c{}", range(o.start, o.end), range(n.start, n.end))
            }
        };
        out.push_str(&command);
        out.push('\n');
        old[o.clone()]
            .iter()
            .for_each(|line| out.push_str(&format!("< {line}\n")));
        if !o.is_empty() && !n.is_empty() {
            out.push_str("---\n");
        }
        new[n]
            .iter()
            .for_each(|line| out.push_str(&format!("> {line}\n")));
    }
    out
}

/// Line numbers from 1, both ends included.
fn range(start: usize, end: usize) -> String {
    if end == start + 1 {
        end.to_string()
    } else {
        format!("{},{end}", start + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_diff_tool() {
        assert_eq!(normal("a\nb\n", "a\nb\n"), "");
        assert_eq!(normal("a\nb\nc\n", "a\nx\nc\n"), "2c2\n< b\n---\n> x\n");
        assert_eq!(normal("a\nb\nc\nd\n", "a\nd\n"), "2,3d1\n< b\n< c\n");
        assert_eq!(normal("a\nd\n", "a\nb\nc\nd\n"), "1a2,3\n> b\n> c\n");
        assert_eq!(normal("", "a\nb\n"), "0a1,2\n> a\n> b\n");
        assert_eq!(normal("a\n", ""), "1d0\n< a\n");
    }
}
