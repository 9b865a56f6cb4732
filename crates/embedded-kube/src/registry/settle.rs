//! The last part of every write: takes over the fields that may change, then admits, validates and
//! stores the object.
//!
//! Main functions: [`Registry::settle`] for existing objects, [`Registry::commit_new`] for new
//! ones.

use super::{Registry, fields, meta};
use crate::admission::{Answers, Objects, Operation, Request};
use crate::base::Stored;
use crate::base::options::{Part, WriteOptions, Written};
use crate::catalog::Resource;
use crate::status::Status;
use crate::{admission, strategy};
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::gofmt;

/// Why a write was rejected.
pub(super) enum Refused {
    /// The object changed between reading and writing it.
    Race,
    Status(Status),
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Registry {
    pub(super) fn commit_new(
        &self,
        resource: &Arc<Resource>,
        mut object: Object,
        dry_run: bool,
    ) -> Result<Written, Status> {
        if !dry_run {
            // `selfLink` is never stored, but it is removed only when storing.
            object.metadata_mut().remove("selfLink");
        }
        write_down(resource, &mut object);
        let bare = self.as_stored(resource, &mut object)?;
        let completed = strategy::complete(resource, &mut object);
        let bare = bare.or_else(|| completed.then(|| object.clone()));
        let storage = self.storage_resource(resource);
        // Only the real store checks this, so a dry run does not.
        if !dry_run && !object.resource_version().is_empty() {
            // An invalid number counts as none.
            if object
                .resource_version()
                .parse::<u64>()
                .is_ok_and(|revision| revision != 0)
            {
                return Err(Status::new(
                    500,
                    "",
                    "resourceVersion should not be set on objects to be created",
                ));
            }
        }
        let mut state = self.lock();
        if let Some(existing) = state.get(&resource.table, object.namespace(), object.name()) {
            let mut status =
                Status::already_exists(&resource.group, &resource.resource, object.name());
            if !object.generate_name().is_empty() {
                // The message is the same whether the name was generated or not.
                status
                    .message
                    .push_str(", the server was not able to generate a unique name for the object");
                status.details.get_or_insert_default().retry_after_seconds = 1;
            }
            if existing.meta.deleting {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        // Checked again under the lock: the namespace may have been deleted since.
        if resource.namespaced && state.get("/namespaces", "", object.namespace()).is_none() {
            return Err(Status::not_found("", "namespaces", object.namespace()));
        }
        if dry_run {
            drop(state);
            return Ok(not_written(object, true));
        }
        let (object, stored) = state.put_completed(&storage, object, bare);
        let revision = stored.meta.revision;
        drop(state);
        self.after_write(&storage, &object, false);
        Ok(Written {
            object,
            stored,
            revision,
            created: true,
            warnings: Vec::new(),
        })
    }

    /// The last part of every update and patch: takes over the fields that may change; the rest
    /// comes from the old object. `applied`: field ownership has already been computed.
    pub(super) fn settle(
        &self,
        resource: &Arc<Resource>,
        current: &Arc<Stored>,
        (old, mut new): (&Object, Object),
        part: Part,
        options: &WriteOptions,
        applied: bool,
    ) -> Result<Written, Refused> {
        options.guard.check(&new, Some(old))?;
        let at = (old.namespace(), old.name());
        let request = Request::new(
            self,
            resource,
            Operation::Update,
            at,
            (options.dry_run, &options.sender),
        )
        .of(part.word());
        // Bindings and Scales have been admitted in the form in which they were sent.
        let whole = !matches!(part, Part::Binding | Part::Scale);
        // A write to a subresource owns the other fields that were sent too, although they are not
        // taken over.
        let is_piece = matches!(part, Part::Ephemeral | Part::Resize);
        let may_change =
            is_piece || self.hooks().may_change() || admission::fills_in_updates(resource);
        let before = (whole && !applied && may_change).then(|| new.clone());
        let mut answers = Answers::default();
        let mutated = whole && admission::admit(&request, &mut new, Some(old), &mut answers)?;
        let mutated = mutated
            || before
                .as_ref()
                .is_some_and(|before| before.0.get("spec") != new.0.get("spec"));
        let taken_back = meta::TakenBack::of(resource, old, before.as_ref().unwrap_or(&new), part);
        meta::prepare_update(resource, old, &mut new, part)?;
        // Fields set by the server are not owned by the sender.
        let mut sent = match before.filter(|_| mutated || is_piece) {
            Some(mut before) => {
                meta::prepare_update(
                    resource,
                    old,
                    &mut before,
                    if is_piece { Part::Main } else { part },
                )?;
                Some(before)
            }
            None => {
                let decides = strategy::decides_on_update(resource, part)
                    || strategy::forgets(resource, &new);
                (!applied && (decides || !taken_back.is_empty())).then(|| new.clone())
            }
        };
        if let Some(sent) = &mut sent {
            strategy::as_sent(self, resource, sent, part);
            taken_back.put(sent);
        }
        strategy::prepare_update(self, resource, old, &mut new, (part, options.dry_run))?;
        let mut warnings = strategy::validate(self, resource, &new, Some(old), part)?;
        let emptied = meta::counts_empty(resource, old, &new);
        let compared = if applied {
            None
        } else {
            fields::as_compared(resource, sent.as_ref().unwrap_or(&new))
        };
        strategy::drop_empty(resource, &mut new);
        sent.iter_mut()
            .for_each(|sent| strategy::drop_empty(resource, sent));
        sent = compared.or(sent);
        if whole {
            let said = admission::check(
                &request,
                Objects {
                    new: Some(&new),
                    old: Some(old),
                },
                answers,
            );
            warnings.extend(said.map_err(|status| status.warned(&warnings))?);
        }
        if part != Part::Status {
            meta::bump_generation(resource, old, &mut new, emptied);
        }
        let tracks = || {
            fields::sets_managers(old, &new)
                || fields::may_change_managers(resource, old)
                || !fields::same_but_managers(old, sent.as_ref().unwrap_or(&new))
        };
        if !applied && tracks() {
            fields::track(
                self,
                resource,
                Some(old),
                sent.as_mut().unwrap_or(&mut new),
                part,
                options,
            );
            if let Some(sent) = &sent {
                fields::copy_managers(sent, &mut new);
            }
        } else if !applied {
            fields::copy_managers(old, &mut new);
        }
        self.keep(resource, current, new, options.dry_run)
            .map(|written| Written {
                warnings,
                ..written
            })
    }

    /// Replaces the current object if anything changes, or removes it if its last finalizer is
    /// gone.
    fn keep(
        &self,
        resource: &Arc<Resource>,
        current: &Arc<Stored>,
        mut new: Object,
        dry_run: bool,
    ) -> Result<Written, Refused> {
        write_down(resource, &mut new);
        // A removed object is returned as it is here, not in its stored form.
        let last = meta::is_finished(resource, &new).then(|| new.clone());
        if !dry_run {
            // `selfLink` is never stored, but it is removed only when storing.
            new.metadata_mut().remove("selfLink");
        }
        let mut bare = self.as_stored(resource, &mut new)?;
        // A newer time alone is not a change, and neither is an empty list where there was none.
        if fields::same_but_times(&current.object(), &new) {
            bare.iter_mut()
                .chain([&mut new])
                .for_each(|object| fields::copy_managers(&current.object(), object));
        }
        if new == *current.object() && current.is_as_bare(bare.as_ref()) && last.is_none() {
            return Ok(Written {
                object: current.object(),
                stored: current.clone(),
                revision: 0,
                created: false,
                warnings: Vec::new(),
            });
        }
        let storage = self.storage_resource(resource);
        let mut state = self.lock();
        let unchanged = state
            .get(&resource.table, &current.meta.namespace, &current.meta.name)
            .is_some_and(|now| Arc::ptr_eq(now, current));
        if !unchanged {
            return Err(Refused::Race);
        }
        if dry_run {
            drop(state);
            return Ok(not_written(last.unwrap_or(new), false));
        }
        if let Some(last) = last {
            // An object removed with its last finalizer is returned with its previous revision;
            // this last state is never stored.
            let (object, stored) = state.remove(&storage, (*current.object()).clone());
            drop(state);
            self.after_write(&storage, &object, true);
            return Ok(Written {
                revision: stored.meta.revision,
                ..not_written(last, false)
            });
        }
        let (object, stored) = state.put_completed(&storage, new, bare);
        drop(state);
        self.after_write(&storage, &object, false);
        let revision = stored.meta.revision;
        Ok(Written {
            object,
            stored,
            revision,
            created: false,
            warnings: Vec::new(),
        })
    }
}

/// Converts a custom object to its serialized form.
fn write_down(resource: &Resource, object: &mut Object) {
    if resource.custom.is_some() {
        object
            .0
            .iter_mut()
            .filter(|(key, _)| *key != "metadata")
            .for_each(|(_, value)| gofmt::make_whole(value));
    }
}

/// The result of a dry run.
fn not_written(object: Object, created: bool) -> Written {
    let revision = object.resource_version().parse().unwrap_or(0);
    let object = Arc::new(object);
    let stored = Arc::new(Stored::new(&object, revision));
    Written {
        object,
        stored,
        revision: 0,
        created,
        warnings: Vec::new(),
    }
}
