//! `/swagger.json` and `/swagger-ui`: the calls of REST, for programs and for people. Both are
//! public: they say what every server of this version can do. Main function: [`handle`].

mod document;
mod page;

use crate::state::{State, Swagger};
use http::{HeaderValue, Response, StatusCode, header};
use std::sync::Arc;
use tiphys_rpc::{Role as _, heavy, text};
use tonic::body::Body;

const DOCUMENT: &str = "/swagger.json";
const PAGE: &str = "/swagger-ui";
/// No other page may frame it, and it needs nothing but its own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// What is answered.
fn made(state: &State) -> Swagger {
    let document = document::document(state.table().calls(), &state.options.version.version);
    Swagger {
        page: page::page(&document).into(),
        document: document.to_string().into(),
    }
}

/// Whether it is the path of one of them.
pub fn is_path(path: &str) -> bool {
    [DOCUMENT, PAGE].contains(&path)
}

pub async fn handle(state: &Arc<State>, path: &str) -> Response<Body> {
    // Making it takes long, so the first caller has it made away from the threads that answer.
    if state.swagger.get().is_none() {
        let state = state.clone();
        heavy::run(move || {
            state.swagger.get_or_init(|| made(&state));
        })
        .await;
    }
    let swagger = state.swagger.get_or_init(|| made(state));
    let (kind, content) = match path {
        DOCUMENT => ("application/json", &swagger.document),
        _ => ("text/html; charset=utf-8", &swagger.page),
    };
    let mut response = text(StatusCode::OK, content.clone());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
