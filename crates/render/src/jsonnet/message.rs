//! What went wrong, in go-jsonnet's words where people meet them.

use rsjsonnet_lang::{
    lexer::LexError,
    parser::ParseError,
    program::{AnalyzeError, EvalErrorKind, EvalErrorValueType, EvalStackTraceItem, LoadError},
    span::SpanId,
};

/// `file:line:column-column`, or with two lines `file:(line:column)-(line:column)`; from 1, and the
/// second column is behind the place.
pub(super) fn place(name: &str, content: &[u8], start: usize, end: usize) -> String {
    let position = |at: usize| {
        let before = &content[..at.min(content.len())];
        let line_start = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |i| i + 1);
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        (
            line,
            String::from_utf8_lossy(&before[line_start..])
                .chars()
                .count()
                + 1,
        )
    };
    let ((line, column), (last_line, last_column)) = (position(start), position(end));
    if line == last_line {
        format!("{name}:{line}:{column}-{last_column}")
    } else {
        format!("{name}:({line}:{column})-({last_line}:{last_column})")
    }
}

pub(super) fn of_load(error: &LoadError) -> (SpanId, String) {
    match error {
        LoadError::Lex(error) => of_lexer(error),
        LoadError::Parse(ParseError::Expected {
            span,
            expected,
            instead,
        }) => {
            let expected: Vec<String> = expected.iter().map(|e| format!("{e:?}")).collect();
            (
                *span,
                format!("Expected {} but got {instead:?}", expected.join(" or ")),
            )
        }
        LoadError::Analyze(error) => of_analysis(error),
    }
}

fn of_lexer(error: &LexError) -> (SpanId, String) {
    use LexError as E;
    let (span, text) = match error {
        E::InvalidChar { span, chr } => {
            return (*span, format!("Could not lex the character {chr:?}"));
        }
        E::InvalidUtf8 { span, .. } => (span, "Invalid UTF-8"),
        E::UnfinishedMultilineComment { span } => {
            (span, "Multi-line comment has no terminator, */")
        }
        E::LeadingZeroInNumber { span } => (span, "Couldn't lex number, leading zero"),
        E::MissingFracDigits { span } => (span, "Couldn't lex number, junk after decimal point"),
        E::MissingExpDigits { span } => (span, "Couldn't lex number, junk after 'E'"),
        E::MissingDigitAfterUnderscore { span } => (span, "Couldn't lex number, junk after '_'"),
        E::ExpOverflow { span } => (span, "Overflow"),
        E::InvalidEscapeInString { span, chr } => {
            return (
                *span,
                format!("Unknown escape sequence in string literal: {chr:?}"),
            );
        }
        E::IncompleteUnicodeEscape { span } => {
            (span, "Truncated unicode escape sequence in string literal")
        }
        E::InvalidUtf16EscapeSequence { span, .. } => {
            (span, "Malformed unicode escape sequence in string literal")
        }
        E::UnfinishedString { span } => (span, "Unterminated String"),
        E::MissingLineBreakAfterTextBlockStart { span } => {
            (span, "Text block syntax requires new line after |||.")
        }
        E::MissingWhitespaceTextBlockStart { span } => {
            (span, "Text block's first line must start with whitespace")
        }
        E::InvalidTextBlockTermination { span } => (span, "Text block not terminated with |||"),
    };
    (*span, text.to_owned())
}

fn of_analysis(error: &AnalyzeError) -> (SpanId, String) {
    use AnalyzeError as E;
    let (span, text) = match error {
        E::UnknownVariable { span, name } => return (*span, format!("Unknown variable: {name}")),
        E::RepeatedLocalName {
            repeated_span,
            name,
            ..
        } => {
            return (*repeated_span, format!("Duplicate local var: {name}"));
        }
        E::RepeatedFieldName {
            repeated_span,
            name,
            ..
        } => {
            return (*repeated_span, format!("Duplicate field: {name}"));
        }
        E::RepeatedParamName {
            repeated_span,
            name,
            ..
        } => {
            return (
                *repeated_span,
                format!("Duplicate function parameter: {name}"),
            );
        }
        E::SelfOutsideObject { self_span } => (self_span, "Can't use self outside of an object."),
        E::SuperOutsideObject { super_span } => {
            (super_span, "Can't use super outside of an object.")
        }
        E::DollarOutsideObject { dollar_span } => (dollar_span, "No top-level object found."),
        E::PositionalArgAfterNamed { arg_span } => (
            arg_span,
            "Positional argument after a named argument is not allowed",
        ),
        E::TextBlockAsImportPath { span } => (span, "Block string literals not allowed in imports"),
        E::ComputedImportPath { span } => (span, "Computed imports are not allowed"),
    };
    (*span, text.to_owned())
}

/// Where the error itself says it is.
pub(super) fn place_of(error: &EvalErrorKind) -> Option<SpanId> {
    use EvalErrorKind as E;
    match error {
        E::UnknownObjectField { span, .. }
        | E::AssertFailed { span, .. }
        | E::ExplicitError { span, .. }
        | E::ImportFailed { span, .. }
        | E::FieldOfNonObject { span }
        | E::CondIsNotBool { span, .. }
        | E::NumericIndexOutOfRange { span, .. }
        | E::RepeatedFieldName { span, .. } => Some(*span),
        E::InvalidBinaryOpTypes { span, .. }
        | E::DivByZero { span }
        | E::CallParamNotBound { span, .. }
        | E::UnknownCallParam { span, .. }
        | E::TooManyCallArgs { span, .. }
        | E::Other { span, .. } => *span,
        _ => None,
    }
}

pub(super) fn place_in_trace(item: &EvalStackTraceItem) -> Option<SpanId> {
    use EvalStackTraceItem as I;
    match item {
        I::Expr { span } | I::Variable { span, .. } | I::Import { span } => Some(*span),
        I::Call { span, .. } | I::ArrayItem { span, .. } | I::ObjectField { span, .. } => *span,
        I::CompareArrayItem { .. }
        | I::CompareObjectField { .. }
        | I::ManifestArrayItem { .. }
        | I::ManifestObjectField { .. } => None,
    }
}

fn named(kind: EvalErrorValueType) -> &'static str {
    match kind {
        EvalErrorValueType::Null => "null",
        EvalErrorValueType::Bool => "boolean",
        EvalErrorValueType::Number => "number",
        EvalErrorValueType::String => "string",
        EvalErrorValueType::Array => "array",
        EvalErrorValueType::Object => "object",
        EvalErrorValueType::Function => "function",
    }
}

pub(super) fn of_evaluation(error: &EvalErrorKind) -> String {
    use EvalErrorKind as E;
    match error {
        E::StackOverflow => "max stack frames exceeded.".to_owned(),
        E::InfiniteRecursion => "infinite recursion: a value depends on itself".to_owned(),
        E::UnknownObjectField { field_name, .. } => format!("Field does not exist: {field_name}"),
        E::RepeatedFieldName { name, .. } => format!("Duplicate field name: {name:?}"),
        E::FieldNameIsNotString { got_type, .. } => {
            format!("Field name must be string, got {}", named(*got_type))
        }
        E::CondIsNotBool { got_type, .. } => {
            format!("Unexpected type {}, expected boolean", named(*got_type))
        }
        E::NumericIndexOutOfRange { index, length, .. } => {
            format!("Index {index} out of bounds, not within [0, {length})")
        }
        E::CalleeIsNotFunction { got_type, .. } => {
            format!("Unexpected type {}, expected function", named(*got_type))
        }
        E::TooManyCallArgs { num_params, .. } => {
            format!("function expected {num_params} positional argument(s), but got more")
        }
        E::UnknownCallParam { param_name, .. } => format!("function has no parameter {param_name}"),
        E::RepeatedCallParam { param_name, .. } => {
            format!("Argument {param_name} already provided")
        }
        E::CallParamNotBound { param_name, .. } => format!("Missing argument: {param_name}"),
        E::DivByZero { .. } => "Division by zero.".to_owned(),
        E::NumberOverflow { .. } => "Overflow".to_owned(),
        E::NumberNan { .. } => "Not a number".to_owned(),
        E::InvalidBinaryOpTypes {
            op,
            lhs_type,
            rhs_type,
            ..
        } => format!(
            "Binary operator {op:?} does not work on {} and {}",
            named(*lhs_type),
            named(*rhs_type)
        ),
        E::InvalidUnaryOpType { op, rhs_type, .. } => {
            format!(
                "Unary operator {op:?} does not work on {}",
                named(*rhs_type)
            )
        }
        E::InvalidStdFuncArgType {
            func_name,
            arg_index,
            got_type,
            ..
        } => format!(
            "std.{func_name}: argument {} has the unexpected type {}",
            arg_index + 1,
            named(*got_type)
        ),
        E::AssertFailed {
            message: Some(message),
            ..
        }
        | E::ExplicitError { message, .. } => message.clone(),
        E::AssertFailed { message: None, .. } => "Assertion failed".to_owned(),
        E::AssertEqualFailed { lhs, rhs } => format!("Assertion failed. {lhs} != {rhs}"),
        E::ImportFailed { path, .. } => format!("couldn't open import {path:?}"),
        E::UnknownExtVar { name } => format!("Undefined external variable: {name}"),
        E::ManifestFunction => "Couldn't manifest function as JSON".to_owned(),
        E::Other { message, .. } => message.clone(),
        other => words(other),
    }
}

/// The name of a rare error as words: `CompareFunctions` becomes "compare functions".
fn words(error: &EvalErrorKind) -> String {
    let shown = format!("{error:?}");
    let name = shown.split([' ', '{', '(']).next().unwrap_or_default();
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
