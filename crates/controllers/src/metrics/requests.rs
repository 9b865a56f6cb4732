//! Requests to clusters, by Argo CD's labels. Main type: [`Request`].

use tiphys_cluster::request::Call;

/// The request and the status of its response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    pub verb: &'static str,
    /// The plural name of the kind.
    pub resource: String,
    pub namespace: String,
    pub code: u16,
    pub dry_run: bool,
}

impl Request {
    pub fn of(call: &Call, code: u16) -> Self {
        let (resource, namespace, _) = call.parts();
        let dry_run = call.query.contains("dryRun=All");
        Self {
            verb: call.verb(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            code,
            dry_run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    #[test]
    fn requests_are_told_apart() {
        let of = |method: Method, path: &str, query: (&str, &str)| {
            let r = Request::of(&Call::new(method, path).query(query.0, query.1), 200);
            (r.verb, r.resource, r.namespace, r.dry_run)
        };
        let is = |verb, resource: &str, namespace: &str, dry_run| {
            (verb, resource.to_owned(), namespace.to_owned(), dry_run)
        };
        let none = ("fieldManager", "m");
        assert_eq!(
            of(Method::POST, "/api/v1/namespaces/n/configmaps", none),
            is("Create", "configmaps", "n", false)
        );
        assert_eq!(
            of(Method::GET, "/api/v1/namespaces/n/configmaps", none),
            is("List", "configmaps", "n", false)
        );
        assert_eq!(
            of(
                Method::PATCH,
                "/apis/apps/v1/namespaces/n/deployments/d",
                ("dryRun", "All")
            ),
            is("Patch", "deployments", "n", true)
        );
        assert_eq!(
            of(Method::GET, "/api/v1/namespaces/n", none),
            is("Get", "namespaces", "", false)
        );
        assert_eq!(
            of(Method::DELETE, "/apis/g/v1/widgets/w", none),
            is("Delete", "widgets", "", false)
        );
    }
}
