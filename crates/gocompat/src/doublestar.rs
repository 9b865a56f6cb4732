//! Path patterns as `github.com/bmatcuk/doublestar` expands them: those of
//! [`path_match`](crate::path_match), `[!a]`, `**` for any number of folders, `{a,b}` for
//! alternatives.
//!
//! Main function: [`glob`]. It knows no file system: the caller lists folders.

use crate::path_match::{BadPattern, matches_with};

/// Longest pattern; the same limit as for paths. Each brace in it costs a scan of the whole
/// pattern.
const MAX_LENGTH: usize = 4096;
/// Maximum number of alternatives in one pattern.
const MAX_ALTERNATIVES: usize = 1000;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// A folder, or a link to one.
    pub is_dir: bool,
}

/// The entries of a folder sorted by name; `None`: there is no such folder. `""` is the root.
pub type List<'a, E> = &'a mut dyn FnMut(&str) -> Result<Option<Vec<Entry>>, E>;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GlobError<E> {
    /// The pattern is invalid.
    Pattern(BadPattern),
    /// A folder cannot be listed.
    List(E),
}

impl<E> From<BadPattern> for GlobError<E> {
    fn from(e: BadPattern) -> Self {
        Self::Pattern(e)
    }
}

/// The paths below the root that match, files and folders, in the order of the Go library.
pub fn glob<E>(pattern: &str, list: List<'_, E>) -> Result<Vec<String>, GlobError<E>> {
    let alternatives = alternatives(pattern)?;
    for pattern in &alternatives {
        pattern
            .split('/')
            .try_for_each(|segment| matches_with(segment, "", &['!', '^']).map(|_| ()))?;
    }
    let mut found = Vec::new();
    for pattern in &alternatives {
        found.extend(expand(pattern, list)?);
    }
    if alternatives.len() > 1 {
        found.sort();
        found.dedup();
    }
    Ok(found)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

fn expand<E>(pattern: &str, list: List<'_, E>) -> Result<Vec<String>, GlobError<E>> {
    let segments: Vec<&str> = pattern.split('/').filter(|s| !s.is_empty()).collect();
    let mut places = vec![String::new()];
    for (i, segment) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        let mut next = Vec::new();
        for place in places {
            if *segment == "**" {
                everything(&place, last, list, &mut next)?;
                continue;
            }
            // A folder with a plain name is not checked separately: listing it shows whether it
            // exists.
            if !last && !segment.contains(['*', '?', '[', '\\']) {
                next.push(join(&place, segment));
                continue;
            }
            for entry in list(&place).map_err(GlobError::List)?.unwrap_or_default() {
                if (last || entry.is_dir) && matches_with(segment, &entry.name, &['!', '^'])? {
                    next.push(join(&place, &entry.name));
                }
            }
        }
        places = next;
    }
    Ok(places)
}

/// The folder itself and the folders below it; with `files` also the files. Without recursion,
/// because folders may be nested arbitrarily deep.
fn everything<E>(
    place: &str,
    files: bool,
    list: List<'_, E>,
    found: &mut Vec<String>,
) -> Result<(), GlobError<E>> {
    let mut open: Vec<(String, std::vec::IntoIter<Entry>)> = Vec::new();
    let mut next = Some(place.to_owned());
    loop {
        if let Some(folder) = next.take()
            && let Some(entries) = list(&folder).map_err(GlobError::List)?
        {
            found.push(folder.clone());
            open.push((folder, entries.into_iter()));
        }
        let Some((folder, entries)) = open.last_mut() else {
            return Ok(());
        };
        match entries.next() {
            None => drop(open.pop()),
            Some(entry) if entry.is_dir => next = Some(join(folder, &entry.name)),
            Some(entry) if files => found.push(join(folder, &entry.name)),
            Some(_) => {}
        }
    }
}

/// The pattern expanded to one pattern per alternative.
fn alternatives(pattern: &str) -> Result<Vec<String>, BadPattern> {
    if pattern.len() > MAX_LENGTH {
        return Err(BadPattern);
    }
    let (mut done, mut todo) = (Vec::new(), vec![pattern.to_owned()]);
    while let Some(pattern) = todo.pop() {
        let Some((open, close, commas)) = braces(&pattern)? else {
            done.push(pattern);
            continue;
        };
        let ends = commas.iter().copied().chain([close]);
        let starts = [open].into_iter().chain(commas.iter().copied());
        let mut parts: Vec<String> = starts
            .zip(ends)
            .map(|(start, end)| {
                format!(
                    "{}{}{}",
                    &pattern[..open],
                    &pattern[start + 1..end],
                    &pattern[close + 1..]
                )
            })
            .collect();
        parts.reverse();
        todo.extend(parts);
        if todo.len() + done.len() > MAX_ALTERNATIVES {
            return Err(BadPattern);
        }
    }
    Ok(done)
}

/// The positions of the first pair of braces, and of the commas between them.
fn braces(pattern: &str) -> Result<Option<(usize, usize, Vec<usize>)>, BadPattern> {
    let (mut open, mut depth, mut commas) = (None, 0, Vec::new());
    let (mut quoted, mut class) = (false, false);
    for (at, c) in pattern.char_indices() {
        match c {
            _ if quoted => quoted = false,
            '\\' => quoted = true,
            '[' => class = true,
            ']' => class = false,
            _ if class => {}
            '{' => {
                open.get_or_insert(at);
                depth += 1;
            }
            ',' if depth == 1 => commas.push(at),
            '}' if depth > 0 => {
                depth -= 1;
                if let (0, Some(open)) = (depth, open) {
                    return Ok(Some((open, at, commas)));
                }
            }
            _ => {}
        }
    }
    if depth > 0 { Err(BadPattern) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const FILES: [&str; 8] = [
        "a.yaml",
        "b.yaml",
        "env/dev.yaml",
        "env/eu/prod.yaml",
        "env/prod.yaml",
        "env/x.json",
        "z.yaml",
        "env/[odd].yaml",
    ];

    fn found(pattern: &str) -> Result<Vec<String>, GlobError<()>> {
        let mut list = |folder: &str| {
            let mut entries = BTreeMap::new();
            for file in FILES {
                let Some(rest) = (if folder.is_empty() {
                    Some(file)
                } else {
                    file.strip_prefix(folder).and_then(|r| r.strip_prefix('/'))
                }) else {
                    continue;
                };
                entries.insert(
                    rest.split('/').next().unwrap_or(rest).to_owned(),
                    rest.contains('/'),
                );
            }
            let entries: Vec<Entry> = entries
                .into_iter()
                .map(|(name, is_dir)| Entry { name, is_dir })
                .collect();
            Ok((!entries.is_empty()).then_some(entries))
        };
        glob(pattern, &mut list)
    }

    /// The results of doublestar 4.10 in such a folder.
    #[test]
    fn as_doublestar_expands() {
        for (pattern, want) in [
            ("*.yaml", "a.yaml b.yaml z.yaml"),
            ("[ab].yaml", "a.yaml b.yaml"),
            ("[!a].yaml", "b.yaml z.yaml"),
            ("?.yaml", "a.yaml b.yaml z.yaml"),
            ("env/*.yaml", "env/[odd].yaml env/dev.yaml env/prod.yaml"),
            (
                "**/*.yaml",
                "a.yaml b.yaml z.yaml env/[odd].yaml env/dev.yaml env/prod.yaml env/eu/prod.yaml",
            ),
            ("**/prod.yaml", "env/prod.yaml env/eu/prod.yaml"),
            (
                "env/**",
                "env env/[odd].yaml env/dev.yaml env/eu env/eu/prod.yaml env/prod.yaml env/x.json",
            ),
            ("env/**.yaml", "env/[odd].yaml env/dev.yaml env/prod.yaml"),
            ("{z,a}.*", "a.yaml z.yaml"),
            ("env/{eu/*,prod}*", "env/eu env/eu/prod.yaml env/prod.yaml"),
            ("env/\\[*", "env/[odd].yaml"),
            ("no/*", ""),
            ("*/*/*", "env/eu/prod.yaml"),
        ] {
            assert_eq!(
                found(pattern).map(|f| f.join(" ")),
                Ok(want.to_owned()),
                "{pattern}"
            );
        }
        for bad in ["[", "{a", "a/[b", &"{a,b}".repeat(20)] {
            assert_eq!(found(bad), Err(GlobError::Pattern(BadPattern)), "{bad}");
        }
    }
}
