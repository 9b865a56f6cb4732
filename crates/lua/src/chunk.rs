//! From the text of a script to a function, and from an error to the message that scripts see.
//!
//! Main functions: [`compile`] and [`message`].

use mlua::{Error, Function, Lua, Table};

/// Longer scripts are not compiled: the parser is written in C and does not count steps.
const SCRIPT_BYTES: usize = 1 << 20;

/// Compiles source text; never bytecode, which can corrupt the virtual machine.
pub(crate) fn compile(
    lua: &Lua,
    text: &[u8],
    name: &str,
    globals: Option<Table>,
) -> mlua::Result<Function> {
    if text.len() > SCRIPT_BYTES {
        return Err(Error::runtime(format!(
            "{name}: scripts may have {SCRIPT_BYTES} bytes"
        )));
    }
    let chunk = lua
        .load(text)
        .set_mode(mlua::chunk::ChunkMode::Text)
        .set_name(format!("={name}"));
    match globals {
        Some(globals) => chunk.set_environment(globals).into_function(),
        None => chunk.into_function(),
    }
}

/// The message of an error as a script would see it, without the stack trace.
pub(crate) fn message(error: &Error) -> String {
    let text = match error {
        Error::RuntimeError(text)
        | Error::SyntaxError { message: text, .. }
        | Error::MemoryError(text) => text.clone(),
        Error::CallbackError { cause, .. } => message(cause),
        Error::WithContext { cause, .. } => message(cause),
        other => other.to_string(),
    };
    text.split("\nstack traceback:")
        .next()
        .unwrap_or_default()
        .to_owned()
}
