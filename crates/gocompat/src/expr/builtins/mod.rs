//! The builtin functions.
//!
//! Main type: [`Builtin`]; main function: [`call`]. Those with a predicate are in
//! `super::predicates`.

mod lists;
mod maps;
mod numbers;
mod strings;
mod times;

use super::error::ExprError;
use super::eval::Machine;
use super::value::Value;

pub(super) type Out<T = Value> = Result<T, ExprError>;

macro_rules! builtins {
    ($($variant:ident $name:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Builtin {
            $($variant,)*
        }

        impl Builtin {
            pub fn of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Builtin::$variant),)*
                    _ => None,
                }
            }

            pub fn name(self) -> &'static str {
                match self {
                    $(Builtin::$variant => $name,)*
                }
            }
        }
    };
}

builtins! {
    All "all" None "none" Any "any" One "one" Filter "filter" Map "map" Find "find"
    FindIndex "findIndex" FindLast "findLast" FindLastIndex "findLastIndex" Count "count"
    Sum "sum" GroupBy "groupBy" SortBy "sortBy" Reduce "reduce"
    Len "len" Type "type" Abs "abs" Ceil "ceil" Floor "floor" Round "round" Int "int"
    Float "float" String "string" Trim "trim" TrimPrefix "trimPrefix" TrimSuffix "trimSuffix"
    Upper "upper" Lower "lower" Split "split" SplitAfter "splitAfter" Replace "replace"
    Repeat "repeat" Join "join" IndexOf "indexOf" LastIndexOf "lastIndexOf"
    HasPrefix "hasPrefix" HasSuffix "hasSuffix" Max "max" Min "min" Mean "mean"
    Median "median" ToJson "toJSON" FromJson "fromJSON" ToBase64 "toBase64"
    FromBase64 "fromBase64" Now "now" Duration "duration" Date "date" Timezone "timezone"
    First "first" Last "last" Get "get" Take "take" Keys "keys" Values "values"
    ToPairs "toPairs" FromPairs "fromPairs" Reverse "reverse" Uniq "uniq" Concat "concat"
    Flatten "flatten" Sort "sort" BitAnd "bitand" BitOr "bitor" BitXor "bitxor"
    BitNand "bitnand" BitShl "bitshl" BitShr "bitshr" BitUshr "bitushr" BitNot "bitnot"
}

impl Builtin {
    /// The fewest and the most arguments of a function with a predicate.
    pub fn predicate_args(self) -> Option<(usize, usize)> {
        match self {
            Builtin::Count | Builtin::Sum => Some((1, 2)),
            Builtin::SortBy | Builtin::Reduce => Some((2, 3)),
            Builtin::All
            | Builtin::None
            | Builtin::Any
            | Builtin::One
            | Builtin::Filter
            | Builtin::Map
            | Builtin::Find
            | Builtin::FindIndex
            | Builtin::FindLast
            | Builtin::FindLastIndex
            | Builtin::GroupBy => Some((2, 2)),
            _ => None,
        }
    }
}

/// Calls a function without a predicate. The checker has counted the arguments.
pub(super) fn call(function: Builtin, args: &[Value], machine: &mut Machine<'_>) -> Out {
    use Builtin as B;
    let value = match function {
        B::Len
        | B::First
        | B::Last
        | B::Take
        | B::Reverse
        | B::Uniq
        | B::Concat
        | B::Flatten
        | B::Sort => lists::call(function, args, machine),
        B::Get | B::Keys | B::Values | B::ToPairs | B::FromPairs => {
            maps::call(function, args, machine)
        }
        B::Abs
        | B::Ceil
        | B::Floor
        | B::Round
        | B::Int
        | B::Float
        | B::Max
        | B::Min
        | B::Mean
        | B::Median
        | B::BitAnd
        | B::BitOr
        | B::BitXor
        | B::BitNand
        | B::BitShl
        | B::BitShr
        | B::BitUshr
        | B::BitNot => {
            // Of lists, all numbers in them are taken.
            for arg in args {
                machine.steps(arg.weight() / 64)?;
            }
            numbers::call(function, args)
        }
        B::Now | B::Duration | B::Date | B::Timezone => times::call(function, args, machine.clock),
        _ => strings::call(function, args, machine),
    }?;
    machine.weighed(value)
}

/// An argument; nil if it is missing.
fn arg(args: &[Value], index: usize) -> &Value {
    args.get(index).unwrap_or(&Value::Nil)
}

fn fails<T>(message: impl Into<String>) -> Out<T> {
    Err(ExprError::run(message))
}

/// Go's kind of a value, for error texts.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::List(list) if list.kind == super::value::ListKind::Pair => "array",
        Value::List(_) | Value::Bytes(_) => "slice",
        Value::Map(_) => "map",
        Value::Time(_) => "struct",
        Value::Duration(_) => "int64",
        Value::Month(_) | Value::Weekday(_) => "int",
        Value::Location(_) => "ptr",
        other => other.go_type(),
    }
}
