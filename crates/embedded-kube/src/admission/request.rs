//! A write request as policies and webhooks see it. Main type: [`Request`].

use super::Cluster;
use crate::base::{Sender, UserInfo};
use crate::catalog::Resource;
use crate::rbac::{Attributes, Policy};
use crate::status::Status;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_kube_schema::cel::authz::{Judge, Question};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
        }
    }

    fn options(self) -> Option<&'static str> {
        match self {
            Self::Create => Some("CreateOptions"),
            Self::Update => Some("UpdateOptions"),
            Self::Delete => Some("DeleteOptions"),
            Self::Connect => None,
        }
    }
}

/// A write, or another request such as an eviction, before it is carried out.
pub struct Request<'a> {
    pub cluster: &'a dyn Cluster,
    pub resource: &'a Arc<Resource>,
    pub subresource: &'a str,
    /// The kind of the sent object, which differs from the resource's kind for some subresources.
    pub kind: Gvk,
    pub operation: Operation,
    pub namespace: &'a str,
    /// Empty if it is not known yet.
    pub name: &'a str,
    pub dry_run: bool,
    pub sender: &'a Sender,
    judge: OnceLock<Judge>,
}

/// The objects of a request.
#[derive(Clone, Copy)]
pub struct Objects<'a> {
    pub new: Option<&'a Object>,
    pub old: Option<&'a Object>,
}

impl Objects<'_> {
    /// The name of the object in messages.
    pub fn name(&self) -> &str {
        match self.new {
            Some(new) if !new.name().is_empty() => new.name(),
            Some(new) if !new.generate_name().is_empty() => new.generate_name(),
            _ => "Unknown",
        }
    }
}

impl<'a> Request<'a> {
    pub fn new(
        cluster: &'a dyn Cluster,
        resource: &'a Arc<Resource>,
        operation: Operation,
        (namespace, name): (&'a str, &'a str),
        (dry_run, sender): (bool, &'a Sender),
    ) -> Self {
        // A namespace belongs to itself.
        let namespace = if resource.is("", "namespaces") {
            name
        } else {
            namespace
        };
        let kind = resource.gvk();
        Self {
            cluster,
            resource,
            subresource: "",
            kind,
            operation,
            namespace,
            name,
            dry_run,
            sender,
            judge: OnceLock::new(),
        }
    }

    /// The same for a subresource, which has its own kind or that of the resource.
    pub fn of(mut self, subresource: &'a str) -> Self {
        let spoken = self
            .resource
            .subresource(subresource)
            .filter(|s| !s.kind.is_empty());
        if let Some(spoken) = spoken.filter(|_| !subresource.is_empty()) {
            self.kind = Gvk::new(&spoken.group, &spoken.version, &spoken.kind);
        }
        self.subresource = subresource;
        self
    }

    pub fn is_namespace(&self) -> bool {
        self.resource.is("", "namespaces")
    }

    /// The namespace of the object.
    pub fn namespace_object(&self) -> Option<Arc<Object>> {
        if self.namespace.is_empty() || self.is_namespace() {
            return None;
        }
        self.cluster
            .stored("/namespaces", "", self.namespace)
            .map(|stored| stored.object())
    }

    /// Answers what the user, or a service account, may do. The roles are read once.
    pub fn judge(&self) -> &Judge {
        self.judge.get_or_init(|| {
            let (reader, user) = (self.cluster.reader(), self.sender.user.clone());
            let policy: OnceLock<Policy> = OnceLock::new();
            Judge::new(move |account, question| {
                let policy = policy.get_or_init(|| Policy::read(&*reader, &Policy::default()));
                let asked = attributes(question);
                match account {
                    Some((namespace, name)) => {
                        policy.authorize(&UserInfo::account(namespace, name), &asked)
                    }
                    None => policy.authorize(&user, &asked),
                }
            })
        })
    }

    /// The authorizer's question about the request itself.
    pub fn question(&self) -> Question {
        Question {
            verb: self.operation.verb().to_owned(),
            group: self.resource.group.clone(),
            resource: self.resource.resource.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            path: String::new(),
        }
    }

    /// Converts the object to the version of an equivalent resource.
    pub fn convert(&self, object: &Object, to: &Arc<Resource>) -> Result<Object, Status> {
        let mut object = object.clone();
        if !Arc::ptr_eq(self.resource, to) && self.kind == self.resource.gvk() {
            self.cluster.between(self.resource, to, &mut object)?;
        }
        Ok(object)
    }

    /// Both objects, new and old, converted to that version.
    pub fn convert_all(
        &self,
        objects: Objects<'_>,
        to: &Arc<Resource>,
    ) -> Result<[Option<Object>; 2], Status> {
        let [new, old] =
            [objects.new, objects.old].map(|o| o.map(|o| self.convert(o, to)).transpose());
        Ok([new?, old?])
    }

    /// The kind of the objects when the request is seen as one for this resource.
    pub fn kind_as(&self, to: &Resource) -> Gvk {
        if self.kind == self.resource.gvk() {
            to.gvk()
        } else {
            self.kind.clone()
        }
    }

    /// The resource of the objects in that case.
    pub fn typed_as(&self, to: &Arc<Resource>) -> Arc<Resource> {
        let kind = self.kind_as(to);
        if kind == to.gvk() {
            to.clone()
        } else {
            Arc::new(to.speaking(&kind))
        }
    }

    /// Converts an object from the version of a matched resource back to that of the request.
    pub fn convert_back(&self, matched: &Arc<Resource>, object: &mut Object) -> Result<(), Status> {
        if Arc::ptr_eq(matched, self.resource) || self.kind != self.resource.gvk() {
            return Ok(());
        }
        self.cluster.between(matched, self.resource, object)
    }

    /// The `AdmissionRequest` without uid and objects. `matched` is the resource that a rule
    /// matched.
    pub fn to_json(&self, matched: &Resource) -> Map<String, Value> {
        let kind = |k: &Gvk| json!({"group": k.group, "version": k.version, "kind": k.kind});
        let resource =
            |r: &Resource| json!({"group": r.group, "version": r.version, "resource": r.resource});
        let mut user = self.sender.user.to_json();
        if let Some(user) = user.as_object_mut() {
            user.retain(|_, value| !value.is_null());
        }
        let mut map = Map::new();
        map.insert("kind".into(), kind(&self.kind_as(matched)));
        map.insert("resource".into(), resource(matched));
        map.insert("requestKind".into(), kind(&self.kind));
        map.insert("requestResource".into(), resource(self.resource));
        for (field, text) in [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ] {
            if !text.is_empty() {
                map.insert(field.into(), text.into());
            }
        }
        map.insert("operation".into(), self.operation.word().into());
        map.insert("userInfo".into(), user);
        map.insert("dryRun".into(), self.dry_run.into());
        let options = self.operation.options().map_or(Value::Null, |kind| {
            let mut options = self.sender.options.clone();
            options.insert("kind".into(), kind.into());
            options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
            options.into()
        });
        map.insert("options".into(), options);
        map
    }
}

fn attributes(question: &Question) -> Attributes {
    let Question {
        verb,
        group,
        resource,
        subresource,
        namespace,
        name,
        path,
    } = question.clone();
    Attributes {
        is_resource: path.is_empty(),
        verb,
        group,
        resource,
        subresource,
        name,
        namespace,
        path,
    }
}
