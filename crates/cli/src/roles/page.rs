//! The embedded web UI, in the server's form.

use tiphys_server::Assets;

mod files {
    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

const WITHOUT: &str = "<!doctype html><title>Tiphys</title><p>This program was built without its page. Run <code>make ui</code> and build again. The API is at <code>/api/v1</code>.";

/// All files with their media types.
pub fn assets() -> Assets {
    if files::FILES.is_empty() {
        return Assets::new([("index.html", "text/html; charset=utf-8", WITHOUT)]);
    }
    Assets::new(
        files::FILES
            .iter()
            .map(|(name, bytes)| (*name, media_type(name), *bytes)),
    )
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" => "application/json",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
