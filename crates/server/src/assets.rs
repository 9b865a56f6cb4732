//! The web UI's static files, in memory. Unknown paths without a file extension get `index.html`:
//! the web UI does its own routing.

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

    pub(crate) fn respond(&self, path: &str) -> Response<Body> {
        let path = path.trim_start_matches('/');
        let named = path
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains('.'));
        let found = self.0.get(path).map(|file| (path, file));
        let found = found.or_else(|| {
            if named {
                None
            } else {
                self.0.get(INDEX).map(|file| (INDEX, file))
            }
        });
        let Some((path, file)) = found else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let mut response = Response::new(Body::new(http_body_util::Full::new(file.bytes.clone())));
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_str(&file.mime)
                .unwrap_or(HeaderValue::from_static("application/octet-stream")),
        );
        // Built files have a content hash in their names; the page itself must be revalidated each
        // time.
        let cache = if path.starts_with("assets/") {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_paths_get_the_page_but_unknown_files_do_not() {
        let assets = Assets::new([
            ("/index.html", "text/html", "page"),
            ("assets/a-1.js", "text/javascript", "x"),
        ]);
        let mime = |path: &str| {
            assets.respond(path).headers()[header::CONTENT_TYPE]
                .to_str()
                .expect("text")
                .to_owned()
        };
        assert_eq!(mime("/"), "text/html");
        assert_eq!(mime("/applications/argocd/guestbook"), "text/html");
        assert_eq!(mime("/assets/a-1.js"), "text/javascript");
        assert_eq!(
            assets.respond("/assets/b.js").status(),
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            Assets::default().respond("/").status(),
            StatusCode::NOT_FOUND
        );
    }
}
