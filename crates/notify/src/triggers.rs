//! Triggers: conditions under which templates are sent.
//!
//! Main type: [`Trigger`].

use crate::subject::Subject;
use crate::typed::{self, TypeError, Typed};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value as Json;
use sha1::{Digest, Sha1};
use tiphys_gocompat::expr::{Limits, Program, Value, display};

/// A trigger of the configuration.
#[derive(Debug)]
pub struct Trigger {
    pub conditions: Vec<Condition>,
}

/// One condition of a trigger.
#[derive(Debug)]
pub struct Condition {
    /// The expression that must be true.
    pub when: String,
    /// The expression whose value a notification is sent once for; empty without.
    pub once_per: String,
    pub description: String,
    /// Names of templates; `None` if they are not given.
    pub send: Option<Vec<String>>,
    program: Program,
    once_per_program: Option<Program>,
}

/// What a condition says about an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionResult {
    /// `[INDEX].HASH` of the condition.
    pub key: String,
    pub once_per: Option<String>,
    pub templates: Option<Vec<String>>,
    pub triggered: bool,
    /// Why an expression has no value, which is not an error of the configuration.
    pub problem: Option<String>,
}

impl Trigger {
    /// Reads the value of `trigger.NAME`.
    ///
    /// # Errors
    /// If it is not a list of conditions, or if an expression does not compile.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let items = typed::list(&typed::document(text)?)?;
        let conditions = items.iter().map(Condition::parse).collect::<Typed<_>>()?;
        Ok(Self { conditions })
    }

    /// What each condition says about the Application.
    pub fn run(&self, subject: &Subject<'_>) -> Vec<ConditionResult> {
        let env = subject.variables("");
        let conditions = self.conditions.iter().enumerate();
        conditions
            .map(|(index, condition)| condition.run(index, subject, &env))
            .collect()
    }
}

impl Condition {
    fn parse(value: &Json) -> Typed<Self> {
        let map = typed::map(value)?;
        let when = typed::text_field(&map, "when")?;
        let once_per = typed::text_field(&map, "oncePer")?;
        let send = typed::field(&map, "send").map_or(Ok(None), typed::texts)?;
        Self::new(
            when,
            once_per,
            typed::text_field(&map, "description")?,
            send,
        )
    }

    /// # Errors
    /// If an expression does not compile.
    pub(crate) fn new(
        when: String,
        once_per: String,
        description: String,
        send: Option<Vec<String>>,
    ) -> Typed<Self> {
        let compile = |name: &str, code: &str| {
            Program::compile(code).map_err(|error| TypeError(format!("{name}: {error}")))
        };
        let program = compile("when", if when.is_empty() { "false" } else { &when })?;
        let once_per_program = match once_per.as_str() {
            "" => None,
            code => Some(compile("oncePer", code)?),
        };
        Ok(Self {
            when,
            once_per,
            description,
            send,
            program,
            once_per_program,
        })
    }

    fn run(&self, index: usize, subject: &Subject<'_>, env: &Value) -> ConditionResult {
        let value = |program: &Program| program.run(env, &subject.clock, Limits::default());
        let hash = URL_SAFE_NO_PAD.encode(Sha1::digest(self.when.as_bytes()));
        let mut result = ConditionResult {
            key: format!("[{index}].{hash}"),
            once_per: None,
            templates: self.send.clone(),
            triggered: false,
            problem: None,
        };
        match value(&self.program) {
            Ok(Value::Bool(triggered)) => result.triggered = triggered,
            Ok(other) => {
                result.problem = Some(format!("when gives {}, not bool", other.go_type()));
            }
            Err(error) => result.problem = Some(format!("when: {error}")),
        }
        if let (true, Some(program)) = (result.triggered, &self.once_per_program) {
            match value(program) {
                Ok(value) => {
                    result.once_per = Some(display(&value)).filter(|text| !text.is_empty());
                }
                Err(error) => result.problem = Some(format!("oncePer: {error}")),
            }
        }
        result
    }
}
