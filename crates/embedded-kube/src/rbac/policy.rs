//! The compiled roles and bindings of the cluster: which rules apply to whom. Main type:
//! [`Policy`], immutable; a change of a role creates a new one that reuses the unchanged parts.

use super::attributes::{Attributes, quoted};
use super::rules::Rule;
use crate::base::Stored;
use crate::base::user::{UserInfo, account_name};
use crate::reader::Reader;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tiphys_apimachinery::Object;

pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Namespace (empty for cluster roles) and name.
type Key = (String, String);

/// A binding with its subjects, and its name in messages.
#[derive(Debug)]
struct Binding {
    namespace: String,
    name: String,
    role_kind: String,
    role_name: String,
    /// The user's index key, and the description of the subject.
    subjects: Vec<(String, String)>,
}

/// Compiled objects, with the revision of their object.
type Kept<T> = HashMap<Key, (u64, Arc<T>)>;

/// All rules at one point in time.
#[derive(Default, Debug)]
pub struct Policy {
    roles: Kept<Vec<Rule>>,
    bindings: Kept<Binding>,
    /// By namespace (empty: cluster bindings), then by subject: the bindings, in name order.
    index: HashMap<String, HashMap<String, Vec<Arc<Binding>>>>,
}

/// A rule that applies to a user, or a role that a binding refers to but that does not exist.
pub enum Found<'a> {
    /// With the description of the binding.
    Rule(&'a Rule, &'a dyn Fn() -> String),
    Missing(Status404),
}

/// A missing role: its lower-case kind and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status404 {
    pub kind: &'static str,
    pub name: String,
}

impl std::fmt::Display for Status404 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{GROUP} {} not found", self.kind, quoted(&self.name))
    }
}

impl Policy {
    /// The registry's current roles and bindings; unchanged objects are taken from `before`.
    pub fn read(reader: &dyn Reader, before: &Self) -> Self {
        let list = |resource: &str| reader.all_stored(&format!("{GROUP}/{resource}"), None);
        let roles = [list("clusterroles"), list("roles")].concat();
        let bindings = [list("clusterrolebindings"), list("rolebindings")].concat();
        let roles = compile(&roles, &before.roles, |o| Rule::list(o.pointer("/rules")));
        let bindings = compile(&bindings, &before.bindings, Binding::of);
        let mut ordered: Vec<_> = bindings.values().map(|(_, b)| b.clone()).collect();
        ordered.sort_by(|a, b| a.name.cmp(&b.name));
        let mut index: HashMap<String, HashMap<String, Vec<Arc<Binding>>>> = HashMap::new();
        for binding in ordered {
            let of = index.entry(binding.namespace.clone()).or_default();
            for (key, _) in &binding.subjects {
                let list = of.entry(key.clone()).or_default();
                if list.last().is_none_or(|last| !Arc::ptr_eq(last, &binding)) {
                    list.push(binding.clone());
                }
            }
        }
        Self {
            roles,
            bindings,
            index,
        }
    }

    /// The rules of the role that a binding in `namespace` refers to.
    pub fn role(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
    ) -> Result<&Arc<Vec<Rule>>, Status404> {
        let (scope, kind) = if kind == "Role" {
            (namespace, "role")
        } else {
            ("", "clusterrole")
        };
        let found = self.roles.get(&(scope.to_owned(), name.to_owned()));
        found.map(|(_, rules)| rules).ok_or_else(|| Status404 {
            kind,
            name: name.to_owned(),
        })
    }

    /// Visits every rule that applies to a user in a namespace (empty: cluster-wide) until `see`
    /// returns false.
    pub fn visit(&self, user: &UserInfo, namespace: &str, see: &mut dyn FnMut(Found<'_>) -> bool) {
        let keys: Vec<String> = std::iter::once(user_key(&user.name))
            .chain(user.groups.iter().map(|g| group_key(g)))
            .collect();
        let scopes = [""]
            .into_iter()
            .chain((!namespace.is_empty()).then_some(namespace));
        for scope in scopes {
            let Some(of) = self.index.get(scope) else {
                continue;
            };
            let mut bound: Vec<&Arc<Binding>> =
                keys.iter().filter_map(|k| of.get(k)).flatten().collect();
            bound.sort_by(|a, b| a.name.cmp(&b.name));
            bound.dedup_by(|a, b| Arc::ptr_eq(a, b));
            for binding in bound {
                let describe = || binding.describe(&keys);
                let goes_on = match self.role(&binding.role_kind, &binding.role_name, scope) {
                    Err(missing) => see(Found::Missing(missing)),
                    Ok(rules) => rules.iter().all(|rule| see(Found::Rule(rule, &describe))),
                };
                if !goes_on {
                    return;
                }
            }
        }
    }

    /// Whether the request is allowed, and the reason: the binding that allows it, or the errors on
    /// the way.
    pub fn authorize(&self, user: &UserInfo, asked: &Attributes) -> (bool, String) {
        if user.is_master() {
            return (true, String::new());
        }
        let (mut allowed, mut wrong) = (None, Vec::new());
        self.visit(user, &asked.namespace, &mut |found| match found {
            Found::Rule(rule, describe) if rule.allows(asked) => {
                allowed = Some(format!("RBAC: allowed by {}", describe()));
                false
            }
            Found::Rule(..) => true,
            Found::Missing(role) => {
                wrong.push(role.to_string());
                true
            }
        });
        match allowed {
            Some(reason) => (true, reason),
            None => (
                false,
                if wrong.is_empty() {
                    String::new()
                } else {
                    format!("RBAC: {}", together(&wrong))
                },
            ),
        }
    }

    /// All rules of a user in a namespace, and the missing roles.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut wrong) = (Vec::new(), Vec::new());
        self.visit(user, namespace, &mut |found| {
            match found {
                Found::Rule(rule, _) => rules.push(rule.clone()),
                Found::Missing(role) => wrong.push(role.to_string()),
            }
            true
        });
        (rules, wrong)
    }
}

/// Several errors as Go prints them: one without brackets, several in brackets, no duplicates.
pub fn together(errors: &[String]) -> String {
    let mut list: Vec<&str> = Vec::new();
    for error in errors {
        if !list.contains(&error.as_str()) {
            list.push(error);
        }
    }
    if let [one] = list.as_slice() {
        (*one).to_owned()
    } else {
        format!("[{}]", list.join(", "))
    }
}

fn compile<T>(objects: &[Arc<Stored>], before: &Kept<T>, of: impl Fn(&Object) -> T) -> Kept<T> {
    let one = |stored: &Arc<Stored>| {
        let key = (stored.meta.namespace.clone(), stored.meta.name.clone());
        let known = before
            .get(&key)
            .filter(|(revision, _)| *revision == stored.meta.revision);
        let value = known.map_or_else(
            || Arc::new(of(&stored.object())),
            |(_, value)| value.clone(),
        );
        (key, (stored.meta.revision, value))
    };
    objects.iter().map(one).collect()
}

fn user_key(name: &str) -> String {
    format!("u:{name}")
}

fn group_key(name: &str) -> String {
    format!("g:{name}")
}

impl Binding {
    fn of(object: &Object) -> Self {
        let namespace = object.namespace().to_owned();
        let subject = |s: &Value| {
            let word = |field: &str| s.get(field).and_then(Value::as_str).unwrap_or("");
            let (kind, name) = (word("kind"), word("name"));
            let own = if word("namespace").is_empty() {
                namespace.as_str()
            } else {
                word("namespace")
            };
            let key = match kind {
                "User" => user_key(name),
                "Group" => group_key(name),
                "ServiceAccount" if !own.is_empty() => user_key(&account_name(own, name)),
                _ => return None,
            };
            let shown = if kind == "ServiceAccount" {
                format!("{name}/{own}")
            } else {
                name.to_owned()
            };
            Some((key, format!("{kind} {}", quoted(&shown))))
        };
        let subjects = object.pointer("/subjects").and_then(Value::as_array);
        Self {
            name: object.name().to_owned(),
            role_kind: object.str_at("/roleRef/kind").to_owned(),
            role_name: object.str_at("/roleRef/name").to_owned(),
            subjects: subjects
                .map(|l| l.iter().filter_map(subject).collect())
                .unwrap_or_default(),
            namespace,
        }
    }

    fn describe(&self, keys: &[String]) -> String {
        let subject = self
            .subjects
            .iter()
            .find(|(key, _)| keys.contains(key))
            .map_or("", |(_, shown)| shown);
        let (kind, name) = match self.namespace.as_str() {
            "" => ("ClusterRoleBinding", self.name.clone()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        format!(
            "{kind} {} of {} {} to {subject}",
            quoted(&name),
            self.role_kind,
            quoted(&self.role_name)
        )
    }
}
