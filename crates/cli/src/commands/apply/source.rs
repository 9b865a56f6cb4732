//! Reads manifests from files, folders, patterns, URLs and standard input. Main type: [`FileArgs`].

use crate::{commands::kustomize, kubectl::failure::Trouble};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// The extensions searched for in a folder.
const EXTENSIONS: &[&str] = &["json", "yaml", "yml"];
/// Maximum size of one input.
const MAX_INPUT: u64 = 64 << 20;
/// How often a URL is tried if its server fails.
const ATTEMPTS: u32 = 3;
const URL_TIMEOUT: Duration = Duration::from_secs(30);

/// What says which objects are meant.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct FileArgs {
    /// File, folder, pattern or URL with manifests; `-` is standard input (can be repeated)
    #[arg(
        long = "filename",
        short = 'f',
        value_name = "FILE",
        value_delimiter = ','
    )]
    pub filenames: Vec<String>,
    /// Folder with a kustomization, or its URL in a repository
    #[arg(long, short = 'k', value_name = "DIR")]
    pub kustomize: Option<String>,
    /// Search the folders of -f recursively
    #[arg(long, short = 'R')]
    pub recursive: bool,
}

/// A text with manifests, and its name in messages.
pub struct Text {
    pub source: String,
    pub data: Result<Vec<u8>, String>,
}

impl FileArgs {
    /// Refuses input that cannot be read at all.
    pub fn check(&self) -> Result<(), Trouble> {
        let Some(_) = self.kustomization() else {
            return if self.filenames.is_empty() {
                Err(Trouble::text("must specify one of -f and -k"))
            } else {
                Ok(())
            };
        };
        let mut problems = Vec::new();
        if !self.filenames.is_empty() {
            problems.push(Trouble::text("only one of -f or -k can be specified"));
        }
        if self.recursive {
            problems.push(Trouble::text("the -k flag can't be used with -f or -R"));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Trouble::Many(problems))
        }
    }

    /// Whether there are any.
    pub fn is_given(&self) -> bool {
        !self.filenames.is_empty() || self.kustomization().is_some()
    }

    fn kustomization(&self) -> Option<&str> {
        self.kustomize
            .as_deref()
            .filter(|folder| !folder.is_empty())
    }

    /// Reads all inputs; a missing one stops the command before it changes anything.
    pub async fn texts(&self) -> Result<Vec<Text>, Trouble> {
        if let Some(folder) = self.kustomization() {
            return Ok(vec![built(folder.to_owned()).await]);
        }
        let mut places = Vec::new();
        let mut problems = Vec::new();
        let mut stdin_used = false;
        for name in &self.filenames {
            if name == "-" {
                if std::mem::replace(&mut stdin_used, true) {
                    problems.push(Trouble::text(
                        "standard input cannot be used for multiple arguments",
                    ));
                }
                places.push(Place::Stdin);
            } else if is_url(name) {
                places.push(Place::Url(name.clone()));
            } else {
                match files(name, self.recursive) {
                    Ok(found) => places.extend(found.into_iter().map(Place::File)),
                    Err(e) => problems.push(e),
                }
            }
        }
        if !problems.is_empty() {
            return Err(Trouble::Many(problems));
        }
        if places.is_empty() {
            let names = self.filenames.join(" ");
            return Err(Trouble::text(format!(
                "error reading [{names}]: recognized file extensions are [.json .yaml .yml]"
            )));
        }
        let mut texts = Vec::new();
        for place in places {
            texts.push(place.read().await);
        }
        Ok(texts)
    }
}

enum Place {
    Stdin,
    Url(String),
    File(PathBuf),
}

impl Place {
    async fn read(self) -> Text {
        match self {
            Self::Stdin => Text {
                source: "STDIN".into(),
                data: limited(std::io::stdin().lock()),
            },
            Self::File(path) => {
                let data = fs::File::open(&path)
                    .map_err(|e| format!("open {}: {}", path.display(), crate::client::reason(&e)));
                let data = data.and_then(|file| {
                    limited(file).map_err(|e| format!("read {}: {e}", path.display()))
                });
                Text {
                    source: path.display().to_string(),
                    data,
                }
            }
            Self::Url(url) => Text {
                data: download(&url).await,
                source: shown(&url),
            },
        }
    }
}

/// The objects of a kustomization. Building one takes long, and may fetch with threads of its own.
async fn built(folder: String) -> Text {
    let source = shown(&folder);
    let work = tokio::task::spawn_blocking(move || kustomize::objects(&folder));
    let built = match work.await {
        Ok(built) => built.map(String::into_bytes),
        Err(e) => Err(format!("cannot build the kustomization {source:?}: {e}")),
    };
    Text {
        source,
        data: built,
    }
}

/// The content of a file, of a URL, or of standard input for `-`.
pub async fn read_one(name: &str) -> Result<Vec<u8>, String> {
    let place = match name {
        "-" => Place::Stdin,
        _ if is_url(name) => Place::Url(name.to_owned()),
        _ => Place::File(PathBuf::from(name)),
    };
    place.read().await.data
}

/// Whether a name is that of something to download.
pub fn is_url(name: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        name.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

/// The name of an input for messages: a URL's user and password are secrets, and its query may hold
/// a signature or a token.
pub fn shown(name: &str) -> String {
    if !is_url(name) {
        return name.to_owned();
    }
    let mut shown = without_user(name);
    if let Some(at) = shown.find('?') {
        shown.replace_range(at + 1.., "******");
    }
    shown
}

fn without_user(name: &str) -> String {
    if let Ok(mut url) = reqwest::Url::parse(name) {
        let has_user = url.password().is_some() || !url.username().is_empty();
        if !has_user {
            return name.to_owned();
        }
        if url.set_password(None).is_ok() && url.set_username("").is_ok() {
            return url.to_string();
        }
    }
    // Where the password ends is not known: it may have any character.
    match (name.split_once("://"), name.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => name.to_owned(),
    }
}

fn limited(from: impl std::io::Read) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    from.take(MAX_INPUT + 1)
        .read_to_end(&mut data)
        .map_err(|e| crate::client::reason(&e))?;
    if data.len() as u64 > MAX_INPUT {
        Err(format!("it is larger than {} MiB", MAX_INPUT >> 20))
    } else {
        Ok(data)
    }
}

async fn download(url: &str) -> Result<Vec<u8>, String> {
    // A redirect to another host gets nothing of the first URL, which may hold a password or a
    // signature: neither as credentials nor as `Referer`.
    let client = reqwest::Client::builder()
        .timeout(URL_TIMEOUT)
        .referer(false)
        .build()
        .map_err(|e| e.to_string())?;
    let named = shown(url);
    let mut problem = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let mut response = match client.get(url).send().await {
            Ok(response) => response,
            Err(e) => {
                problem = format!(
                    "unable to read URL {named:?}: {}",
                    root_cause(&e.without_url())
                );
                continue;
            }
        };
        let status = response.status();
        if status.as_u16() != 200 {
            problem = format!(
                "unable to read URL {named:?}, server reported {status}, status code={}",
                status.as_u16()
            );
            if status.is_server_error() {
                continue;
            }
            break;
        }
        let mut data = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| {
            format!(
                "unable to read URL {named:?}: {}",
                root_cause(&e.without_url())
            )
        })? {
            data.extend_from_slice(&chunk);
            if data.len() as u64 > MAX_INPUT {
                return Err(format!("{named} is larger than {} MiB", MAX_INPUT >> 20));
            }
        }
        return Ok(data);
    }
    Err(problem)
}

fn root_cause(e: &dyn std::error::Error) -> String {
    let mut e = e;
    while let Some(source) = e.source() {
        e = source;
    }
    e.to_string()
}

/// The files for a name: the file itself, those in a folder, or those that match a pattern.
fn files(name: &str, recursive: bool) -> Result<Vec<PathBuf>, Trouble> {
    let missing = || Trouble::text(format!("the path {name:?} does not exist"));
    let mut found = Vec::new();
    let roots = if Path::new(name).exists() {
        vec![PathBuf::from(name)]
    } else {
        matching(name)
    };
    if roots.is_empty() {
        return Err(missing());
    }
    for root in roots {
        if !root.is_dir() {
            found.push(root);
            continue;
        }
        walk(&root, recursive, &mut found).map_err(|e| {
            Trouble::text(format!(
                "error reading {:?}: {}",
                root.display().to_string(),
                crate::client::reason(&e)
            ))
        })?;
    }
    Ok(found)
}

/// Ordered by name, folders and files mixed.
fn walk(folder: &Path, recursive: bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // A link to a folder is not followed, because links may form cycles.
        if entry.file_type()?.is_dir() {
            if recursive {
                walk(&path, true, found)?;
            }
        } else if path
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| EXTENSIONS.contains(&e))
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Paths that match a pattern, sorted; a `*` does not cross folders.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let mut bases = vec![if pattern.starts_with('/') {
        PathBuf::from("/")
    } else {
        PathBuf::new()
    }];
    for part in pattern.split('/').filter(|p| !p.is_empty()) {
        let mut next = Vec::new();
        let is_pattern = part.contains(['*', '?', '[']);
        let glob = tiphys_gocompat::glob::Glob::new(part, &['/']).ok();
        for base in &bases {
            if !is_pattern {
                next.push(base.join(part));
                continue;
            }
            let folder = if base.as_os_str().is_empty() {
                Path::new(".")
            } else {
                base
            };
            let mut names: Vec<String> = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|e| e.file_name().into_string().ok())
                .collect();
            names.sort();
            next.extend(
                names
                    .into_iter()
                    .filter(|n| glob.as_ref().is_some_and(|g| g.matches(n)))
                    .map(|n| base.join(n)),
            );
        }
        bases = next;
    }
    bases.into_iter().filter(|p| p.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_patterns_and_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).expect("made");
        for name in ["b.yaml", "a.json", "c.txt", "sub/d.yml"] {
            fs::write(at(name), "").expect("written");
        }
        let names = |name: &str, recursive: bool| -> Vec<String> {
            let found = files(at(name).to_str().expect("UTF-8"), recursive).unwrap_or_default();
            found
                .iter()
                .map(|p| {
                    p.strip_prefix(folder.path())
                        .expect("below")
                        .display()
                        .to_string()
                })
                .collect()
        };
        assert_eq!(names("", false), ["a.json", "b.yaml"]);
        assert_eq!(names("", true), ["a.json", "b.yaml", "sub/d.yml"]);
        assert_eq!(names("*.yaml", false), ["b.yaml"]);
        assert_eq!(names("s*/*.yml", false), ["sub/d.yml"]);
        assert_eq!(names("c.txt", false), ["c.txt"]);
        assert!(files("no/such/*.yaml", false).is_err());
    }

    #[test]
    fn a_kustomization_stands_alone() {
        let args = |filenames: &[&str], kustomize: &str, recursive: bool| FileArgs {
            filenames: filenames.iter().map(ToString::to_string).collect(),
            kustomize: Some(kustomize.to_owned()),
            recursive,
        };
        let problem = |args: FileArgs| args.check().err().map(|trouble| trouble.report());
        assert_eq!(problem(args(&[], "dir", false)), None);
        for (args, expected) in [
            (
                args(&[], "", false),
                "error: must specify one of -f and -k\n",
            ),
            (
                args(&["a"], "dir", false),
                "error: only one of -f or -k can be specified\n",
            ),
            (
                args(&[], "dir", true),
                "error: the -k flag can't be used with -f or -R\n",
            ),
        ] {
            assert_eq!(problem(args).as_deref(), Some(expected));
        }
    }

    #[test]
    fn urls_are_shown_without_their_passwords() {
        for (name, is, expected) in [
            (
                "HTTPS://u:p@a.example/x?y=1",
                true,
                "https://a.example/x?******",
            ),
            (
                "https://a.example/x?token=hidden#part",
                true,
                "https://a.example/x?******",
            ),
            // No URLs: the port is none.
            ("https://u:hid/den@a.example/x", true, "https://a.example/x"),
            (
                "https://u:hid@den@a.example:no/x?signature=hidden",
                true,
                "https://a.example:no/x?******",
            ),
            ("https://a.example:no/x", true, "https://a.example:no/x"),
            ("http://token@a.example/x", true, "http://a.example/x"),
            ("https://a.example", true, "https://a.example"),
            ("https:/a", false, "https:/a"),
            ("dir/http://x", false, "dir/http://x"),
            ("é", false, "é"),
        ] {
            assert_eq!((is_url(name), shown(name).as_str()), (is, expected));
        }
    }
}
