//! Jsonnet files, evaluated as go-jsonnet 0.22 does.
//!
//! Main function: [`evaluate_here`]. The language itself is the crate rsjsonnet-lang's; it is named in
//! this module only, so that another one can take its place. There are no native functions, and
//! files are read through [`SourceFiles`] only.
//!
//! The library limits the depth of its stack and nothing else. [`steps`] counts what programs do;
//! an evaluation has its own thread, whose stack is large enough for what the parser may nest. What
//! one operator or one function of `std` makes has no limit but the library's: two billion elements.

mod imports;
mod message;
mod steps;

use crate::{FileError, RenderError, SourceFiles};
use imports::{ImportFailure, Library};
use rsjsonnet_lang::{
    arena::Arena,
    interner::InternedStr,
    program::{
        Callbacks, EvalError, EvalStackTraceItem, ImportError, LoadError, NativeError, Program,
        Thunk, Value, ValueKind,
    },
    span::{SourceId, SpanContext, SpanId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value as Json};
use std::collections::HashMap;
use steps::{Counted, STEP, with_steps};

/// `spec.source.directory.jsonnet`, with the build environment in the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JsonnetOptions {
    pub ext_vars: Vec<JsonnetVariable>,
    /// Arguments of the function that a file may be.
    pub tlas: Vec<JsonnetVariable>,
    /// Folders to import from, relative to the root of the repository.
    pub libs: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JsonnetVariable {
    pub name: String,
    /// A text, or Jsonnet.
    pub value: String,
    pub code: bool,
}

/// Limits for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonnetLimits {
    /// Calls, fields and elements that are evaluated inside each other.
    pub stack: usize,
    /// Brackets, words such as `if` and fields inside and behind each other in a program's text.
    pub nesting: usize,
    /// Calls of the program's own functions and rounds of its comprehensions.
    pub steps: u64,
    /// Bytes that imports may have together.
    pub import_bytes: u64,
    /// Values in the result.
    pub values: usize,
    /// Bytes of the texts in the result.
    pub result_bytes: usize,
}

impl Default for JsonnetLimits {
    fn default() -> Self {
        Self {
            // The real program has 500; some are ours.
            stack: 1000,
            nesting: 10_000,
            steps: 20_000_000,
            import_bytes: 64 << 20,
            values: 5_000_000,
            result_bytes: 64 << 20,
        }
    }
}

/// Why a file has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonnetError {
    /// What is wrong with the program, in go-jsonnet's words.
    #[error("{0}")]
    Program(String),
    /// There is no answer: the source cannot be read, or the options are wrong.
    #[error(transparent)]
    Render(RenderError),
}

impl From<FileError> for JsonnetError {
    fn from(error: FileError) -> Self {
        Self::Render(error.into())
    }
}

/// A file to evaluate.
#[derive(Clone, Copy, Debug)]
pub struct JsonnetFile<'a> {
    /// The Application's folder.
    pub folder: &'a str,
    pub path: &'a str,
    pub content: &'a [u8],
    pub options: &'a JsonnetOptions,
    pub limits: &'a JsonnetLimits,
}

/// Where programs are evaluated.
pub trait EvaluateJsonnet {
    /// # Errors
    /// Why the file has no value.
    fn evaluate(
        &self,
        files: &dyn SourceFiles,
        file: JsonnetFile<'_>,
    ) -> Result<Json, JsonnetError>;
}

/// In this process, which an evaluation can leave without memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcess;

impl EvaluateJsonnet for InProcess {
    fn evaluate(
        &self,
        files: &dyn SourceFiles,
        file: JsonnetFile<'_>,
    ) -> Result<Json, JsonnetError> {
        let failed = |why: &str| JsonnetError::Program(format!("the evaluation {why}"));
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("jsonnet".to_owned())
                .stack_size(JSONNET_STACK)
                .spawn_scoped(scope, || evaluate_here(files, file));
            match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(failed("has failed"))),
                Err(_) => Err(failed("cannot start: there is no thread")),
            }
        })
    }
}

/// The stack of a thread that evaluates. Address space; memory is taken as the stack grows.
pub const JSONNET_STACK: usize = 256 << 20;

/// Evaluates on this thread, whose stack must have [`JSONNET_STACK`] bytes.
///
/// # Errors
/// Why the file has no value.
pub fn evaluate_here(files: &dyn SourceFiles, file: JsonnetFile<'_>) -> Result<Json, JsonnetError> {
    let JsonnetFile {
        folder,
        path,
        content,
        options,
        limits,
    } = file;
    let library =
        Library::new(files, folder, options, limits.import_bytes).map_err(JsonnetError::Render)?;
    let arena = Arena::new();
    let mut program = Program::new(&arena);
    program.set_max_stack(limits.stack);
    let mut run = Run {
        library,
        nesting: limits.nesting,
        steps: limits.steps,
        texts: HashMap::new(),
        loaded: HashMap::new(),
        failure: None,
    };
    for (name, variable) in by_name(&options.ext_vars) {
        let thunk = run.variable(&mut program, variable, "extvar")?;
        let name = program.intern_str(name);
        program.add_ext_var(name, &thunk);
    }
    let thunk = run.load(&mut program, path, content.to_vec())?;
    let is_function = run.call(
        &mut program,
        "function(v) std.isFunction(v)",
        std::slice::from_ref(&thunk),
    )?;
    let mut arguments = vec![thunk];
    let mut call = "f".to_owned();
    if is_function.as_bool() == Some(true) {
        let mut names = Vec::new();
        for (name, variable) in by_name(&options.tlas) {
            arguments.push(run.variable(&mut program, variable, "top-level-arg")?);
            names.push(format!("{name}=a{}", names.len()));
            if !is_identifier(name) {
                let message = format!("RUNTIME ERROR: function has no parameter {name}");
                return Err(JsonnetError::Program(message));
            }
        }
        call = format!("f({})", names.join(","));
    }
    let parameters: Vec<String> = (1..arguments.len())
        .map(|i| format!(",a{}", i - 1))
        .collect();
    let whole = format!(
        "{COUNTED}function(f{}) counted({call})",
        parameters.concat()
    );
    let value = run.call(&mut program, &whole, &arguments)?;
    let mut left = Left {
        values: limits.values,
        bytes: limits.result_bytes,
    };
    json(&value, &mut left).map_err(JsonnetError::Program)
}

/// Walks a value with a step for each value in it, before the library does without: a small program
/// can have one value in so many places that nobody sees the end of it.
const COUNTED: &str = r#"
local all(v) =
  if std.isArray(v) then std.foldl(function(_, item) all(item), v, true)
  else if std.isObject(v) then std.foldl(function(_, name) all(v[name]), std.objectFields(v), true)
  else true;
local counted(v) = if all(v) then v else v;
"#;

/// Whether a name can be written before the `=` of an argument.
fn is_identifier(name: &str) -> bool {
    const WORDS: [&str; 18] = [
        "assert",
        "else",
        "error",
        "false",
        "for",
        "function",
        "if",
        "import",
        "importstr",
        "importbin",
        "in",
        "local",
        "null",
        "tailstrict",
        "then",
        "self",
        "super",
        "true",
    ];
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !WORDS.contains(&name)
}

/// Of two variables with one name the later counts. In the order of the first ones, so that the
/// same options always fail in the same way.
fn by_name(variables: &[JsonnetVariable]) -> Vec<(&str, &JsonnetVariable)> {
    let mut named: Vec<(&str, &JsonnetVariable)> = Vec::new();
    for variable in variables {
        match named.iter_mut().find(|(name, _)| *name == variable.name) {
            Some(earlier) => earlier.1 = variable,
            None => named.push((&variable.name, variable)),
        }
    }
    named
}

/// A program's text: a file or a variable's code.
struct Text {
    /// As messages and `std.thisFile` have it.
    name: String,
    /// Where its imports are looked for first; a variable's code has no such place.
    folder: Option<String>,
    content: Vec<u8>,
}

/// A text that was loaded.
struct Loaded {
    text: Text,
    counted: Counted,
}

struct Run<'a, 'p> {
    library: Library<'a>,
    nesting: usize,
    /// Steps that may still be done.
    steps: u64,
    texts: HashMap<SourceId, Loaded>,
    /// What was imported, by path: a file is evaluated once.
    loaded: HashMap<String, Thunk<'p>>,
    /// Why the import that just failed did: the library's errors have no room for it.
    failure: Option<JsonnetError>,
}

impl<'p> Run<'_, 'p> {
    /// A file's program.
    fn load(
        &mut self,
        program: &mut Program<'p>,
        path: &str,
        content: Vec<u8>,
    ) -> Result<Thunk<'p>, JsonnetError> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.compile(
            program,
            Text {
                name: path.to_owned(),
                folder: Some(folder.to_owned()),
                content,
            },
        )
    }

    fn variable(
        &mut self,
        program: &mut Program<'p>,
        variable: &JsonnetVariable,
        what: &str,
    ) -> Result<Thunk<'p>, JsonnetError> {
        if !variable.code {
            return Ok(program.value_to_thunk(&Value::string(&variable.value)));
        }
        self.compile(
            program,
            Text {
                name: format!("<{what}:{}>", variable.name),
                folder: None,
                content: variable.value.clone().into_bytes(),
            },
        )
    }

    fn compile(
        &mut self,
        program: &mut Program<'p>,
        text: Text,
    ) -> Result<Thunk<'p>, JsonnetError> {
        let Some(counted) = with_steps(&text.content, self.nesting) else {
            let name = &text.name;
            return Err(JsonnetError::Program(format!(
                "{name}: more than {} brackets and words are nested",
                self.nesting
            )));
        };
        let (context, source) = program
            .span_manager_mut()
            .insert_source_context(counted.text.len());
        let loaded = program.load_source(context, &counted.text, true, &text.name);
        self.texts.insert(source, Loaded { text, counted });
        loaded.map_err(|error| self.static_error(program, &error))
    }

    /// The value of a function of ours. Its text has no name and is not seen in messages.
    fn call(
        &mut self,
        program: &mut Program<'p>,
        function: &str,
        arguments: &[Thunk<'p>],
    ) -> Result<Value<'p>, JsonnetError> {
        let ours = Text {
            name: String::new(),
            folder: None,
            content: function.as_bytes().to_vec(),
        };
        let function = self.compile(program, ours)?;
        let called = program.eval_call(&function, arguments, &[], self);
        self.result(program, called)
    }

    fn static_error(&self, program: &Program<'p>, error: &LoadError) -> JsonnetError {
        let (span, message) = message::of_load(error);
        JsonnetError::Program(format!("{} {message}", self.place(program, span)))
    }

    fn result<T>(
        &mut self,
        program: &Program<'p>,
        result: Result<T, EvalError>,
    ) -> Result<T, JsonnetError> {
        result.map_err(|error| {
            let message = match self.failure.take() {
                Some(JsonnetError::Program(message)) => message,
                Some(failure) => return failure,
                None => message::of_evaluation(&error.kind),
            };
            JsonnetError::Program(self.with_trace(program, &message, &error))
        })
    }

    /// The message and where the program was, innermost first.
    fn with_trace(&self, program: &Program<'p>, message: &str, error: &EvalError) -> String {
        const SHOWN: usize = 10;
        let mut told = format!("RUNTIME ERROR: {message}");
        let spans = message::place_of(&error.kind).into_iter().chain(
            error
                .stack_trace
                .iter()
                .rev()
                .filter_map(message::place_in_trace),
        );
        let mut last = String::new();
        let mut shown = 0;
        for span in spans {
            let place = self.place(program, span);
            if !place.is_empty() && place != last && shown < SHOWN {
                shown += 1;
                told.push_str("\n\t");
                told.push_str(&place);
                last = place;
            }
        }
        told
    }

    /// `file:line:column-column`.
    fn place(&self, program: &Program<'p>, span: SpanId) -> String {
        let (_, start, end) = program.span_manager().get_span(span);
        self.text_of(program, span)
            .filter(|loaded| !loaded.text.name.is_empty())
            .map_or_else(String::new, |Loaded { text, counted }| {
                let (start, end) = (counted.original(start), counted.original(end));
                message::place(&text.name, &text.content, start, end)
            })
    }

    /// The text that has this place; that of the library's own functions is not ours.
    fn text_of(&self, program: &Program<'p>, span: SpanId) -> Option<&Loaded> {
        let manager = program.span_manager();
        let (context, ..) = manager.get_span(span);
        let SpanContext::Source(source) = manager.get_context(context);
        self.texts.get(source)
    }

    fn step(&mut self) -> Result<String, ImportError> {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                Ok(String::new())
            }
            None => Err(self.fails(JsonnetError::Program(
                "the program does more steps than it may".to_owned(),
            ))),
        }
    }

    fn fails(&mut self, failure: JsonnetError) -> ImportError {
        self.failure = Some(failure);
        ImportError
    }

    fn imported(
        &mut self,
        program: &Program<'p>,
        from: SpanId,
        import: &str,
    ) -> Result<(String, Vec<u8>), ImportError> {
        let loaded = self.text_of(program, from);
        let folder = loaded.and_then(|loaded| loaded.text.folder.clone());
        self.library
            .find(folder.as_deref(), import)
            .map_err(|failure| {
                self.fails(match failure {
                    ImportFailure::Message(message) => JsonnetError::Program(message),
                    ImportFailure::File(error) => error.into(),
                })
            })
    }
}

impl<'p> Callbacks<'p> for Run<'_, 'p> {
    fn import(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Thunk<'p>, ImportError> {
        let (path, content) = self.imported(program, from, path)?;
        if let Some(loaded) = self.loaded.get(&path) {
            return Ok(loaded.clone());
        }
        let thunk = self
            .load(program, &path, content)
            .map_err(|error| self.fails(error))?;
        self.loaded.insert(path, thunk.clone());
        Ok(thunk)
    }

    fn import_str(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<String, ImportError> {
        if path == STEP {
            return self.step();
        }
        let (_, content) = self.imported(program, from, path)?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    fn import_bin(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Vec<u8>, ImportError> {
        let (_, content) = self.imported(program, from, path)?;
        Ok(content)
    }

    /// What a program tells itself is for its author, who has the real program for that.
    fn trace(&mut self, _: &mut Program<'p>, _: &str, _: &[EvalStackTraceItem]) {}

    fn native_call(
        &mut self,
        _: &mut Program<'p>,
        _: InternedStr<'p>,
        _: &[Value<'p>],
    ) -> Result<Value<'p>, NativeError> {
        Err(NativeError)
    }
}

/// What the result may still have.
struct Left {
    values: usize,
    bytes: usize,
}

impl Left {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let values = self.values.checked_sub(1);
        let bytes = self.bytes.checked_sub(bytes);
        let (Some(values), Some(bytes)) = (values, bytes) else {
            return Err("the result is too large".to_owned());
        };
        *self = Self { values, bytes };
        Ok(())
    }
}

/// A program can have one value in many places of its result, so that a small one has a result that
/// fits into no memory: what is made of it is counted.
fn json(value: &Value<'_>, left: &mut Left) -> Result<Json, String> {
    left.take(0)?;
    Ok(match value.kind() {
        ValueKind::Null => Json::Null,
        ValueKind::Bool(value) => Json::Bool(value),
        ValueKind::Number(value) => Number::from_f64(value).map_or(Json::Null, Json::Number),
        ValueKind::String(text) => {
            left.take(text.len())?;
            Json::String(text)
        }
        ValueKind::Array(items) => {
            let items = items.iter().map(|item| json(item, left));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        ValueKind::Object(fields) => {
            let mut map = Map::new();
            for (name, value) in fields {
                left.take(name.value().len())?;
                map.insert(name.value().to_owned(), json(&value, left)?);
            }
            Json::Object(map)
        }
        ValueKind::Function => {
            return Err("RUNTIME ERROR: Couldn't manifest function as JSON".to_owned());
        }
    })
}
