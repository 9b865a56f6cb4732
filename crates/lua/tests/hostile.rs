//! Scripts that try to run forever, use too much memory or access the machine. Each test names the
//! limit that must stop it; none uses a real clock.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};
use tiphys_lua::{Limit, Limits, LuaError, Returned, Run, run};

fn still() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// A clock that advances by a millisecond at each call.
fn ticking() -> Timestamp {
    static TICKS: AtomicI64 = AtomicI64::new(0);
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(TICKS.fetch_add(1, Ordering::Relaxed))
}

fn with(script: &str, limits: &Limits) -> Result<Returned, LuaError> {
    run(
        &Run {
            script,
            open_libs: true,
            object: &json!({"kind": "Widget"}),
            parameters: &[],
        },
        limits,
    )
}

fn hostile(script: &str) -> Result<Returned, LuaError> {
    with(script, &Limits::new(still))
}

fn healthy() {
    let after = hostile("return {status = 'Healthy'}");
    assert_eq!(
        after,
        Ok(Returned::Table(json!({"status": "Healthy"}))),
        "the machine works after a hostile script"
    );
}

#[test]
fn endless_loops_use_up_their_steps() {
    for script in [
        "while true do end",
        "repeat until false",
        "for i = 1, math.huge do end",
        "::again:: goto again",
        "local function f() return f() end f()",
        "pcall(function() while true do end end) return {status = 'Healthy'}",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(error) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end",
        "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
        "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) while true do pcall(function() return t.x end) end",
        "setmetatable(_G, {__index = function() while true do end end}) return {x = y}",
        "local t = setmetatable({}, {__call = function(self) return self() end}) t()",
        "local t = {} for i = 1, 300 do t[i] = i end while true do table.sort(t, function() return true end) end",
        "load(function() return ' ' end)",
        "tostring(setmetatable({}, {__tostring = function() while true do end end}))",
        "for _ in string.gmatch(('x'):rep(100000), '') do for _ in string.gmatch(('x'):rep(100000), '') do end end",
        "while true do ('x'):rep(1000000) end",
        "('x'):rep(0, 2^53) while true do (''):rep(2^53) end",
        "while true do string.format('%99.99f', 1e300) end",
        "while true do table.concat({}, 'x', 1, 2^53) end",
        "while true do select('#', unpack({}, 1, 100)) end",
        "while true do collectgarbage() end",
        "string.gsub(('x'):rep(1000), 'x', function() while true do end end)",
    ] {
        assert_eq!(
            hostile(script),
            Err(LuaError::Limit(Limit::Steps)),
            "{script}"
        );
        healthy();
    }
}

#[test]
fn patterns_cannot_backtrack_for_ever() {
    let text = "local s = ('a'):rep(5000) ";
    for search in [
        "s:find('a*a*a*a*a*b')",
        "s:match('(a*)*(a*)(a*)(a*)b')",
        "s:gsub('.-.-.-.-.-b', '')",
        "for x in s:gmatch('a-a-a-a-a-b') do end",
        "s:find(('a?'):rep(30) .. ('a*'):rep(30) .. 'b')",
        "while true do ('('):rep(5000):find('%b()') end",
        "s:gsub('a*a*a*a*b', function() end)",
    ] {
        assert_eq!(
            hostile(&format!("{text}{search}")),
            Err(LuaError::Limit(Limit::Steps)),
            "{search}"
        );
    }
    healthy();
}

#[test]
fn memory_cannot_grow_without_end() {
    for script in [
        "return {x = ('x'):rep(2^40)}",
        "local s = 'x' while true do s = s .. s end",
        "local s = 'x' while true do s = table.concat({s, s}) end",
        "local s = 'x' while true do s = s:rep(2) end",
        "local s = ('x'):rep(1000) while true do s = s:gsub('x', 'xx') end",
        "local t = {} for i = 1, math.huge do t[i] = {} end",
        "local t = {} while true do t[#t + 1] = ('x'):rep(100000) end",
        "local t = {} while true do t = {t, t, t} end",
        "local t, s = {}, ('x'):rep(1000000) while true do pcall(function() s = s .. s t[#t + 1] = s end) end",
        "while true do local t = {} pcall(function() while true do t[#t + 1] = ('x'):rep(1000000) end end) end",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "local s = ('x'):rep(1000) local t = {} for i = 1, 300000 do t[i] = s end return {x = table.concat(t)}",
        "local s = ('%s'):rep(1000) while true do s = s:format(unpack((function() local t = {} for i = 1, 1000 do t[i] = s end return t end)())) end",
    ] {
        let result = hostile(script);
        assert!(
            matches!(result, Err(LuaError::Limit(Limit::Memory | Limit::Steps))),
            "{script}: {result:?}"
        );
        healthy();
    }
}

#[test]
fn few_instructions_that_move_much_end_by_the_clock() {
    let limits = Limits {
        time: Duration::from_millis(50),
        ..Limits::new(ticking)
    };
    for script in [
        "while true do end",
        "local s = ('x'):rep(1000000) while true do local t = s .. s end",
        "local function f(...) return ... end while true do f(unpack({}, 1, 7000)) end",
        "local function f() pcall(f) pcall(f) end while true do f() end",
        "while true do pcall(function() while true do end end) end",
    ] {
        assert_eq!(
            with(script, &limits),
            Err(LuaError::Limit(Limit::Time)),
            "{script}"
        );
    }
    healthy();
}

#[test]
fn depth_ends_as_an_error_of_the_script() {
    for script in [
        "local function f() return 1 + f() end return f()",
        "local function f() coroutine.wrap(f)() end f()",
        "local function f() local ok, e = coroutine.resume(coroutine.create(f)) error(e, 0) end f()",
        "local function f(s) return (s:gsub('.', f)) end return f('x')",
        "local function f(t) table.sort(t, function() f(t) end) end f({1, 2})",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
        "local t = {} t.t = t return t",
        "local t = {} for i = 1, 1000 do t = {t} end return t",
        "return loadstring(('('):rep(10000) .. '1' .. (')'):rep(10000))()",
        "return {x = string.format('%1000d', 1)}",
        "return {x = string.format('%.1000f', 1)}",
        "return {(('('):rep(100)):find(('('):rep(100))}",
        "return unpack({}, 1, 1e8)",
        "return {x = 0 / 0}",
        "return {[1] = 1, [3] = 3}",
        "return {1, x = 1}",
        "return {x = print}",
    ] {
        let result = hostile(script);
        assert!(
            matches!(result, Err(LuaError::Script(_))),
            "{script}: {result:?}"
        );
    }
    healthy();
}

#[test]
fn there_is_nothing_to_reach_outside() {
    for name in [
        "io",
        "debug",
        "package",
        "jit",
        "ffi",
        "bit",
        "dofile",
        "loadfile",
        "newproxy",
        "module",
        "getfenv",
        "setfenv",
        "os.execute",
        "os.exit",
        "os.getenv",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "string.dump",
        "math.nothing",
        "require.x",
    ] {
        let (script, expected) = match name.split_once('.') {
            Some(("require", _)) => (
                "local ok = pcall(require, 'io') return {got = ok}".to_owned(),
                json!({"got": false}),
            ),
            Some((table, field)) => (
                format!("return {{got = type({table}.{field})}}"),
                json!({"got": "nil"}),
            ),
            None => (
                format!("return {{got = type({name})}}"),
                json!({"got": "nil"}),
            ),
        };
        assert_eq!(hostile(&script), Ok(Returned::Table(expected)), "{name}");
    }
    // The bytecode of `return 1` as produced by LuaJIT.
    for script in [
        "\u{1b}LJ\u{2}",
        "return {got = loadstring('\\27LJ\\2\\2\\14\\0\\1\\3\\0\\0\\0\\2')()}",
    ] {
        assert!(
            matches!(hostile(script), Err(LuaError::Script(_))),
            "{script:?}"
        );
    }
}

#[test]
fn nothing_stays_for_the_next_run() {
    let steps = [
        (
            "x = 1 string.find = nil table.concat = nil os.time = nil _G.pairs = nil getmetatable('').__index = nil",
            Value::Null,
        ),
        (
            "return {x = tostring(x), find = type(string.find), method = ('abc'):sub(2), concat = type(table.concat), time = type(os.time), pairs = type(pairs)}",
            json!({"x": "nil", "find": "function", "method": "bc", "concat": "function", "time": "function", "pairs": "function"}),
        ),
        (
            "math.randomseed(7) return {math.random(1000000)}",
            json!([3_507]),
        ),
        ("n = (n or 0) + 1 return {n}", json!([1])),
        ("n = (n or 0) + 1 return {n}", json!([1])),
    ];
    for (script, expected) in steps {
        let returned = hostile(script).expect("it runs");
        match expected {
            Value::Null => assert_eq!(returned, Returned::Nil),
            Value::Array(_) if script.contains("random") => {
                assert_eq!(returned, hostile(script).expect("it runs again"))
            }
            expected => assert_eq!(returned, Returned::Table(expected), "{script}"),
        }
    }
    assert_eq!(
        hostile("return {math.random()}"),
        hostile("return {math.random()}")
    );
}
