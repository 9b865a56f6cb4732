//! Prints a value like `sigs.k8s.io/yaml`: block style, go-yaml's key order, quoting, literal
//! blocks and folding at 80 columns; or like go-yaml v3 with an indentation of two.

use super::blocks::hints;
use super::resolve::{self, Scalar};
use super::tree::Style;
use super::{Duplicates, Limits, YamlError, parse_document};
use crate::document::Document;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

const BEST_WIDTH: usize = 80;
/// A key with fewer bytes can be parsed again, however much of it is escaped.
const LONG_KEY: usize = 160;

/// Which emitter to imitate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V2,
    /// Lists in maps are indented, nothing is folded, tabs are permitted in blocks, and a float is
    /// printed as one.
    V3,
}
/// A key longer than this (in bytes) is printed with an explicit `?`.
const SIMPLE_KEY: usize = 128;

/// The YAML text of a value, with a newline at its end.
pub fn to_string(value: &Value) -> String {
    written(value, Form::V2)
}

/// The same; `None` if it is longer than `most` bytes. A list in many others is hundreds of times
/// as long as in JSON, because each item is indented.
pub fn to_string_within(value: &Value, most: usize) -> Option<String> {
    let text = limited(value, Form::V2, 2, most);
    (text.len() <= most).then_some(text)
}

/// The result of `yaml.Marshal`: it writes JSON and parses that as YAML, which folds some line
/// breaks, and fails on control characters and on keys of more than 1,024 characters.
pub fn marshal(value: &Value) -> Result<String, YamlError> {
    if survives(value) {
        return Ok(to_string(value));
    }
    let json = value
        .to_string()
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    parse_document(json, &Limits::default(), Duplicates::LastWins).map(|read| to_string(&read))
}

/// Whether a value is unchanged after its JSON is parsed as YAML.
fn survives(value: &Value) -> bool {
    let is_text =
        |text: &str| !text.contains(|c| matches!(c, '\u{7F}'..='\u{9F}' | '\u{FFFE}' | '\u{FFFF}'));
    match value {
        Value::String(text) => is_text(text),
        Value::Array(items) => items.iter().all(survives),
        Value::Object(entries) => entries
            .iter()
            .all(|(key, value)| key.len() < LONG_KEY && is_text(key) && survives(value)),
        _ => true,
    }
}

/// What go-yaml v3 prints for a value, without going through JSON.
pub fn to_string_v3(value: &Document) -> String {
    written(value, Form::V3)
}

/// The same with go-yaml v3's own indentation, of four, which its users seldom leave.
pub fn to_string_v3_wide(value: &Document) -> String {
    indented(value, Form::V3, 4)
}

/// How go-yaml v3 writes a text of which nobody said how.
pub(super) fn style_v3(text: &str) -> Style {
    let analysis = Analysis::of(text, Form::V3);
    let is_string = matches!(resolve::plain(text), Scalar::Str(_)) && !resolve::is_base60(text);
    if text.contains('\n') {
        return if analysis.block_allowed {
            Style::Literal
        } else {
            Style::Double
        };
    }
    match (is_string, analysis.plain_allowed) {
        (false, _) => Style::Double,
        (true, true) => Style::Plain,
        (true, false) if analysis.single_quoted_allowed => Style::Single,
        (true, false) => Style::Double,
    }
}

/// What the emitter can print.
trait Node: Sized {
    fn view(&self, form: Form) -> View<'_, Self>;
}

/// What a node is, its keys in the order in which they are printed.
enum View<'a, N> {
    /// Text that stands for no string.
    Plain(Cow<'static, str>),
    Text(&'a str),
    List(&'a [N]),
    Map(Vec<(Cow<'a, str>, &'a N)>),
}

const NULL: Cow<'static, str> = Cow::Borrowed("null");

fn boolean(b: bool) -> Cow<'static, str> {
    Cow::Borrowed(if b { "true" } else { "false" })
}

impl Node for Value {
    fn view(&self, form: Form) -> View<'_, Self> {
        match self {
            Self::Null => View::Plain(NULL),
            Self::Bool(b) => View::Plain(boolean(*b)),
            Self::Number(n) => View::Plain(number(n, form).into()),
            Self::String(text) => View::Text(text),
            Self::Array(items) => View::List(items),
            Self::Object(map) => {
                let members = map.iter().map(|(key, value)| (key.as_str(), value));
                View::Map(in_order(members.collect(), form))
            }
        }
    }
}

impl Node for Document {
    fn view(&self, form: Form) -> View<'_, Self> {
        match self {
            Self::Nil => View::Plain(NULL),
            Self::NilList => View::List(&[]),
            Self::NilMap => View::Map(Vec::new()),
            Self::Bool(b) => View::Plain(boolean(*b)),
            Self::Int(int) => View::Plain(int.to_string().into()),
            Self::Uint(uint) => View::Plain(uint.to_string().into()),
            Self::Float(float) => View::Plain(match *float {
                f if f.is_nan() => ".nan".into(),
                f64::INFINITY => ".inf".into(),
                f64::NEG_INFINITY => "-.inf".into(),
                f => shortest_float(f).into(),
            }),
            Self::Text(text) => View::Text(text),
            Self::Time(text) => View::Plain(text.clone().into()),
            Self::List(items) => View::List(items),
            Self::Map(members) => {
                let members = members.iter().map(|(key, value)| (key.as_str(), value));
                View::Map(in_order(members.collect(), form))
            }
            Self::Struct(fields) => View::Map(
                fields
                    .iter()
                    .map(|field| (field.name.to_lowercase().into(), &field.value))
                    .collect(),
            ),
        }
    }
}

/// The members of a map by their keys.
fn in_order<'a, N>(members: Vec<(&'a str, &'a N)>, form: Form) -> Vec<(Cow<'a, str>, &'a N)> {
    let members = sorted(members, form).into_iter();
    members.map(|(key, value)| (key.into(), value)).collect()
}

fn written(value: &impl Node, form: Form) -> String {
    indented(value, form, 2)
}

fn indented(value: &impl Node, form: Form, step: isize) -> String {
    limited(value, form, step, usize::MAX)
}

/// Ends soon after `most` bytes.
fn limited(value: &impl Node, form: Form, step: isize, most: usize) -> String {
    let mut emitter = Emitter {
        form,
        step,
        most,
        in_item: false,
        out: String::new(),
        column: 0,
        indent: -1,
        whitespace: true,
        indention: true,
    };
    emitter.node(value, false);
    emitter.indent = -1;
    emitter.write_indent();
    emitter.out
}

struct Emitter {
    form: Form,
    /// Each level is indented by a multiple of this.
    step: isize,
    /// After so many bytes, collections end.
    most: usize,
    /// What comes next is an item of a list: it is only as deep as its dash takes.
    in_item: bool,
    out: String,
    column: usize,
    /// -1 outside of any collection.
    indent: isize,
    /// The next item may follow the last one without a space.
    whitespace: bool,
    /// The line contains only indentation and indicators.
    indention: bool,
}

impl Emitter {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0).unsigned_abs();
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(
        &mut self,
        text: &str,
        need_whitespace: bool,
        is_whitespace: bool,
        is_indention: bool,
    ) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|c| self.put(c));
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn deeper(&mut self, flow: bool) -> isize {
        let in_item = std::mem::take(&mut self.in_item);
        match (self.indent, flow) {
            (..0, true) => self.step,
            (..0, false) => 0,
            (indent, _) if in_item => indent + 2,
            (indent, _) => (indent / self.step + 1) * self.step,
        }
    }

    fn node(&mut self, value: &impl Node, in_map: bool) {
        match value.view(self.form) {
            View::Plain(text) => self.plain_text(&text),
            View::Text(text) => self.string(text, false),
            View::List([]) => {
                self.indicator("[", true, true, false);
                self.indicator("]", false, false, false);
            }
            View::Map(members) if members.is_empty() => {
                self.indicator("{", true, true, false);
                self.indicator("}", false, false, false);
            }
            View::List(items) => self.list(items, in_map),
            View::Map(members) => self.map(members),
        }
    }

    fn list(&mut self, items: &[impl Node], in_map: bool) {
        let outer = self.indent;
        let indentless = in_map && !self.indention && self.indent >= 0 && self.form == Form::V2;
        if !indentless {
            self.indent = self.deeper(false);
        }
        for item in items {
            if self.out.len() > self.most {
                break;
            }
            self.write_indent();
            self.indicator("-", true, false, true);
            self.in_item = true;
            self.node(item, false);
        }
        self.in_item = false;
        self.indent = outer;
    }

    fn map<N: Node>(&mut self, members: Vec<(Cow<'_, str>, &N)>) {
        let outer = self.indent;
        self.indent = self.deeper(false);
        for (key, value) in members {
            if self.out.len() > self.most {
                break;
            }
            self.write_indent();
            if key.len() <= SIMPLE_KEY && !Analysis::of(&key, self.form).line_breaks {
                self.string(&key, true);
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.string(&key, false);
                self.write_indent();
                self.indicator(":", true, false, true);
            }
            self.node(value, true);
        }
        self.indent = outer;
    }

    /// A scalar that needs neither quotes nor folding.
    fn plain_text(&mut self, text: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|c| self.put(c));
        self.whitespace = false;
        self.indention = false;
    }

    fn string(&mut self, text: &str, simple_key: bool) {
        let outer = self.indent;
        self.indent = self.deeper(true);
        let analysis = Analysis::of(text, self.form);
        let is_string = matches!(resolve::plain(text), Scalar::Str(_)) && !resolve::is_base60(text);
        let fold = !simple_key && self.form == Form::V2;
        let multiline_key = simple_key && analysis.line_breaks;
        if text.contains('\n') && analysis.block_allowed && !simple_key {
            self.literal(text);
        } else if text.contains('\n') || !is_string || multiline_key {
            self.double_quoted(text, fold);
        } else if analysis.plain_allowed {
            self.plain(text, fold);
        } else if analysis.single_quoted_allowed {
            self.single_quoted(text, fold);
        } else {
            self.double_quoted(text, fold);
        }
        self.indent = outer;
    }

    fn plain(&mut self, text: &str, fold: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                if fold && !spaces && self.column > BEST_WIDTH && chars.peek() != Some(&' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                self.indention = false;
                spaces = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, fold: bool) {
        self.indicator("'", true, false, false);
        let (mut spaces, mut breaks) = (false, false);
        let mut first = true;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                if fold
                    && !spaces
                    && self.column > BEST_WIDTH
                    && !first
                    && chars.peek().is_some_and(|next| *next != ' ')
                {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                self.put_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
            first = false;
        }
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, text: &str, fold: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let mut first = true;
        let after_bom = text.starts_with('\u{FEFF}'); // then go-yaml escapes every character
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if after_bom || !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
                self.escape(c);
                spaces = false;
            } else if c == ' ' {
                if fold && !spaces && self.column > BEST_WIDTH && !first && chars.peek().is_some() {
                    self.write_indent();
                    if chars.peek() == Some(&' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
            first = false;
        }
        self.indicator("\"", false, false, false);
    }

    fn escape(&mut self, c: char) {
        self.put('\\');
        let short = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0B' => 'v',
            '\x0C' => 'f',
            '\r' => 'r',
            '\x1B' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{A0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let text = match code {
                    ..=0xFF => format!("x{code:02X}"),
                    0x100..=0xFFFF => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                text.chars().for_each(|c| self.put(c));
                return;
            }
        };
        self.put(short);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        for hint in hints(text, self.step).chars() {
            self.indicator(hint.encode_utf8(&mut [0; 4]), false, false, false);
        }
        self.put_break('\n');
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.put_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

/// The styles in which a text can be printed.
struct Analysis {
    line_breaks: bool,
    plain_allowed: bool,
    single_quoted_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    fn of(text: &str, form: Form) -> Self {
        if text.is_empty() {
            return Self {
                line_breaks: false,
                plain_allowed: true,
                single_quoted_allowed: true,
                block_allowed: false,
            };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let tabs = form == Form::V3 && text.contains('\t');
        let (mut line_breaks, mut special, mut break_space, mut space_break) =
            (false, false, false, false);
        let (mut previous_space, mut previous_break, mut preceded_by_blank) = (false, false, true);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let followed_by_blank = chars.peek().is_none_or(|n| matches!(n, ' ' | '\t'));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"'
                | '%' | '@' | '`'
                    if first =>
                {
                    true
                }
                '?' | '-' if first => followed_by_blank,
                ':' => followed_by_blank,
                '#' => preceded_by_blank,
                _ => false,
            };
            special |= !(is_printable(c) || (c == '\t' && tabs));
            let (space, line_break) = (c == ' ', is_break(c));
            break_space |= space && previous_break;
            space_break |= line_break && previous_space;
            line_breaks |= line_break;
            (previous_space, previous_break) = (space, line_break);
            preceded_by_blank = matches!(c, ' ' | '\t' | '\0') || line_break;
            first = false;
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let at_edges = edge(text.chars().next()) || edge(text.chars().next_back());
        let quoted_ok = !break_space && !space_break && !special && !tabs;
        Self {
            line_breaks,
            plain_allowed: quoted_ok && !at_edges && !line_breaks && !indicators,
            single_quoted_allowed: quoted_ok,
            block_allowed: !text.ends_with(' ') && !space_break && !special,
        }
    }
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FEFE}' | '\u{FF00}'..='\u{FFFD}')
}

fn number(n: &Number, form: Form) -> String {
    if n.is_i64() || n.is_u64() {
        return n.to_string();
    }
    let Some(float) = n.as_f64() else {
        return n.to_string();
    };
    const TWO_64: f64 = 18_446_744_073_709_551_616.0;
    if form == Form::V2 && float.fract() == 0.0 && float.abs() < TWO_64 {
        let whole = format!("{float}");
        if whole.parse::<i64>().is_ok() || whole.parse::<u64>().is_ok() {
            return if whole == "-0" { "0".to_owned() } else { whole };
        }
    }
    shortest_float(float)
}

/// Go's `FormatFloat(f, 'g', -1, 64)`.
pub fn shortest_float(float: f64) -> String {
    go_shortest(&format!("{float:e}"))
}

/// Go's FormatFloat 'g' with the shortest digits, from Rust's `{:e}` text: with an exponent below
/// -4 and above 5.
pub(super) fn go_shortest(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |m| ("-", m));
    if !(-4..6).contains(&exponent) {
        let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{sign_of_exponent}{:02}", exponent.abs());
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent + 1;
    match usize::try_from(point) {
        Err(_) | Ok(0) => format!(
            "{sign}0.{}{digits}",
            "0".repeat(point.unsigned_abs() as usize)
        ),
        Ok(point) if point >= digits.len() => {
            format!("{sign}{digits}{}", "0".repeat(point - digits.len()))
        }
        Ok(point) => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
    }
}

/// Merge sort: [`natural`] is not a total order for some mixed keys, which the sort of the standard
/// library may refuse with a panic.
fn sorted<'a, N>(mut keys: Vec<(&'a str, &'a N)>, form: Form) -> Vec<(&'a str, &'a N)> {
    if keys.len() < 2 {
        return keys;
    }
    let right = sorted(keys.split_off(keys.len() / 2), form);
    let (mut left, mut right) = (
        sorted(keys, form).into_iter().peekable(),
        right.into_iter().peekable(),
    );
    let mut out = Vec::with_capacity(left.len() + right.len());
    while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
        let next = if natural(l.0, r.0, form) == Ordering::Greater {
            right.next()
        } else {
            left.next()
        };
        out.extend(next);
    }
    out.extend(left);
    out.extend(right);
    out
}

/// go-yaml's order of map keys: runs of digits compare as numbers, letters come after everything
/// else.
fn natural(a: &str, b: &str, form: Form) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = left.iter().zip(&right).position(|(l, r)| l != r) else {
        return left.len().cmp(&right.len());
    };
    let (l, r) = (left[at], right[at]);
    let after_digit = form == Form::V3 && at > 0 && left[at - 1].is_numeric();
    match (l.is_alphabetic(), r.is_alphabetic()) {
        (true, true) => return l.cmp(&r),
        (false, true) if after_digit => return Ordering::Greater,
        (true, false) if after_digit => return Ordering::Less,
        (false, true) => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, false) => {}
    }
    let mut start = 0i64;
    if l == '0' || r == '0' {
        let digits_before = left
            .iter()
            .take(at)
            .rev()
            .take_while(|c| c.is_ascii_digit());
        if digits_before.into_iter().any(|c| *c != '0') {
            start = 1;
        }
    }
    let run = |chars: &[char]| {
        let digits = chars.iter().skip(at).map_while(|c| c.to_digit(10));
        digits.fold((start, 0usize), |(n, len), d| {
            (n.wrapping_mul(10).wrapping_add(i64::from(d)), len + 1)
        })
    };
    run(&left).cmp(&run(&right)).then(l.cmp(&r))
}
