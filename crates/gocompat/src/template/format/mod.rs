//! Go's package fmt: `Sprint`, `Sprintln` and `Sprintf`.
//!
//! Main functions: [`sprint`], [`sprintln`] and [`sprintf`]. As in Go, a verb that does not match
//! its value is not an error, but prints text such as `%!d(string=x)`. A value that may contain
//! itself is limited by depth and size, with an error.

mod basic;
mod float;
mod printf;
pub mod quote;

use super::error::Error;
use super::types::{BYTES, Type};
use super::value::{Object, Str, Value};
use basic::{Flags, Plain};

pub use float::format_float;
pub use printf::sprintf;

/// Nesting of values that are printed.
const DEPTH: usize = 200;
/// Maximum length of a text.
const LONGEST: usize = 16 << 20;

/// Prints values with their default formats; adds a space between two that are both not strings.
pub fn sprint<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::default();
    let mut after_string = true;
    for value in values {
        let string = matches!(value.underlying().as_ref(), Value::String(_));
        if !string && !after_string {
            printer.plain.write(" ");
        }
        printer.arg(value, 'v')?;
        after_string = string;
    }
    Ok(printer.plain.out)
}

/// Prints values separated by spaces, with a newline.
pub fn sprintln<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::default();
    for (i, value) in values.into_iter().enumerate() {
        if i > 0 {
            printer.plain.write(" ");
        }
        printer.arg(value, 'v')?;
    }
    printer.plain.write("\n");
    Ok(printer.plain.out)
}

/// Prints a value like an action of a template: structs without the sign of a pointer.
pub(super) fn print_value(value: &Value, longest: usize) -> Result<Vec<u8>, Error> {
    let mut printer = Printer {
        longest: longest.min(LONGEST),
        ..Printer::default()
    };
    match value {
        Value::Object(object) if object.underlying().is_none() && object.text().is_none() => {
            match object.text_behind_pointer() {
                Some(text) => printer.plain.write(&text),
                None => printer.fields(object.as_ref(), 'v')?,
            }
        }
        _ => printer.arg(value, 'v')?,
    }
    Ok(printer.plain.out)
}

fn fields_text(object: &dyn Object) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::default();
    printer.fields(object, 'v')?;
    Ok(printer.plain.out)
}

/// The text of a value behind a pointer in error messages.
pub(super) fn default_text(value: &Value) -> String {
    let text = match value {
        Value::Object(object) if object.underlying().is_none() => fields_text(object.as_ref()),
        _ => sprint([value]),
    };
    match text {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => format!("({} too large to print)", value.go_type()),
    }
}

struct Printer {
    plain: Plain,
    longest: usize,
    /// While a bad verb is reported, methods are not called.
    erroring: bool,
    depth: usize,
}

impl Default for Printer {
    fn default() -> Self {
        Self {
            plain: Plain::default(),
            longest: LONGEST,
            erroring: false,
            depth: 0,
        }
    }
}

impl Printer {
    /// An argument of a printing function.
    fn arg(&mut self, value: &Value, verb: char) -> Result<(), Error> {
        if matches!(value, Value::Nil) {
            match verb {
                'T' | 'v' => self.plain.pad(b"<nil>"),
                _ => self.bad_verb(value, verb)?,
            }
            return Ok(());
        }
        match (verb, value) {
            ('T', _) => self.plain.string(value.go_type().to_string().as_bytes()),
            ('p', _) => self.pointer(value, 'p')?,
            ('w', Value::List(_) | Value::Map(_) | Value::Object(_)) => {
                self.bad_verb(value, verb)?
            }
            (_, Value::Bytes(bytes)) => self.bytes(value, bytes, verb, "[]byte")?,
            (_, Value::List(list)) if list.go_type() == BYTES => self.no_bytes(value, verb)?,
            (_, Value::Object(object))
                if object.underlying().is_none() && !self.by_method(object.as_ref(), verb)? =>
            {
                // Structs are held by pointer.
                if object.go_type().to_string().starts_with('*') {
                    self.plain.write("&");
                }
                self.fields(object.as_ref(), verb)?;
            }
            (_, Value::Object(object)) if object.underlying().is_none() => {}
            _ => self.value(value, verb)?,
        }
        Ok(())
    }

    /// There are no addresses here: all pointers print the same.
    fn pointer(&mut self, value: &Value, verb: char) -> Result<(), Error> {
        const ADDRESS: u64 = 0xc0_0000_0000;
        if !matches!(
            value.underlying().as_ref(),
            Value::List(_) | Value::Map(_) | Value::Bytes(_) | Value::Object(_)
        ) {
            return self.bad_verb(value, verb);
        }
        match verb {
            'v' if self.plain.flags.sharp_v => self
                .plain
                .write(&format!("({})({ADDRESS:#x})", value.go_type())),
            'v' | 'p' => {
                self.plain.flags.sharp = !self.plain.flags.sharp;
                self.plain.integer(ADDRESS, false, 16, 'v', false);
                self.plain.flags.sharp = !self.plain.flags.sharp;
            }
            'b' | 'o' | 'd' | 'x' | 'X' => return self.integer(value, ADDRESS, false, false, verb),
            _ => return self.bad_verb(value, verb),
        }
        Ok(())
    }

    /// A value at any depth.
    fn value(&mut self, value: &Value, verb: char) -> Result<(), Error> {
        if self.depth > DEPTH || self.plain.out.len() > self.longest {
            return Err(Error::limit("the value is too deep or too large to print"));
        }
        match value {
            Value::Nil => {
                self.plain.write(if self.plain.flags.sharp_v {
                    "interface {}(nil)"
                } else {
                    "<nil>"
                });
                Ok(())
            }
            Value::Bool(b) => match verb {
                't' | 'v' => {
                    self.plain.pad(if *b { b"true" } else { b"false" });
                    Ok(())
                }
                _ => self.bad_verb(value, verb),
            },
            Value::Int(_, i) => self.integer(value, i.unsigned_abs(), *i < 0, true, verb),
            Value::Uint(_, u) => self.integer(value, *u, false, false, verb),
            Value::Float(f) => self.float(value, *f, verb),
            Value::Complex(re, im) => self.complex(value, *re, *im, verb),
            Value::String(s) => self.string(value, s.as_bytes(), verb),
            Value::Bytes(bytes) => match verb {
                's' | 'q' | 'x' | 'X' => self.bytes(value, bytes, verb, "[]uint8"),
                _ => {
                    let items: Vec<Value> = bytes
                        .as_bytes()
                        .iter()
                        .map(|b| Value::Uint(super::types::UintKind::Uint8, u64::from(*b)))
                        .collect();
                    self.sequence(BYTES, &items, verb)
                }
            },
            Value::List(list)
                if list.go_type() == BYTES && matches!(verb, 's' | 'q' | 'x' | 'X') =>
            {
                self.no_bytes(value, verb)
            }
            Value::List(list) if self.plain.flags.sharp_v && list.is_nil() => {
                self.nil_of(list.go_type())
            }
            Value::List(list) => self.sequence(list.go_type(), &list.items(), verb),
            Value::Map(map) if self.plain.flags.sharp_v && map.is_nil() => {
                self.nil_of(map.go_type())
            }
            Value::Map(map) => self.map(map.go_type(), &map.entries(), verb),
            Value::Object(object) => {
                if self.by_method(object.as_ref(), verb)? {
                    return Ok(());
                }
                match object.underlying() {
                    Some(Value::List(list)) => {
                        self.nested(|p| p.sequence(object.go_type(), &list.items(), verb))
                    }
                    Some(Value::Map(map)) => {
                        self.nested(|p| p.map(object.go_type(), &map.entries(), verb))
                    }
                    Some(inner) => self.nested(|p| p.value(&inner, verb)),
                    None if object.go_type().to_string().starts_with('*') => {
                        self.pointer(value, verb)
                    }
                    None => self.fields(object.as_ref(), verb),
                }
            }
        }
    }

    fn nested(&mut self, print: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.depth += 1;
        let done = print(self);
        self.depth -= 1;
        done
    }

    fn nil_of(&mut self, kind: Type) -> Result<(), Error> {
        self.plain.write(&format!("{kind}(nil)"));
        Ok(())
    }

    fn sequence(&mut self, kind: Type, items: &[Value], verb: char) -> Result<(), Error> {
        let (open, between, close) = self.brackets(kind, "[", "]");
        self.plain.write(&open);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.plain.write(between);
            }
            self.nested(|p| p.value(item, verb))?;
        }
        self.plain.write(close);
        Ok(())
    }

    fn map(&mut self, kind: Type, entries: &[(Str, Value)], verb: char) -> Result<(), Error> {
        let (open, between, close) = self.brackets(kind, "map[", "]");
        self.plain.write(&open);
        for (i, (key, value)) in entries.iter().enumerate() {
            if i > 0 {
                self.plain.write(between);
            }
            self.nested(|p| {
                p.value(&Value::String(key.clone()), verb)?;
                p.plain.write(":");
                p.value(value, verb)
            })?;
        }
        self.plain.write(close);
        Ok(())
    }

    fn brackets(
        &self,
        kind: Type,
        open: &str,
        close: &'static str,
    ) -> (String, &'static str, &'static str) {
        if self.plain.flags.sharp_v {
            (format!("{kind}{{"), ", ", "}")
        } else {
            (open.to_owned(), " ", close)
        }
    }

    fn fields(&mut self, object: &dyn Object, verb: char) -> Result<(), Error> {
        let Flags {
            sharp_v, plus_v, ..
        } = self.plain.flags;
        if sharp_v {
            let name = object.go_type().to_string();
            self.plain.write(name.trim_start_matches('*'));
        }
        self.plain.write("{");
        for (i, (name, value)) in object.fields().into_iter().enumerate() {
            if i > 0 {
                self.plain.write(if sharp_v { ", " } else { " " });
            }
            if sharp_v || plus_v {
                self.plain.write(name);
                self.plain.write(":");
            }
            self.nested(|p| p.value(&value, verb))?;
        }
        self.plain.write("}");
        Ok(())
    }

    /// Prints the result of the `String` or `Error` method, if there is one and the verb accepts a
    /// string.
    fn by_method(&mut self, object: &dyn Object, verb: char) -> Result<bool, Error> {
        if self.erroring || self.plain.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
        {
            return Ok(false);
        }
        let Some(text) = object.text() else {
            return Ok(false);
        };
        self.string(&Value::Nil, text.as_bytes(), verb)?;
        Ok(true)
    }

    fn integer(
        &mut self,
        value: &Value,
        size: u64,
        negative: bool,
        signed: bool,
        verb: char,
    ) -> Result<(), Error> {
        // A negative number in 64 bits.
        let code = if negative { size.wrapping_neg() } else { size };
        match verb {
            'v' if self.plain.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.plain.flags.sharp, true);
                self.plain.integer(size, negative, 16, 'v', false);
                self.plain.flags.sharp = sharp;
            }
            'v' | 'd' => self.plain.integer(size, negative, 10, verb, false),
            'b' => self.plain.integer(size, negative, 2, verb, false),
            'o' | 'O' => self.plain.integer(size, negative, 8, verb, false),
            'x' => self.plain.integer(size, negative, 16, verb, false),
            'X' => self.plain.integer(size, negative, 16, verb, true),
            'c' => self.plain.character(code),
            'q' => self.plain.quoted_character(code),
            'U' => self.plain.unicode(code),
            _ => return self.bad_verb(value, verb),
        }
        Ok(())
    }

    fn float(&mut self, value: &Value, number: f64, verb: char) -> Result<(), Error> {
        let (format, precision) = match verb {
            'v' => (b'g', None),
            'b' => (b'b', None),
            'g' => (b'g', None),
            'G' => (b'G', None),
            'x' => (b'x', None),
            'X' => (b'X', None),
            'e' => (b'e', Some(6)),
            'E' => (b'E', Some(6)),
            'f' | 'F' => (b'f', Some(6)),
            _ => return self.bad_verb(value, verb),
        };
        self.plain.float(number, verb, format, precision);
        Ok(())
    }

    fn complex(&mut self, value: &Value, re: f64, im: f64, verb: char) -> Result<(), Error> {
        if !matches!(
            verb,
            'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E'
        ) {
            return self.bad_verb(value, verb);
        }
        self.plain.write("(");
        self.float(value, re, verb)?;
        let plus = std::mem::replace(&mut self.plain.flags.plus, true);
        self.float(value, im, verb)?;
        self.plain.flags.plus = plus;
        self.plain.write("i)");
        Ok(())
    }

    fn string(&mut self, value: &Value, text: &[u8], verb: char) -> Result<(), Error> {
        match verb {
            'v' if self.plain.flags.sharp_v => self.plain.quoted(text),
            'v' | 's' => self.plain.string(text),
            'x' => self.plain.hex(text, false),
            'X' => self.plain.hex(text, true),
            'q' => self.plain.quoted(text),
            _ => return self.bad_verb(value, verb),
        }
        Ok(())
    }

    fn bytes(&mut self, value: &Value, bytes: &Str, verb: char, kind: &str) -> Result<(), Error> {
        match verb {
            'v' | 'd' => {
                let sharp = self.plain.flags.sharp_v;
                let (open, between, close) = if sharp {
                    (format!("{kind}{{"), ", ", "}")
                } else {
                    ("[".to_owned(), " ", "]")
                };
                self.plain.write(&open);
                for (i, b) in bytes.as_bytes().iter().enumerate() {
                    if i > 0 {
                        self.plain.write(between);
                    }
                    let old = self.plain.flags.sharp;
                    self.plain.flags.sharp |= sharp;
                    self.plain.integer(
                        u64::from(*b),
                        false,
                        if sharp { 16 } else { 10 },
                        verb,
                        false,
                    );
                    self.plain.flags.sharp = old;
                }
                self.plain.write(close);
            }
            's' => self.plain.string(bytes.as_bytes()),
            'x' => self.plain.hex(bytes.as_bytes(), false),
            'X' => self.plain.hex(bytes.as_bytes(), true),
            'q' => self.plain.quoted(bytes.as_bytes()),
            _ => return self.value(value, verb),
        }
        Ok(())
    }

    /// Nil bytes, which are represented as a list here.
    fn no_bytes(&mut self, value: &Value, verb: char) -> Result<(), Error> {
        match verb {
            'v' | 'd' if self.plain.flags.sharp_v => self.plain.write("[]byte(nil)"),
            'v' | 'd' | 's' | 'x' | 'X' | 'q' => {
                return self.bytes(value, &Str::default(), verb, "[]byte");
            }
            _ => self.plain.write("[]"),
        }
        Ok(())
    }

    /// `%!verb(type=value)`
    fn bad_verb(&mut self, value: &Value, verb: char) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.erroring, true);
        self.plain.write(&format!("%!{verb}("));
        if !matches!(value, Value::Nil) {
            self.plain.write(&format!("{}=", value.go_type()));
            match value {
                // A pointer prints what it points to.
                Value::Object(object) if object.underlying().is_none() => {
                    self.nested(|p| p.arg(value, 'v'))?
                }
                _ => self.value(value, 'v')?,
            }
        } else {
            self.plain.write("<nil>");
        }
        self.plain.write(")");
        self.erroring = before;
        Ok(())
    }
}
