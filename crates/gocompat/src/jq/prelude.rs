//! Builtin functions written in jq.
//!
//! Main functions: [`place`] and [`body`]. A `$` in front of an argument binds its values in turn,
//! the first argument outermost.

use super::{node::Node, parser::Parser};
use std::sync::LazyLock;

/// Name, arguments and body.
type Source = (&'static str, &'static [&'static str], &'static str);

const SOURCES: &[Source] = &[
    // Going through values
    ("recurse", &[], "recurse(.[]?)"),
    ("recurse", &["f"], "def all: ., (f | all); all"),
    ("recurse", &["f", "keep"], "def all: ., (f | select(keep) | all); all"),
    ("paths", &[], "path(..) | select(length > 0)"),
    ("paths", &["f"], "path(.. | select(f)) | select(length > 0)"),
    ("walk", &["f"], "def deep: if type == \"array\" then map(deep) elif type == \"object\" then map_values(deep) end | f; deep"),
    ("pick", &["f"], ". as $whole | reduce path(f) as $at (null; setpath($at; $whole | getpath($at)))"),
    ("in", &["of"], ". as $key | of | has($key)"),
    ("combinations", &[], "if length == 0 then [] else .[0][] as $first | [$first] + (.[1:] | combinations) end"),
    ("combinations", &["n"], "[limit(n; repeat(.))] | combinations"),
    // Choosing by kind
    ("values", &[], "select(. != null)"),
    ("nulls", &[], "select(. == null)"),
    ("booleans", &[], "select(type == \"boolean\")"),
    ("numbers", &[], "select(type == \"number\")"),
    ("strings", &[], "select(type == \"string\")"),
    ("arrays", &[], "select(type == \"array\")"),
    ("objects", &[], "select(type == \"object\")"),
    ("iterables", &[], "select(type | . == \"array\" or . == \"object\")"),
    ("scalars", &[], "select(type | . != \"array\" and . != \"object\")"),
    ("finites", &[], "select(isfinite)"),
    ("normals", &[], "select(isnormal)"),
    // Loops
    ("range", &["$end"], "_range(0; $end; 1)"),
    ("range", &["$from", "$end"], "_range($from; $end; 1)"),
    ("range", &["$from", "$end", "$step"], "_range($from; $end; $step)"),
    ("while", &["holds", "f"], "def more: if holds then ., (f | more) else empty end; more"),
    ("until", &["done", "f"], "def more: if done then . else f | more end; more"),
    ("repeat", &["f"], "def more: f, more; more"),
    // Some of many
    ("first", &[], ".[0]"),
    ("first", &["f"], "label $done | f | ., break $done"),
    ("last", &[], ".[-1]"),
    ("isempty", &["f"], "label $done | (f | false, break $done), true"),
    ("all", &[], "all(.[]; .)"),
    ("all", &["f"], "all(.[]; f)"),
    ("all", &["each", "f"], "isempty(each | select(f | not))"),
    ("any", &[], "any(.[]; .)"),
    ("any", &["f"], "any(.[]; f)"),
    ("any", &["each", "f"], "isempty(each | select(f)) | not"),
    (
        "limit",
        &["$count", "f"],
        "if $count > 0 then label $done | foreach f as $item ($count; . - 1; $item, if . <= 0 then break $done else empty end)
         elif $count == 0 then empty else error(\"limit doesn't support negative count\") end",
    ),
    (
        "skip",
        &["$count", "f"],
        "if $count > 0 then foreach f as $item ($count; . - 1; if . < 0 then $item else empty end)
         elif $count == 0 then f else error(\"skip doesn't support negative count\") end",
    ),
    ("nth", &["$at"], ".[$at]"),
    ("nth", &["$at", "f"], "if $at >= 0 then first(skip($at; f)) else error(\"nth doesn't support negative index\") end"),
    // Streams
    ("truncate_stream", &["f"], ". as $depth | null | f | if .[0] | length > $depth then .[0] |= .[$depth:] else empty end"),
    (
        "fromstream",
        &["f"],
        "foreach f as $event ({}; if .whole then {} else . end | $event[0] as $at
           | if $event | length == 2 then setpath([\"value\"] + $at; $event[1]) | .whole = ($at == []) else .whole = ($at | length == 1) end;
           if .whole then .value else empty end)",
    ),
    (
        "tostream",
        &[],
        "path(def inner: (.[]? | inner), .; inner) as $at | getpath($at) | reduce path(.[]?) as $last ([$at, .]; [$at + $last])",
    ),
    // Texts
    ("match", &["$re"], "_match($re; null; false)[]"),
    ("match", &["$re", "$flags"], "_match($re; $flags; false)[]"),
    ("test", &["$re"], "_match($re; null; true)"),
    ("test", &["$re", "$flags"], "_match($re; $flags; true)"),
    ("capture", &["$re"], "capture($re; null)"),
    ("capture", &["$re", "$flags"], "match($re; $flags) | .captures | _captures"),
    ("scan", &["$re"], "scan($re; null)"),
    ("scan", &["$re", "$flags"], "match($re; $flags + \"g\") | if .captures == [] then .string else [.captures[].string] end"),
    ("splits", &["$re"], "splits($re; null)"),
    (
        "splits",
        &["$re", "$flags"],
        ". as $text | foreach (match($re; $flags + \"g\"), null) as $found ({};
           {from: (.to // 0), end: $found.offset, to: ($found.offset + $found.length)}; $text[.from:.end])",
    ),
    ("split", &["$re", "$flags"], "[splits($re; $flags)]"),
    ("sub", &["$re", "f"], "sub($re; f; null)"),
    (
        "sub",
        &["$re", "f", "$flags"],
        ". as $text | reduce match($re; $flags) as $found ({to: 0, made: []};
           .to as $to | [$found.captures | _captures | f] as $new
           | .made = reduce range($new | length) as $i (.made; .[$i] = .[$i] + $text[$to:$found.offset] + $new[$i])
           | .to = $found.offset + $found.length)
         | .made[] + $text[.to:] // $text",
    ),
    ("gsub", &["$re", "f"], "sub($re; f; \"g\")"),
    ("gsub", &["$re", "f", "$flags"], "sub($re; f; $flags + \"g\")"),
    // Dates
    ("fromdateiso8601", &[], "strptime(\"%Y-%m-%dT%H:%M:%S%z\") | mktime"),
    ("todateiso8601", &[], "strftime(\"%Y-%m-%dT%H:%M:%SZ\")"),
    ("fromdate", &[], "fromdateiso8601"),
    ("todate", &[], "todateiso8601"),
    // As in SQL
    ("INDEX", &["f"], "INDEX(.[]; f)"),
    ("INDEX", &["rows", "f"], "reduce rows as $row ({}; .[$row | f | tostring] = $row)"),
    ("IN", &["of"], "any(of == .; .)"),
    ("IN", &["from", "of"], "any(from == of; .)"),
    ("JOIN", &["$index", "f"], "[.[] | [., $index[f]]]"),
    ("JOIN", &["$index", "rows", "f"], "rows | [., $index[f]]"),
    ("JOIN", &["$index", "rows", "f", "join"], "rows | [., $index[f]] | join"),
];

static BODIES: LazyLock<Vec<Node>> = LazyLock::new(|| SOURCES.iter().map(parse).collect());

pub fn place(name: &str, arity: usize) -> Option<usize> {
    SOURCES
        .iter()
        .position(|(known, arguments, _)| *known == name && arguments.len() == arity)
}

pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    SOURCES
        .iter()
        .map(|(name, arguments, _)| (*name, arguments.len()))
}

/// The function at an index. Its arguments are bound in order.
pub fn body(place: usize) -> &'static Node {
    &BODIES[place]
}

fn parse((name, arguments, source): &Source) -> Node {
    let arguments: Vec<(String, bool)> = arguments
        .iter()
        .map(|name| {
            (
                name.trim_start_matches('$').to_owned(),
                name.starts_with('$'),
            )
        })
        .collect();
    let tokens = super::lexer::tokens(source).expect("the prelude is written here");
    let mut parser = Parser::new(&tokens);
    let parsed = parser.body(&arguments, Parser::query);
    match (parsed, parser.peek()) {
        (Ok(node), None) => node,
        (other, _) => unreachable!("{name} of the prelude does not parse: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_of_it_can_be_read() {
        assert_eq!(super::BODIES.len(), super::SOURCES.len());
    }
}
