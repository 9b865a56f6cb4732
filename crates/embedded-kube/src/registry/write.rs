//! Create, update and patch: the steps that every object goes through, whatever its kind.

use super::settle::Refused;
use super::{Registry, fields, meta, patches};
use crate::admission::{Answers, Objects, Operation, Request};
use crate::base::Stored;
use crate::base::options::{FieldValidation, Part, Patch, WriteOptions, Written};
use crate::catalog::Resource;
use crate::status::{Cause, Status};
use crate::{admission, strategy};
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

/// How often a patch, or an update without a resourceVersion, is retried when another client writes
/// the same object.
const ATTEMPTS: usize = 50;

/// How a new object was created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Posted,
    /// By PUT of an object that did not exist.
    Put,
    Applied,
}

/// Checks an object against the namespace of the URL and, if given, its name. Returns warnings.
fn read(
    resource: &Resource,
    namespace: &str,
    object: &mut Object,
    name: Option<&str>,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    meta::check_type(resource, object)?;
    let mut warnings = strategy::check_fields(resource, object, options)?;
    meta::check_version(resource, object)
        .and_then(|()| meta::check_namespace(resource, namespace, object))
        .and_then(|()| name.map_or(Ok(()), |name| meta::check_name(name, object)))
        .map_err(|status| status.warned(&warnings))?;
    warnings.extend(meta::distinct_owners(object, false));
    Ok(warnings)
}

impl Registry {
    /// `namespace` is that of the URL; the object's own must be empty or the same.
    pub fn create(
        &self,
        gvr: &Gvr,
        namespace: &str,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let resource = self.resource(gvr)?;
        self.create_in(
            &resource,
            namespace,
            object,
            (Origin::Posted, Part::Main),
            options,
        )
    }

    fn create_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut object: Object,
        (origin, part): (Origin, Part),
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let warnings = read(resource, namespace, &mut object, None, options)?;
        self.create_read(
            resource,
            namespace,
            object,
            options,
            (origin, part, &warnings),
        )
        .map_err(|status| status.warned(&warnings))
    }

    /// The second part of a create, after the object has been read.
    fn create_read(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut object: Object,
        options: &WriteOptions,
        (origin, part, warnings): (Origin, Part, &[String]),
    ) -> Result<Written, Status> {
        self.check_namespace(resource, namespace, &object)?;
        let shares = object.labels().is_empty()
            && object
                .pointer("/spec/template/metadata/labels")
                .is_some_and(Value::is_object);
        strategy::fill_in(self, resource, &mut object);
        options.guard.check(&object, None)?;
        for attempt in 0..8 {
            let mut object = object.clone();
            let name = object.name().to_owned();
            let generates = object.name().is_empty() && !object.generate_name().is_empty();
            if origin == Origin::Posted {
                meta::forget_system(&mut object);
            }
            meta::prepare_create(self, resource, &mut object);
            // The sender owns the defaults of the object, but not the fields that the server sets
            // after that.
            if origin != Origin::Applied {
                let mut sent = object.clone();
                strategy::as_converted(resource, &mut sent, true);
                strategy::drop_empty(resource, &mut sent);
                fields::track(self, resource, None, &mut sent, part, options);
                fields::copy_managers(&sent, &mut object);
            }
            let by = (options.dry_run, &options.sender);
            let request = Request::new(self, resource, Operation::Create, (namespace, &name), by)
                .of(part.word());
            let mut answers = Answers::default();
            admission::admit(&request, &mut object, None, &mut answers)?;
            strategy::asked_by(resource, &mut object, &options.sender.user);
            if origin != Origin::Posted {
                // The store treats this as an update, which may have a resourceVersion.
                meta::asked_revision(&object)?;
                if !options.dry_run {
                    object.metadata_mut().remove("resourceVersion");
                }
            }
            let mut notes =
                strategy::prepare_create(self, resource, &mut object, (part, options.dry_run))?;
            if shares {
                strategy::share_labels(resource, &mut object);
            }
            notes.extend(
                strategy::validate(self, resource, &object, None, Part::Main)
                    .map_err(|status| status.warned(&notes))?,
            );
            strategy::drop_empty(resource, &mut object);
            let request = Request::new(
                self,
                resource,
                Operation::Create,
                (namespace, object.name()),
                by,
            )
            .of(part.word());
            let said = admission::check(
                &request,
                Objects {
                    new: Some(&object),
                    old: None,
                },
                answers,
            )
            .map_err(|status| status.warned(&notes))?;
            let notes: Vec<String> = notes.into_iter().chain(said).collect();
            match self.commit_new(resource, object, options.dry_run) {
                Err(status) if status.is_already_exists() && attempt < 7 && generates => {}
                Err(status) => return Err(status.warned(&notes)),
                Ok(written) => {
                    return Ok(Written {
                        warnings: warnings.iter().cloned().chain(notes).collect(),
                        ..written
                    });
                }
            }
        }
        Err(Status::internal("no free name was found"))
    }

    /// A new object needs an existing namespace that is not being deleted.
    fn check_namespace(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &Object,
    ) -> Result<(), Status> {
        if !resource.namespaced {
            return Ok(());
        }
        match self.read().get("/namespaces", "", namespace) {
            None if namespace.is_empty() => Err(Status::invalid(
                &resource.group,
                &resource.kind,
                object.name(),
                vec![Cause::required("metadata.namespace", "")],
            )),
            None => Err(Status::not_found("", "namespaces", namespace)),
            Some(ns) if ns.meta.deleting => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                let cause = Cause {
                    reason: "NamespaceTerminating",
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".into(),
                };
                Err(admission::forbidden(resource, object, &why).with_causes(vec![cause]))
            }
            Some(_) => Ok(()),
        }
    }

    /// Replaces an object; a `resourceVersion` in it must be the current one. The status does not
    /// change.
    pub fn update(
        &self,
        gvr: &Gvr,
        namespace: &str,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.update_part(gvr, namespace, object, Part::Main, options)
    }

    /// Replaces only the status, except that a Deployment also updates its annotations, which hold
    /// its revision. (Over HTTP, a status write of any built-in kind may change annotations.)
    pub fn update_status(
        &self,
        gvr: &Gvr,
        namespace: &str,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let live = self.get(gvr, namespace, object.name())?;
        let annotations = (gvr.resource != "deployments").then_some("annotations");
        for field in annotations
            .into_iter()
            .chain(["finalizers", "labels", "ownerReferences"])
        {
            match live.metadata(field) {
                Some(value) => object.metadata_mut().insert(field.into(), value.clone()),
                None => object.metadata_mut().remove(field),
            };
        }
        self.update_part(gvr, namespace, object, Part::Status, options)
    }

    pub fn update_part(
        &self,
        gvr: &Gvr,
        namespace: &str,
        mut object: Object,
        part: Part,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let resource = self.resource(gvr)?;
        // The changes of a Scale are made on the stored object, which may contain a null that the
        // schema would replace by a default.
        let as_kept = part == Part::Scale && resource.custom.is_some();
        let warnings = if as_kept {
            Vec::new()
        } else {
            read(
                &resource,
                namespace,
                &mut object,
                options.named.as_deref(),
                options,
            )?
        };
        let mut written = self
            .update_read(&resource, namespace, object, part, options)
            .map_err(|status| status.warned(&warnings))?;
        written.warnings.splice(0..0, warnings);
        Ok(written)
    }

    /// The second part of an update, after the object has been read.
    fn update_read(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        object: Object,
        part: Part,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        for _ in 0..ATTEMPTS {
            let current = match self.get_stored(resource, namespace, object.name()) {
                Err(status)
                    if status.is_not_found()
                        && matches!(part, Part::Main | Part::Status)
                        && strategy::creates_on_update(resource) =>
                {
                    meta::check_uid(resource, &object, "", options.dry_run)?;
                    return self.create_in(
                        resource,
                        namespace,
                        object,
                        (Origin::Put, part),
                        options,
                    );
                }
                other => other?,
            };
            meta::check_uid(resource, &object, &current.meta.uid, options.dry_run)?;
            let asked = meta::replaces(resource, &object, current.meta.revision)?;
            // Kept alive until the end of the write, which needs the parsed object again.
            let kept = current.object();
            let old = self.served(resource, &kept)?;
            // The Scale handler has computed field ownership, and the node of a pod has no owner.
            let known = matches!(part, Part::Scale | Part::Binding);
            match self.settle(
                resource,
                &current,
                (&old, object.clone()),
                part,
                options,
                known,
            ) {
                Err(Refused::Race) if asked.is_none() => {}
                Err(Refused::Race) => {
                    return Err(Status::modified(
                        &resource.group,
                        &resource.resource,
                        object.name(),
                    ));
                }
                Err(Refused::Status(status)) => return Err(status),
                Ok(written) => return Ok(written),
            }
        }
        Err(Status::modified(
            &resource.group,
            &resource.resource,
            object.name(),
        ))
    }

    /// `at` is the namespace and name.
    pub fn patch(
        &self,
        gvr: &Gvr,
        at: (&str, &str),
        part: Part,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let resource = self.resource(gvr)?;
        if let (Patch::Apply(config), Part::Main) = (patch, part)
            && let Some(refused) = strategy::refused_by_store(&resource, config)
        {
            return Err(self.refused_late(gvr, at, (config, refused), options));
        }
        let (namespace, name) = at;
        for _ in 0..ATTEMPTS {
            let current = match self.get_stored(&resource, namespace, name) {
                Ok(current) => current,
                Err(status) => match patch {
                    Patch::Apply(config) if part == Part::Main => {
                        match self.create_applied(&resource, at, config, options) {
                            Err(status) if status.is_already_exists() => continue,
                            other => return other,
                        }
                    }
                    _ => return Err(status),
                },
            };
            // Kept alive until the end of the write, which needs the parsed object again.
            let kept = current.object();
            let old = self.served(&resource, &kept)?;
            let (mut new, applied) = match patch {
                Patch::Apply(config) => (
                    self.apply_to(&resource, Some(&old), config, part, options)?,
                    true,
                ),
                other => (patches::patched(&resource, &old, other)?, false),
            };
            let reading = WriteOptions {
                from_tree: applied || matches!(patch, Patch::Strategic(_)),
                applied,
                ..options.clone()
            };
            let mut no_version = false;
            match resource.custom {
                None => patches::settle_said_type(&resource, (patch, options), &old, &mut new)?,
                Some(_) => {
                    patches::settle_type(&resource, patch, &old, &mut new)?;
                    no_version = !applied && patches::says_no_version(&resource, &new);
                }
            }
            // Error messages quote a built-in object in its patched text form.
            let result = resource.custom.is_some().then(|| new.clone());
            let mut warnings =
                strategy::read_fields(&resource, &mut new, &reading).map_err(|unreadable| {
                    let result = result.as_ref().unwrap_or(&old);
                    patches::unreadable(
                        &resource.gvk(),
                        resource.custom.is_none(),
                        patch,
                        &old,
                        result,
                        &unreadable,
                    )
                })?;
            if no_version {
                return Err(Status::internal(strategy::WITHOUT_VERSION).warned(&warnings));
            }
            if let Some(result) =
                result.filter(|result| applied && fields::same_but_managers(&old, result))
            {
                // An apply without changes is not decoded again, and so gets no defaults.
                new = result;
            }
            meta::check_patched_identity(&resource, &old, &mut new)
                .map_err(|status| status.warned(&warnings))?;
            if !new.uid().is_empty() && new.uid() != old.uid() {
                return Err(self
                    .other_uid(&resource, &current, (&old, new), part, options, applied)
                    .warned(&warnings));
            }
            warnings.extend(meta::distinct_owners(&mut new, true));
            meta::replaces(&resource, &new, current.meta.revision)
                .map_err(|status| status.warned(&warnings))?;
            match self.settle(&resource, &current, (&old, new), part, options, applied) {
                Err(Refused::Race) => {}
                Err(Refused::Status(status)) => return Err(status.warned(&warnings)),
                Ok(mut written) => {
                    written.warnings.splice(0..0, warnings);
                    return Ok(written);
                }
            }
        }
        Err(Status::modified(&resource.group, &resource.resource, name))
    }

    /// The error for an object that only the store rejects: all other errors are found first.
    fn refused_late(
        &self,
        gvr: &Gvr,
        at: (&str, &str),
        (config, refused): (&Object, Status),
        options: &WriteOptions,
    ) -> Status {
        let mut readable = config.clone();
        readable.metadata_mut().remove("deletionTimestamp");
        let only_looked_at = WriteOptions {
            dry_run: true,
            ..options.clone()
        };
        match self.patch(
            gvr,
            at,
            Part::Main,
            &Patch::Apply(readable),
            &only_looked_at,
        ) {
            Err(status) => status,
            Ok(written) => refused.warned(&written.warnings),
        }
    }

    fn create_applied(
        &self,
        resource: &Arc<Resource>,
        at: (&str, &str),
        config: &Object,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        // Applied as sent: fields that Go would omit are owned too.
        let new = self.apply_to(resource, None, config, Part::Main, options)?;
        let mut object = new.clone();
        meta::check_type(resource, &mut object)?;
        let reading = WriteOptions {
            from_tree: true,
            applied: true,
            ..options.clone()
        };
        let how = Patch::Apply(config.clone());
        let mut warnings =
            strategy::read_fields(resource, &mut object, &reading).map_err(|why| {
                patches::unreadable(
                    &resource.gvk(),
                    resource.custom.is_none(),
                    &how,
                    &new,
                    &new,
                    &why,
                )
            })?;
        if !config.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                config.uid()
            );
            return Err(
                Status::conflict(&resource.group, &resource.resource, at.1, &why).warned(&warnings),
            );
        }
        meta::check_namespace(resource, at.0, &mut object)
            .and_then(|()| meta::check_name(at.1, config))
            .map_err(|status| status.warned(&warnings))?;
        warnings.extend(meta::distinct_owners(&mut object, true));
        self.create_read(
            resource,
            at.0,
            object,
            options,
            (Origin::Applied, Part::Main, &warnings),
        )
        .map_err(|status| status.warned(&warnings))
    }

    fn apply_to(
        &self,
        resource: &Resource,
        live: Option<&Object>,
        config: &Object,
        part: Part,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let applied = fields::apply(self, resource, live, config, part, options)?;
        match options
            .findings
            .first()
            .filter(|_| options.validation == FieldValidation::Strict)
        {
            Some(twice) => Err(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {twice}"
            ))),
            None => Ok(applied),
        }
    }

    /// The error for a patch that changes the uid, together with all other errors.
    fn other_uid(
        &self,
        resource: &Arc<Resource>,
        current: &Arc<Stored>,
        (old, mut new): (&Object, Object),
        part: Part,
        options: &WriteOptions,
        applied: bool,
    ) -> Status {
        let cause = Cause::invalid("metadata.uid", &new.uid().into(), "field is immutable");
        // Reported once by the metadata check, and again by the check of the kind, if it has one.
        let twice = crate::validation::looks_at_updates(resource, part);
        let (mut causes, mut warnings) = (vec![cause; 1 + usize::from(twice)], Vec::new());
        new.metadata_mut().insert("uid".into(), old.uid().into());
        let only_looked_at = WriteOptions {
            dry_run: true,
            ..options.clone()
        };
        match self.settle(
            resource,
            current,
            (old, new),
            part,
            &only_looked_at,
            applied,
        ) {
            Err(Refused::Status(status)) if status.code == 422 => {
                warnings = status.warnings;
                causes.extend(
                    status
                        .details
                        .into_iter()
                        .flat_map(|details| details.causes),
                );
            }
            Ok(written) => warnings = strategy::let_pass(resource, &written.object, old, part),
            Err(_) => {}
        }
        Status::invalid(
            &resource.group,
            &resource.kind,
            current.object().name(),
            causes,
        )
        .warned(&warnings)
    }
}
