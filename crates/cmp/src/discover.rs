//! Finds out whether a source is for the plugin, by the files in the Application's folder.
//!
//! Main function: [`by_glob`].

use std::{fs, path::Path};
use tiphys_gocompat::doublestar::{self, Entry, GlobError};

/// Folders and files that may be looked at.
const MAX_ENTRIES: usize = 500_000;

/// Whether something in the folder matches. Nothing outside of `root` is looked at. Blocks.
pub fn by_glob(root: &Path, folder: &Path, pattern: &str) -> Result<bool, String> {
    let below = folder.strip_prefix(root).unwrap_or(Path::new(""));
    let whole = escaped(&below.to_string_lossy());
    let Some(pattern) = joined(&whole, pattern) else {
        return Ok(false);
    };
    let mut seen = 0;
    let mut list = |path: &str| entries(&root.join(path), &mut seen);
    let found = doublestar::glob(&pattern, &mut list);
    found.map(|found| !found.is_empty()).map_err(|e| match e {
        GlobError::Pattern(e) => e.to_string(),
        GlobError::List(e) => e,
    })
}

fn entries(path: &Path, seen: &mut usize) -> Result<Option<Vec<Entry>>, String> {
    let Ok(listed) = fs::read_dir(path) else {
        // It is no folder.
        return Ok(None);
    };
    let mut entries = Vec::new();
    for entry in listed {
        *seen += 1;
        if *seen > MAX_ENTRIES {
            return Err(format!(
                "more than {MAX_ENTRIES} files would have to be looked at"
            ));
        }
        let entry = entry.map_err(|e| e.to_string())?;
        // Links are followed: unpacking made sure that they stay inside.
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_dir: fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()),
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(entries))
}

/// Without a meaning for characters that have one in patterns.
fn escaped(path: &str) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | ',') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A pattern below a folder as Go joins paths, or None if it leads out.
fn joined(folder: &str, pattern: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(pattern.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_below_the_applications_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        for path in [
            "app/sub/special.yaml",
            "app/[x]/a.txt",
            "other/b.yaml",
            "top.yaml",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, "").expect("written");
        }
        std::os::unix::fs::symlink("../other", root.join("app/link")).expect("linked");
        for (folder, pattern, want) in [
            ("app", "sub/s*.yaml", true),
            ("app", "./sub/special.yaml", true),
            ("app", "s*.yaml", false),
            ("app", "**/special.yaml", true),
            ("app", "**/*.yaml", true),
            ("app", "top.yaml", false),
            ("app", "link/b.yaml", true),
            ("app", "../other/*.yaml", true),
            ("app", "../../*", false),
            ("app/[x]", "*.txt", true),
            ("", "top.yaml", true),
            ("", "**/b.yaml", true),
            ("", "nothing", false),
            ("gone", "*", false),
        ] {
            let found = by_glob(root, &root.join(folder), pattern);
            assert_eq!(found, Ok(want), "{folder}: {pattern}");
        }
        let e = by_glob(root, root, "[a").expect_err("no pattern");
        assert_eq!(e, "syntax error in pattern");
    }
}
