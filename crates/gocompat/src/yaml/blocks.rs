//! What stands behind the sign of a block, and blocks that are folded.

use super::emit::is_break;

/// A text as go-yaml v3 prints it behind `>` in a map that is not indented.
pub(super) fn folded(text: &str) -> String {
    let mut out = String::from(">");
    out.push_str(&hints(text, 2));
    out.push('\n');
    let starts_blank = text.starts_with(|c| c == ' ' || c == '\t' || is_break(c));
    let (mut breaks, mut leading_spaces) = (true, true);
    for c in text.chars() {
        if is_break(c) {
            // It looks at the beginning of the text where it means the next line.
            if !breaks && !leading_spaces && c == '\n' && !starts_blank {
                out.push('\n');
            }
            out.push(c);
            breaks = true;
        } else {
            if breaks {
                out.push_str("  ");
                leading_spaces = matches!(c, ' ' | '\t');
            }
            out.push(c);
            breaks = false;
        }
    }
    out.push('\n');
    out
}

/// What stands behind the sign of a block.
pub(super) fn hints(text: &str, step: isize) -> String {
    let mut hints = String::new();
    if text.starts_with(|c| c == ' ' || is_break(c)) {
        hints.push_str(&step.to_string());
    }
    let mut ends = text.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(c), _) if !is_break(c) => hints.push('-'),
        (_, None) => hints.push('+'),
        (_, Some(c)) if is_break(c) => hints.push('+'),
        _ => {}
    }
    hints
}
