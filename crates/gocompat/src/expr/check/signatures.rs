//! What the builtin functions take.
//!
//! Main function: [`rule`].

use super::super::builtins::Builtin;
use super::super::types::{Kind, Ty};
use super::super::value::MapKind;

/// A type of a parameter or result.
#[derive(Clone, Copy)]
pub(super) enum P {
    Any,
    Bool,
    Int,
    Str,
    Anys,
    Strs,
    Ints,
    Floats,
    Duration,
    Location,
}

impl P {
    pub fn ty(self) -> Ty {
        match self {
            P::Any => Ty::Any,
            P::Bool => Ty::Bool,
            P::Int => Ty::Int,
            P::Str => Ty::Str,
            P::Anys => Ty::list(Ty::Any),
            P::Strs => Ty::Strings,
            P::Ints => Ty::Ints,
            P::Floats => Ty::Floats,
            P::Duration => Ty::Duration,
            P::Location => Ty::Location,
        }
    }
}

/// Parameters and result of one form of a function.
pub(super) struct Signature {
    pub params: &'static [P],
    pub result: P,
}

/// How a call is checked: against forms, or by a function of its own.
pub(super) enum Rule {
    Signatures(&'static [Signature]),
    Own(fn(Builtin, &[Ty]) -> Result<Ty, String>),
}

const fn form(params: &'static [P], result: P) -> Signature {
    Signature { params, result }
}

static STRING: &[Signature] = &[form(&[P::Any], P::Str)];
static TEXT: &[Signature] = &[form(&[P::Str], P::Str)];
static TRIM: &[Signature] = &[form(&[P::Str], P::Str), form(&[P::Str, P::Str], P::Str)];
static SPLIT: &[Signature] = &[
    form(&[P::Str, P::Str], P::Strs),
    form(&[P::Str, P::Str, P::Int], P::Strs),
];
static REPLACE: &[Signature] = &[
    form(&[P::Str, P::Str, P::Str, P::Int], P::Str),
    form(&[P::Str, P::Str, P::Str], P::Str),
];
static REPEAT: &[Signature] = &[form(&[P::Str, P::Int], P::Str)];
static JOIN: &[Signature] = &[
    form(&[P::Strs, P::Str], P::Str),
    form(&[P::Anys, P::Str], P::Str),
    form(&[P::Anys], P::Str),
    form(&[P::Strs], P::Str),
];
static INDEX: &[Signature] = &[form(&[P::Str, P::Str], P::Int)];
static HAS: &[Signature] = &[form(&[P::Str, P::Str], P::Bool)];
static FROM_JSON: &[Signature] = &[form(&[P::Str], P::Any)];
static DURATION: &[Signature] = &[form(&[P::Str], P::Duration)];
static TIMEZONE: &[Signature] = &[form(&[P::Str], P::Location)];
static SORT: &[Signature] = &[
    form(&[P::Anys, P::Str], P::Anys),
    form(&[P::Ints, P::Str], P::Anys),
    form(&[P::Floats, P::Str], P::Anys),
    form(&[P::Strs, P::Str], P::Anys),
    form(&[P::Anys], P::Anys),
    form(&[P::Floats], P::Anys),
    form(&[P::Strs], P::Anys),
    form(&[P::Ints], P::Anys),
];
static BITS: &[Signature] = &[form(&[P::Int, P::Int], P::Int)];
static BIT_NOT: &[Signature] = &[form(&[P::Int], P::Int)];

pub(super) fn rule(function: Builtin) -> Rule {
    use Builtin as B;
    Rule::Signatures(match function {
        B::Type | B::String | B::ToJson => STRING,
        B::Trim | B::TrimPrefix | B::TrimSuffix => TRIM,
        B::Upper | B::Lower | B::ToBase64 | B::FromBase64 => TEXT,
        B::Split | B::SplitAfter => SPLIT,
        B::Replace => REPLACE,
        B::Repeat => REPEAT,
        B::Join => JOIN,
        B::IndexOf | B::LastIndexOf => INDEX,
        B::HasPrefix | B::HasSuffix => HAS,
        B::FromJson => FROM_JSON,
        B::Duration => DURATION,
        B::Timezone => TIMEZONE,
        B::Sort => SORT,
        B::BitNot => BIT_NOT,
        B::BitAnd | B::BitOr | B::BitXor | B::BitNand | B::BitShl | B::BitShr | B::BitUshr => BITS,
        B::Max | B::Min | B::Mean | B::Median => return Rule::Own(aggregate),
        B::Now | B::Date => return Rule::Own(times),
        B::Concat => return Rule::Own(concat),
        B::Take => return Rule::Own(take),
        _ => return Rule::Own(single),
    })
}

fn count_is(args: &[Ty], wanted: usize) -> Result<(), String> {
    if args.len() == wanted {
        return Ok(());
    }
    Err(format!(
        "invalid number of arguments (expected {wanted}, got {})",
        args.len()
    ))
}

/// A type in an error text; nil has none.
fn shown(ty: &Ty) -> String {
    match ty {
        Ty::Nil => "%!s(<nil>)".into(),
        other => other.to_string(),
    }
}

fn is_number(ty: &Ty) -> bool {
    matches!(
        ty.argument_kind(),
        Kind::Int | Kind::Int64 | Kind::Uint8 | Kind::Float
    )
}

fn is_list(ty: &Ty) -> bool {
    matches!(ty.argument_kind(), Kind::Interface | Kind::Slice)
}

/// Functions of one argument.
fn single(function: Builtin, args: &[Ty]) -> Result<Ty, String> {
    use Builtin as B;
    count_is(args, 1)?;
    let arg = args.first().unwrap_or(&Ty::Nil);
    let kind = arg.argument_kind();
    let any = kind == Kind::Interface;
    let (fits, result) = match function {
        B::Len => (
            any || matches!(kind, Kind::Slice | Kind::Map | Kind::String),
            Ty::Int,
        ),
        B::Abs => (any || is_number(arg), known(arg)),
        B::Ceil | B::Floor | B::Round => (any || is_number(arg), Ty::Float),
        B::Int | B::Float => {
            let result = if function == B::Int {
                Ty::Int
            } else {
                Ty::Float
            };
            let fits = any || is_number(arg) || kind == Kind::String;
            (fits, result)
        }
        B::First | B::Last => (is_list(arg), in_go(arg)),
        B::Keys | B::Values | B::ToPairs => (any || kind == Kind::Map, Ty::list(Ty::Any)),
        B::FromPairs => (is_list(arg), Ty::Map(MapKind::Any)),
        _ => (is_list(arg), Ty::list(Ty::Any)),
    };
    if fits {
        return Ok(result);
    }
    let name = function.name();
    let ty = shown(arg);
    Err(match function {
        B::Len | B::Abs | B::Ceil | B::Floor | B::Round | B::Int | B::Float => {
            format!("invalid argument for {name} (type {ty})")
        }
        B::First | B::Last => format!("cannot get {name} element from {ty}"),
        B::Keys | B::Values => format!("cannot get {name} from {ty}"),
        B::ToPairs => format!("cannot transform {ty} to pairs"),
        B::FromPairs => format!("cannot transform {ty} from pairs"),
        _ => format!("cannot {name} {ty}"),
    })
}

/// What is unknown is an interface as a result.
fn known(ty: &Ty) -> Ty {
    match ty {
        Ty::Unknown => Ty::Any,
        other => other.clone(),
    }
}

/// The elements of a list as Go's reflection sees them: only lists of one type tell theirs.
fn in_go(list: &Ty) -> Ty {
    match list {
        Ty::Strings => Ty::Str,
        Ty::Bytes => Ty::Uint8,
        _ => Ty::Any,
    }
}

fn aggregate(function: Builtin, args: &[Ty]) -> Result<Ty, String> {
    let Some(first) = args.first() else {
        return Err(format!("not enough arguments to call {}", function.name()));
    };
    for arg in args {
        if is_list(arg) {
            return Ok(Ty::Any);
        }
        if !is_number(arg) {
            return Err(format!(
                "invalid argument for {} (type {})",
                function.name(),
                shown(arg)
            ));
        }
    }
    Ok(first.clone())
}

fn times(function: Builtin, args: &[Ty]) -> Result<Ty, String> {
    let count = args.len();
    let located = matches!(args.first(), Some(Ty::Location));
    let (least, most) = if function == Builtin::Now {
        (0, usize::from(located))
    } else {
        (1, 3 + usize::from(located))
    };
    if count < least {
        return Err(format!(
            "invalid number of arguments (expected at least {least}, got {count})"
        ));
    }
    if count > most {
        return Err(format!(
            "invalid number of arguments (expected {most}, got {count})"
        ));
    }
    Ok(Ty::Time)
}

fn concat(_: Builtin, args: &[Ty]) -> Result<Ty, String> {
    if args.is_empty() {
        return Err("invalid number of arguments (expected at least 1, got 0)".into());
    }
    match args.iter().find(|arg| !is_list(arg)) {
        Some(other) => Err(format!("cannot concat {}", shown(other))),
        None => Ok(Ty::list(Ty::Any)),
    }
}

fn take(_: Builtin, args: &[Ty]) -> Result<Ty, String> {
    count_is(args, 2)?;
    let [list, count] = args else {
        return Ok(Ty::Any);
    };
    if !is_list(list) {
        return Err(format!("cannot take from {}", shown(list)));
    }
    match count.argument_kind() {
        Kind::Interface | Kind::Int | Kind::Int64 => Ok(match list {
            Ty::List(_) => Ty::list(Ty::Any),
            other => known(other),
        }),
        _ => Err(format!("cannot take {} elements", shown(count))),
    }
}
