//! The difference between two values in the form of some of the real server's messages: a unified
//! diff of their indented JSON, with Go's field names. Main function: [`diff`]. Lines are matched
//! as in Python's difflib, because the diff would look different otherwise.

use super::{drop_empty, find, forget_empty, internal};
use serde_json::Value;
use std::collections::HashMap;

/// Context lines around a change.
const CONTEXT: usize = 3;
/// From this many lines on, frequent lines are not matched.
const POPULAR_FROM: usize = 200;

/// The diff from `old` to the new value; both have the named type. A stored value has no empty
/// lists and maps, so those that `old` has for the comparison are dropped first.
pub fn diff(old: &Value, new: &Value, of: &str) -> String {
    let mut old = old.clone();
    if let (Some(of), Some(map)) = (find(of), old.as_object_mut()) {
        drop_empty(map, of);
        forget_empty(map, of);
    }
    let (old, new) = (indented(&internal(&old, of)), indented(&internal(new, of)));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    unified(&old, &new)
}

/// Go's `MarshalIndent` with one space, from compact JSON.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut chars = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                if let Some(end) = chars.next_if(|n| matches!(n, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// A run of equal lines: where it starts in both, and its length.
type Match = (usize, usize, usize);

struct Matcher<'a> {
    a: &'a [&'a str],
    b: &'a [&'a str],
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Matcher<'a> {
    fn new(a: &'a [&'a str], b: &'a [&'a str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        b.iter()
            .enumerate()
            .for_each(|(i, line)| places.entry(line).or_default().push(i));
        if b.len() >= POPULAR_FROM {
            places.retain(|_, at| at.len() <= b.len() / 100 + 1);
        }
        Self { a, b, places }
    }

    fn longest(&self, (a_from, a_to): (usize, usize), (b_from, b_to): (usize, usize)) -> Match {
        let mut best = (a_from, b_from, 0);
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for i in a_from..a_to {
            let mut next = HashMap::new();
            let at = self
                .places
                .get(self.a[i])
                .map(Vec::as_slice)
                .unwrap_or_default();
            for &j in at.iter().filter(|j| (b_from..b_to).contains(j)) {
                let length = j
                    .checked_sub(1)
                    .and_then(|j| lengths.get(&j))
                    .copied()
                    .unwrap_or(0)
                    + 1;
                next.insert(j, length);
                if length > best.2 {
                    best = (i + 1 - length, j + 1 - length, length);
                }
            }
            lengths = next;
        }
        while best.0 > a_from && best.1 > b_from && self.a[best.0 - 1] == self.b[best.1 - 1] {
            best = (best.0 - 1, best.1 - 1, best.2 + 1);
        }
        while best.0 + best.2 < a_to
            && best.1 + best.2 < b_to
            && self.a[best.0 + best.2] == self.b[best.1 + best.2]
        {
            best.2 += 1;
        }
        best
    }

    fn matches(&self, a: (usize, usize), b: (usize, usize), found: &mut Vec<Match>) {
        let (i, j, length) = self.longest(a, b);
        if length == 0 {
            return;
        }
        if a.0 < i && b.0 < j {
            self.matches((a.0, i), (b.0, j), found);
        }
        match found.last_mut() {
            Some(last) if last.0 + last.2 == i && last.1 + last.2 == j => last.2 += length,
            _ => found.push((i, j, length)),
        }
        if i + length < a.1 && j + length < b.1 {
            self.matches((i + length, a.1), (j + length, b.1), found);
        }
    }
}

fn unified(a: &[&str], b: &[&str]) -> String {
    let mut found = Vec::new();
    Matcher::new(a, b).matches((0, a.len()), (0, b.len()), &mut found);
    found.push((a.len(), b.len(), 0));
    // The changes between the runs.
    let (mut i, mut j) = (0, 0);
    let mut changes: Vec<[usize; 4]> = Vec::new();
    for (at_a, at_b, length) in found {
        if i < at_a || j < at_b {
            changes.push([i, at_a, j, at_b]);
        }
        (i, j) = (at_a + length, at_b + length);
    }
    let mut out = String::new();
    let mut rest = changes.as_slice();
    while let Some(first) = rest.first() {
        let near = rest
            .windows(2)
            .take_while(|pair| pair[1][0] - pair[0][1] <= 2 * CONTEXT)
            .count()
            + 1;
        let (group, others) = rest.split_at(near);
        let last = group[near - 1];
        let before = CONTEXT.min(first[0]);
        let after = CONTEXT.min(a.len() - last[1]);
        let (a_from, a_to) = (first[0] - before, last[1] + after);
        let (b_from, b_to) = (first[2] - before, last[3] + after);
        out += &format!("@@ -{} +{} @@\n", range(a_from, a_to), range(b_from, b_to));
        let mut at = a_from;
        let mut put = |mark: char, lines: &[&str]| {
            lines
                .iter()
                .for_each(|line| out += &format!("{mark}{line}\n"))
        };
        for [a1, a2, b1, b2] in group {
            put(' ', &a[at..*a1]);
            put('-', &a[*a1..*a2]);
            put('+', &b[*b1..*b2]);
            at = *a2;
        }
        put(' ', &a[at..a_to]);
        rest = others;
    }
    out
}

fn range(from: usize, to: usize) -> String {
    match to - from {
        1 => format!("{}", from + 1),
        0 => format!("{from},0"),
        length => format!("{},{length}", from + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_field_is_shown_with_three_lines_around_it() {
        let (old, new) = (
            json!({"port": 80, "protocol": "TCP"}),
            json!({"port": 81, "protocol": "TCP"}),
        );
        let wanted = "@@ -2,7 +2,7 @@\n  \"Name\": \"\",\n  \"Protocol\": \"TCP\",\n  \"AppProtocol\": null,\n- \"Port\": 80,\n+ \"Port\": 81,\n  \
                      \"TargetPort\": 0,\n  \"NodePort\": 0\n }\n";
        assert_eq!(diff(&old, &new, "core/v1.ServicePort"), wanted);
    }
}
