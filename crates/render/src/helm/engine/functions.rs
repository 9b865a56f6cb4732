//! Helm's own functions: `include`, `tpl`, `required`, `fail` and `lookup`.
//!
//! Main values: [`TABLE`], all functions that templates can call, and [`RenderHost`], the state
//! that they share during a render.

use super::{ROOT, durations, formats};
use crate::helm::RenderOptions;
use crate::helm::log::{self, FAILED};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tiphys_gocompat::sprig::{self, Sources};
use tiphys_gocompat::template::{
    Call, Error, ErrorKind, Function, Functions, Map, Parsed, Run, Str, TemplateSet, Type, Value,
};
use tiphys_gocompat::text::quote;

/// How often a template may be nested in itself by `include`.
const NESTED: u32 = 1000;
/// How deep `tpl` may be nested. Helm's limit is its stack.
const NESTED_TEXTS: u32 = 1000;

/// Charged for a parsed text, in addition to its length.
const PARSED: usize = 2048;

/// Marks the beginning of the chart author's text in an error.
pub(super) const WARN_START: &str = "HELM_ERR_START";
pub(super) const WARN_END: &str = "HELM_ERR_END";

const NAMED: &[Type] = &[Type::String, Type::Any];

pub(super) static TABLE: LazyLock<Arc<Functions>> = LazyLock::new(|| {
    let mut functions = Functions::builtins();
    functions.extend(sprig::functions::<RenderHost>());
    functions.extend(formats::TABLE.iter().copied());
    functions.extend(durations::TABLE.iter().copied());
    functions.extend([
        ("include", Function::running(NAMED, include)),
        ("tpl", Function::running(NAMED, tpl)),
        ("required", Function::new(NAMED, required)),
        ("fail", Function::new(&[Type::String], fail)),
        (
            "lookup",
            Function::new(&[Type::String; 4], |_| Ok(Value::Map(Map::new()))),
        ),
    ]);
    Arc::new(functions)
});

/// State that the functions of one render share.
pub struct RenderHost {
    sources: Sources,
    lint: bool,
    /// The number of unfinished inclusions of each template.
    included: HashMap<Str, u32>,
    texts: u32,
    /// Texts that `tpl` has parsed.
    parsed: HashMap<Str, Parsed>,
    pub warnings: Vec<String>,
}

impl RenderHost {
    pub fn new(options: &RenderOptions) -> Self {
        Self {
            sources: (options.sources)(),
            lint: options.lint,
            included: HashMap::new(),
            texts: 0,
            parsed: HashMap::new(),
            warnings: Vec::new(),
        }
    }

    fn of(host: &mut dyn Any) -> Option<&mut Self> {
        host.downcast_mut()
    }
}

impl sprig::Host for RenderHost {
    fn sources(&mut self) -> &mut Sources {
        &mut self.sources
    }
}

const NO_VALUE: &str = "<no value>";

/// A template's output as text: missing values print as nothing.
pub(super) fn without_no_value(output: Vec<u8>) -> String {
    let text = String::from_utf8(output)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    // Most texts have none, and are not copied.
    if text.as_bytes().contains(&b'<') && text.contains(NO_VALUE) {
        text.replace(NO_VALUE, "")
    } else {
        text
    }
}

fn include(call: &mut Call<'_>) -> Result<Run, Error> {
    let name = call.string(0)?.clone();
    let waiting = call
        .host::<RenderHost>()?
        .included
        .entry(name.clone())
        .or_default();
    if *waiting > NESTED {
        let name = name.to_str();
        return Err(Error::function(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        )));
    }
    *waiting += 1;
    let (templates, data, own) = (call.templates().clone(), call.take(1), name.clone());
    let then = move |host: &mut dyn Any, done: Result<&[u8], Error>| {
        if let Some(waiting) = RenderHost::of(host).and_then(|host| host.included.get_mut(&own)) {
            *waiting -= 1;
        }
        done.map(|text| Value::String(text.into()))
    };
    Ok(Run {
        templates,
        name,
        data,
        then: Box::new(then),
    })
}

/// Executes a text as a template that can include its caller's templates; its own definitions stay
/// local.
fn tpl(call: &mut Call<'_>) -> Result<Run, Error> {
    let text = call.string(0)?.clone();
    call.budget()
        .memory(text.len() + size_of::<TemplateSet>())?;
    let functions = call.templates().functions().clone();
    let known = call.host::<RenderHost>()?.parsed.get(&text).cloned();
    let parsed = match known {
        Some(parsed) => parsed,
        None => {
            // The parsed text is kept, and takes several times the memory of the text.
            call.budget().memory(PARSED + 32 * text.len())?;
            let failed =
                |e: Error| e.wrap(format!("cannot parse template {}: ", quote(&text.to_str())));
            let parsed = Parsed::parse(ROOT, text.as_bytes(), &functions).map_err(failed)?;
            call.host::<RenderHost>()?
                .parsed
                .insert(text.clone(), parsed.clone());
            parsed
        }
    };
    let host = call.host::<RenderHost>()?;
    if host.texts == NESTED_TEXTS {
        return Err(Error::limit(format!(
            "tpl is called inside itself more than {NESTED_TEXTS} times"
        )));
    }
    host.texts += 1;
    let mut templates = TemplateSet::on(call.templates());
    templates.add_to_run(&parsed, ROOT);
    let then = move |host: &mut dyn Any, done: Result<&[u8], Error>| {
        if let Some(host) = RenderHost::of(host) {
            host.texts -= 1;
        }
        match done {
            Ok(out) => Ok(without_no_value(out.to_vec()).into()),
            Err(e) if e.kind() == ErrorKind::Limit => Err(e),
            Err(e) => Err(e.wrap(format!(
                "error during tpl function execution for {}: ",
                quote(&text.to_str())
            ))),
        }
    };
    Ok(Run {
        templates: Arc::new(templates),
        name: ROOT.into(),
        data: call.take(1),
        then: Box::new(then),
    })
}

fn required(call: &mut Call<'_>) -> Result<Value, Error> {
    // Helm's linter has another word for an empty text.
    let missing = match call.arg(1) {
        Value::Nil => "missing required value",
        Value::String(text) if text.is_empty() => "missing required values",
        _ => return Ok(call.take(1)),
    };
    let message = call.text(0)?.into_owned();
    let host = call.host::<RenderHost>()?;
    if host.lint {
        host.warnings
            .push(format!("{missing} message={}", log::text(&message)));
        return Ok("".into());
    }
    Err(warning(&message))
}

fn fail(call: &mut Call<'_>) -> Result<Value, Error> {
    let message = call.text(0)?.into_owned();
    let host = call.host::<RenderHost>()?;
    if host.lint {
        host.warnings
            .push(format!("{FAILED} message={}", log::text(&message)));
        return Ok("".into());
    }
    Err(warning(&message))
}

fn warning(message: &str) -> Error {
    Error::function(format!("{WARN_START}{message}{WARN_END}"))
}
