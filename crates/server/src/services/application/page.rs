//! One page of a list of Applications. Main functions: [`part`], [`metadata`].
//!
//! A page begins after the Application that the one before ended with, so what is created or
//! deleted between two pages shifts nothing; each page is of its own moment.

use crate::{
    ApiError,
    index::{Page, Part, Place},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use tiphys_api::{Application, meta::ListMeta, rpc::application::ApplicationQuery};

/// What a query asks for of all that it selects.
pub(super) fn part(q: &ApplicationQuery) -> Result<Part, ApiError> {
    let token = q.continue_.as_deref().filter(|token| !token.is_empty());
    let after = token.map(read).transpose()?;
    let limit = match q.limit {
        None | Some(0) => usize::MAX,
        Some(limit) => usize::try_from(limit)
            .map_err(|_| ApiError::invalid("limit: must be 0, for all, or more"))?,
    };
    Ok(Part { after, limit })
}

/// What a list says of itself, and of the Applications after its last one.
pub(super) fn metadata<T: AsRef<Application>>(page: &Page<T>) -> ListMeta {
    let mut metadata = ListMeta {
        resource_version: page.version.to_string(),
        ..ListMeta::default()
    };
    if page.left > 0 {
        metadata.remaining_item_count = Some(i64::try_from(page.left).unwrap_or(i64::MAX));
        let last = page.items.last().map(|item| token(item.as_ref()));
        metadata.continue_ = last.unwrap_or_default();
    }
    metadata
}

/// Neither part of a place has a slash.
fn token(app: &Application) -> String {
    let m = &app.metadata;
    BASE64_URL_SAFE_NO_PAD.encode(format!("{}/{}", m.name, m.namespace))
}

fn read(token: &str) -> Result<Place, ApiError> {
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
    use crate::index::Index;
    use tiphys_api::meta::ObjectMeta;

    fn app(name: &str, namespace: &str) -> Application {
        let metadata = ObjectMeta {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            resource_version: "7".to_owned(),
            ..ObjectMeta::default()
        };
        Application {
            metadata: metadata.into(),
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
        let wanted = |app: &Application| app.metadata.namespace != "hidden";
        let index = Index::default();
        apps.iter().for_each(|app| index.wrote(app));
        let page = index.page(&part(&query)?, &[], wanted);
        let metadata = metadata(&page);
        let name = |app: &Application| format!("{}/{}", app.metadata.namespace, app.metadata.name);
        let names = page.items.iter().map(|item| name(item.app())).collect();
        Ok((names, metadata))
    }

    #[test]
    fn pages_have_everything_once_whatever_comes_and_goes() {
        let mut apps = vec![
            app("b", "y"),
            app("a", "x"),
            app("b", "hidden"),
            app("b", "x"),
            app("c", "x"),
        ];
        let (first, meta) = asked(&apps, 2, "").expect("a page");
        assert_eq!(first, ["x/a", "x/b"]);
        assert_eq!(meta.remaining_item_count, Some(2));
        assert_eq!(meta.resource_version, "7");
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
        assert_eq!(all, ["x/a", "z/a", "y/b", "x/c"]);
        assert_eq!(
            (meta.continue_.as_str(), meta.remaining_item_count),
            ("", None)
        );
    }

    #[test]
    fn what_is_no_page_is_refused() {
        for (limit, token) in [(-1, ""), (1, "?"), (1, "YQ")] {
            let refused = asked(&[app("a", "x")], limit, token);
            assert!(refused.is_err(), "{limit} {token}");
        }
    }
}
