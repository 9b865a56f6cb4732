//! The functions and values of tests/baseline/generate/template/world.go.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tiphys_gocompat::template::{
    BYTES, Call, Error, Function, Functions, INT, INT64, IntKind, LIST, List, MAP, Map, Named,
    Object, Run, STRINGS, Str, TemplateSet, Type, UintKind, Value, format,
};

static FILES: Named = Named {
    name: "main.files",
    underlying: Some(Type::Map(&BYTES)),
};
static VERSIONS: Named = Named {
    name: "main.versions",
    underlying: Some(STRINGS),
};
static VERSION: Named = Named {
    name: "*main.version",
    underlying: None,
};
static CAPABILITIES: Named = Named {
    name: "*main.capabilities",
    underlying: None,
};
static NAMED: Named = Named {
    name: "main.named",
    underlying: Some(MAP),
};

/// An object defined by functions.
struct Native {
    named: &'static Named,
    inner: Option<Value>,
    fields: Vec<(&'static str, Value)>,
    text: Option<&'static str>,
    methods: &'static [(&'static str, Function)],
}

impl Object for Native {
    fn go_type(&self) -> Type {
        Type::Named(self.named)
    }
    fn underlying(&self) -> Option<Value> {
        self.inner.clone()
    }
    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }
    fn method(&self, name: &str) -> Option<&'static Function> {
        self.methods
            .iter()
            .find_map(|(own, function)| (*own == name).then_some(function))
    }
    fn text(&self) -> Option<String> {
        self.text.map(str::to_owned)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn inner(call: &Call<'_>) -> Value {
    call.receiver().underlying().into_owned()
}

fn file(call: &Call<'_>) -> Result<Option<Str>, Error> {
    let Value::Map(files) = inner(call) else {
        return Ok(None);
    };
    Ok(files.get(call.string(0)?).map(|v| match v {
        Value::Bytes(bytes) => bytes,
        _ => Str::default(),
    }))
}

static FILE_METHODS: &[(&str, Function)] = &[
    (
        "Get",
        Function::new(&[Type::String], |call| {
            Ok(Value::String(file(call)?.unwrap_or_default()))
        }),
    ),
    (
        "Lines",
        Function::new(&[Type::String], |call| {
            let text = file(call)?.unwrap_or_default();
            Ok(Value::strings(
                text.as_bytes().split(|b| *b == b'\n').map(Str::from),
            ))
        }),
    ),
    (
        "Count",
        Function::new(&[], |call| match inner(call) {
            Value::Map(files) => Ok(Value::int(files.len() as i64)),
            _ => Ok(Value::Nil),
        }),
    ),
    (
        "Need",
        Function::new(&[Type::String], |call| match file(call)? {
            Some(_) => Ok(call.take(0)),
            None => Err(Error::function(format!("no file {}", call.text(0)?))),
        }),
    ),
];

static VERSIONS_METHODS: &[(&str, Function)] = &[(
    "Has",
    Function::new(&[Type::String], |call| match inner(call) {
        Value::List(list) => {
            let wanted = call.string(0)?;
            Ok(Value::Bool(
                list.items()
                    .iter()
                    .any(|v| matches!(v, Value::String(s) if s == wanted)),
            ))
        }
        _ => Ok(Value::Nil),
    }),
)];

static VERSION_METHODS: &[(&str, Function)] = &[
    ("String", Function::new(&[], |_| Ok(Value::from("v1.33")))),
    (
        "GitVersion",
        Function::new(&[], |_| Ok(Value::from("v1.33"))),
    ),
];

static CAPABILITIES_METHODS: &[(&str, Function)] = &[(
    "Sum",
    Function::variadic(&[INT, INT], |call| {
        let numbers = (0..call.len())
            .map(|i| call.integer(i))
            .collect::<Result<Vec<i64>, Error>>()?;
        Ok(Value::int(numbers.iter().sum::<i64>()))
    }),
)];

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(Map::of(MAP, entries.map(|(k, v)| (Str::from(k), v))))
}

fn list<const N: usize>(items: [Value; N]) -> Value {
    Value::List(List::new(items.to_vec()))
}

fn capabilities() -> Value {
    let version = Native {
        named: &VERSION,
        inner: None,
        fields: vec![("Major", "1".into()), ("Minor", "33".into())],
        text: Some("v1.33"),
        methods: VERSION_METHODS,
    };
    let versions = Native {
        named: &VERSIONS,
        inner: Some(Value::strings(["v1", "apps/v1"])),
        fields: vec![],
        text: None,
        methods: VERSIONS_METHODS,
    };
    let fields = vec![
        ("KubeVersion", Value::Object(Rc::new(version))),
        ("APIVersions", Value::Object(Rc::new(versions))),
        ("Size", Value::int(3)),
        ("Extra", Value::Map(Map::nil(MAP))),
    ];
    Value::Object(Rc::new(Native {
        named: &CAPABILITIES,
        inner: None,
        fields,
        text: Some("caps"),
        methods: CAPABILITIES_METHODS,
    }))
}

/// The dot of every case; `j` is the random part.
pub fn universe(j: &serde_json::Value) -> Value {
    let bytes = |text: &str| Value::Bytes(Str::from(text));
    let files = Map::of(
        Type::Map(&BYTES),
        [
            (Str::from("a.txt"), bytes("one\ntwo")),
            (Str::from("b"), bytes("")),
        ],
    );
    let files = Native {
        named: &FILES,
        inner: Some(Value::Map(files)),
        fields: vec![],
        text: None,
        methods: FILE_METHODS,
    };
    let named = |entries: Vec<(&str, Value)>| {
        Value::Map(Map::of(
            Type::Named(&NAMED),
            entries.into_iter().map(|(k, v)| (Str::from(k), v)),
        ))
    };
    let strings = Type::Map(&Type::String);
    named(vec![
        ("j", Value::from_json(j)),
        ("nil", Value::Nil),
        ("t", true.into()),
        ("f", false.into()),
        ("i", Value::int(42)),
        ("zero", Value::int(0)),
        ("i64", Value::int64(-7)),
        ("u", Value::Uint(UintKind::Uint, 9)),
        ("u8", Value::Uint(UintKind::Uint8, 200)),
        ("x", 2.5.into()),
        ("big", 1e21.into()),
        ("s", "hello".into()),
        ("e", "".into()),
        ("u0", "héllo ☺".into()),
        ("h", "<a href=\"x\">O'Neil & co=</a>".into()),
        (
            "l",
            list([
                "a".into(),
                Value::int(1),
                2.5.into(),
                Value::Nil,
                true.into(),
                list([1.0.into()]),
            ]),
        ),
        ("el", list([])),
        ("ss", Value::strings(["x", "y", "z"])),
        (
            "is",
            Value::List(List::of(
                Type::Slice(&INT),
                [3, 1, 2].map(Value::int).to_vec(),
            )),
        ),
        ("by", bytes("bytes")),
        (
            "m",
            map([
                ("a", Value::int(1)),
                ("b", "two".into()),
                ("c", Value::Nil),
                ("d", map([("e", 5.0.into()), ("f", list(["g".into()]))])),
            ]),
        ),
        (
            "ms",
            Value::Map(Map::of(
                strings,
                [(Str::from("k"), "v".into()), (Str::from("z"), "w".into())],
            )),
        ),
        ("em", map([])),
        ("nm", Value::Map(Map::nil(MAP))),
        ("nl", Value::List(List::nil(LIST))),
        (
            "Values",
            named(vec![
                ("q", 1.0.into()),
                ("r", named(vec![("s", "deep".into())])),
            ]),
        ),
        ("Files", Value::Object(Rc::new(files))),
        ("Cap", capabilities()),
        (
            "lm",
            list([
                map([("name", "n1".into()), ("port", 80.0.into())]),
                map([("name", "n2".into())]),
            ]),
        ),
    ])
}

/// How deep each template is nested in itself.
pub type Included = HashMap<Vec<u8>, usize>;

fn bytes_of(result: Result<&[u8], Error>) -> Result<Value, Error> {
    result.map(|out| Value::String(Str::from(out)))
}

fn include(call: &mut Call<'_>) -> Result<Run, Error> {
    let name = call.string(0)?.clone();
    let count = call
        .host::<Included>()?
        .entry(name.as_bytes().to_vec())
        .or_default();
    if *count > 2 {
        return Err(Error::function(format!(
            "nested too often: {}: unable",
            name.to_str()
        )));
    }
    *count += 1;
    let counted = name.clone();
    Ok(Run {
        templates: call.templates().clone(),
        name,
        data: call.take(1),
        then: Box::new(move |host, result| {
            if let Some(count) = host
                .downcast_mut::<Included>()
                .and_then(|i| i.get_mut(counted.as_bytes()))
            {
                *count -= 1;
            }
            bytes_of(result)
        }),
    })
}

fn tpl(call: &mut Call<'_>) -> Result<Run, Error> {
    let text = call.string(0)?.clone();
    let quoted = format::quote::quoted(&text.to_str());
    let mut set = TemplateSet::on(call.templates());
    let root = set.root().to_owned();
    set.parse(&root, text.as_bytes())
        .map_err(|e| e.wrap(format!("cannot parse template {quoted}: ")))?;
    Ok(Run {
        templates: Arc::new(set),
        name: Str::from(root),
        data: call.take(1),
        then: Box::new(move |_, result| {
            bytes_of(result.map_err(|e| {
                e.wrap(format!(
                    "error during tpl function execution for {quoted}: "
                ))
            }))
        }),
    })
}

fn dict(call: &mut Call<'_>) -> Result<Value, Error> {
    let map = Map::new();
    for i in (0..call.len()).step_by(2) {
        let key = format::sprint([call.arg(i)])?;
        let value = if i + 1 < call.len() {
            call.arg(i + 1).clone()
        } else {
            "".into()
        };
        map.insert(key, value)?;
    }
    Ok(map.into())
}

const FUNCTIONS: &[(&str, Function)] = &[
    (
        "upper",
        Function::new(&[Type::String], |call| {
            Ok(call.text(0)?.to_uppercase().into())
        }),
    ),
    (
        "repeat",
        Function::new(&[INT, Type::String], |call| {
            let count = usize::try_from(call.integer(0)?.clamp(0, 5)).unwrap_or(0);
            Ok(Value::String(Str::from(
                call.string(1)?.as_bytes().repeat(count),
            )))
        }),
    ),
    (
        "first",
        Function::new(&[LIST], |call| Ok(call.list(0)?.get(0).unwrap_or_default())),
    ),
    (
        "keys",
        Function::new(&[MAP], |call| Ok(Value::strings(call.map(0)?.keys()))),
    ),
    (
        "fail",
        Function::new(&[Type::String], |call| Err(Error::function(call.text(0)?))),
    ),
    ("id", Function::new(&[Type::Any], |call| Ok(call.take(0)))),
    ("dict", Function::variadic(&[Type::Any], dict)),
    (
        "list",
        Function::variadic(&[Type::Any], |call| {
            Ok(Value::List(call.rest(0).cloned().collect()))
        }),
    ),
    (
        "set",
        Function::new(&[MAP, Type::String, Type::Any], |call| {
            let (key, value) = (call.string(1)?.clone(), call.arg(2).clone());
            if matches!(&value, Value::Map(m) if matches!(m.go_type(), Type::Named(_)) || m.go_type() == MAP)
                || matches!(&value, Value::List(l) if l.go_type() == LIST)
            {
                return Err(Error::function("set takes no maps or lists"));
            }
            call.map(0)?.insert(key, value)?;
            Ok(call.take(0))
        }),
    ),
    (
        "half",
        Function::new(&[Type::Float64], |call| {
            Ok(Value::Float(call.float(0)? / 2.0))
        }),
    ),
    (
        "negate",
        Function::new(&[Type::Bool], |call| Ok(Value::Bool(!call.boolean(0)?))),
    ),
    (
        "i64",
        Function::new(&[INT64], |call| {
            Ok(Value::Int(IntKind::Int64, call.integer(0)? % 100 + 1))
        }),
    ),
    (
        "unsign",
        Function::new(&[Type::Uint(UintKind::Uint)], |call| Ok(call.take(0))),
    ),
    (
        "join",
        Function::variadic(&[Type::String, Type::String], |call| {
            let parts = (1..call.len())
                .map(|i| call.text(i))
                .collect::<Result<Vec<_>, Error>>()?;
            Ok(parts.join(&*call.text(0)?).into())
        }),
    ),
    (
        "strs",
        Function::new(&[STRINGS], |call| {
            Ok(Value::int(call.list(0)?.len() as i64))
        }),
    ),
    ("now", Function::new(&[], |_| Ok("then".into()))),
    ("nothing", Function::new(&[], |_| Ok(Value::Nil))),
    (
        "nilmap",
        Function::new(&[], |_| Ok(Value::Map(Map::nil(MAP)))),
    ),
    (
        "default",
        Function::variadic(&[Type::Any, Type::Any], |call| {
            let given = call.len() > 1 && call.arg(1).truth();
            Ok(call.take(usize::from(given)))
        }),
    ),
    (
        "include",
        Function::running(&[Type::String, Type::Any], include),
    ),
    ("tpl", Function::running(&[Type::String, Type::Any], tpl)),
];

pub fn functions() -> Arc<Functions> {
    let mut functions = Functions::builtins();
    functions.extend(FUNCTIONS.iter().copied());
    Arc::new(functions)
}
