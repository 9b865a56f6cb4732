//! Patterns: destructuring in `as`, `reduce` and `foreach`.
//!
//! Main function: [`Parser::patterns`].

use super::{
    JqError,
    lexer::Token,
    node::{Match, Node},
    parser::{Name, Parser},
    value::Val,
};

/// The patterns of a binding, and the names that they bind in its body.
type Patterns = (Vec<Vec<Match>>, Vec<Name>);

impl Parser<'_> {
    /// The patterns of a binding. With several patterns, each binds the variables of all.
    pub fn patterns(&mut self) -> Result<Patterns, JqError> {
        let mut names = Vec::new();
        let first = self.pattern(&mut names)?;
        if !self.sees("?//") {
            return Ok((vec![first], names));
        }
        let mut patterns = vec![(first, names)];
        while self.takes("?//") {
            let mut names = Vec::new();
            patterns.push((self.pattern(&mut names)?, names));
        }
        let mut all: Vec<Name> = Vec::new();
        for name in patterns.iter().flat_map(|(_, names)| names) {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        let gathered = patterns.into_iter().map(|(mut pattern, names)| {
            let from = all
                .iter()
                .map(|name| names.iter().rev().position(|n| n == name))
                .collect();
            pattern.push(Match::Gather {
                skip: names.len(),
                from,
            });
            pattern
        });
        Ok((gathered.collect(), all))
    }

    /// One pattern. Adds its names.
    pub fn pattern(&mut self, names: &mut Vec<Name>) -> Result<Vec<Match>, JqError> {
        let mut steps = Vec::new();
        self.pattern_into(names, &mut steps)?;
        Ok(steps)
    }

    fn pattern_into(
        &mut self,
        names: &mut Vec<Name>,
        steps: &mut Vec<Match>,
    ) -> Result<(), JqError> {
        self.enter()?;
        if self.takes("[") {
            steps.push(Match::Open);
            for at in 0.. {
                steps.push(Match::Element(at));
                self.pattern_into(names, steps)?;
                if !self.takes(",") {
                    break;
                }
            }
            self.expect("]")?;
            steps.push(Match::Close);
        } else if self.takes("{") {
            steps.push(Match::Open);
            loop {
                self.pattern_entry(names, steps)?;
                if !self.takes(",") {
                    break;
                }
            }
            self.expect("}")?;
            steps.push(Match::Close);
        } else {
            names.push(Name::Variable(self.variable()?));
            steps.push(Match::Bind);
        }
        self.leave();
        Ok(())
    }

    fn pattern_entry(
        &mut self,
        names: &mut Vec<Name>,
        steps: &mut Vec<Match>,
    ) -> Result<(), JqError> {
        let mut field = |key: &str| steps.push(Match::Field(Val::text(key)));
        match self.peek() {
            Some(Token::Variable(name)) => {
                self.at += 1;
                field(name);
                steps.push(Match::Bind);
                names.push(Name::Variable(name.clone()));
                if !self.sees(":") {
                    return Ok(());
                }
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                field(name);
            }
            Some(Token::TextStart) => {
                match self.with(names.clone(), |parser| parser.string(None))? {
                    Node::Const(key) => steps.push(Match::Field(key)),
                    key => steps.push(Match::Computed(key)),
                }
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                steps.push(Match::Computed(self.with(names.clone(), Self::query)?));
                self.expect(")")?;
            }
            _ => return self.unexpected(),
        }
        self.expect(":")?;
        self.pattern_into(names, steps)
    }
}
