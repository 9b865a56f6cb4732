//! The behaviour that scripts can rely on: Lua 5.1 with the additions and omissions of Argo CD's
//! environment.

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_lua::{Limits, LuaError, Returned, Run, run};

fn clock() -> Timestamp {
    Timestamp::constant(1_700_000_000, 0)
}

fn evaluate(script: &str, open_libs: bool) -> Result<Returned, LuaError> {
    let object = json!({
        "kind": "Widget", "metadata": {"name": "w", "generation": 3, "labels": {"a": "1"}}, "spec": {"list": [1, null, "x"], "none": null, "on": true},
    });
    run(
        &Run {
            script,
            open_libs,
            object: &object,
            parameters: &[("replicas".into(), "5".into())],
        },
        &Limits::new(clock),
    )
}

fn table(script: &str) -> Value {
    match evaluate(script, true) {
        Ok(Returned::Table(value)) => value,
        other => panic!("{script}: {other:?}"),
    }
}

/// Expressions with the string library and their values.
fn strings() -> Vec<(&'static str, Value)> {
    vec![
        (
            "('Ready: %s %d %5.2f|%-5s|%q'):format(true, 3, 1.5, 'ab', 'a\"b')",
            json!("Ready: true 3  1.50|ab   |\"a\\\"b\""),
        ),
        (
            "string.format('%x %X %o %e %g %g %c %%', 255, 255, 8, 12345.678, 0.0001, 1e20, 65)",
            json!("ff FF 10 1.234568e+04 0.0001 1e+20 A %"),
        ),
        (
            "string.format('%05d %+d %5s %.2s', 42, 7, 'x', 'abc')",
            json!("00042 +7     x ab"),
        ),
        ("('hello world'):find('o w')", json!(5)),
        ("('a.b'):find('.', 2, true)", json!(2)),
        ("('key = value'):match('^(%w+)%s*=%s*(%w+)$')", json!("key")),
        ("('abc'):gsub('%w', '%0%0')", json!("aabbcc")),
        ("('hello'):gsub('l', {l = 'L'})", json!("heLLo")),
        (
            "('hello'):gsub('(h)(e)', function(a, b) return b .. a end)",
            json!("ehllo"),
        ),
        ("('abc'):gsub('', '-')", json!("-a-b-c-")),
        (
            "('abc'):gsub('%w*', function() return 'x' end)",
            json!("xx"),
        ),
        ("select(2, ('abcabc'):gsub('b', 'x'))", json!(2)),
        ("('abcabc'):gsub('b', 'x', 1)", json!("axcabc")),
        (
            "('x'):rep(3) .. ('abc'):upper() .. ('ABC'):lower() .. ('abc'):reverse() .. #'abc'",
            json!("xxxABCabccba3"),
        ),
        ("('abc'):byte(-1)", json!(99)),
        ("string.char(72, 105)", json!("Hi")),
        ("('abcdef'):sub(-3, -2)", json!("de")),
        (
            "(function() local s = '' for w in ('a bb ccc'):gmatch('%a+') do s = s .. #w end return s end)()",
            json!("123"),
        ),
        (
            "(function() local s = '' for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do s = s .. v .. k end return s end)()",
            json!("1a2b"),
        ),
    ]
}

/// Numbers and texts as gopher-lua, which Argo CD runs, converts them.
fn numbers_and_texts() -> Vec<(&'static str, Value)> {
    vec![
        (
            "tostring(0.1 + 0.2) .. ' ' .. tostring(1e15) .. ' ' .. tostring(-0.0) .. ' ' .. tostring(1234567.5)",
            json!("0.30000000000000004 1000000000000000 0 1.2345675e+06"),
        ),
        (
            "tostring(0/0) .. tostring(1/0) .. tostring(-1/0) .. tostring(1e-7) .. tostring(1e100)",
            json!("NaN+Inf-Inf1e-071e+100"),
        ),
        ("tostring(math.huge)", json!("1.7976931348623157e+308")),
        (
            "tostring(nil) .. tostring(true) .. tostring('a')",
            json!("niltruea"),
        ),
        (
            "table.concat({1/3, 2^53, 'x'}, '|')",
            json!("0.3333333333333333|9007199254740992|x"),
        ),
        (
            "('%s %s'):format(10/3, 2^53)",
            json!("3.3333333333333335 9007199254740992"),
        ),
        (
            "('a'):gsub('a', function() return 1e15 end)",
            json!("1000000000000000"),
        ),
        (
            "tostring(tonumber('1e2')) .. tostring(tonumber('inf')) .. tostring(tonumber('0b11')) .. tostring(tonumber('7', 2))",
            json!("nilnilnilnil"),
        ),
        (
            "tostring(tonumber('')) .. tostring(tonumber({})) .. tostring(tonumber('z', 99)) .. tostring(tonumber('9999999999999999999'))",
            json!("nilnilnilnil"),
        ),
        (
            "tonumber(' 010\\n') + tonumber('-5') + tonumber('.5') + tonumber('1.5e1') + tonumber(7, 2)",
            json!(27.5),
        ),
        (
            "('h\u{e9}llo'):upper() .. ('\u{c0}B\u{df}'):lower()",
            json!("H\u{c9}LLO\u{e0}b\u{df}"),
        ),
        // A text is no number argument; `%d` prints one that is a number as it is.
        (
            "select(2, pcall(function() local a = ('abc'):sub('2') return a end))",
            json!("<string>:1: bad argument #2 to sub (number expected, got string)"),
        ),
        (
            "select(2, pcall(function() local a = ('a'):rep('3') return a end))",
            json!("<string>:1: bad argument #2 to rep (number expected, got string)"),
        ),
        (
            "('%d|%5d|%d|%d'):format('0x10', '7', 'x', 2.7)",
            json!("0x10|    7|0|2"),
        ),
        (
            "('%.1d|%05d|%-4d|%.3d|%d'):format('12', '12', '12', '1_0.5', '-nan')",
            json!("1|00012|12  |1_0|0"),
        ),
        (
            "('%03d|%+d|%.3d|%.0d|%2.0d|%-3d|'):format('x', 'x', 'x', 'x', 'x', 'x')",
            json!("000|+0|000||  |0  |"),
        ),
        (
            "('%.0d|%3.0d|%+.0d|%.0x|%.0o'):format(0, 0, 0, 0, 0)",
            json!("|   |||"),
        ),
        // Other directives print the bytes, or what is wrong.
        (
            "('%x|%X|% x|%#x|%6x|%-4x|%06x|%.1x|%4x'):format('255', 'az', 'ab', 'a', 'a', 'a', 'a', 'abc', '')",
            json!("323535|617A|61 62|0x61|    61|61  |000061|61|    "),
        ),
        (
            "('%# X|%#04x|%-#6x|'):format('ab', '', 'a')",
            json!("0X61 0X62|0000|0x61  |"),
        ),
        (
            "('%f|%5.1f|%-3c|%o|%u|%G|%03e'):format('2', 'abc', '65', '8', '8', '2', 'x')",
            json!(
                "%!f(string=2)|%!f(string=    a)|%!c(string=65 )|%!o(string=8)|%!u(string=8)|%!G(string=2)|%!e(string=00x)"
            ),
        ),
        // Widths and precisions count characters.
        (
            "('%.2s|%4s|%05s|%-05s|%05s|%.2s'):format('\u{e9}ab', '\u{e9}', '12', '12', 12, 12.5)",
            json!("\u{e9}a|   \u{e9}|00012|12   |00012|12"),
        ),
        // What `match` captures is text.
        (
            "(function() local y, m, d = ('2024-02-09'):match('(%d+)-(%d+)-(%d+)') return os.time({year = y, month = m, day = d, hour = '0'}) end)()",
            json!(1_707_436_800),
        ),
    ]
}

/// Expressions with the language and the other libraries, and their values.
fn language_and_libraries() -> Vec<(&'static str, Value)> {
    vec![
        ("obj.metadata.generation + 1", json!(4)),
        ("obj.spec.none == nil", json!(true)),
        ("#obj.spec.list", json!(2)),
        ("obj.spec.list[2]", json!("x")),
        ("actionParams['replicas'] .. '!'", json!("5!")),
        ("1.5", json!(1.5)),
        ("{}", json!([])),
        ("{1, 2, {a = 'b'}}", json!([1, 2, {"a": "b"}])),
        ("table.concat({1, 'b', 3}, ', ')", json!("1, b, 3")),
        (
            "(function() local t = {3, 1, 2} table.sort(t) return table.concat(t) end)()",
            json!("123"),
        ),
        (
            "(function() local t = {'b', 'a', 'c'} table.sort(t, function(a, b) return a > b end) return table.concat(t) end)()",
            json!("cba"),
        ),
        (
            "(function() local t = {1, 2} table.insert(t, 1, 0) table.insert(t, 3) return table.concat(t) .. table.remove(t, 1) .. #t end)()",
            json!("012303"),
        ),
        ("table.getn({1, 2}) + table.maxn({[5] = 1})", json!(7)),
        ("tostring(pcall(error, 'x'))", json!("false")),
        ("select(2, pcall(error, 'x', 0))", json!("x")),
        ("select(2, pcall(error, {code = 1})).code", json!(1)),
        (
            "select(2, pcall(function() string.rep() end))",
            json!("<string>:1: bad argument #1 to rep (string expected, got nil)"),
        ),
        (
            "select(2, pcall(function() assert(false, 'no') end))",
            json!("<string>:1: no"),
        ),
        (
            "select(2, xpcall(function() error('x', 0) end, function(e) return e .. '!' end))",
            json!("x!"),
        ),
        (
            "coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b end)(1)",
            json!(2),
        ),
        (
            "loadstring('return kind')() == nil and loadstring('return obj.kind')()",
            json!("Widget"),
        ),
        ("loadstring('=') == nil", json!(true)),
        ("require('os').time()", json!(1_700_000_000)),
        (
            "os.date('!%Y-%m-%dT%H:%M:%SZ')",
            json!("2023-11-14T22:13:20Z"),
        ),
        ("os.date('%Y', 0)", json!("1970")),
        ("os.date('!*t', 86400).day", json!(2)),
        (
            "os.time({year = 2024, month = 2, day = 29, hour = 0})",
            json!(1_709_164_800),
        ),
        (
            "os.time({year = 2023, month = 13, day = 1, hour = 0})",
            json!(1_704_067_200),
        ),
        ("math.floor(2.7) + math.max(1, 2)", json!(4)),
        ("math.mod(7, 4)", json!(3)),
        ("_VERSION", json!("Lua 5.1")),
        ("tonumber('0x10') + tonumber('z', 36)", json!(51)),
    ]
}

#[test]
fn expressions_give_what_lua_gives() {
    let rows = strings()
        .into_iter()
        .chain(language_and_libraries())
        .chain(numbers_and_texts());
    for (expression, expected) in rows {
        assert_eq!(
            table(&format!("return {{ ({expression}) }}"))
                .pointer("/0")
                .unwrap_or(&json!([])),
            &expected,
            "{expression}"
        );
    }
}

#[test]
fn goto_continue_parses() {
    assert_eq!(
        table(
            "local n = 0 for i = 1, 4 do if i % 2 == 0 then goto continue end n = n + i ::continue:: end return {n}"
        ),
        json!([4])
    );
}

#[test]
fn without_open_libraries_there_are_no_strings() {
    for (script, open, expected) in [
        (
            "return {s = type(string), m = type(math), c = type(coroutine), t = type(table), o = type(os)}",
            false,
            "nil nil nil table table",
        ),
        (
            "return {s = type(string), m = type(math), c = type(coroutine), t = type(table), o = type(os)}",
            true,
            "table table table table table",
        ),
    ] {
        let Ok(Returned::Table(got)) = evaluate(script, open) else {
            panic!("{script}")
        };
        let words: Vec<&str> = ["s", "m", "c", "t", "o"]
            .iter()
            .filter_map(|k| got[k].as_str())
            .collect();
        assert_eq!(words.join(" "), expected);
    }
    assert!(matches!(
        evaluate("return {('x'):upper()}", false),
        Err(LuaError::Script(_))
    ));
}

#[test]
fn errors_have_the_script_s_words_and_line() {
    for (script, expected) in [
        ("error('nope')", "<string>:1: nope"),
        ("local x = 1\nerror('nope')", "<string>:2: nope"),
        // Argo CD's words, once for each table around.
        (
            "return {1, x = 2}",
            "json: error calling MarshalJSON for type json.jsonValue: cannot encode mixed or invalid key types",
        ),
        (
            "return {x = function() end}",
            "json: error calling MarshalJSON for type json.jsonValue: json: error calling MarshalJSON for type json.jsonValue: cannot encode function to JSON",
        ),
        (
            "return {x = -1/0}",
            "json: error calling MarshalJSON for type json.jsonValue: json: error calling MarshalJSON for type json.jsonValue: json: unsupported value: -Inf",
        ),
    ] {
        assert_eq!(
            evaluate(script, true),
            Err(LuaError::Script(expected.into())),
            "{script}"
        );
    }
    let Err(LuaError::Script(text)) = evaluate("x =", true) else {
        panic!("it does not parse")
    };
    assert!(text.starts_with("<string>:1:"), "{text}");
}

#[test]
fn what_is_returned_is_told_by_type() {
    for (script, expected) in [
        ("", Returned::Nil),
        ("return nil", Returned::Nil),
        ("return 1", Returned::Other("number")),
        ("return 'x'", Returned::Other("string")),
        ("return 1, {2}", Returned::Table(json!([2]))),
    ] {
        assert_eq!(evaluate(script, false), Ok(expected), "{script}");
    }
}

#[test]
fn an_error_in_many_tables_has_a_bounded_message() {
    let script = "local t = {f = function() end} for i = 1, 150 do t = {t} end return t";
    let Err(LuaError::Script(message)) = evaluate(script, true) else {
        panic!("a function is no JSON");
    };
    assert!(
        message.ends_with("cannot encode function to JSON"),
        "{message}"
    );
    assert!(message.len() < 1200, "{}", message.len());
}
