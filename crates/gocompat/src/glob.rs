//! Globs as `github.com/gobwas/glob` matches them.
//!
//! Main type: [`Glob`]. `*` matches any text without a separator, `**` any text, `?` one character
//! except separators, `[abc]`, `[a-c]` and `[!a]` one character, `{a,b}` alternatives, and `\`
//! escapes. Without separators `*` matches everything. Matching takes time proportional to text
//! times pattern, whatever the pattern.

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    program: Vec<Step>,
    separators: Vec<char>,
    plain: Option<Plain>,
}

/// A pattern that needs no machine.
#[derive(Clone, Debug)]
enum Plain {
    Text(String),
    /// What is before and after the only star. As in gobwas the two may overlap: `a/*/b` matches
    /// `a/b`.
    Around(String, String),
    /// What is before the first of several stars, between them, and after the last one.
    Between(String, Vec<String>, String),
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("glob {pattern:?}: {message}")]
pub struct GlobError {
    pub pattern: String,
    pub message: &'static str,
}

const MAX_PATTERN: usize = 16 * 1024;
const MAX_NESTING: usize = 64;

/// An instruction of the matching machine: states are indices into the program.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Char(char),
    /// One character that is not a separator.
    One,
    /// Any number of characters: except separators, or any.
    Star {
        super_: bool,
    },
    List {
        chars: Vec<char>,
        not: bool,
    },
    Range {
        low: char,
        high: char,
        not: bool,
    },
    /// Continue at each of these.
    Split(Vec<usize>),
    Jump(usize),
    End,
}

impl Glob {
    pub fn new(pattern: &str, separators: &[char]) -> Result<Self, GlobError> {
        let error = |message| GlobError {
            pattern: pattern.chars().take(80).collect(),
            message,
        };
        if pattern.len() > MAX_PATTERN {
            return Err(error("the pattern is too long"));
        }
        let mut compiler = Compiler {
            chars: pattern.chars().collect(),
            at: 0,
            program: Vec::new(),
        };
        compiler.pattern(0).map_err(error)?;
        compiler.program.push(Step::End);
        Ok(Self {
            plain: plain(&compiler.program, separators),
            program: compiler.program,
            separators: separators.to_vec(),
        })
    }

    pub fn matches<'t>(&self, text: &'t str) -> bool {
        match &self.plain {
            Some(Plain::Text(wanted)) => text == wanted,
            Some(Plain::Around(start, end)) => text.starts_with(start) && text.ends_with(end),
            Some(Plain::Between(start, middle, end)) => {
                // The first place of each part leaves the most for those after it.
                let rest = text.strip_prefix(start.as_str());
                let rest = rest.and_then(|rest| rest.strip_suffix(end.as_str()));
                let after = |rest: &'t str, part: &String| Some(rest.split_once(part.as_str())?.1);
                rest.is_some_and(|rest| middle.iter().try_fold(rest, after).is_some())
            }
            None => self.run(text),
        }
    }

    /// Whether it matches all texts that begin like this, or none of them; `None`: it depends on
    /// what follows, or cannot be told without it.
    pub fn matches_all_after(&self, beginning: &str) -> Option<bool> {
        let no_stars: &[String] = &[];
        let (start, middle, end) = match self.plain.as_ref()? {
            // What follows may complete the text.
            Plain::Text(wanted) => return (!wanted.starts_with(beginning)).then_some(false),
            Plain::Around(start, end) => (start, no_stars, end),
            Plain::Between(start, middle, end) => (start, middle.as_slice(), end),
        };
        let Some(mut rest) = beginning.strip_prefix(start.as_str()) else {
            return (!start.starts_with(beginning)).then_some(false);
        };
        for part in middle {
            rest = rest.split_once(part.as_str())?.1;
        }
        end.is_empty().then_some(true)
    }

    fn run(&self, text: &str) -> bool {
        let mut states = States::new(self.program.len());
        let mut next = States::new(self.program.len());
        self.add(&mut states, 0);
        for c in text.chars() {
            if states.list.is_empty() {
                return false;
            }
            for &at in &states.list {
                if self.accepts(at, c) {
                    let stay = matches!(self.program.get(at), Some(Step::Star { .. }));
                    self.add(&mut next, if stay { at } else { at + 1 });
                }
            }
            states.clear();
            std::mem::swap(&mut states, &mut next);
        }
        states
            .list
            .iter()
            .any(|at| matches!(self.program.get(*at), Some(Step::End)))
    }

    fn accepts(&self, at: usize, c: char) -> bool {
        let separator = || self.separators.contains(&c);
        match self.program.get(at) {
            Some(Step::Char(want)) => *want == c,
            Some(Step::One) => !separator(),
            Some(Step::Star { super_ }) => *super_ || !separator(),
            Some(Step::List { chars, not }) => chars.contains(&c) != *not,
            Some(Step::Range { low, high, not }) => (*low..=*high).contains(&c) != *not,
            Some(Step::Split(_) | Step::Jump(_) | Step::End) | None => false,
        }
    }

    /// Adds a state and those reachable from it without consuming a character.
    fn add(&self, states: &mut States, start: usize) {
        let mut todo = vec![start];
        while let Some(at) = todo.pop() {
            if !states.insert(at) {
                continue;
            }
            match self.program.get(at) {
                Some(Step::Split(targets)) => todo.extend(targets),
                Some(Step::Jump(target)) => todo.push(*target),
                Some(Step::Star { .. }) => todo.push(at + 1),
                _ => {}
            }
        }
    }
}

fn plain(program: &[Step], separators: &[char]) -> Option<Plain> {
    let mut parts = vec![String::new()];
    for step in program {
        match step {
            Step::Char(c) => parts.last_mut()?.push(*c),
            Step::Star { super_ } if *super_ || separators.is_empty() => {
                parts.push(String::new());
            }
            Step::End => {}
            _ => return None,
        }
    }
    let end = parts.pop()?;
    if parts.is_empty() {
        return Some(Plain::Text(end));
    }
    let start = parts.remove(0);
    Some(match parts.is_empty() {
        true => Plain::Around(start, end),
        false => Plain::Between(start, parts, end),
    })
}

/// Whether a text matches; an invalid pattern matches nothing, as in Argo CD.
pub fn matches(pattern: &str, text: &str, separators: &[char]) -> bool {
    Glob::new(pattern, separators).is_ok_and(|glob| glob.matches(text))
}

struct States {
    list: Vec<usize>,
    member: Vec<bool>,
}

impl States {
    fn new(len: usize) -> Self {
        Self {
            list: Vec::new(),
            member: vec![false; len],
        }
    }

    fn insert(&mut self, at: usize) -> bool {
        match self.member.get_mut(at) {
            Some(seen) if !*seen => {
                *seen = true;
                self.list.push(at);
                true
            }
            _ => false,
        }
    }

    fn clear(&mut self) {
        for at in self.list.drain(..) {
            if let Some(seen) = self.member.get_mut(at) {
                *seen = false;
            }
        }
    }
}

struct Compiler {
    chars: Vec<char>,
    at: usize,
    program: Vec<Step>,
}

impl Compiler {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += 1;
        c
    }

    /// Compiles up to the end or, inside braces, up to their next `,` or `}`, which is not
    /// consumed.
    fn pattern(&mut self, nesting: usize) -> Result<(), &'static str> {
        while let Some(c) = self.peek() {
            if nesting > 0 && matches!(c, ',' | '}') {
                return Ok(());
            }
            self.at += 1;
            match c {
                '*' if self.peek() == Some('*') => {
                    self.at += 1;
                    self.program.push(Step::Star { super_: true });
                }
                '*' => self.program.push(Step::Star { super_: false }),
                '?' => self.program.push(Step::One),
                '[' => self.class()?,
                '{' => self.alternatives(nesting + 1)?,
                '\\' => {
                    if let Some(quoted) = self.next() {
                        self.program.push(Step::Char(quoted));
                    }
                }
                c => self.program.push(Step::Char(c)),
            }
        }
        Ok(())
    }

    /// After `{`. An unclosed brace ends with the pattern.
    fn alternatives(&mut self, nesting: usize) -> Result<(), &'static str> {
        if nesting > MAX_NESTING {
            return Err("braces are nested too deeply");
        }
        let split = self.program.len();
        self.program.push(Step::Split(Vec::new()));
        let (mut starts, mut jumps) = (Vec::new(), Vec::new());
        loop {
            starts.push(self.program.len());
            self.pattern(nesting)?;
            jumps.push(self.program.len());
            self.program.push(Step::Jump(0));
            if self.next() != Some(',') {
                break;
            }
        }
        let end = self.program.len();
        for jump in jumps {
            if let Some(step) = self.program.get_mut(jump) {
                *step = Step::Jump(end);
            }
        }
        if let Some(step) = self.program.get_mut(split) {
            *step = Step::Split(starts);
        }
        Ok(())
    }

    /// After `[`.
    fn class(&mut self) -> Result<(), &'static str> {
        const UNEXPECTED_END: &str = "unexpected end of input";
        let not = self.peek() == Some('!');
        if not {
            self.at += 1;
        }
        let first = self.next().ok_or(UNEXPECTED_END)?;
        if self.peek() == Some('-') {
            self.at += 1;
            let high = self.next().ok_or(UNEXPECTED_END)?;
            return match self.next() {
                None => Err(UNEXPECTED_END),
                Some(']') if high < first => Err("hi character should be greater than lo"),
                Some(']') => {
                    self.program.push(Step::Range {
                        low: first,
                        high,
                        not,
                    });
                    Ok(())
                }
                Some(_) => Err("expected close range character"),
            };
        }
        self.at -= 1;
        let mut chars = Vec::new();
        loop {
            match self.next().ok_or(UNEXPECTED_END)? {
                ']' if chars.is_empty() => return Err("could not parse range"),
                ']' => break,
                '\\' => chars.extend(self.next()),
                c => chars.push(c),
            }
        }
        self.program.push(Step::List { chars, not });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(letters: &str, most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..most {
            let longer: Vec<String> = all[from..]
                .iter()
                .flat_map(|word| letters.chars().map(move |c| format!("{word}{c}")))
                .collect();
            from = all.len();
            all.extend(longer);
        }
        all
    }

    #[test]
    fn several_stars_match_what_the_machine_matches() {
        let texts = words("ab", 6);
        let patterns = words("ab*", 5);
        let several = patterns.iter().filter(|p| p.matches('*').count() > 1);
        let mut compared = 0;
        for pattern in several {
            let glob = Glob::new(pattern, &[]).expect("a pattern");
            let is_between = matches!(glob.plain, Some(Plain::Between(..)));
            for text in texts.iter().filter(|_| is_between) {
                assert_eq!(glob.matches(text), glob.run(text), "{pattern} {text}");
                compared += 1;
            }
        }
        assert!(compared > 10_000, "{compared}");
    }

    #[test]
    fn what_is_said_of_a_beginning_holds_for_every_text() {
        let texts = words("ab", 6);
        let mut said = [0, 0];
        let escaped = ["a?*", "[a]*", "{a,b}*", "\\a*", "**", "ab**"].map(str::to_owned);
        for pattern in words("ab*", 4).into_iter().chain(escaped) {
            let glob = Glob::new(&pattern, &[]).expect("a pattern");
            for beginning in words("ab", 2) {
                let Some(all) = glob.matches_all_after(&beginning) else {
                    continue;
                };
                said[usize::from(all)] += 1;
                let mut after = texts.iter().filter(|text| text.starts_with(&beginning));
                assert!(
                    after.all(|text| glob.matches(text) == all),
                    "{pattern} {beginning}"
                );
            }
        }
        assert!(said.iter().all(|n| *n > 50), "{said:?}");
        let all = |pattern: &str| {
            let glob = Glob::new(pattern, &[]).expect("a pattern");
            glob.matches_all_after("team/")
        };
        assert_eq!(["*", "*/*", "team/*", "te*"].map(all), [Some(true); 4]);
        assert_eq!(["other/*", "team", "teams/*"].map(all), [Some(false); 3]);
        assert_eq!(
            ["team/web", "team/w*", "*/web", "{team}/*"].map(all),
            [None; 4]
        );
    }
}
