//! Parses URL paths. Main type: [`Route`]; it looks only at the words, not at which resources are
//! served.

mod query;

pub use query::Query;

/// The parts of a resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub group: String,
    pub version: String,
    /// None: cluster scope, or all namespaces.
    pub namespace: Option<String>,
    pub resource: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// There are more segments after the subresource (`proxy/...`).
    pub rest: bool,
    /// The legacy watch path: `watch` before the segments of the resource.
    pub watched: bool,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Index,
    Health(String),
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`
    Resources(String, String),
    Resource(Target),
    /// A segment that names an action without a resource.
    Incomplete,
    OpenApiV2,
    OpenApiV3,
    /// `/openapi/v3/<path>`
    OpenApiV3Group(String),
    /// `/.well-known/openid-configuration`
    OpenId,
    /// `/openid/v1/jwks`
    KeySet,
    Unknown,
}

/// Parses a path; escapes are decoded per segment. Most handlers ignore trailing slashes; a double
/// slash elsewhere has an empty segment in between.
pub fn parse(path: &str) -> Route {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let trimmed = inner.trim_end_matches('/');
    let ends = inner.len() - trimmed.len();
    let segments: Vec<String> = trimmed.split('/').map(decode).collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [""] if ends == 0 => Route::Index,
        ["", ..] => Route::Unknown,
        ["openapi", "v3", rest @ ..] if ends > 0 => {
            Route::OpenApiV3Group(format!("{}/", rest.join("/")))
        }
        ["healthz" | "livez" | "readyz" | "openapi", ..] if ends > 0 => Route::Unknown,
        ["apis"] if ends > 1 => Route::Unknown,
        ["apis", "", ..] => Route::Unknown,
        ["healthz" | "livez" | "readyz", rest @ ..] => Route::Health(rest.join("/")),
        ["version"] => Route::Version,
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiV3,
        ["openapi", "v3", rest @ ..] => Route::OpenApiV3Group(rest.join("/")),
        [".well-known", "openid-configuration"] => Route::OpenId,
        ["openid", "v1", "jwks"] => Route::KeySet,
        ["api"] => Route::CoreVersions,
        ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["apis", group, version] => Route::Resources((*group).to_owned(), (*version).to_owned()),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, words: &[&str]) -> Route {
    let own = |word: &&str| (*word).to_owned();
    let (watched, words) = match words {
        ["watch" | "proxy"] => return Route::Incomplete,
        ["watch", rest @ ..] => (true, rest),
        _ => (false, words),
    };
    let base = Target {
        group: group.to_owned(),
        version: version.to_owned(),
        watched,
        ..Target::default()
    };
    let is_namespace_part = |sub: &str| group.is_empty() && matches!(sub, "status" | "finalize");
    let (namespace, rest) = match words {
        ["namespaces", _, sub] if is_namespace_part(sub) => (None, words),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (Some((*namespace).to_owned()), rest)
        }
        _ => (None, words),
    };
    let [kind, rest @ ..] = rest else {
        return Route::Unknown;
    };
    Route::Resource(Target {
        namespace,
        resource: (*kind).to_owned(),
        name: rest.first().map(own),
        subresource: rest.get(1).map(own),
        rest: rest.len() > 2,
        ..base
    })
}

/// Percent-decoding; invalid escapes are left as they are.
pub fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let escape = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match escape {
            Some(byte) => {
                out.push(byte);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match parse(path) {
            Route::Resource(target) => target,
            other => panic!("{path} gave {other:?}"),
        }
    }

    #[test]
    fn namespaces_are_a_scope_and_a_resource() {
        let t = target("/api/v1/namespaces/ns/pods/p/log");
        assert_eq!(
            (t.namespace.as_deref(), t.resource.as_str()),
            (Some("ns"), "pods")
        );
        assert_eq!(
            (t.name.as_deref(), t.subresource.as_deref()),
            (Some("p"), Some("log"))
        );
        let t = target("/api/v1/namespaces/ns");
        assert_eq!(
            (t.namespace, t.resource.as_str(), t.name.as_deref()),
            (None, "namespaces", Some("ns"))
        );
        let t = target("/api/v1/namespaces/ns/finalize");
        assert_eq!(
            (t.resource.as_str(), t.subresource.as_deref()),
            ("namespaces", Some("finalize"))
        );
        let t = target("/apis/apps/v1/deployments");
        assert_eq!(
            (t.group.as_str(), t.namespace, t.name),
            ("apps", None, None)
        );
        assert_eq!(target("/api/v1/nodes/a%2Fb").name.as_deref(), Some("a/b"));
    }

    #[test]
    fn slashes_count_except_at_the_end() {
        assert_eq!(target("/api/v1/nodes/a//"), target("/api/v1/nodes/a"));
        assert_eq!(
            target("/api/v1/namespaces//pods").namespace.as_deref(),
            Some("")
        );
        assert_eq!(target("/api/v1//nodes").resource, "");
        let paths = [
            "//api/v1",
            "//",
            "/healthz/",
            "/apis//",
            "/apis//apps",
            "/openapi/v2/",
        ];
        assert!(paths.iter().all(|path| parse(path) == Route::Unknown));
    }

    #[test]
    fn a_watch_may_be_asked_for_in_the_path() {
        let t = target("/apis/apps/v1/watch/namespaces/ns/deployments/d");
        assert_eq!(
            (t.watched, t.namespace.as_deref(), t.name.as_deref()),
            (true, Some("ns"), Some("d"))
        );
        assert_eq!(parse("/api/v1/watch/"), Route::Incomplete);
    }
}
