//! `.Capabilities` as templates see it.
//!
//! Main function: [`value`].

use crate::helm::capabilities::{Capabilities, HELM_GO, HELM_VERSION, KUBE_CLIENT, KubeVersion};
use std::rc::Rc;
use tiphys_gocompat::template::{
    Call, Error, Function, JsonForm, List, Named, Object, STRINGS, Type, Value,
};

static CAPABILITIES: Named = Named {
    name: "*common.Capabilities",
    underlying: None,
};
static KUBE_VERSION: Named = Named {
    name: "common.KubeVersion",
    underlying: None,
};
static VERSION_SET: Named = Named {
    name: "common.VersionSet",
    underlying: Some(STRINGS),
};
static BUILD_INFO: Named = Named {
    name: "version.BuildInfo",
    underlying: None,
};

static HAS: Function = Function::new(&[Type::String], has);
static COPY: Function = Function::new(&[], |call| Ok(copy(call.receiver())));
static TEXT: Function = Function::new(&[], |call| Ok(of_kube(call, Kube::text_of_pointer)));
static GIT_VERSION: Function =
    Function::new(&[], |call| Ok(of_kube(call, |kube| &kube.version.version)));

pub fn value(capabilities: &Capabilities) -> Value {
    let build = [
        ("Version", HELM_VERSION),
        ("GitCommit", ""),
        ("GitTreeState", ""),
        ("GoVersion", HELM_GO),
        ("KubeClientVersion", KUBE_CLIENT),
    ];
    let versions = capabilities
        .api_versions
        .iter()
        .map(|v| Value::from(v.as_str()));
    Value::Object(Rc::new(All {
        kube_version: Kube::value(capabilities.kube_version.clone(), true),
        api_versions: Value::Object(Rc::new(Versions(List::of(STRINGS, versions.collect())))),
        helm_version: Value::Object(Rc::new(Build(
            build.map(|(name, text)| (name, Value::from(text))),
        ))),
    }))
}

/// `*common.Capabilities`
#[derive(Clone)]
struct All {
    kube_version: Value,
    api_versions: Value,
    helm_version: Value,
}

impl Object for All {
    fn go_type(&self) -> Type {
        Type::Named(&CAPABILITIES)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("KubeVersion", self.kube_version.clone()),
            ("APIVersions", self.api_versions.clone()),
            ("HelmVersion", self.helm_version.clone()),
        ]
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        (name == "Copy").then_some(&COPY)
    }

    fn exported(&self) -> Option<Value> {
        let kube_version = match &self.kube_version {
            Value::Object(kube) => kube.exported(),
            _ => None,
        };
        Some(Value::Object(Rc::new(Self {
            kube_version: kube_version.unwrap_or_else(|| self.kube_version.clone()),
            ..self.clone()
        })))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Another pointer to the same.
fn copy(receiver: &Value) -> Value {
    let all = match receiver {
        Value::Object(object) => object.as_any().downcast_ref::<All>(),
        _ => None,
    };
    all.map_or_else(
        || receiver.clone(),
        |all| Value::Object(Rc::new(all.clone())),
    )
}

/// `common.KubeVersion`
struct Kube {
    version: KubeVersion,
    /// Whether it is still in the capabilities: its methods are those of a pointer, and nothing
    /// points to a copy.
    in_place: bool,
}

impl Kube {
    fn value(version: KubeVersion, in_place: bool) -> Value {
        Value::Object(Rc::new(Self { version, in_place }))
    }

    fn text_of_pointer(&self) -> &str {
        let KubeVersion {
            version,
            normalized,
            ..
        } = &self.version;
        if normalized.is_empty() {
            version
        } else {
            normalized
        }
    }
}

impl Object for Kube {
    fn go_type(&self) -> Type {
        Type::Named(&KUBE_VERSION)
    }

    /// The second one has no name that a template could use, but `%v` shows it.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        let KubeVersion {
            version,
            normalized,
            major,
            minor,
        } = &self.version;
        let shown = [
            ("Version", version),
            ("normalizedVersion", normalized),
            ("Major", major),
            ("Minor", minor),
        ];
        shown
            .map(|(name, text)| (name, text.as_str().into()))
            .into()
    }

    fn in_interface(&self) -> Option<Value> {
        self.in_place
            .then(|| Self::value(self.version.clone(), false))
    }

    fn exported(&self) -> Option<Value> {
        let version = KubeVersion {
            normalized: String::new(),
            ..self.version.clone()
        };
        Some(Self::value(version, self.in_place))
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        match name {
            _ if !self.in_place => None,
            "String" => Some(&TEXT),
            "GitVersion" => Some(&GIT_VERSION),
            _ => None,
        }
    }

    fn text_behind_pointer(&self) -> Option<String> {
        self.in_place.then(|| self.text_of_pointer().to_owned())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn of_kube(call: &Call<'_>, part: impl Fn(&Kube) -> &str) -> Value {
    let kube = match call.receiver() {
        Value::Object(object) => object.as_any().downcast_ref::<Kube>(),
        _ => None,
    };
    kube.map_or(Value::Nil, |kube| part(kube).into())
}

/// `common.VersionSet`
struct Versions(List);

impl Object for Versions {
    fn go_type(&self) -> Type {
        Type::Named(&VERSION_SET)
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::List(self.0.clone()))
    }

    fn over(&self, content: Value) -> Option<Value> {
        match content {
            Value::List(list) => Some(Value::Object(Rc::new(Self(list)))),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        (name == "Has").then_some(&HAS)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn has(call: &mut Call<'_>) -> Result<Value, Error> {
    let wanted = call.string(0)?;
    let Value::List(versions) = call.receiver().underlying().into_owned() else {
        return Ok(Value::Bool(false));
    };
    call.budget().steps(versions.len() as u64 / 8)?;
    let found = (0..versions.len())
        .any(|i| matches!(versions.get(i), Some(Value::String(version)) if version == *wanted));
    Ok(Value::Bool(found))
}

/// `version.BuildInfo`
struct Build([(&'static str, Value); 5]);

impl Object for Build {
    fn go_type(&self) -> Type {
        Type::Named(&BUILD_INFO)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.0.to_vec()
    }

    fn json(&self) -> JsonForm {
        let names = [
            "version",
            "git_commit",
            "git_tree_state",
            "go_version",
            "kube_client_version",
        ];
        let told = names
            .into_iter()
            .zip(&self.0)
            .filter(|(_, (_, value))| value.truth());
        JsonForm::Fields(
            told.map(|(name, (_, value))| (name, value.clone()))
                .collect(),
        )
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
