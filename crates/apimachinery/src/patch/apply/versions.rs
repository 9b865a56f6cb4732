//! The versions of one kind: converts an object to the version of another manager.
//!
//! Main type: [`Versions`], implemented by the caller; [`Views`] uses it only if managers really
//! have different versions.

use super::{managers::Managers, types, types::Ty};
use crate::{object::Object, schema::TypeRef};
use serde_json::{Map, Value};

/// The versions that a kind has.
pub trait Versions {
    /// The object in this version, with the version's type; None if the version does not exist (any
    /// more). An error aborts the change.
    fn convert(
        &self,
        object: &Object,
        api_version: &str,
    ) -> Result<Option<(Object, Option<TypeRef<'_>>)>, String>;

    /// Whether the fields that this endpoint does not write are reset for managers of every
    /// version, not only for those of the request's version.
    fn reset_everywhere(&self) -> bool {
        true
    }

    /// What a new object is compared with: an empty Go struct has fields, too, which no one set.
    fn nothing(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// The objects of a change, in the version of every manager.
pub(super) struct Views<'a> {
    /// The request's.
    pub version: &'a str,
    pub ty: Ty<'a>,
    /// None: an object is the same in every version.
    pub versions: Option<&'a dyn Versions>,
}

/// An object in one version, with its type there.
type View<'a> = (Map<String, Value>, Ty<'a>);

impl<'a> Views<'a> {
    pub(super) fn nothing(&self) -> Map<String, Value> {
        self.versions.map(Versions::nothing).unwrap_or_default()
    }

    /// Converts the object from version `from` to version `to`. None if there is no such version.
    ///
    /// The error says where the object does not match its type in that version.
    pub(super) fn see(
        &self,
        object: &Map<String, Value>,
        from: &str,
        to: &str,
    ) -> Result<Option<View<'a>>, String> {
        let Some(versions) = self
            .versions
            .filter(|_| to != self.version || from != self.version)
        else {
            return Ok(Some((object.clone(), self.ty)));
        };
        let mut object = object.clone();
        // A missing object is missing in every version.
        let absent = object.is_empty();
        object.insert("apiVersion".into(), from.into());
        let Some((converted, ty)) = versions.convert(&Object(object), to)? else {
            return Ok(None);
        };
        let ty = Ty::new(ty);
        if absent {
            return Ok(Some((Map::new(), ty)));
        }
        let wrong = types::validate_fields(&converted.0, ty);
        if wrong.is_empty() {
            Ok(Some((converted.0, ty)))
        } else {
            Err(super::listed(&wrong))
        }
    }

    /// Drops managers whose version no longer exists, and adapts the sets of the others to the
    /// current types.
    pub(super) fn reconcile(
        &self,
        live: &Map<String, Value>,
        owners: &mut Managers,
    ) -> Result<(), String> {
        let mut failed = None;
        owners.retain(|_, owned| {
            let seen = if owned.api_version == self.version || self.versions.is_none() {
                Ok(Some(self.ty))
            } else {
                self.see(live, self.version, &owned.api_version)
                    .map(|seen| seen.map(|(_, ty)| ty))
            };
            match seen {
                Ok(Some(ty)) => super::compare::follow_schema(&mut owned.fields, ty),
                Ok(None) => return false,
                Err(why) => failed = Some(why),
            }
            true
        });
        failed.map_or(Ok(()), Err)
    }
}
