//! Which files `git ls-files -- PATTERN` and doublestar list. Main functions: [`git`] and
//! [`doublestar`].

use std::collections::{BTreeMap, BTreeSet};
use tiphys_gocompat::doublestar::{self, Entry};
use tiphys_gocompat::glob;

/// As git: a path selects everything below it, and `*` matches slashes.
pub fn git(pattern: &str, path: &str) -> bool {
    let pattern = match pattern.strip_prefix(":(") {
        Some(magic) => magic.split_once(')').map_or("", |(_, rest)| rest),
        None => pattern.strip_prefix(":/").unwrap_or(pattern),
    };
    let plain = pattern.trim_end_matches('/');
    let escaped = pattern.replace('{', "\\{").replace('}', "\\}");
    plain.is_empty()
        || plain == "."
        || path == pattern
        || path.starts_with(&format!("{plain}/"))
        || glob::matches(&escaped, path, &[])
}

/// The paths that doublestar finds; the error of one that is a directory.
pub fn doublestar(pattern: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<String>, String> {
    let mut list = |folder: &str| -> Result<Option<Vec<Entry>>, String> {
        let prefix = match folder {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let below: BTreeSet<(String, bool)> = files
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix))
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => (name.to_owned(), true),
                None => (rest.to_owned(), false),
            })
            .collect();
        let entries = below
            .into_iter()
            .map(|(name, is_dir)| Entry { name, is_dir })
            .collect::<Vec<_>>();
        Ok((!entries.is_empty()).then_some(entries))
    };
    let found = match doublestar::glob(pattern, &mut list) {
        Ok(found) => found,
        Err(e) => return Err(format!("{e:?}")),
    };
    match found.iter().find(|path| !files.contains_key(*path)) {
        Some(directory) => Err(format!("read {directory}: is a directory")),
        None => Ok(found),
    }
}
