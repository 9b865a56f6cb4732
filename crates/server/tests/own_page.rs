//! What an installation adds to the page: its style sheet, files beside the page, and extensions.

use crate::common::World;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use std::fs;
use tiphys_server::Options;

async fn ask(world: &World, path: &str, accept: &str) -> (u16, HeaderMap, String) {
    let request = Request::get(path).header("accept", accept);
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let (parts, body) = world.send(request).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    (parts.status.as_u16(), parts.headers, text)
}

fn policy(headers: &HeaderMap) -> &str {
    headers["content-security-policy"].to_str().expect("text")
}

#[tokio::test]
async fn the_page_may_have_styles_of_the_host_that_is_configured_only() {
    let sheet = "https://static.example.org/a.css";
    let world = World::start_with(&[("ui.cssurl", sheet)], &[]).await;
    for path in ["/", "/applications/shop"] {
        let (_, headers, text) = ask(&world, path, "text/html").await;
        let wanted = "style-src 'self' 'unsafe-inline' https://static.example.org;";
        assert!(policy(&headers).contains(wanted), "{}", policy(&headers));
        assert_eq!(policy(&headers).matches("example.org").count(), 1);
        assert_eq!(text, "the page", "{path}");
    }
    let (_, headers, _) = ask(&world, "/api/v1/settings", "application/json").await;
    assert!(!policy(&headers).contains("example.org"));
    let world = World::start_with(&[("ui.cssurl", "./custom/a.css")], &[]).await;
    let (_, headers, _) = ask(&world, "/", "text/html").await;
    assert_eq!(policy(&headers), tiphys_rpc::CONTENT_SECURITY_POLICY);
}

#[tokio::test]
async fn files_are_served_beside_the_page_and_none_from_elsewhere() {
    let dir = tempfile::tempdir().expect("a folder");
    let (inside, outside) = (dir.path().join("app"), dir.path().join("outside.css"));
    fs::create_dir_all(inside.join("custom")).expect("a folder");
    for (name, text) in [("a.css", "a {}"), ("a.js", "alert()"), ("index.html", "x")] {
        fs::write(inside.join("custom").join(name), text).expect("a file");
    }
    fs::write(&outside, "secret").expect("a file");
    let link = inside.join("custom/b.css");
    std::os::unix::fs::symlink(&outside, link).expect("a link");
    std::os::unix::fs::symlink("a.css", inside.join("custom/c.css")).expect("a link");
    let world = World::start().await;
    let (status, _, _) = ask(&world, "/custom/a.css", "text/css").await;
    assert_eq!(status, 404, "no folder is configured");
    let options = Options {
        static_files: Some(inside),
        ..Options::default()
    };
    let world = world.again(options).await;
    for path in ["/custom/a.css", "/custom/c.css"] {
        let (status, headers, text) = ask(&world, path, "text/css,*/*;q=0.1").await;
        assert_eq!((status, &*text), (200, "a {}"), "{path}");
        assert_eq!(headers["content-type"], "text/css; charset=utf-8");
    }
    for path in [
        "/custom/a.js",
        "/custom/b.css",
        "/custom/index.html",
        "/custom",
        "/none.css",
    ] {
        let (status, _, text) = ask(&world, path, "text/css,*/*;q=0.1").await;
        assert_eq!(status, 404, "{path}: {text}");
    }
    // Dots are taken out of a path before anything is looked up there.
    for path in [
        "/custom/../../outside.css",
        "/custom/%2e%2e/%2e%2e/outside.css",
    ] {
        let (status, headers, _) = ask(&world, path, "text/css").await;
        assert_eq!(status, 307, "{path}");
        assert_eq!(headers["location"], "/outside.css", "{path}");
    }
}

#[tokio::test]
async fn extensions_are_one_script() {
    let dir = tempfile::tempdir().expect("a folder");
    let below = dir.path().join("resources/rollout");
    fs::create_dir_all(&below).expect("a folder");
    fs::write(below.join("extension.js"), "first()").expect("a file");
    fs::write(dir.path().join("extensions-b.js"), "second()").expect("a file");
    fs::write(dir.path().join("other.js"), "third()").expect("a file");
    let world = World::start().await;
    let (status, headers, text) = ask(&world, "/extensions.js", "*/*").await;
    assert_eq!((status, &*text), (200, ""));
    assert_eq!(headers["content-type"], "application/javascript");
    let options = |folder: &std::path::Path| Options {
        page_extensions: Some(folder.to_owned()),
        ..Options::default()
    };
    let full = world.again(options(dir.path())).await;
    let (status, headers, text) = ask(&full, "/extensions.js", "*/*").await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(headers["content-type"], "application/javascript");
    for part in [
        "try {\nsecond()\n} catch (e)",
        "try {\nfirst()\n} catch (e)",
        "\"The extension extensions-b.js failed:\"",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("third"), "{text}");
    let none = world.again(options(&dir.path().join("none"))).await;
    let (status, _, text) = ask(&none, "/extensions.js", "*/*").await;
    assert_eq!((status, &*text), (200, ""));
    let file = world.again(options(&dir.path().join("other.js"))).await;
    let (status, _, text) = ask(&file, "/extensions.js", "*/*").await;
    assert_eq!((status, &*text), (500, "the extensions cannot be read\n"));
}
