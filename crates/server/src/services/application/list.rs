//! The list of Applications, which is made of Applications that were encoded for earlier lists.

use super::{page::page, read::Filter};
use crate::{
    ApiError,
    access::{Authorized, Guard},
    index::Listed,
    shown::Shown as _,
    state::State,
};
use bytes::Bytes;
use prost::{Message as _, encoding::encode_varint};
use std::sync::Arc;
use tiphys_api::{
    Application, application::ApplicationList, meta::ListMeta, rpc::application::ApplicationQuery,
};
use tiphys_rpc::{
    heavy,
    table::{Encoded, Encoding},
};

/// Longer lists, and [`heavy::LARGE`] ones, are encoded where that holds up no other caller.
const SHORT: usize = 16;
/// The tag of `items` in the list, with its wire type.
const ITEM: u8 = (2 << 3) | 2;
/// How a list without items ends.
const NO_ITEMS: &[u8] = b"]}";

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationQuery,
    encoding: Encoding,
) -> Result<Encoded<ApplicationList>, ApiError> {
    let filter = Filter::new(&q, "error parsing the selector")?;
    state.reach.ready().await;
    let wanted = |app: &Application| filter.matches(app);
    let (apps, resource_version) = state.reach.listed_apps(&guard, wanted);
    let apps: Vec<Listed> = apps.into_iter().map(Authorized::into_inner).collect();
    let (items, mut metadata) = page(apps, &q)?;
    metadata.resource_version = resource_version.to_string();
    let list = match is_small(&items) {
        true => encoded(metadata, &items, encoding)?,
        false => heavy::run(move || encoded(metadata, &items, encoding)).await?,
    };
    Ok(Encoded::new(list))
}

fn is_small(items: &[Listed]) -> bool {
    let bytes = |item: &Listed| item.app().encoded_len();
    items.len() <= SHORT && items.iter().map(bytes).sum::<usize>() < heavy::LARGE
}

fn encoded(metadata: ListMeta, items: &[Listed], encoding: Encoding) -> Result<Vec<u8>, ApiError> {
    let list = ApplicationList {
        metadata,
        ..ApplicationList::default()
    };
    let mut all = whole(&list, encoding)?;
    let mut forms = Vec::with_capacity(items.len());
    for item in items {
        forms.push(item.encoded(encoding, |app| shown(app, encoding))?);
    }
    // Each has a comma, or a tag and its length, before it.
    let room = |form: &Bytes| form.len() + 6;
    all.reserve_exact(forms.iter().map(room).sum());
    match encoding {
        Encoding::Proto => {
            for form in forms {
                all.push(ITEM);
                encode_varint(form.len() as u64, &mut all);
                all.extend_from_slice(&form);
            }
        }
        Encoding::Json => {
            if !all.ends_with(NO_ITEMS) {
                return Err(ApiError::internal("a list does not end with its items"));
            }
            all.truncate(all.len() - NO_ITEMS.len());
            for (n, form) in forms.into_iter().enumerate() {
                if n > 0 {
                    all.push(b',');
                }
                all.extend_from_slice(&form);
            }
            all.extend_from_slice(NO_ITEMS);
        }
    }
    Ok(all)
}

/// An Application as everybody who may see it sees it.
fn shown(app: &Application, encoding: Encoding) -> Result<Vec<u8>, ApiError> {
    let mut app = app.clone();
    app.conceal();
    whole(&app, encoding)
}

fn whole<M: prost::Message + serde::Serialize>(
    message: &M,
    encoding: Encoding,
) -> Result<Vec<u8>, ApiError> {
    match encoding {
        Encoding::Proto => Ok(message.encode_to_vec()),
        Encoding::Json => serde_json::to_vec(message)
            .map_err(|e| ApiError::internal(format!("cannot write the reply: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;

    /// So many Applications, each of at least so many bytes.
    fn listed(count: usize, bytes: usize) -> Vec<Listed> {
        let index = Index::default();
        for n in 0..count {
            let mut app = Application::default();
            app.metadata.name = format!("app-{n}");
            app.metadata.resource_version = (n + 1).to_string();
            app.spec.project = "p".repeat(bytes);
            index.wrote(&app);
        }
        index.listed(|_| true).0
    }

    #[test]
    fn only_few_and_small_applications_are_encoded_at_once() {
        for (count, bytes, expected) in [
            (0, 0, true),
            (SHORT, 100, true),
            (SHORT + 1, 100, false),
            (1, heavy::LARGE, false),
            (2, heavy::LARGE / 2, false),
        ] {
            let items = listed(count, bytes);
            assert_eq!(items.len(), count);
            assert_eq!(is_small(&items), expected, "{count} of {bytes} bytes");
        }
    }
}
