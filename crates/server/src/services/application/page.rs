//! One page of a list of Applications. Main function: [`page`].
//!
//! A page begins after the Application that the one before ended with, so what is created or
//! deleted between two pages shifts nothing; each page is of its own moment.

use crate::ApiError;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use tiphys_api::{Application, meta::ListMeta, rpc::application::ApplicationQuery};

type Place<'a> = (&'a str, &'a str);

fn place(app: &Application) -> Place<'_> {
    (&app.metadata.name, &app.metadata.namespace)
}

/// The Applications that a query asks for, of all that it selects, and what the list says of the
/// others.
pub(super) fn page<T: AsRef<Application>>(
    mut apps: Vec<T>,
    q: &ApplicationQuery,
) -> Result<(Vec<T>, ListMeta), ApiError> {
    apps.sort_by(|a, b| place(a.as_ref()).cmp(&place(b.as_ref())));
    if let Some(token) = q.continue_.as_deref().filter(|token| !token.is_empty()) {
        let (name, namespace) = read(token)?;
        let done = apps.partition_point(|app| place(app.as_ref()) <= (&name, &namespace));
        apps.drain(..done);
    }
    let mut metadata = ListMeta::default();
    let limit = match q.limit {
        None | Some(0) => usize::MAX,
        Some(limit) => usize::try_from(limit)
            .map_err(|_| ApiError::invalid("limit: must be 0, for all, or more"))?,
    };
    if apps.len() > limit {
        let left = i64::try_from(apps.len() - limit).unwrap_or(i64::MAX);
        apps.truncate(limit);
        metadata.remaining_item_count = Some(left);
        metadata.continue_ = apps
            .last()
            .map(|app| token(app.as_ref()))
            .unwrap_or_default();
    }
    Ok((apps, metadata))
}

/// Neither part of a place has a slash.
fn token(app: &Application) -> String {
    let (name, namespace) = place(app);
    BASE64_URL_SAFE_NO_PAD.encode(format!("{name}/{namespace}"))
}

fn read(token: &str) -> Result<(String, String), ApiError> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let place = text.as_deref().and_then(|text| text.split_once('/'));
    let (name, namespace) = place.ok_or_else(|| {
        ApiError::invalid("continue: not what the metadata of a list says; ask without it")
    })?;
    Ok((name.to_owned(), namespace.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tiphys_api::meta::ObjectMeta;

    fn app(name: &str, namespace: &str) -> Application {
        Application {
            metadata: ObjectMeta {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                ..ObjectMeta::default()
            }
            .into(),
            ..Application::default()
        }
    }

    fn asked(
        apps: &[Application],
        limit: i64,
        continue_: &str,
    ) -> Result<(Vec<String>, ListMeta), ApiError> {
        let query = ApplicationQuery {
            limit: Some(limit),
            continue_: Some(continue_.to_owned()),
            ..ApplicationQuery::default()
        };
        let apps: Vec<Arc<Application>> = apps.iter().cloned().map(Arc::new).collect();
        let (apps, metadata) = page(apps, &query)?;
        let name =
            |app: &Arc<Application>| format!("{}/{}", app.metadata.namespace, app.metadata.name);
        Ok((apps.iter().map(name).collect(), metadata))
    }

    #[test]
    fn pages_have_everything_once_whatever_comes_and_goes() {
        let mut apps = vec![app("b", "y"), app("a", "x"), app("b", "x"), app("c", "x")];
        let (first, meta) = asked(&apps, 2, "").expect("a page");
        assert_eq!(first, ["x/a", "x/b"]);
        assert_eq!(meta.remaining_item_count, Some(2));
        // The last of the page goes, and one comes before it.
        apps.retain(|app| app.metadata.namespace != "x" || app.metadata.name != "b");
        apps.push(app("a", "z"));
        let (second, meta) = asked(&apps, 2, &meta.continue_).expect("a page");
        assert_eq!(second, ["y/b", "x/c"]);
        assert_eq!(
            (meta.continue_.as_str(), meta.remaining_item_count),
            ("", None)
        );
        let (all, meta) = asked(&apps, 0, "").expect("all");
        assert_eq!((all.len(), meta), (4, ListMeta::default()));
    }

    #[test]
    fn what_is_no_page_is_refused() {
        for (limit, token) in [(-1, ""), (1, "?"), (1, "YQ")] {
            let refused = asked(&[app("a", "x")], limit, token);
            assert!(refused.is_err(), "{limit} {token}");
        }
    }
}
