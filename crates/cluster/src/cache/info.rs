//! What a resource tree shows of an object besides its name, taken when the object is read.

use super::record::Details;
use tiphys_apimachinery::Object;

/// What the engine's tree wants to know of a kind.
pub type TreeInfo = ();

/// Health and tree information of an object.
pub(super) fn of(object: &Object) -> Details {
    Details { health: tiphys_engine::health::of(object), tree: None }
}
