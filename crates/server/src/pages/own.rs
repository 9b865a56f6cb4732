//! What an installation adds to the page: its style sheet (`ui.cssurl`), files that are served
//! beside the page, and the script of the page's extensions.

use crate::state::State;
use http::{HeaderValue, Response, StatusCode, header};
use reqwest::Url;
use std::{
    ffi::OsStr,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};
use tiphys_rpc::text;
use tonic::body::Body;

/// The script with the extensions of the page, which loads it.
pub const EXTENSIONS: &str = "/extensions.js";
/// The setting with the address of the style sheet.
const STYLE_SHEET: &str = "ui.cssurl";
/// Of one file, or of all files of the script together.
const MAX_BYTES: usize = 16 << 20;
const MAX_FILES: usize = 1000;
const MAX_DEPTH: usize = 8;
/// The page does not wait longer for what only decides how it looks.
const PATIENCE: Duration = Duration::from_millis(500);
/// What a style sheet needs. Scripts are not among them: those are extensions.
const TYPES: [(&str, &str); 10] = [
    ("css", "text/css; charset=utf-8"),
    ("gif", "image/gif"),
    ("ico", "image/x-icon"),
    ("jpg", "image/jpeg"),
    ("otf", "font/otf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("ttf", "font/ttf"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
];

/// The content policy of the page, where its style sheet is on another host; `None`: the policy
/// of all answers.
pub async fn policy(state: &State) -> Option<HeaderValue> {
    let settings = tokio::time::timeout(PATIENCE, state.settings.get()).await;
    let settings = settings.ok()?.ok()?;
    let sheet = settings.value(STYLE_SHEET);
    let policy = with_styles_of(&state.options.content_security_policy, sheet)?;
    HeaderValue::from_str(&policy).ok()
}

/// The policy with the origin of a style sheet among those of styles. `None` if the sheet is on no
/// other host, or the policy does not say where styles may come from.
fn with_styles_of(policy: &str, sheet: &str) -> Option<String> {
    let url = Url::parse(sheet.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let origin = url.origin().ascii_serialization();
    // A `;` in the name of a host would begin another directive.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:/[]".contains(c);
    if !origin.chars().all(is_plain) {
        return None;
    }
    let is_styles = |directive: &&str| {
        let name = directive.split_whitespace().next();
        name.is_some_and(|name| name.eq_ignore_ascii_case("style-src"))
    };
    let styles = policy.split(';').find(is_styles)?;
    let widened = format!("{} {origin}", styles.trim_end());
    Some(policy.replacen(styles, &widened, 1))
}

/// A file that is served beside the page; `None`: there is none at this path.
pub async fn file(state: &State, path: &str) -> Option<Response<Body>> {
    let folder = state.options.static_files.clone()?;
    let relative = PathBuf::from(plain(path)?);
    let mime = mime_of(&relative)?;
    match blocking(move || read_below(&folder, &relative)).await {
        Ok(bytes) => {
            let mut response = text(StatusCode::OK, bytes);
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            Some(response)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => {
            tracing::error!(path, error = %e, "A file beside the page cannot be read");
            let why = "the file cannot be read\n";
            Some(text(StatusCode::INTERNAL_SERVER_ERROR, why))
        }
    }
}

/// The script with all extensions in this folder, or none.
pub async fn extensions(folder: Option<PathBuf>) -> Response<Body> {
    let script = match folder {
        Some(folder) => blocking(move || script(&folder)).await,
        None => Ok(Vec::new()),
    };
    match script {
        Ok(script) => {
            let mut response = text(StatusCode::OK, script);
            let mime = HeaderValue::from_static("application/javascript");
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, mime);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            response
        }
        Err(e) => {
            tracing::error!(error = %e, "The extensions of the page cannot be read");
            let why = "the extensions cannot be read\n";
            text(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(read)
        .await
        .map_err(io::Error::other)?
}

/// A path in which nothing leads upwards, is hidden, or means something to the file system.
fn plain(path: &str) -> Option<&str> {
    let path = path.trim_start_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let is_name =
        |name: &str| !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
    path.split('/').all(is_name).then_some(path)
}

fn mime_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    let known = TYPES.iter().find(|(name, _)| *name == extension);
    known.map(|(_, mime)| *mime)
}

/// Links are followed, as volumes of Kubernetes need it, but not out of the folder.
fn read_below(folder: &Path, relative: &Path) -> io::Result<Vec<u8>> {
    let folder = folder.canonicalize()?;
    let path = folder.join(relative).canonicalize()?;
    if !path.starts_with(&folder) || !path.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    read(&path, MAX_BYTES)
}

fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    let mut file = fs::File::open(path)?.take(limit.saturating_add(1));
    file.read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let why = format!("{} is too large", path.display());
        return Err(io::Error::other(why));
    }
    Ok(bytes)
}

/// Each extension has a block of its own: one that fails does not take the others along.
fn script(folder: &Path) -> io::Result<Vec<u8>> {
    if !folder.try_exists()? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    find(folder, 0, &mut found)?;
    found.sort();
    let mut script = Vec::new();
    for path in found {
        let left = MAX_BYTES.saturating_sub(script.len());
        let content = read(&path, left)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let failed = serde_json::Value::from(format!("The extension {name} failed:"));
        script.extend_from_slice(b"try {\n");
        script.extend_from_slice(&content);
        let end = format!("\n}} catch (e) {{ console.error({failed}, e); }}\n");
        script.extend_from_slice(end.as_bytes());
    }
    Ok(script)
}

/// As in Argo CD, links are not followed.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let too_much = |what: &str| {
        let why = format!("{} has too many {what}", folder.display());
        io::Error::other(why)
    };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if depth >= MAX_DEPTH {
                return Err(too_much("folders in folders"));
            }
            find(&entry.path(), depth + 1, found)?;
        } else if kind.is_file() && is_extension(&entry.file_name()) {
            found.push(entry.path());
        }
        if found.len() > MAX_FILES {
            return Err(too_much("extensions"));
        }
    }
    Ok(())
}

fn is_extension(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("extension") && name.ends_with(".js")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_the_origin_of_the_style_sheet_and_nothing_else() {
        let own = "default-src 'self'; style-src 'self' 'unsafe-inline'; object-src 'none'";
        let widened = |sheet: &str| with_styles_of(own, sheet);
        assert_eq!(
            widened("https://static.example.org:8443/a/b.css?x").as_deref(),
            Some(
                "default-src 'self'; style-src 'self' 'unsafe-inline' \
                 https://static.example.org:8443; object-src 'none'"
            )
        );
        for sheet in [
            "",
            "./custom/a.css",
            "/custom/a.css",
            "//static.example.org/a.css",
            "data:text/css,a",
            "file:///etc/passwd",
            "https://",
            "https://a;script-src/x.css",
            "https://a b/x.css",
        ] {
            assert_eq!(widened(sheet), None, "{sheet}");
        }
        let sheet = "https://static.example.org/a.css";
        for policy in ["", "default-src 'self'", "style-src-elem 'self'"] {
            assert_eq!(with_styles_of(policy, sheet), None, "{policy}");
        }
        assert_eq!(
            with_styles_of("Style-Src 'self'", sheet).as_deref(),
            Some("Style-Src 'self' https://static.example.org")
        );
    }

    #[test]
    fn only_plain_paths_are_looked_for() {
        assert_eq!(plain("/custom/a-1.css"), Some("custom/a-1.css"));
        for path in [
            "",
            "/",
            "/custom//a.css",
            "/custom/../a.css",
            "/..data/a.css",
            "/.git/a.css",
            "/a\\b.css",
            "/a%2e.css",
            "/a\0.css",
        ] {
            assert_eq!(plain(path), None, "{path:?}");
        }
    }
}
