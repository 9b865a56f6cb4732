//! Embeds the web UI (`ui/dist`) in the program. Without it the program builds too, and shows a
//! message in place of the web UI.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    let top = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let dist = top.join("ui/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    println!("cargo::rerun-if-env-changed=TIPHYS_COMMIT");
    let mut files = Vec::new();
    collect(&dist, &dist, &mut files);
    files.sort();
    let lines: String = files
        .iter()
        .map(|(name, path)| format!("    ({name:?}, include_bytes!({path:?})),\n"))
        .collect();
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("page.rs");
    fs::write(
        &out,
        format!("pub const FILES: &[(&str, &[u8])] = &[\n{lines}];\n"),
    )
    .expect("the output folder can be written");
    println!("cargo::rustc-env=TIPHYS_COMMIT={}", commit(&top));
    println!(
        "cargo::rustc-env=TIPHYS_TARGET={}",
        env::var("TARGET").unwrap_or_default()
    );
}

fn collect(top: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(top, &path, files);
        } else if let Ok(name) = path.strip_prefix(top) {
            files.push((
                name.to_string_lossy().replace('\\', "/"),
                path.to_string_lossy().into_owned(),
            ));
        }
    }
}

/// The checked-out commit, read from Git's own files; empty if there is no repository.
fn commit(top: &Path) -> String {
    if let Ok(given) = env::var("TIPHYS_COMMIT") {
        return given;
    }
    let git = top.join(".git");
    let head = fs::read_to_string(git.join("HEAD")).unwrap_or_default();
    let text = match head.trim().strip_prefix("ref: ") {
        Some(name) => {
            println!("cargo::rerun-if-changed={}", git.join(name).display());
            fs::read_to_string(git.join(name)).unwrap_or_default()
        }
        None => head,
    };
    text.trim().to_owned()
}
