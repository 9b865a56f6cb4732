//! Fills templates with parameters.
//!
//! Main type: [`Renderer`]. The strings of a JSON document are templates of one of two kinds:
//! fasttemplate, which replaces `{{name}}`, or Go's text/template. A rendered text is never a
//! template again.

mod direct;
mod fast;
mod functions;
pub(crate) mod literal;
mod parsed;

use crate::error::GenerateError;
use crate::params::{Param, Params, value_of};
use parsed::{NAME, Texts};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value as Json};
use std::cell::{Cell, RefCell};
use std::fmt;
use tiphys_gocompat::sprig::Sources;
use tiphys_gocompat::template::{Budget, ErrorKind, Limits, MissingKey, Options, Value, execute};

/// How deep a document may be nested.
const DEPTH: usize = 200;

/// The most bytes that all parameters and rendered documents of a set may take.
pub(crate) const MOST_MADE: usize = 512 << 20;

/// One way of rendering, used for a whole ApplicationSet.
pub struct Renderer<'s> {
    mode: Mode,
    sources: RefCell<&'s mut Sources>,
    /// What may still be made of parameters and documents, in bytes; `None`: something was refused.
    left: Cell<Option<usize>>,
    texts: Texts,
    /// Those that are rendered again, see [`literal`].
    nested: Texts,
}

enum Mode {
    Fast,
    /// The keys of `goTemplateOptions`, checked when a template is used.
    Go(Vec<String>),
}

impl<'s> Renderer<'s> {
    /// A renderer for `goTemplate` and `goTemplateOptions`; `sources` are for the functions of
    /// sprig that need chance or time.
    pub fn new(go: bool, options: &[String], sources: &'s mut Sources) -> Self {
        let mode = match go {
            true => Mode::Go(options.to_vec()),
            false => Mode::Fast,
        };
        Self {
            mode,
            sources: RefCell::new(sources),
            left: Cell::new(Some(MOST_MADE)),
            texts: Texts::new(functions::table),
            nested: Texts::new(functions::nested),
        }
    }

    /// Counts the memory of parameters or texts of the set: one long value can be in each of
    /// 100,000 Applications. What was refused once is not tried again with something smaller.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), GenerateError> {
        let left = self.left.get().and_then(|left| left.checked_sub(bytes));
        self.left.set(left);
        match left {
            Some(_) => Ok(()),
            None => Err(GenerateError::spec(format!(
                "the parameters and texts of the Applications take more than {} MiB",
                MOST_MADE >> 20
            ))),
        }
    }

    /// Whether nothing more can be made: something was refused.
    pub(crate) fn is_full(&self) -> bool {
        self.left.get().is_none()
    }

    /// What is counted meanwhile is there only as long as this runs: it is given back.
    pub(crate) fn passing<T>(
        &self,
        make: impl FnOnce() -> Result<T, GenerateError>,
    ) -> Result<T, GenerateError> {
        let before = self.left.get();
        let made = make();
        if !self.is_full() {
            self.left.set(before);
        }
        made
    }

    pub(crate) fn is_go(&self) -> bool {
        matches!(self.mode, Mode::Go(_))
    }

    /// Prepares parameters for several texts.
    pub(crate) fn with<'p>(&'p self, params: &'p Params) -> Filled<'p, 's> {
        self.filled(params, &self.texts)
    }

    /// Prepares protected parameters for texts that are rendered again, see [`literal`].
    pub(crate) fn nested<'p>(&'p self, params: &'p Params) -> Filled<'p, 's> {
        self.filled(params, &self.nested)
    }

    fn filled<'p>(&'p self, params: &'p Params, texts: &'p Texts) -> Filled<'p, 's> {
        let data = match self.mode {
            Mode::Fast => Value::Nil,
            Mode::Go(_) => Value::Map(value_of(params)),
        };
        Filled {
            renderer: self,
            params,
            data,
            texts,
            budget: Budget::new(Limits::default()),
        }
    }

    fn missing_key(options: &[String]) -> Result<MissingKey, GenerateError> {
        let mut missing_key = MissingKey::Invalid;
        for option in options {
            missing_key = match option.as_str() {
                "missingkey=default" | "missingkey=invalid" => MissingKey::Invalid,
                "missingkey=zero" => MissingKey::Zero,
                "missingkey=error" => MissingKey::Error,
                _ => {
                    return Err(GenerateError::spec(format!(
                        "unrecognized option in goTemplateOptions: {option}"
                    )));
                }
            };
        }
        Ok(missing_key)
    }
}

/// What to do with a key that the parameters lack.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    AsConfigured,
    /// The text stays a template, for a later renderer.
    KeepTemplate,
}

/// A renderer with parameters.
pub(crate) struct Filled<'p, 's> {
    renderer: &'p Renderer<'s>,
    params: &'p Params,
    data: Value,
    texts: &'p Texts,
    budget: Budget,
}

impl Filled<'_, '_> {
    /// One text.
    pub fn text(&self, text: &str) -> Result<String, GenerateError> {
        self.render(text, Missing::AsConfigured)
    }

    /// One text which may need parameters that are not known yet: then it is returned as it is.
    fn known_text(&self, text: &str) -> Result<String, GenerateError> {
        self.render(text, Missing::KeepTemplate)
    }

    fn render(&self, text: &str, missing: Missing) -> Result<String, GenerateError> {
        let rendered = match &self.renderer.mode {
            Mode::Fast => fast::replace(text, |name| match self.params.get(name) {
                Some(Param::String(value)) => Some(value.as_str()),
                _ => None,
            }),
            Mode::Go(options) => self.go(text, options, missing),
        }?;
        self.renderer.charge(rendered.len())?;
        Ok(rendered)
    }

    fn go(
        &self,
        text: &str,
        options: &[String],
        missing: Missing,
    ) -> Result<String, GenerateError> {
        let missing_key = Renderer::missing_key(options)?;
        if !text.contains("{{") {
            return Ok(text.to_owned());
        }
        let missing_key = match missing {
            Missing::AsConfigured => missing_key,
            Missing::KeepTemplate => MissingKey::Error,
        };
        let set = self.texts.parsed(text).map_err(|e| {
            GenerateError::Template(format!("failed to parse template {text}: {e}"))
        })?;
        let mut sources = self.renderer.sources.borrow_mut();
        let options = Options {
            missing_key,
            budget: &self.budget,
            host: &mut **sources,
        };
        let mut out = Vec::new();
        match execute(&set, NAME, self.data.clone(), options, &mut out) {
            Ok(()) => Ok(String::from_utf8(out)
                .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())),
            Err(e) => {
                if missing == Missing::KeepTemplate && e.kind() == ErrorKind::Missing {
                    return Ok(text.to_owned());
                }
                Err(GenerateError::Template(format!(
                    "failed to execute go template {text}: {e}"
                )))
            }
        }
    }

    /// Every string and every key of a document. Members with null vanish, as in Argo CD.
    pub fn json(&self, document: &Json) -> Result<Json, GenerateError> {
        self.json_at(document, &Path::Root, &|_| false)
    }

    /// What serde reads from the document that [`Self::json`] makes. `None`: that or the reading
    /// fails, and nothing is counted; use new parameters to see why, because what they hold may
    /// have been changed.
    pub fn read<T: DeserializeOwned>(&self, document: &Json) -> Option<T> {
        // Where they are wrong, every text fails, also that of a key.
        if let Mode::Go(options) = &self.renderer.mode
            && Renderer::missing_key(options).is_err()
        {
            return None;
        }
        let before = self.renderer.left.get();
        let read = direct::read(self, document);
        if read.is_none() {
            self.renderer.left.set(before);
        }
        read
    }

    /// The same for a generator inside a matrix: its `values` may use its own parameters, which are
    /// not known yet.
    pub fn generator(&self, document: &Json) -> Result<Json, GenerateError> {
        self.json_at(document, &Path::Root, &|path| {
            matches!(
                path.keys().as_slice(),
                [_, "values"] | ["matrix" | "merge", "generators", _, "values"]
            )
        })
    }

    fn json_at(
        &self,
        document: &Json,
        path: &Path<'_>,
        keeps: &dyn Fn(&Path<'_>) -> bool,
    ) -> Result<Json, GenerateError> {
        if path.depth() > DEPTH {
            return Err(GenerateError::spec("the document is nested too deeply"));
        }
        let named = |error: GenerateError, path: &Path<'_>| match path {
            Path::Root => error,
            _ => error.inside(path.to_string()),
        };
        self.renderer
            .charge(size_of::<Json>())
            .map_err(|e| named(e, path))?;
        Ok(match document {
            Json::String(text) => Json::String(self.text(text).map_err(|e| named(e, path))?),
            Json::Array(items) => Json::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.json_at(item, &Path::Item(path, index), keeps))
                    .collect::<Result<_, _>>()?,
            ),
            Json::Object(members) => {
                let mut rendered = Map::new();
                for (key, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                    let path = Path::Member(path, key);
                    let value = match member.is_object() && keeps(&path) {
                        true => self.values(member).map_err(|e| named(e, &path))?,
                        false => self.json_at(member, &path, keeps)?,
                    };
                    let key = self.text(key).map_err(|e| named(e, &path))?;
                    rendered.insert(key, value);
                }
                Json::Object(rendered)
            }
            Json::Number(number) if path.is_opaque() => Json::Number(as_float64(number)),
            other => other.clone(),
        })
    }

    fn values(&self, values: &Json) -> Result<Json, GenerateError> {
        let mut rendered = Map::new();
        for (key, value) in values.as_object().into_iter().flatten() {
            self.renderer.charge(size_of::<Json>() + key.len())?;
            let text = self.known_text(value.as_str().unwrap_or_default())?;
            rendered.insert(key.clone(), Json::String(text));
        }
        Ok(Json::Object(rendered))
    }
}

/// Whether a text or key of a document may be a template.
pub(crate) fn has_template(document: &Json) -> bool {
    match document {
        Json::String(text) => text.contains("{{"),
        Json::Array(items) => items.iter().any(has_template),
        Json::Object(members) => members
            .iter()
            .any(|(key, member)| key.contains("{{") || has_template(member)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// The number that Go decodes without knowing its type: integers of more than 53 bits lose digits.
fn as_float64(number: &Number) -> Number {
    let exact = number.as_i64().map(i64::unsigned_abs);
    let Some(float) = number
        .as_f64()
        .filter(|_| exact.is_none_or(|n| n > 1 << 53))
    else {
        return number.clone();
    };
    // Rust writes the fewest digits, and zeros behind them, as Go does. From 2^64 up to 1e21 Go does
    // so too, where a `Number` can only be a float, which is written with an exponent.
    let text = float.to_string();
    let signed = text.parse::<i64>().map(Number::from);
    signed
        .or_else(|_| text.parse::<u64>().map(Number::from))
        .ok()
        .or_else(|| Number::from_f64(float))
        .unwrap_or_else(|| number.clone())
}

/// Where in a document something stands, for errors.
enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    fn depth(&self) -> usize {
        let mut depth = 0;
        let mut path = self;
        while let Path::Member(before, _) | Path::Item(before, _) = path {
            depth += 1;
            path = before;
        }
        depth
    }

    /// Whether it is inside a value that Argo CD keeps as a text of JSON.
    fn is_opaque(&self) -> bool {
        let mut keys = self.keys().into_iter();
        keys.any(|key| ["valuesObject", "parameters"].contains(&key))
    }

    /// The keys on the way, without the places in lists.
    fn keys(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        let mut path = self;
        loop {
            path = match path {
                Path::Root => break,
                Path::Member(before, key) => {
                    keys.push(*key);
                    before
                }
                Path::Item(before, _) => before,
            };
        }
        keys.reverse();
        keys
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Member(Path::Root, key) => f.write_str(key),
            Path::Member(before, key) => write!(f, "{before}.{key}"),
            Path::Item(before, index) => write!(f, "{before}[{index}]"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sources() -> Sources {
        Sources {
            random: Box::new(|bytes| bytes.fill(7)),
            now: Default::default(),
            zone: || unreachable!("no text needs a zone"),
        }
    }

    /// How many bytes may still be made.
    pub(crate) fn left(renderer: &Renderer<'_>) -> usize {
        renderer.left.get().unwrap_or(0)
    }

    #[test]
    fn what_passes_is_given_back_and_nothing_is_made_after_a_refusal() {
        let mut sources = sources();
        let renderer = Renderer::new(true, &[], &mut sources);
        renderer.charge(MOST_MADE - 100).expect("most of it");
        for _ in 0..3 {
            let passed = renderer.passing(|| renderer.charge(90));
            passed.expect("it is given back");
        }
        let failed = renderer.passing(|| {
            renderer.charge(90)?;
            Err::<(), _>(GenerateError::content("another error"))
        });
        failed.expect_err("it fails");
        assert_eq!((left(&renderer), renderer.is_full()), (100, false));
        renderer.charge(100).expect("exactly what is left");
        assert!(!renderer.is_full());
        let refused = renderer.passing(|| renderer.charge(1));
        refused.expect_err("nothing is left");
        assert!(renderer.is_full());
        renderer.charge(0).expect_err("something was refused");
    }

    #[test]
    fn numbers_and_lists_take_memory_too() {
        let mut sources = sources();
        let renderer = Renderer::new(true, &[], &mut sources);
        let (params, numbers) = (Params::new(), Json::from(vec![0; 9]));
        let left = 15 * size_of::<Json>();
        renderer.charge(MOST_MADE - left).expect("most of it");
        let render = || renderer.with(&params).json(&numbers);
        assert_eq!(render().expect("there is room for 15 values"), numbers);
        render().expect_err("there is room for 5 values");
    }

    #[test]
    fn all_texts_of_a_set_share_a_limit() {
        for go in [true, false] {
            let mut sources = sources();
            let renderer = Renderer::new(go, &[], &mut sources);
            let long = Params::from([("long".to_owned(), Param::from("0123456789"))]);
            let text = if go { "{{.long}}" } else { "{{long}}" };
            renderer.charge(MOST_MADE - 25).expect("most of it");
            let render = || renderer.with(&long).text(text);
            assert_eq!(render().expect("15 bytes are left"), "0123456789");
            render().expect("5 bytes are left");
            let error = render().expect_err("5 bytes are too few");
            assert_eq!(
                error.to_string(),
                "the parameters and texts of the Applications take more than 512 MiB"
            );
        }
    }
}
