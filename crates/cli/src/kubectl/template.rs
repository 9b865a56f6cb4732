//! The templates of `-o`: `jsonpath=...`, `go-template=...` and their kin. Main type: [`Template`].

use super::jsonpath::JsonPath;
use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{fs, sync::Arc};
use tiphys_gocompat::template::{
    self, Budget, Call, Error, Function, Functions, Limits, MissingKey, Options, Parsed, Str,
    TemplateSet, Type,
};

/// The formats that need a template, sorted.
pub const FORMATS: [&str; 7] = [
    "go-template",
    "go-template-file",
    "jsonpath",
    "jsonpath-as-json",
    "jsonpath-file",
    "template",
    "templatefile",
];
/// The name of Go templates in their errors.
const NAME: &str = "output";

/// The flags for templates.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TemplateArgs {
    /// Template, or its file, of the template formats of -o; alone it is a Go template
    #[arg(long, value_name = "TEMPLATE")]
    pub template: Option<String>,
    /// Templates ignore fields and keys that are not there; =false: they fail [default: true]
    #[arg(long)]
    pub allow_missing_template_keys: Option<bool>,
}

impl TemplateArgs {
    fn text(&self) -> Option<&str> {
        self.template.as_deref().filter(|text| !text.is_empty())
    }

    /// Whether it is a Go template without a format.
    pub fn is_alone(&self, format: Option<&str>) -> bool {
        format.is_none() && self.text().is_some()
    }
}

/// Prints an object by a template.
pub struct Template {
    /// The text, for errors.
    text: String,
    language: Language,
}

enum Language {
    JsonPath(JsonPath),
    Go(Arc<TemplateSet>, MissingKey),
}

impl Template {
    /// The template of a format; `None` if the format has none.
    pub fn of(format: Option<&str>, args: &TemplateArgs) -> Result<Option<Self>, String> {
        let format = match format {
            None if args.is_alone(None) => "go-template",
            format => format.unwrap_or_default(),
        };
        // As in kubectl, the flag is only for a format that has no template of its own.
        let (name, text) = match args.text() {
            Some(text) => (format, text),
            None => format.split_once('=').unwrap_or((format, "")),
        };
        if !FORMATS.contains(&name) {
            return Ok(None);
        }
        if text.is_empty() {
            return Err("template format specified but no template given".to_owned());
        }
        let text = match name {
            "jsonpath-file" | "go-template-file" | "templatefile" => fs::read_to_string(text)
                .map_err(|e| {
                    let reason = tiphys_repo::net::reason(&e);
                    format!("error reading --template {text}, open {text}: {reason}")
                })?,
            _ => text.to_owned(),
        };
        let allow_missing = args.allow_missing_template_keys.unwrap_or(true);
        let language = if name.starts_with("jsonpath") {
            let path = JsonPath::parse(&text)
                .map_err(|e| format!("error parsing jsonpath {text}, {e}"))?;
            Language::JsonPath(
                path.allow_missing_keys(allow_missing)
                    .with_json_output(name == "jsonpath-as-json"),
            )
        } else {
            let set = set(&text).map_err(|e| format!("error parsing template {text}, {e}"))?;
            let missing = if allow_missing {
                MissingKey::Invalid
            } else {
                MissingKey::Error
            };
            Language::Go(set, missing)
        };
        Ok(Some(Self { text, language }))
    }

    /// The text for an object. An error does not show the object, unlike kubectl's: it may be a
    /// Secret.
    pub fn print(&self, object: &Value) -> Result<String, String> {
        match &self.language {
            Language::JsonPath(path) => path
                .print(object)
                .map_err(|e| format!("error executing jsonpath {:?}: {e}", self.text)),
            Language::Go(set, missing_key) => {
                let budget = Budget::new(Limits::default());
                let options = Options {
                    missing_key: *missing_key,
                    budget: &budget,
                    host: &mut (),
                };
                let mut out = Vec::new();
                let data = template::Value::from_json(object);
                template::execute(set, NAME, data, options, &mut out)
                    .map_err(|e| format!("error executing template {:?}: {e}", self.text))?;
                Ok(String::from_utf8_lossy(&out).into_owned())
            }
        }
    }
}

fn set(text: &str) -> Result<Arc<TemplateSet>, Error> {
    let mut functions = Functions::builtins();
    functions.insert(
        "exists",
        Function::variadic(&[Type::Any, Type::Any], exists),
    );
    functions.insert(
        "base64decode",
        Function::new(&[Type::String], base64_decode),
    );
    let mut set = TemplateSet::new(NAME, Arc::new(functions));
    let parsed = Parsed::parse(NAME, text.as_bytes(), set.functions())?;
    set.add_to_run(&parsed, NAME);
    Ok(Arc::new(set))
}

/// `exists VALUE INDEX...`: whether `index` would find something.
fn exists(call: &mut Call<'_>) -> Result<template::Value, Error> {
    use template::Value;
    let mut value = call.arg(0).clone();
    for index in call.rest(1) {
        let at = match index {
            Value::Int(_, number) => usize::try_from(*number).ok(),
            Value::Uint(_, number) => usize::try_from(*number).ok(),
            _ => None,
        };
        value = match (&value, index) {
            (Value::List(list), _) => at.and_then(|at| list.get(at)).unwrap_or_default(),
            (Value::String(text), _) => {
                let byte = at.and_then(|at| text.as_bytes().get(at).copied());
                byte.map(Value::int).unwrap_or_default()
            }
            (Value::Map(map), Value::String(key)) => map.get(key.as_bytes()).unwrap_or_default(),
            _ => return Ok(false.into()),
        };
    }
    Ok((!matches!(value, Value::Nil)).into())
}

fn base64_decode(call: &mut Call<'_>) -> Result<template::Value, Error> {
    let text = call.string(0)?.as_bytes();
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let bytes = STANDARD.decode(&text).map_err(|e| {
        let at = match e {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
        };
        Error::function(format!(
            "base64 decode failed: illegal base64 data at input byte {at}"
        ))
    })?;
    Ok(template::Value::String(Str::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(format: &str, args: &TemplateArgs) -> Result<String, String> {
        let object = json!({"a": {"b": 1}, "list": ["x"], "secret": "aGk=", "bad": "*"});
        Template::of(Some(format).filter(|f| !f.is_empty()), args)?
            .map_or_else(|| Ok("no template".to_owned()), |t| t.print(&object))
    }

    #[test]
    fn formats_have_their_template_or_the_flag_has() {
        let flag = |text: &str| TemplateArgs {
            template: Some(text.to_owned()),
            allow_missing_template_keys: None,
        };
        let none = TemplateArgs::default();
        for (format, args, expected) in [
            ("jsonpath={.a.b}", &none, Ok("1")),
            ("jsonpath-as-json={.a.b}", &none, Ok("[\n    1\n]\n")),
            ("go-template={{.a.b}}{{.c}}", &none, Ok("1<no value>")),
            ("template={{.secret | base64decode}}", &none, Ok("hi")),
            (
                "go-template={{exists .a \"b\"}} {{exists .a \"c\"}} {{exists .list 0}} {{exists .list 1}} {{exists .c}}",
                &none,
                Ok("true false true false false"),
            ),
            ("jsonpath", &flag("{.a}"), Ok("{\"b\":1}")),
            ("", &flag("{{.a.b}}"), Ok("1")),
            ("jsonpath={.a}", &flag("{.a}"), Ok("no template")),
            ("yaml", &none, Ok("no template")),
            (
                "jsonpath",
                &none,
                Err("template format specified but no template given"),
            ),
            (
                "jsonpath={.a",
                &none,
                Err("error parsing jsonpath {.a, unclosed action"),
            ),
            (
                "jsonpath={.list[1]}",
                &none,
                Err(
                    "error executing jsonpath \"{.list[1]}\": array index out of bounds: index 1, length 1",
                ),
            ),
            (
                "jsonpath-file=no-such-file",
                &none,
                Err(
                    "error reading --template no-such-file, open no-such-file: no such file or directory",
                ),
            ),
        ] {
            let found = printed(format, args);
            assert_eq!(
                found,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{format}"
            );
        }
        let wrong = printed("go-template={{base64decode .bad}}", &none);
        assert!(
            wrong.is_err_and(|e| e.contains("illegal base64 data at input byte 0")),
            "the text is no base64"
        );
    }

    #[test]
    fn missing_keys_can_be_refused() {
        let strict = TemplateArgs {
            template: None,
            allow_missing_template_keys: Some(false),
        };
        assert_eq!(
            printed("jsonpath={.c}", &strict),
            Err("error executing jsonpath \"{.c}\": c is not found".to_owned())
        );
        let go = printed("go-template={{.c}}", &strict);
        assert!(go.is_err_and(|e| e.contains("map has no entry for key \"c\"")));
    }
}
