//! Query parameters. Main type: [`Query`]; it does not interpret them.

use super::decode;
use crate::status::Status;
use tiphys_kube_schema::gotypes;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let pair = |p: &str| {
            let (key, value) = p.split_once('=').unwrap_or((p, ""));
            (
                decode(&key.replace('+', " ")),
                decode(&value.replace('+', " ")),
            )
        };
        Self(
            text.split('&')
                .filter(|p| !p.is_empty())
                .map(pair)
                .collect(),
        )
    }

    /// The first value, if it is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.first(name).filter(|v| !v.is_empty())
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the parameter is present, even without a value.
    pub fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// All values, in their order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// Go's parsing of a boolean parameter: anything but these words is true.
    pub fn flag(&self, name: &str) -> bool {
        self.first(name)
            .is_some_and(|v| v != "0" && !v.eq_ignore_ascii_case("false"))
    }

    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.first(name) else {
            return Ok(None);
        };
        gotypes::read_int(text)
            .map(Some)
            .map_err(Status::bad_request)
    }
}
