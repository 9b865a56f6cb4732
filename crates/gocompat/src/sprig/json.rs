//! JSON of values as Go's encoding/json writes it.
//!
//! Main function: [`write()`]; a [`Style`] controls the format.

use super::args::{DEPTH, fails};
use crate::template::{Budget, Error, JsonForm, Object, Value};
use base64::{Engine, engine::general_purpose::STANDARD};

/// How JSON is written.
#[derive(Clone, Copy)]
pub(super) struct Style {
    indented: bool,
    /// Whether `<`, `>` and `&` are escaped.
    html: bool,
}

pub(super) const COMPACT: Style = Style {
    indented: false,
    html: true,
};
pub(super) const PRETTY: Style = Style {
    indented: true,
    html: true,
};
pub(super) const RAW: Style = Style {
    indented: false,
    html: false,
};

pub(super) fn write(value: &Value, style: Style, budget: &Budget) -> Result<String, Error> {
    let mut writer = Writer {
        out: String::new(),
        style,
        budget,
        charged: 0,
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'b> {
    out: String,
    style: Style,
    budget: &'b Budget,
    charged: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEPTH {
            return fails(
                "json: unsupported value: encountered a cycle via map[string]interface {}",
            );
        }
        // The output is charged as it grows, because a value may contain another one many times.
        self.budget.memory(self.out.len() - self.charged)?;
        self.charged = self.out.len();
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Int(_, i) => self.out.push_str(&i.to_string()),
            Value::Uint(_, u) => self.out.push_str(&u.to_string()),
            Value::Float(f) => self.float(*f)?,
            Value::Complex(..) => return fails("json: unsupported type: complex128"),
            Value::String(s) => self.text(s.as_bytes()),
            Value::Bytes(b) => self.text(STANDARD.encode(b).as_bytes()),
            Value::List(list) if list.is_nil() => self.out.push_str("null"),
            Value::Map(map) if map.is_nil() => self.out.push_str("null"),
            Value::List(list) => {
                self.all(
                    '[',
                    ']',
                    list.items().iter().map(|item| (None, item)),
                    depth,
                )?;
            }
            Value::Map(map) => {
                self.all(
                    '{',
                    '}',
                    map.entries()
                        .iter()
                        .map(|(key, value)| (Some(key.as_bytes()), value)),
                    depth,
                )?;
            }
            Value::Object(object) => self.object(object.as_ref(), depth)?,
        }
        Ok(())
    }

    /// A struct is written by its fields, unless it has its own form.
    fn object(&mut self, object: &dyn Object, depth: usize) -> Result<(), Error> {
        if let Some(inner) = object.underlying() {
            return self.value(&inner, depth);
        }
        match object.json() {
            JsonForm::Text(text) | JsonForm::Time(text) => {
                self.text(text.as_bytes());
                Ok(())
            }
            JsonForm::Fields(fields) => self.all(
                '{',
                '}',
                fields
                    .iter()
                    .map(|(name, value)| (Some(name.as_bytes()), value)),
                depth,
            ),
        }
    }

    fn all<'v>(
        &mut self,
        open: char,
        close: char,
        members: impl Iterator<Item = (Option<&'v [u8]>, &'v Value)>,
        depth: usize,
    ) -> Result<(), Error> {
        self.out.push(open);
        let mut any = false;
        for (key, value) in members {
            if any {
                self.out.push(',');
            }
            any = true;
            self.line(depth + 1);
            if let Some(key) = key {
                self.text(key);
                self.out
                    .push_str(if self.style.indented { ": " } else { ":" });
            }
            self.value(value, depth + 1)?;
        }
        if any {
            self.line(depth);
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if self.style.indented {
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str("  "));
        }
    }

    fn float(&mut self, float: f64) -> Result<(), Error> {
        let size = float.abs();
        if !float.is_finite() {
            let shown = if float.is_nan() {
                "NaN"
            } else {
                ["-Inf", "+Inf"][usize::from(float > 0.0)]
            };
            return fails(format!("json: unsupported value: {shown}"));
        }
        let text = if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let text = format!("{float:e}");
            if text.contains("e-") {
                text
            } else {
                text.replace('e', "e+")
            }
        } else {
            float.to_string()
        };
        self.out.push_str(&text);
        Ok(())
    }

    fn text(&mut self, bytes: &[u8]) {
        self.out.push('"');
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| self.character(c));
            chunk
                .invalid()
                .iter()
                .for_each(|_| self.out.push_str("\\ufffd"));
        }
        self.out.push('"');
    }

    fn character(&mut self, c: char) {
        match c {
            '"' | '\\' => self.out.extend(['\\', c]),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '\u{8}' => self.out.push_str("\\b"),
            '\u{c}' => self.out.push_str("\\f"),
            '<' | '>' | '&' if self.style.html => {
                self.out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            '\u{2028}' | '\u{2029}' | '\0'..' ' => {
                self.out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            c => self.out.push(c),
        }
    }
}
