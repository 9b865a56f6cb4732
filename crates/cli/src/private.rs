//! Files and folders that only the owner may read: for passwords, tokens, keys or a cluster's
//! objects.
//!
//! Main functions: [`folder`], [`replace`] and [`write`]. The first two do not trust an existing
//! path: another user may have created it.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Creates a folder with its parents, for its owner only. An existing one must belong to us and
/// must not be world-writable.
pub fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    let found = fs::metadata(path)?;
    // A new file shows our user id.
    let probe = tempfile::Builder::new()
        .prefix(".tiphys-")
        .tempfile_in(path)?;
    if found.uid() != probe.as_file().metadata()?.uid() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to another user",
        ));
    }
    if found.mode() & 0o002 != 0 {
        let mode = found.mode() & 0o777;
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("everybody may write to it (mode {mode:04o}); run chmod 700 on it"),
        ));
    }
    Ok(())
}

/// Like [`folder`], and no one else may read it, even if it already exists, because files created
/// in it may have a wider mode.
pub fn closed_folder(path: &Path) -> io::Result<()> {
    folder(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// Like [`replace`], but writes to a pipe or a device that is there: for a path that the user has
/// named.
pub fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, text);
    }
    replace(path, text)
}

/// Writes a file atomically, for its owner only. Whatever is there is replaced, including its mode;
/// the target of a link is not touched, and nothing is written to a pipe, which another user may
/// read.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Created with mode 0600, and never one that exists.
    let mut file = tempfile::Builder::new()
        .prefix(".tiphys-")
        .tempfile_in(folder)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").mode() & 0o777
    }

    #[test]
    fn what_is_there_does_not_stay_readable() {
        let scratch = tempfile::tempdir().expect("a folder");
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("kubeconfig"), "old").expect("written");
        fs::set_permissions(at("kubeconfig"), fs::Permissions::from_mode(0o644)).expect("ours");
        // A process that opened the file before does not read the new content.
        let mut before = fs::File::open(at("kubeconfig")).expect("open");
        write(&at("kubeconfig"), b"secret").expect("written");
        assert_eq!(
            (
                mode(&at("kubeconfig")),
                fs::read_to_string(at("kubeconfig")).expect("read").as_str()
            ),
            (0o600, "secret")
        );
        let mut text = String::new();
        io::Read::read_to_string(&mut before, &mut text).expect("read");
        assert_eq!(text, "old");

        fs::write(at("elsewhere"), "kept").expect("written");
        std::os::unix::fs::symlink(at("elsewhere"), at("link")).expect("a link");
        write(&at("link"), b"secret").expect("written");
        assert_eq!(fs::read_to_string(at("elsewhere")).expect("read"), "kept");
    }

    #[test]
    fn a_pipe_is_written_to_only_if_it_was_named() {
        use std::os::unix::fs::FileTypeExt as _;

        let make = |path: &Path| {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, path, FileType::Fifo, mode, 0).expect("a pipe");
        };
        let scratch = tempfile::tempdir().expect("a folder");
        let pipe = scratch.path().join("tls.key");
        make(&pipe);
        // Both ends, so that nobody waits for the other.
        let mut end = fs::File::options()
            .read(true)
            .write(true)
            .open(&pipe)
            .expect("open");
        write(&pipe, b"named").expect("written");
        let mut text = [0; 5];
        io::Read::read_exact(&mut end, &mut text).expect("read");
        assert_eq!(&text, b"named");

        let kind = || {
            let found = fs::symlink_metadata(&pipe).expect("it is there");
            found.file_type()
        };
        assert!(kind().is_fifo());
        replace(&pipe, b"secret").expect("replaced");
        assert!(kind().is_file());
        assert_eq!(mode(&pipe), 0o600);
        assert_eq!(fs::read_to_string(&pipe).expect("read"), "secret");

        // A link to a pipe is no better.
        let (far, link) = (scratch.path().join("far"), scratch.path().join("tls.crt"));
        make(&far);
        std::os::unix::fs::symlink(&far, &link).expect("a link");
        replace(&link, b"secret").expect("replaced");
        let found = fs::symlink_metadata(&link).expect("it is there");
        assert!(found.is_file());
    }

    #[test]
    fn a_folder_that_everybody_may_write_to_is_refused() {
        let scratch = tempfile::tempdir().expect("a folder");
        let at = scratch.path().join("a/b");
        folder(&at).expect("made");
        assert_eq!(mode(&at), 0o700);
        for open in [0o777, 0o707, 0o702] {
            fs::set_permissions(&at, fs::Permissions::from_mode(open)).expect("ours");
            let refused = folder(&at).expect_err("everybody may write").to_string();
            assert!(refused.contains("everybody may write to it"), "{refused}");
        }
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).expect("ours");
        folder(&at).expect("readable is not writable");
        closed_folder(&at).expect("ours");
        assert_eq!(mode(&at), 0o700);
    }
}
