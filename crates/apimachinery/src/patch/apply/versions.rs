//! The versions of one kind: what an object is in the version of another manager.
//!
//! Main type: [`Versions`], which the caller has; [`Views`] asks it, and only when managers really
//! are of several versions.

use super::{managers::Managers, types, types::Ty};
use crate::{object::Object, schema::TypeRef};
use serde_json::{Map, Value};

/// The versions that a kind has.
pub trait Versions {
    /// The object in this version, with the version's type; None when the version is not there (any
    /// more). An error ends the change.
    fn convert(
        &self,
        object: &Object,
        api_version: &str,
    ) -> Result<Option<(Object, Option<TypeRef<'_>>)>, String>;

    /// Whether what this endpoint does not write is known for managers of every version, not only
    /// for those of the request's.
    fn reset_everywhere(&self) -> bool {
        true
    }

    /// What a new object takes the place of: an empty struct of Go has parts, too, which nobody
    /// set.
    fn nothing(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// One object or another of a kind, as the managers of every version see it.
pub(super) struct Views<'a> {
    /// The request's.
    pub version: &'a str,
    pub ty: Ty<'a>,
    /// Without any, an object is the same in every version.
    pub versions: Option<&'a dyn Versions>,
}

/// An object in one version, and the type that it has there.
type View<'a> = (Map<String, Value>, Ty<'a>);

impl<'a> Views<'a> {
    pub(super) fn nothing(&self) -> Map<String, Value> {
        self.versions.map(Versions::nothing).unwrap_or_default()
    }

    /// The object, which is of the version `from`, in the version `to`. None when there is no such
    /// version.
    ///
    /// The error says what of the object does not fit its type in that version.
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
        // What is not there yet is not there in any version.
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

    /// Drops managers of versions that are gone, and makes the sets of the others fit the types as
    /// they are now.
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
