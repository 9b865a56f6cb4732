//! The examples, carried in the program, and the Git repository made of them.

use anyhow::Context;
use std::path::{Path, PathBuf};
use tiphys_repo::Repos;

/// `examples/` of the source tree; `REPO_URL` stands for the repository's own address.
const FILES: [(&str, &str); 7] = [
    ("README.md", include_str!("../../../../../examples/README.md")),
    ("guestbook/guestbook.yaml", include_str!("../../../../../examples/guestbook/guestbook.yaml")),
    ("waves/migrate.yaml", include_str!("../../../../../examples/waves/migrate.yaml")),
    ("waves/backend.yaml", include_str!("../../../../../examples/waves/backend.yaml")),
    ("waves/frontend.yaml", include_str!("../../../../../examples/waves/frontend.yaml")),
    ("app-of-apps/guestbook.yaml", include_str!("../../../../../examples/app-of-apps/guestbook.yaml")),
    ("app-of-apps/waves.yaml", include_str!("../../../../../examples/app-of-apps/waves.yaml")),
];

/// The path of the Application of Applications in the repository.
pub const ROOT_PATH: &str = "app-of-apps";

/// Makes `<folder>/examples.git` unless it is there, and returns its URL.
pub fn repository(folder: &Path) -> anyhow::Result<String> {
    let path: PathBuf = folder.join("examples.git");
    let url = format!("file://{}", path.display());
    if !path.exists() {
        let files: Vec<(&str, String)> = FILES.iter().map(|(name, text)| (*name, text.replace("REPO_URL", &url))).collect();
        let files = files.iter().map(|(name, text)| (*name, text.as_str()));
        Repos::init_example(&path, files).with_context(|| format!("the example repository {} cannot be made", path.display()))?;
    }
    Ok(url)
}
