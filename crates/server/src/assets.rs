//! The web UI's static files, in memory. Browsers get `index.html` for unknown paths: the web UI
//! does its own routing.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use std::collections::HashMap;
use tiphys_rpc::text;
use tonic::body::Body;

/// Files by path, without a leading slash.
#[derive(Clone, Default)]
pub struct Assets(HashMap<String, File>);

#[derive(Clone)]
struct File {
    mime: String,
    bytes: Bytes,
}

const INDEX: &str = "index.html";

impl Assets {
    /// From (path, MIME type, content).
    pub fn new<P: Into<String>, M: Into<String>, B: Into<Bytes>>(
        files: impl IntoIterator<Item = (P, M, B)>,
    ) -> Self {
        let entry = |(path, mime, bytes): (P, M, B)| {
            let path: String = path.into();
            (
                path.trim_start_matches('/').to_owned(),
                File {
                    mime: mime.into(),
                    bytes: bytes.into(),
                },
            )
        };
        Self(files.into_iter().map(entry).collect())
    }

    /// The same below a path: the page finds its files, and is told where it is.
    pub(crate) fn below(mut self, root: &str) -> Self {
        let root = root.trim_matches('/');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
        let page = self.0.get_mut(INDEX);
        if let Some(page) = page.filter(|_| !root.is_empty() && root.chars().all(is_plain))
            && let Ok(text) = std::str::from_utf8(&page.bytes)
        {
            let told = format!("<head>\n    <meta name=\"tiphys-root\" content=\"/{root}\" />");
            let text = ["href", "src"].iter().fold(text.to_owned(), |text, name| {
                text.replace(&format!(" {name}=\"/"), &format!(" {name}=\"/{root}/"))
            });
            page.bytes = text.replacen("<head>", &told, 1).into();
        }
        self
    }

    /// Whether one of the files has this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path.trim_start_matches('/'))
    }

    /// The file, or the page for what a browser takes for one.
    pub(crate) fn respond(&self, path: &str, accepts_html: bool) -> Response<Body> {
        let path = path.trim_start_matches('/');
        if path == INDEX && !accepts_html {
            return moved();
        }
        let found = self.0.get(path).map(|file| (path, file));
        let page = || self.0.get(INDEX).map(|file| (INDEX, file));
        let found = found.or_else(|| {
            if accepts_html || path.is_empty() {
                page()
            } else {
                None
            }
        });
        let mut response = match found {
            Some((_, file)) => {
                let body = http_body_util::Full::new(file.bytes.clone());
                let mut response = Response::new(Body::new(body));
                let mime = HeaderValue::from_str(&file.mime);
                let mime = mime.unwrap_or(HeaderValue::from_static("application/octet-stream"));
                response.headers_mut().insert(header::CONTENT_TYPE, mime);
                response
            }
            None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        };
        let caching = match found {
            // Built files have a content hash in their names.
            Some((path, _)) if path.starts_with("assets/") => IMMUTABLE,
            Some((INDEX, _)) if accepts_html => NEVER,
            Some((path, _)) if path != INDEX => REVALIDATED,
            _ => &[],
        };
        for (name, value) in ALWAYS.iter().chain(caching) {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(*name, value);
        }
        response
    }
}

/// The page has one address.
fn moved() -> Response<Body> {
    let mut response = text(StatusCode::MOVED_PERMANENTLY, "");
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    headers.insert(header::LOCATION, HeaderValue::from_static("./"));
    for (name, value) in ALWAYS {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    response
}

type Headers = &'static [(&'static str, &'static str)];
const ALWAYS: Headers = &[
    ("x-robots-tag", "noindex, nofollow"),
    ("x-xss-protection", "1"),
];
const IMMUTABLE: Headers = &[("cache-control", "public, max-age=31536000, immutable")];
const REVALIDATED: Headers = &[("cache-control", "no-cache")];
/// The page names the other files, so an old one would name files that are gone.
const NEVER: Headers = &[
    ("cache-control", "no-cache, private, max-age=0"),
    ("expires", "Thu, 01 Jan 1970 00:00:00 UTC"),
    ("pragma", "no-cache"),
    ("x-accel-expires", "0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn below_a_path_the_page_finds_its_files() {
        let page = "<head>\n<link href=\"/favicon.svg\" />\n<script src=\"/assets/a.js\"></script>";
        let assets = Assets::new([("index.html", "text/html", page)]);
        let shown = async |assets: Assets| {
            use http_body_util::BodyExt as _;
            let body = assets.respond("/", true).into_body().collect().await;
            String::from_utf8(body.expect("a page").to_bytes().to_vec()).expect("text")
        };
        assert_eq!(shown(assets.clone().below("/")).await, page);
        let below = shown(assets.clone().below("/a/b/")).await;
        for part in [
            "<meta name=\"tiphys-root\" content=\"/a/b\" />",
            "href=\"/a/b/favicon.svg\"",
            "src=\"/a/b/assets/a.js\"",
        ] {
            assert!(below.contains(part), "{below}");
        }
        // It becomes part of the page.
        assert_eq!(shown(assets.below("/\"><script>")).await, page);
    }

    #[test]
    fn browsers_get_the_page_for_unknown_paths() {
        let assets = Assets::new([
            ("/index.html", "text/html", "page"),
            ("assets/a-1.js", "text/javascript", "x"),
        ]);
        for (path, accepts_html, status, mime, cache) in [
            ("/", true, 200, "text/html", "no-cache, private, max-age=0"),
            ("/", false, 200, "text/html", ""),
            (
                "/applications/n/a.b",
                true,
                200,
                "text/html",
                "no-cache, private, max-age=0",
            ),
            (
                "/applications/n/a",
                false,
                404,
                "text/plain; charset=utf-8",
                "",
            ),
            (
                "/assets/a-1.js",
                false,
                200,
                "text/javascript",
                "public, max-age=31536000, immutable",
            ),
            ("/assets/b.js", false, 404, "text/plain; charset=utf-8", ""),
            ("/index.html", false, 301, "", ""),
        ] {
            let response = assets.respond(path, accepts_html);
            let text = |name| {
                let value = response.headers().get(name);
                value.map_or("", |v| v.to_str().expect("text")).to_owned()
            };
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(text(header::CONTENT_TYPE), mime, "{path}");
            assert_eq!(text(header::CACHE_CONTROL), cache, "{path}");
        }
        let nothing = Assets::default().respond("/", true);
        assert_eq!(nothing.status(), StatusCode::NOT_FOUND);
    }
}
