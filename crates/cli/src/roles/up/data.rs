//! The data folder: the API server's store, copies of repositories, the kubeconfig.

use super::UpArgs;
use crate::private;
use anyhow::Context;
use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// The folder; with `--ephemeral` a temporary one, removed at the end.
pub struct DataFolder {
    path: PathBuf,
    temporary: bool,
}

impl DataFolder {
    /// Finds or creates the folder, readable only for its owner.
    pub fn open(args: &UpArgs) -> anyhow::Result<Self> {
        let temporary = args.ephemeral;
        let path =
            match &args.data {
                Some(path) => path.clone(),
                None if temporary => temporary_in(&std::env::temp_dir())
                    .context("no temporary folder can be made")?,
                None => default_folder()
                    .context("no folder for data: set --data, XDG_DATA_HOME or HOME")?,
            };
        private::folder(&path).with_context(|| unusable(&path))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("data folder {}", path.display()))?;
        Ok(Self { path, temporary })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A subfolder.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        private::closed_folder(&path).with_context(|| unusable(&path))?;
        Ok(path)
    }

    /// Writes a file that only its owner may read.
    pub fn write_private(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        private::write(&path, text.as_bytes())
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    pub fn close(self) {
        if self.temporary
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the temporary folder stays");
        }
    }
}

/// A new folder for its owner only, with an unpredictable name, because others may write to the
/// one around it as well.
fn temporary_in(around: &Path) -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("tiphys-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(around)?;
    Ok(folder.keep())
}

fn unusable(path: &Path) -> String {
    format!(
        "data folder {} cannot be used; choose another with --data",
        path.display()
    )
}

/// The kubeconfig of the embedded cluster in the default folder, if there is one.
pub fn kubeconfig_of_default() -> Option<PathBuf> {
    default_folder()
        .map(|folder| folder.join("kubeconfig"))
        .filter(|path| path.is_file())
}

/// `$XDG_DATA_HOME/tiphys` or `~/.local/share/tiphys`.
pub fn default_folder() -> Option<PathBuf> {
    let from = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    from("XDG_DATA_HOME")
        .or_else(|| from("HOME").map(|h| h.join(".local/share")))
        .map(|p| p.join("tiphys"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::BTreeSet;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        up: UpArgs,
    }

    fn mode(path: &Path) -> u32 {
        let found = fs::metadata(path).expect("it is there");
        found.permissions().mode() & 0o777
    }

    /// Others may write to the folder that it is made in.
    #[test]
    fn a_temporary_folder_is_new_and_nobody_elses() {
        let shared = tempfile::tempdir().expect("a folder");
        let names = |of: &Path| -> BTreeSet<PathBuf> {
            let entries = fs::read_dir(of).expect("a folder");
            entries
                .map(|entry| entry.expect("an entry").path())
                .collect()
        };
        let mut before = BTreeSet::new();
        for _ in 0..3 {
            let made = temporary_in(shared.path()).expect("made");
            assert!(before.insert(made.clone()), "it was there before");
            assert_eq!(mode(&made), 0o700);
            assert!(names(&made).is_empty());
            // What somebody else made.
            fs::write(made.join("kubeconfig"), "theirs").expect("written");
            fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).expect("ours");
            assert_eq!(names(shared.path()), before);
        }
    }

    #[test]
    fn an_ephemeral_run_leaves_no_folder() {
        let args = Line::parse_from(["up", "--ephemeral"]).up;
        let [one, two] = [(); 2].map(|()| DataFolder::open(&args).expect("made"));
        assert_ne!(one.path(), two.path());
        for folder in [one, two] {
            let path = folder.path().to_owned();
            assert_eq!(mode(&path), 0o700);
            folder.write_private("kubeconfig", "x").expect("written");
            folder.close();
            assert!(!path.exists());
        }
    }
}
