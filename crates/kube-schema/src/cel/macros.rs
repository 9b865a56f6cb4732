//! Expansion of `has`, `all`, `map` and other macros. Main functions: [`function`], [`method`].

use super::ast::{ACCU, Expr, Fold, Kind};
use super::lexer::Issue;

type Expanded = Option<Result<Expr, Issue>>;

fn bad(at: usize, message: &str) -> Expanded {
    Some(Err(Issue {
        at,
        message: message.to_owned(),
    }))
}

/// Macros in the form of functions.
pub fn function(at: usize, name: &str, args: &[Expr]) -> Expanded {
    if name != "has" || args.len() != 1 {
        return None;
    }
    match args[0].clone() {
        Expr {
            kind:
                Kind::Select {
                    operand,
                    field,
                    optional: false,
                    ..
                },
            ..
        } => Some(Ok(Expr::new(
            at,
            Kind::Select {
                operand,
                field,
                optional: false,
                test: true,
            },
        ))),
        other => bad(other.at, "invalid argument to has() macro"),
    }
}

struct Loop<'a> {
    at: usize,
    range: &'a Expr,
    vars: (&'a str, Option<&'a str>),
}

impl Loop<'_> {
    fn fold(&self, init: Expr, condition: Expr, step: Expr, result: Expr) -> Expr {
        let fold = Fold {
            range: self.range.clone(),
            var: self.vars.0.to_owned(),
            second: self.vars.1.map(str::to_owned),
            accu: ACCU.to_owned(),
            init,
            condition,
            step,
            result,
        };
        Expr::new(self.at, Kind::Fold(Box::new(fold)))
    }

    fn accu(&self) -> Expr {
        Expr::ident(self.at, ACCU)
    }

    fn call(&self, function: &str, args: Vec<Expr>) -> Expr {
        Expr::call(self.at, function, args)
    }

    fn empty_list(&self) -> Expr {
        Expr::new(self.at, Kind::List(Vec::new()))
    }

    fn all(&self, predicate: &Expr) -> Expr {
        let condition = self.call("@not_strictly_false", vec![self.accu()]);
        self.fold(
            Expr::bool(self.at, true),
            condition,
            self.call("_&&_", vec![self.accu(), predicate.clone()]),
            self.accu(),
        )
    }

    fn exists(&self, predicate: &Expr) -> Expr {
        let condition = self.call(
            "@not_strictly_false",
            vec![self.call("!_", vec![self.accu()])],
        );
        self.fold(
            Expr::bool(self.at, false),
            condition,
            self.call("_||_", vec![self.accu(), predicate.clone()]),
            self.accu(),
        )
    }

    fn exists_one(&self, predicate: &Expr) -> Expr {
        let one = Expr::int(self.at, 1);
        let step = self.call(
            "_?_:_",
            vec![
                predicate.clone(),
                self.call("_+_", vec![self.accu(), one.clone()]),
                self.accu(),
            ],
        );
        let result = self.call("_==_", vec![self.accu(), one]);
        self.fold(
            Expr::int(self.at, 0),
            Expr::bool(self.at, true),
            step,
            result,
        )
    }

    fn guarded(&self, filter: Option<&Expr>, step: Expr) -> Expr {
        match filter {
            Some(filter) => self.call("_?_:_", vec![filter.clone(), step, self.accu()]),
            None => step,
        }
    }

    fn collect(&self, filter: Option<&Expr>, element: &Expr) -> Expr {
        let one = Expr::new(self.at, Kind::List(vec![(element.clone(), false)]));
        let step = self.guarded(filter, self.call("_+_", vec![self.accu(), one]));
        self.fold(
            self.empty_list(),
            Expr::bool(self.at, true),
            step,
            self.accu(),
        )
    }

    fn insert_each(&self, filter: Option<&Expr>, insert: Vec<Expr>) -> Expr {
        let args = std::iter::once(self.accu()).chain(insert).collect();
        let step = self.guarded(filter, self.call("cel.@mapInsert", args));
        self.fold(
            Expr::new(self.at, Kind::Map(Vec::new())),
            Expr::bool(self.at, true),
            step,
            self.accu(),
        )
    }
}

/// Macros in the form of methods.
pub fn method(at: usize, target: &Expr, name: &str, args: &[Expr]) -> Expanded {
    match (name, args.len()) {
        ("all" | "exists" | "exists_one" | "existsOne" | "filter", 2) | ("map", 2 | 3) => {
            one_variable(at, target, name, args)
        }
        ("all" | "exists" | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            two_variables(at, target, name, args)
        }
        ("optMap" | "optFlatMap", 2) => optional(at, target, name, args),
        ("sortBy", 2) => sort_by(at, target, args),
        _ => None,
    }
}

fn one_variable(at: usize, range: &Expr, name: &str, args: &[Expr]) -> Expanded {
    let Some(var) = args[0].as_ident() else {
        return bad(args[0].at, "argument must be a simple name");
    };
    if var == ACCU || var == "__result__" {
        return bad(
            args[0].at,
            "iteration variable overwrites accumulator variable",
        );
    }
    let each = Loop {
        at,
        range,
        vars: (var, None),
    };
    Some(Ok(match (name, args) {
        ("all", _) => each.all(&args[1]),
        ("exists", _) => each.exists(&args[1]),
        ("filter", _) => each.collect(Some(&args[1]), &args[0]),
        ("map", [_, filter, element]) => each.collect(Some(filter), element),
        ("map", _) => each.collect(None, &args[1]),
        _ => each.exists_one(&args[1]),
    }))
}

fn two_variables(at: usize, range: &Expr, name: &str, args: &[Expr]) -> Expanded {
    let (Some(key), Some(value)) = (args[0].as_ident(), args[1].as_ident()) else {
        let wrong = if args[0].as_ident().is_none() {
            &args[0]
        } else {
            &args[1]
        };
        return bad(wrong.at, "argument must be a simple name");
    };
    if key == value {
        return bad(args[1].at, &format!("duplicate variable name: {key}"));
    }
    let each = Loop {
        at,
        range,
        vars: (key, Some(value)),
    };
    let (filter, last) = match args {
        [_, _, filter, last] => (Some(filter), last),
        [_, _, last] => (None, last),
        _ => return None,
    };
    Some(Ok(match name {
        "all" => each.all(last),
        "exists" => each.exists(last),
        "existsOne" => each.exists_one(last),
        "transformList" => each.collect(filter, last),
        "transformMap" => each.insert_each(filter, vec![args[0].clone(), last.clone()]),
        _ => each.insert_each(filter, vec![last.clone()]),
    }))
}

fn method_call(at: usize, target: Expr, name: &str) -> Expr {
    Expr::new(
        at,
        Kind::Call {
            function: name.to_owned(),
            target: Some(Box::new(target)),
            args: Vec::new(),
        },
    )
}

/// A loop without iterations whose accumulator is the variable.
fn with(at: usize, var: &str, value: Expr, result: Expr) -> Expr {
    let fold = Fold {
        range: Expr::new(at, Kind::List(Vec::new())),
        var: "#unused".to_owned(),
        second: None,
        accu: var.to_owned(),
        init: value,
        condition: Expr::bool(at, false),
        step: Expr::ident(at, var),
        result,
    };
    Expr::new(at, Kind::Fold(Box::new(fold)))
}

fn optional(at: usize, target: &Expr, name: &str, args: &[Expr]) -> Expanded {
    let Some(var) = args[0].as_ident() else {
        return bad(
            args[0].at,
            &format!("{name}() variable name must be a simple identifier"),
        );
    };
    let inner = with(
        at,
        var,
        method_call(at, target.clone(), "value"),
        args[1].clone(),
    );
    let some = if name == "optMap" {
        Expr::call(at, "optional.of", vec![inner])
    } else {
        inner
    };
    let none = Expr::call(at, "optional.none", Vec::new());
    Some(Ok(Expr::call(
        at,
        "_?_:_",
        vec![method_call(at, target.clone(), "hasValue"), some, none],
    )))
}

fn sort_by(at: usize, target: &Expr, args: &[Expr]) -> Expanded {
    let Some(var) = args[0].as_ident() else {
        return bad(args[0].at, "argument must be a simple name");
    };
    let keys = Loop {
        at,
        range: target,
        vars: (var, None),
    }
    .collect(None, &args[1]);
    let call = Kind::Call {
        function: "@sortByAssociatedKeys".into(),
        target: Some(Box::new(target.clone())),
        args: vec![keys],
    };
    Some(Ok(Expr::new(at, call)))
}
