//! Plain HTTP on a port for TLS: who speaks it is told the right address. Main function:
//! [`answer`].

use crate::Received;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONNECTION, CONTENT_TYPE, HOST, LOCATION},
    uri::Authority,
};
use std::future::{Ready, ready};
use tokio::net::TcpStream;

/// The first byte of a TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;

/// Whether the client begins with anything else than TLS.
pub async fn is_plain(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1) if first[0] != HANDSHAKE)
}

/// Redirects to the same path of the same host.
pub fn answer(request: Request<Received>) -> Ready<Response<String>> {
    ready(redirect(&request))
}

fn redirect<B>(request: &Request<B>) -> Response<String> {
    let host = request.headers().get(HOST).and_then(|h| h.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    // It becomes part of an address.
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
    let target = host.map(|host| format!("https://{host}{path}"));
    let target = target.and_then(|t| Some((HeaderValue::from_str(&t).ok()?, t)));
    let Some((location, shown)) = target else {
        let mut refused = Response::new("this port speaks TLS only\n".to_owned());
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return refused;
    };
    let shown = shown.replace('&', "&amp;").replace('"', "&#34;");
    let shown = shown.replace('<', "&lt;").replace('>', "&gt;");
    let mut answer = Response::new(String::new());
    *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    answer.headers_mut().insert(LOCATION, location);
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        answer.headers_mut().insert(CONTENT_TYPE, html);
        *answer.body_mut() = format!("<a href=\"{shown}\">Temporary Redirect</a>.\n\n");
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_address_with_tls() {
        for (method, host, path, location) in [
            (
                "GET",
                "cd.example.com",
                "/api?x=1",
                "https://cd.example.com/api?x=1",
            ),
            ("POST", "[::1]:8080", "/", "https://[::1]:8080/"),
            ("GET", "", "/", ""),
            ("GET", "a/b", "/", ""),
            ("GET", "cd.example.com", "/<b>&\"", ""),
        ] {
            let request = Request::builder().method(method).uri(path);
            let Ok(request) = request.header(HOST, host).body(()) else {
                continue;
            };
            let answer = redirect(&request);
            let told = answer.headers().get(LOCATION).map(|l| l.to_str());
            assert_eq!(told.and_then(Result::ok).unwrap_or_default(), location);
            assert_eq!(
                answer.body().contains("href"),
                method == "GET" && !location.is_empty()
            );
        }
    }
}
