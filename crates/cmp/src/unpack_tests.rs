//! What of an archive is unpacked, and what is refused.

use super::*;

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    entries: 100,
};

enum Of<'a> {
    File(&'a str, u32),
    Link(&'a str),
    Folder,
    Hard(&'a str),
}

fn archive(entries: &[(&str, Of<'_>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, of) in entries {
        let mut header = tar::Header::new_gnu();
        let (kind, mode, data, target) = match of {
            Of::File(text, mode) => (tar::EntryType::Regular, *mode, *text, ""),
            Of::Link(target) => (tar::EntryType::Symlink, 0o777, "", *target),
            Of::Folder => (tar::EntryType::Directory, 0o755, "", ""),
            Of::Hard(target) => (tar::EntryType::Link, 0o644, "", *target),
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(data.len() as u64);
        // As it is: the library refuses names that lead out.
        let old = header.as_gnu_mut().expect("such a header");
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        tar.append(&header, data.as_bytes()).expect("appended");
    }
    tar.into_inner().expect("an archive")
}

fn unpacked(entries: &[(&str, Of<'_>)], keep_modes: bool) -> Result<tempfile::TempDir, String> {
    // Beside something that a link might lead to.
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("secret"), "s").expect("written");
    let root = dir.path().join("root");
    std::fs::create_dir(&root).expect("made");
    unpack(&archive(entries)[..], &root, keep_modes, LIMITS).map_err(|e| e.to_string())?;
    let secret = std::fs::read_to_string(dir.path().join("secret"));
    assert_eq!(secret.expect("still there"), "s");
    Ok(dir)
}

#[test]
fn files_folders_and_links_are_made() {
    for (keep, modes) in [(false, [0o644, 0o644]), (true, [0o750, 0o640])] {
        let dir = unpacked(
            &[
                ("./", Of::Folder),
                ("a", Of::Folder),
                ("a/run.sh", Of::File("#!/bin/sh\n", 0o750)),
                ("b/c/d.txt", Of::File("d", 0o640)),
                ("a/link", Of::Link("../b/c/d.txt")),
                ("to-folder", Of::Link("b/c")),
                ("later", Of::Link("z")),
                ("z", Of::File("z", 0o644)),
                ("dangling", Of::Link("no/where")),
                ("around", Of::Link("around")),
                ("hard", Of::Hard("z")),
            ],
            keep,
        )
        .expect("unpacked");
        let root = dir.path().join("root");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
        assert_eq!(read("a/link"), "d");
        assert_eq!(read("to-folder/d.txt"), "d");
        assert_eq!(read("later"), "z");
        assert!(!root.join("hard").exists());
        let found = ["a/run.sh", "b/c/d.txt"].map(|path| {
            let found = std::fs::metadata(root.join(path)).expect(path);
            found.permissions().mode() & 0o777
        });
        assert_eq!(found, modes, "{keep}");
    }
}

#[test]
fn nothing_leads_out() {
    use Of::{File, Folder, Link};
    let path = |name: &str| format!("illegal filepath in archive: {name}");
    let link = |name: &str| format!("illegal filepath in symlink: {name}");
    for (entries, want) in [
        (vec![("../x", File("x", 0o644))], path("../x")),
        (vec![("a/../../x", File("x", 0o644))], path("a/../../x")),
        (vec![("/etc/x", File("x", 0o644))], path("/etc/x")),
        (vec![("l", Link("../secret"))], link("l")),
        (vec![("l", Link("/etc/passwd"))], link("l -> /etc/passwd")),
        (vec![("a/l", Link("../../secret"))], link("a/l")),
        // Each link by itself looks as if it stayed inside.
        (
            vec![
                ("d/e/f", File("", 0o644)),
                ("d/e/up", Link("../..")),
                ("m", Link("d/e/up/../secret")),
            ],
            link("m"),
        ),
        // A file behind a link is written nowhere.
        (
            vec![("d", Link("e")), ("d/x", File("x", 0o644))],
            path("d/x"),
        ),
        (vec![("x", Link("y")), ("x", Folder)], path("x")),
    ] {
        assert_eq!(unpacked(&entries, false).err(), Some(want));
    }
    // What is there already is not written through.
    let twice = [("x", Link("y")), ("x", File("x", 0o644))];
    let e = unpacked(&twice, false).expect_err("refused");
    assert!(e.starts_with("error creating file \"x\": "), "{e}");
}

#[test]
fn a_broken_or_large_archive_is_refused() {
    let big = "x".repeat(2 << 20);
    let e = unpacked(&[("big", Of::File(&big, 0o644))], false).expect_err("refused");
    assert_eq!(e, "it unpacks to more than 1048576 bytes");
    let names: Vec<String> = (0..200).map(|n| format!("f{n}")).collect();
    let many: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), Of::Folder))
        .collect();
    let e = unpacked(&many, false).expect_err("refused");
    assert_eq!(e, "it has more than 100 files");

    let dir = tempfile::tempdir().expect("a folder");
    let whole = archive(&[("a", Of::File("some text", 0o644))]);
    for (bytes, want) in [
        (&whole[..514], "unexpected EOF"),
        (
            &b"no archive at all".repeat(40)[..],
            "archive/tar: invalid tar header",
        ),
    ] {
        let e = unpack(bytes, dir.path(), false, LIMITS)
            .expect_err(want)
            .to_string();
        assert_eq!(e, format!("error while iterating on tar reader: {want}"));
    }
}
