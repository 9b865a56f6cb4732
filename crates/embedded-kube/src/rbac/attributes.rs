//! The attributes of a request that roles are matched against. Main type: [`Attributes`], read from
//! the method and URL alone, never from the body.

use crate::route;
use crate::route::{Query, Route};
use crate::status::Status;
use http::Method;
use http::request::Parts;

/// A question to the authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// If false, only `path` is used.
    pub is_resource: bool,
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub name: String,
    pub namespace: String,
    pub path: String,
}

impl Attributes {
    /// The path is parsed as for routing, so that what is authorized is also what is executed.
    pub fn of(parts: &Parts) -> Self {
        let Route::Resource(target) = route::parse(parts.uri.path()) else {
            let (verb, path) = (
                parts.method.as_str().to_ascii_lowercase(),
                route::decode(parts.uri.path()),
            );
            return Self {
                verb,
                path,
                ..Self::default()
            };
        };
        let name = target.name.unwrap_or_default();
        let is_namespace = target.group.is_empty()
            && target.namespace.is_none()
            && target.resource == "namespaces";
        let mut this = Self {
            is_resource: true,
            verb: String::new(),
            namespace: if is_namespace {
                name.clone()
            } else {
                target.namespace.unwrap_or_default()
            },
            group: target.group,
            resource: target.resource,
            subresource: target.subresource.unwrap_or_default(),
            name,
            path: String::new(),
        };
        let named = !this.name.is_empty();
        let verb = match parts.method {
            _ if target.watched => "watch",
            Method::POST => "create",
            Method::GET | Method::HEAD if named => "get",
            Method::GET | Method::HEAD => {
                this.read_list(&Query::parse(parts.uri.query().unwrap_or("")))
            }
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "deletecollection",
            _ => "",
        };
        this.verb = verb.to_owned();
        this
    }

    /// A list that selects one name is authorized as a request for that name.
    fn read_list(&mut self, query: &Query) -> &'static str {
        let exact = |part: &str| {
            let (key, value) = part.split_once('=')?;
            (key.trim() == "metadata.name").then(|| value.trim_start_matches('=').trim().to_owned())
        };
        let name = query
            .get("fieldSelector")
            .and_then(|s| s.split(',').find_map(exact));
        if let Some(name) =
            name.filter(|n| !matches!(n.as_str(), "" | "." | "..") && !n.contains(['/', '%', '\\']))
        {
            self.name = name;
        }
        if query.flag("watch") { "watch" } else { "list" }
    }

    /// The error, with the API server's wording.
    pub fn forbidden(&self, user: &str, reason: &str) -> Status {
        let user = quoted(user);
        let verb = &self.verb;
        let mut text = if self.is_resource {
            let slash = if self.subresource.is_empty() { "" } else { "/" };
            let resource = quoted(&format!("{}{slash}{}", self.resource, self.subresource));
            let scope = if self.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quoted(&self.namespace))
            };
            format!(
                "User {user} cannot {verb} resource {resource} in API group {} {scope}",
                quoted(&self.group)
            )
        } else {
            format!("User {user} cannot {verb} path {}", quoted(&self.path))
        };
        text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        if !reason.is_empty() {
            text = format!("{text}: {reason}");
        }
        Status::forbidden(&self.group, &self.resource, &self.name, &text)
    }
}

/// Quotes the plain texts that appear here as Go's `%q` does.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str) -> Attributes {
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .body(())
            .expect("a request");
        Attributes::of(&request.into_parts().0)
    }

    #[test]
    fn verbs_names_and_namespaces_come_from_the_url() {
        let say = |a: Attributes| {
            format!(
                "{} {}/{} {}/{} {}",
                a.verb, a.group, a.resource, a.namespace, a.name, a.subresource
            )
        };
        assert_eq!(
            say(of("GET", "/api/v1/namespaces/a/pods")),
            "list /pods a/ "
        );
        assert_eq!(
            say(of("GET", "/api/v1/namespaces/a/pods?watch=true")),
            "watch /pods a/ "
        );
        assert_eq!(
            say(of("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx")),
            "list /pods /x "
        );
        assert_eq!(
            say(of(
                "DELETE",
                "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx"
            )),
            "deletecollection /pods a/ "
        );
        assert_eq!(
            say(of("GET", "/api/v1/namespaces/a")),
            "get /namespaces a/a "
        );
        assert_eq!(
            say(of("PUT", "/api/v1/namespaces/a/finalize")),
            "update /namespaces a/a finalize"
        );
        assert_eq!(
            say(of("POST", "/apis/apps/v1/namespaces/a/deployments/d/scale")),
            "create apps/deployments a/d scale"
        );
        assert_eq!(of("GET", "/apis/apps/v1").path, "/apis/apps/v1");
        assert_eq!(of("GET", "/healthz/x").verb, "get");
    }

    #[test]
    fn the_refusal_names_user_verb_resource_and_scope() {
        let status = of("GET", "/api/v1/namespaces/y/pods").forbidden("x", "");
        assert_eq!(
            status.message,
            "pods is forbidden: User \"x\" cannot list resource \"pods\" in API group \"\" in the namespace \"y\""
        );
        let status = of("GET", "/metrics").forbidden("x", "");
        assert_eq!(
            status.message,
            "forbidden: User \"x\" cannot get path \"/metrics\""
        );
        let status = of("DELETE", "/apis/apps/v1/namespaces/y/deployments/d")
            .forbidden("x", "RBAC: role.rbac.authorization.k8s.io \"r\" not found");
        assert!(
            status
                .message
                .starts_with("deployments.apps \"d\" is forbidden: User \"x\" cannot delete resource \"deployments\" in API group")
        );
        assert!(status.message.ends_with(
            "in the namespace \"y\": RBAC: role.rbac.authorization.k8s.io \"r\" not found"
        ));
    }
}
