//! The format string of `Sprintf`: flags, widths, precisions, argument indexes, verbs.
//!
//! Main function: [`sprintf`].

use super::super::unicode::decode;
use super::{Error, Flags, LONGEST, Printer, Value};

/// Larger widths and precisions are refused.
const LARGEST: usize = 1_000_000;

/// Formats values as `fmt.Sprintf` does.
pub fn sprintf(format: &[u8], args: &[Value]) -> Result<Vec<u8>, Error> {
    let mut state = State {
        printer: Printer::default(),
        format,
        args,
        at: 0,
        next: 0,
        reordered: false,
        good_index: true,
    };
    state.run()?;
    Ok(state.printer.plain.out)
}

struct State<'a> {
    printer: Printer,
    format: &'a [u8],
    args: &'a [Value],
    /// Where in the format.
    at: usize,
    /// The next argument.
    next: usize,
    reordered: bool,
    good_index: bool,
}

impl State<'_> {
    fn run(&mut self) -> Result<(), Error> {
        while self.at < self.format.len() {
            let rest = &self.format[self.at..];
            let text = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
            self.printer.plain.out.extend(&rest[..text]);
            self.at += text;
            if self.at < self.format.len() {
                self.at += 1;
                self.directive()?;
            }
            if self.printer.plain.out.len() > LONGEST {
                return Err(Error::limit("the formatted text is too long"));
            }
        }
        if !self.reordered && self.next < self.args.len() {
            self.extra()?;
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// One directive, after its `%`.
    fn directive(&mut self) -> Result<(), Error> {
        self.good_index = true;
        self.printer.plain.flags = Flags::default();
        self.flags();
        let mut after_index = self.index();
        after_index = self.width(after_index);
        after_index = self.precision(after_index);
        if !after_index {
            self.index();
        }
        let (verb, size) = decode(&self.format[self.at..]);
        if size == 0 {
            self.printer.plain.write("%!(NOVERB)");
            return Ok(());
        }
        self.at += size;
        self.verb(verb)
    }

    fn flags(&mut self) {
        let flags = &mut self.printer.plain.flags;
        while let Some(b) = self.format.get(self.at) {
            match b {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
    }

    /// Reads an explicit argument index, such as `[3]`. Returns whether there was one.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let close = if rest.len() < 3 {
            None
        } else {
            rest.iter().position(|b| *b == b']')
        };
        let Some(close) = close else {
            self.at += 1;
            self.good_index = false;
            return false;
        };
        self.at += close + 1;
        let digits = &rest[1..close];
        let number = number(digits)
            .filter(|(_, used)| *used == digits.len())
            .map(|(n, _)| n);
        match number {
            Some(n) if (1..=self.args.len()).contains(&n) => self.next = n - 1,
            _ => self.good_index = false,
        }
        number.is_some()
    }

    fn width(&mut self, after_index: bool) -> bool {
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.number_from_args() {
                Some(width) => {
                    let flags = &mut self.printer.plain.flags;
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                }
                None => self.printer.plain.write("%!(BADWIDTH)"),
            }
            return false;
        }
        self.printer.plain.flags.width = self.literal_number();
        if after_index && self.printer.plain.flags.width.is_some() {
            self.good_index = false;
        }
        after_index
    }

    fn precision(&mut self, mut after_index: bool) -> bool {
        if self.peek() != Some(b'.') || self.at + 1 >= self.format.len() {
            return after_index;
        }
        self.at += 1;
        if after_index {
            self.good_index = false;
        }
        after_index = self.index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.number_from_args().map(usize::try_from) {
                Some(Ok(precision)) => self.printer.plain.flags.precision = Some(precision),
                _ => self.printer.plain.write("%!(BADPREC)"),
            }
            return false;
        }
        self.printer.plain.flags.precision = Some(self.literal_number().unwrap_or(0));
        after_index
    }

    /// Digits in the format; as in Go, a number that is too large discards the rest of the format.
    fn literal_number(&mut self) -> Option<usize> {
        match number(&self.format[self.at..]) {
            Some((n, used)) => {
                self.at += used;
                Some(n)
            }
            None => {
                if self.peek().is_some_and(|b| b.is_ascii_digit()) {
                    self.at = self.format.len();
                }
                None
            }
        }
    }

    fn number_from_args(&mut self) -> Option<i64> {
        let value = self.args.get(self.next)?;
        self.next += 1;
        let number = match value.underlying().as_ref() {
            Value::Int(_, i) => Some(*i),
            Value::Uint(_, u) => i64::try_from(*u).ok(),
            _ => None,
        };
        number.filter(|n| n.unsigned_abs() <= LARGEST as u64)
    }

    fn verb(&mut self, verb: char) -> Result<(), Error> {
        if verb == '%' {
            self.printer.plain.write("%");
            return Ok(());
        }
        if !self.good_index {
            self.printer.plain.write(&format!("%!{verb}(BADINDEX)"));
            return Ok(());
        }
        let Some(arg) = self.args.get(self.next) else {
            self.printer.plain.write(&format!("%!{verb}(MISSING)"));
            return Ok(());
        };
        if matches!(verb, 'v' | 'w') {
            let flags = &mut self.printer.plain.flags;
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        self.next += 1;
        self.printer.arg(arg, verb)
    }

    fn extra(&mut self) -> Result<(), Error> {
        self.printer.plain.flags = Flags::default();
        self.printer.plain.write("%!(EXTRA ");
        for (i, arg) in self.args[self.next..].iter().enumerate() {
            if i > 0 {
                self.printer.plain.write(", ");
            }
            if !matches!(arg, Value::Nil) {
                self.printer.plain.write(&format!("{}=", arg.go_type()));
            }
            self.printer.arg(arg, 'v')?;
        }
        self.printer.plain.write(")");
        Ok(())
    }
}

/// Leading digits as a number and their count; `None` if there are none, or the number is too
/// large.
fn number(text: &[u8]) -> Option<(usize, usize)> {
    let used = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut value = 0;
    for b in &text[..used] {
        if value > LARGEST {
            return None;
        }
        value = value * 10 + usize::from(b - b'0');
    }
    (used > 0).then_some((value, used))
}
