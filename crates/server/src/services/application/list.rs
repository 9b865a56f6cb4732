//! The list of Applications, which is made of Applications that were encoded for earlier lists.

use super::{
    page::{metadata, part},
    read::Filter,
};
use crate::{
    ApiError,
    access::{Authorized, Guard},
    index::{Listed, Page},
    shown::Shown as _,
    state::State,
};
use bytes::Bytes;
use prost::{Message as _, length_delimiter_len};
use std::sync::Arc;
use tiphys_api::{Application, application::ApplicationList, rpc::application::ApplicationQuery};
use tiphys_rpc::{
    Parts, heavy,
    table::{Encoded, Encoding},
};

/// More of them, and [`heavy::LARGE`] ones, are encoded where that holds up no other caller.
const FEW: usize = 16;
/// The tag of `items` in the list, with its wire type.
const ITEM: u8 = (2 << 3) | 2;
/// Before each item in JSON but the first.
const COMMA: u8 = b',';
/// How a list without items ends.
const NO_ITEMS: &[u8] = b"]}";

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationQuery,
    encoding: Encoding,
) -> Result<Encoded<ApplicationList>, ApiError> {
    let filter = Filter::new(&q, "error parsing the selector")?;
    let part = part(&q)?;
    state.reach.ready().await;
    let wanted = |app: &Application| filter.matches(app);
    let Page {
        items,
        left,
        version,
    } = state
        .reach
        .listed_apps(&guard, &part, &filter.labels(), wanted);
    let page = Page {
        items: items.into_iter().map(Authorized::into_inner).collect(),
        left,
        version,
    };
    let list = match has_few_to_encode(&page.items, encoding) {
        true => encoded(&page, encoding)?,
        false => heavy::run(move || encoded(&page, encoding)).await?,
    };
    Ok(Encoded::new(list))
}

/// Whether nearly all is known from earlier lists.
fn has_few_to_encode(items: &[Listed], encoding: Encoding) -> bool {
    let (mut count, mut bytes) = (0, 0);
    for item in items {
        if !item.is_encoded(encoding) {
            count += 1;
            if count > FEW {
                return false;
            }
            bytes += item.app().encoded_len();
        }
    }
    bytes < heavy::LARGE
}

/// The list in parts, of which each item is one.
fn encoded(page: &Page<Listed>, encoding: Encoding) -> Result<Parts, ApiError> {
    let list = ApplicationList {
        metadata: metadata(page),
        ..ApplicationList::default()
    };
    let mut head = whole(&list, encoding)?;
    let mut parts = Parts::default();
    let end: &'static [u8] = match encoding {
        Encoding::Proto => b"",
        Encoding::Json if head.ends_with(NO_ITEMS) => {
            head.truncate(head.len() - NO_ITEMS.len());
            NO_ITEMS
        }
        Encoding::Json => {
            return Err(ApiError::internal("a list does not end with its items"));
        }
    };
    parts.push(head.into());
    for (number, item) in page.items.iter().enumerate() {
        let mut form = item.encoded(encoding, |app| as_item(app, encoding))?;
        if number == 0 && encoding == Encoding::Json {
            // Without its comma.
            form = form.slice(1..);
        }
        parts.push(form);
    }
    parts.push(Bytes::from_static(end));
    Ok(parts)
}

/// An Application as everybody who may see it sees it, with what is before it in a list.
fn as_item(app: &Application, encoding: Encoding) -> Result<Vec<u8>, ApiError> {
    let mut app = app.clone();
    app.conceal();
    let mut item = Vec::new();
    match encoding {
        Encoding::Proto => {
            let len = app.encoded_len();
            item.reserve_exact(1 + length_delimiter_len(len) + len);
            item.push(ITEM);
            app.encode_length_delimited(&mut item)
                .map_err(|e| unwritten(&e))?;
        }
        Encoding::Json => {
            item.push(COMMA);
            serde_json::to_writer(&mut item, &app).map_err(|e| unwritten(&e))?;
        }
    }
    Ok(item)
}

fn unwritten(e: &dyn std::error::Error) -> ApiError {
    ApiError::internal(format!("cannot write the reply: {e}"))
}

fn whole<M: prost::Message + serde::Serialize>(
    message: &M,
    encoding: Encoding,
) -> Result<Vec<u8>, ApiError> {
    match encoding {
        Encoding::Proto => Ok(message.encode_to_vec()),
        Encoding::Json => serde_json::to_vec(message).map_err(|e| unwritten(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Index, Part};

    /// So many Applications, each of at least so many bytes.
    fn listed(count: usize, bytes: usize) -> Page<Listed> {
        let index = Index::default();
        for n in 0..count {
            let mut app = Application::default();
            app.metadata.name = format!("app-{n}");
            app.metadata.resource_version = (n + 1).to_string();
            app.spec.project = "p".repeat(bytes);
            index.wrote(&app);
        }
        let all = Part {
            after: None,
            limit: usize::MAX,
        };
        index.page(&all, &[], |_| true)
    }

    #[test]
    fn only_few_and_small_applications_are_encoded_at_once() {
        for (count, bytes, expected) in [
            (0, 0, true),
            (FEW, 100, true),
            (FEW + 1, 100, false),
            (1, heavy::LARGE, false),
            (2, heavy::LARGE / 2, false),
        ] {
            let page = listed(count, bytes);
            assert_eq!(page.items.len(), count);
            let is_small = |encoding| has_few_to_encode(&page.items, encoding);
            let what = format!("{count} of {bytes} bytes");
            assert_eq!(is_small(Encoding::Json), expected, "{what}");
            encoded(&page, Encoding::Json).expect("a list");
            assert!(is_small(Encoding::Json), "{what} are known");
            assert_eq!(is_small(Encoding::Proto), expected, "{what}");
        }
    }

    #[test]
    fn the_parts_are_the_list() {
        for count in [0, 1, 3] {
            let page = listed(count, 1);
            let apps = page.items.iter().map(|item| Application::clone(item.app()));
            let list = ApplicationList {
                metadata: metadata(&page),
                items: apps.collect(),
                ..ApplicationList::default()
            };
            for encoding in [Encoding::Json, Encoding::Proto] {
                // The second is made of what the first has left.
                for _ in 0..2 {
                    let parts = encoded(&page, encoding).expect("a list");
                    let want = whole(&list, encoding).expect("a list");
                    assert_eq!(parts.joined(), want, "{count} {encoding:?}");
                }
            }
        }
    }

    #[test]
    fn what_an_earlier_list_has_encoded_is_not_copied() {
        let page = listed(2, 1);
        let last = || {
            let mut list = encoded(&page, Encoding::Proto).expect("a list");
            std::iter::from_fn(|| list.pop()).last().expect("an item")
        };
        let (first, second) = (last(), last());
        assert_eq!(first.as_ptr(), second.as_ptr());
    }
}
