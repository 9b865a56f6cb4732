//! Hostile jq programs are stopped by their budget, within 64 MiB; the only test of its process,
//! because it measures the process's memory.

use serde_json::json;
use tiphys_gocompat::jq::{Limits, Program};

/// How a program ends: its error, or the number of results.
fn end(source: &str) -> Result<usize, String> {
    let program = Program::parse(source).map_err(|e| e.to_string())?;
    let input = json!({"list": [1, 2, 3], "text": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"});
    let mut count = 0;
    for result in program.run(
        &input,
        Limits {
            steps: 1_500_000,
            ..Limits::default()
        },
    ) {
        result.map_err(|e| e.to_string())?;
        count += 1;
    }
    Ok(count)
}

const STEPS: &str = "the expression takes too many steps";
const DATA: &str = "the expression makes too much data";
const DEEP: &str = "the expression calls itself too deeply";
const NESTED: &str = "the expression makes a value that is nested too deeply";
const RESULTS: &str = "the expression gives too many results";

/// Programs that never end, or not soon, and the errors that may stop them.
const ENDLESS: &[(&str, &[&str])] = &[
    ("def f: f; f", &[STEPS]),
    ("def f: f | f; f", &[DEEP]),
    ("def f: ., f; f", &[RESULTS, DEEP]),
    ("def f: [f]; f", &[DEEP]),
    ("def f(g): f(g | g); f(.)", &[DEEP]),
    ("def f(g): f(g); f(.)", &[DEEP]),
    ("def f($x): f($x + 1); f(0)", &[DEEP]),
    ("def f: def g: f; g; f", &[DEEP]),
    ("repeat(.)", &[RESULTS, DEEP]),
    ("repeat(empty)", &[STEPS, DEEP]),
    ("[repeat(1)]", &[DATA, DEEP, STEPS]),
    ("until(false; .)", &[STEPS, DEEP]),
    ("until(false; . + {})", &[DATA]),
    ("last(range(1e9))", &[STEPS]),
    ("[range(1e9)]", &[DATA, STEPS]),
    ("[range(infinite)] | length", &[DATA, STEPS]),
    ("reduce range(1e9) as $i (0; . + 1)", &[STEPS]),
    (
        "reduce range(1e9) as $i (1; . * 1000000007)",
        &[STEPS, DATA],
    ),
    ("reduce range(1e9) as $i ([]; [., .])", &[DATA, NESTED]),
    ("reduce range(1e9) as $i ([]; [.])", &[NESTED]),
    ("reduce range(1e9) as $i (null; {a: .})", &[NESTED]),
    ("reduce range(1e9) as $i (null; [.]) | tojson", &[NESTED]),
    ("reduce range(60) as $i ([1]; . + .) | length", &[DATA]),
    ("reduce range(60) as $i (\"x\"; . + .) | length", &[DATA]),
    (
        "reduce range(60) as $i ({a: 1}; {a: ., b: .}) | tojson",
        &[DATA],
    ),
    (
        "reduce range(60) as $i ({a: 1}; {a: ., b: .}) == 1",
        &[DATA],
    ),
    ("\"x\" * 1e9", &[DATA]),
    (
        "\"x\" * 1e6 * 1e6",
        &["repeat string result too large", DATA],
    ),
    (".list[1e8] = 1", &[DATA]),
    (".[\"a\"][400000000] |= 1", &[DATA]),
    ("setpath([range(1000) | \"a\"]; 1)", &[NESTED]),
    ("recurse(.)", &[RESULTS, DEEP]),
    ("recurse(., .)", &[RESULTS, DEEP]),
    ("[{} | recurse(.list)] | length", &[STEPS, DATA, DEEP]),
    (
        "path({} | recurse(.list))",
        &[DEEP, DATA, STEPS, RESULTS, "invalid path"],
    ),
    ("[limit(1e9; repeat(1))] | length", &[DEEP, DATA, STEPS]),
    (
        "[range(3000)] | [.[] as $x | .[] as $y | $x == $y] | length",
        &[DATA, STEPS],
    ),
    (
        "[range(2000)] | [combinations(3)?] | length",
        &[DATA, STEPS, DEEP],
    ),
    ("[range(100000)] - [range(100000)]", &[STEPS]),
    (
        "[range(50000)] | [indices(range(50000))] | length",
        &[STEPS, DATA],
    ),
    ("try until(false; .) catch 1", &[STEPS, DEEP]),
    ("(until(false; .))?", &[STEPS, DEEP]),
    ("[.[]?, until(false; .)] // 1", &[STEPS, DEEP]),
    ("label $x | until(false; .), break $x", &[STEPS, DEEP]),
    ("try error(until(false; .)) catch .", &[STEPS, DEEP]),
    ("def f: try f catch f; f", &[DEEP]),
    ("def f: try error catch f; f", &[STEPS, DEEP]),
    ("def f: f // f; f", &[DEEP]),
    ("def f: label $x | f; f", &[DEEP]),
    ("def f: reduce f as $x (0; 1); f", &[DEEP]),
    ("def f: path(f); f", &[DEEP]),
    ("def f: . |= f; f", &[DEEP]),
    ("def f: . as [$a] ?// $a | f; f", &[DEEP]),
    ("def f: \"\\(f)\"; f", &[DEEP]),
    ("def f: {a: f}; f", &[DEEP]),
    ("def f: f + 1; f", &[DEEP]),
    ("def f: .[f]; f", &[DEEP]),
    ("def f: if f then 1 else 2 end; f", &[DEEP]),
    ("def f: limit(1; f); f", &[DEEP]),
    ("env | until(false; .)", &[STEPS, DEEP]),
    (
        "[splits(range(1e9) | tostring)] | length",
        &[STEPS, DATA, "cannot be applied"],
    ),
    (
        ".text as $s | [range(1e6) | tostring as $t | $s | test($t)] | length",
        &[STEPS],
    ),
];

#[test]
fn what_does_not_end_is_ended() {
    for (source, ends) in ENDLESS {
        let error = end(source).expect_err(source);
        assert!(
            ends.iter().any(|end| error.contains(end)),
            "{source}: {error}"
        );
    }
    let most = most_memory();
    assert!(most < 64 << 10, "{most} KiB");
}

/// Peak memory of this process in KiB; None if the system does not report it.
#[expect(
    clippy::disallowed_methods,
    reason = "only the system knows what the process uses"
)]
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok())
        .unwrap_or(0)
}
