//! The folders that manifests may be written to. Main function: [`folder`].

/// Why a folder is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    #[error("it is the root of the repository")]
    Root,
    #[error("failed to write manifests: path {path:?} {reason}")]
    Refused { path: String, reason: &'static str },
}

/// Most folders in a path.
const MAX_DEPTH: usize = 50;

/// The canonical form of a folder within a repository: without a slash at either end, and without
/// `.` and `..`.
pub fn folder(path: &str) -> Result<String, BadPath> {
    let refused = |reason| BadPath::Refused {
        path: path.to_owned(),
        reason,
    };
    if path.contains(|c: char| c.is_control() || c == '\\') {
        return Err(refused("has a backslash or a control character"));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Err(refused("leaves the repository")),
            ".." => {}
            _ if is_of_git(part) => return Err(refused("is one of git's own")),
            _ => parts.push(part),
        }
    }
    match parts.len() {
        0 => Err(BadPath::Root),
        depth if depth > MAX_DEPTH => Err(refused("is too deep")),
        _ => Ok(parts.join("/")),
    }
}

/// `.git` in any of the forms that a file system may take for it.
fn is_of_git(part: &str) -> bool {
    let visible = part.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let plain: String = visible.chars().filter(char::is_ascii).collect();
    let stem = plain.split(':').next().unwrap_or_default();
    matches!(stem, ".git" | "git~1") || part.trim_end_matches(['.', ' ']).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_one_form_and_stay_inside() {
        for (path, expected) in [
            ("apps/web", "apps/web"),
            ("apps/web/", "apps/web"),
            ("/apps//./web", "apps/web"),
            ("apps/../web", "web"),
            ("gitops/.github", "gitops/.github"),
        ] {
            assert_eq!(folder(path).as_deref(), Ok(expected), "{path}");
        }
        for path in ["", ".", "/", "./", "a/..", "//"] {
            assert_eq!(folder(path), Err(BadPath::Root), "{path}");
        }
        for path in [
            "..",
            "../a",
            "a/../../b",
            ".git",
            "a/.GIT/hooks",
            "a/.git./x",
            "a/.git::$INDEX_ALLOCATION",
            "git~1",
            "a\\b",
            "a\nb",
            ".g\u{200c}it",
            "a/.../b",
        ] {
            let found = folder(path);
            assert!(
                matches!(found, Err(BadPath::Refused { .. })),
                "{path}: {found:?}"
            );
        }
    }
}
