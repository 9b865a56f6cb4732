//! The parameters of a URL's query, as pages and files read them. Main type: [`Parameters`].

use http::request::Parts;
use reqwest::Url;

/// The values of the parameters of a query.
pub(crate) struct Parameters(pub(crate) Vec<(String, String)>);

impl Parameters {
    pub(crate) fn of(request: &Parts) -> Self {
        Self::of_query(request.uri.query().unwrap_or_default())
    }

    pub(crate) fn of_query(query: &str) -> Self {
        // Any base does: only the query is used.
        let url = Url::parse(&format!("http://query.invalid/?{query}"));
        Self(url.map_or_else(
            |_| Vec::new(),
            |url| url.query_pairs().into_owned().collect(),
        ))
    }

    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(n, _)| n == name);
        named.map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.first(name)
            .is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }
}
