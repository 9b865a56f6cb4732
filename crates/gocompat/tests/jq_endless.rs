//! Hostile jq programs end by their budget, within 64 MiB; the only test of its process, whose
//! memory it measures.

use serde_json::json;
use tiphys_gocompat::jq::{Limits, Program};

/// How a program ends: its error, or how many results it gave.
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

#[test]
fn what_does_not_end_is_ended() {
    let (steps, data, deep, results) = (
        "the expression takes too many steps",
        "the expression makes too much data",
        "the expression calls itself too deeply",
        "the expression gives too many results",
    );
    let table: &[(&str, &[&str])] = &[
        ("def f: f; f", &[steps]),
        ("def f: f | f; f", &[deep]),
        ("def f: ., f; f", &[results, deep]),
        ("def f: [f]; f", &[deep]),
        ("def f(g): f(g | g); f(.)", &[deep]),
        ("def f(g): f(g); f(.)", &[deep]),
        ("def f($x): f($x + 1); f(0)", &[deep]),
        ("def f: def g: f; g; f", &[deep]),
        ("repeat(.)", &[results, deep]),
        ("repeat(empty)", &[steps, deep]),
        ("[repeat(1)]", &[data, deep, steps]),
        ("until(false; .)", &[steps, deep]),
        ("until(false; . + {})", &[data]),
        ("last(range(1e9))", &[steps]),
        ("[range(1e9)]", &[data, steps]),
        ("[range(infinite)] | length", &[data, steps]),
        ("reduce range(1e9) as $i (0; . + 1)", &[steps]),
        (
            "reduce range(1e9) as $i (1; . * 1000000007)",
            &[steps, data],
        ),
        (
            "reduce range(1e9) as $i ([]; [., .])",
            &[
                data,
                "the expression makes a value that is nested too deeply",
            ],
        ),
        (
            "reduce range(1e9) as $i ([]; [.])",
            &["the expression makes a value that is nested too deeply"],
        ),
        (
            "reduce range(1e9) as $i (null; {a: .})",
            &["the expression makes a value that is nested too deeply"],
        ),
        (
            "reduce range(1e9) as $i (null; [.]) | tojson",
            &["the expression makes a value that is nested too deeply"],
        ),
        ("reduce range(60) as $i ([1]; . + .) | length", &[data]),
        ("reduce range(60) as $i (\"x\"; . + .) | length", &[data]),
        (
            "reduce range(60) as $i ({a: 1}; {a: ., b: .}) | tojson",
            &[data],
        ),
        (
            "reduce range(60) as $i ({a: 1}; {a: ., b: .}) == 1",
            &[data],
        ),
        ("\"x\" * 1e9", &[data]),
        (
            "\"x\" * 1e6 * 1e6",
            &["repeat string result too large", data],
        ),
        (".list[1e8] = 1", &[data]),
        (".[\"a\"][400000000] |= 1", &[data]),
        (
            "setpath([range(1000) | \"a\"]; 1)",
            &["the expression makes a value that is nested too deeply"],
        ),
        ("recurse(.)", &[results, deep]),
        ("recurse(., .)", &[results, deep]),
        ("[{} | recurse(.list)] | length", &[steps, data, deep]),
        (
            "path({} | recurse(.list))",
            &[deep, data, steps, results, "invalid path"],
        ),
        ("[limit(1e9; repeat(1))] | length", &[deep, data, steps]),
        (
            "[range(3000)] | [.[] as $x | .[] as $y | $x == $y] | length",
            &[data, steps],
        ),
        (
            "[range(2000)] | [combinations(3)?] | length",
            &[data, steps, deep],
        ),
        ("[range(100000)] - [range(100000)]", &[steps]),
        (
            "[range(50000)] | [indices(range(50000))] | length",
            &[steps, data],
        ),
        ("try until(false; .) catch 1", &[steps, deep]),
        ("(until(false; .))?", &[steps, deep]),
        ("[.[]?, until(false; .)] // 1", &[steps, deep]),
        ("label $x | until(false; .), break $x", &[steps, deep]),
        ("try error(until(false; .)) catch .", &[steps, deep]),
        ("def f: try f catch f; f", &[deep]),
        ("def f: try error catch f; f", &[steps, deep]),
        ("def f: f // f; f", &[deep]),
        ("def f: label $x | f; f", &[deep]),
        ("def f: reduce f as $x (0; 1); f", &[deep]),
        ("def f: path(f); f", &[deep]),
        ("def f: . |= f; f", &[deep]),
        ("def f: . as [$a] ?// $a | f; f", &[deep]),
        ("def f: \"\\(f)\"; f", &[deep]),
        ("def f: {a: f}; f", &[deep]),
        ("def f: f + 1; f", &[deep]),
        ("def f: .[f]; f", &[deep]),
        ("def f: if f then 1 else 2 end; f", &[deep]),
        ("def f: limit(1; f); f", &[deep]),
        ("env | until(false; .)", &[steps, deep]),
        (
            "[splits(range(1e9) | tostring)] | length",
            &[steps, data, "cannot be applied"],
        ),
        (
            ".text as $s | [range(1e6) | tostring as $t | $s | test($t)] | length",
            &[steps],
        ),
    ];
    for (source, ends) in table {
        let error = end(source).expect_err(source);
        assert!(
            ends.iter().any(|end| error.contains(end)),
            "{source}: {error}"
        );
    }
    let most = most_memory();
    assert!(most < 64 << 10, "{most} KiB");
}

/// Most memory that this process ever had, in KiB; nothing where the system does not say.
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
