//! Compares our patterns with those of the real Lua library.

use mlua::{Lua, LuaOptions, LuaString, MultiValue, StdLib, Value};
use proptest::prelude::*;
use tiphys_lua::{Capture, Found, Pattern};

fn genuine(lua: &Lua, text: &str, pattern: &str, from: usize) -> Option<Option<Vec<String>>> {
    let find: mlua::Function = lua
        .load("return string.find")
        .eval()
        .expect("there is string.find");
    let values: MultiValue = find.call((text, pattern, from + 1)).ok()?;
    let shown = |value: &Value| match value {
        Value::String(s) => s.to_string_lossy(),
        Value::Integer(n) => n.to_string(),
        Value::Number(n) => n.to_string(),
        other => panic!("{other:?}"),
    };
    Some((!matches!(values.front(), Some(Value::Nil))).then(|| values.iter().map(shown).collect()))
}

fn ours(text: &str, pattern: &str, from: usize) -> Option<Option<Vec<String>>> {
    let found = Pattern::parse(pattern.as_bytes())
        .ok()?
        .find(text.as_bytes(), from, &mut || true)
        .ok()?;
    let shown = |Found { range, captures }: Found| {
        let mut values = vec![(range.start + 1).to_string(), range.end.to_string()];
        values.extend(captures.into_iter().map(|capture| match capture {
            Capture::Text(range) => text[range].to_owned(),
            Capture::Position(at) => (at + 1).to_string(),
        }));
        values
    };
    Some(found.map(shown))
}

fn compare(text: &str, pattern: &str, from: usize) -> Result<(), TestCaseError> {
    let lua = Lua::new_with(StdLib::STRING, LuaOptions::new()).expect("a machine");
    let _: LuaString = lua.create_string("").expect("a string");
    // Ignore patterns that only one side rejects as malformed: Lua detects errors only when it
    // reaches them, we detect them immediately.
    if let (Some(genuine), Some(ours)) = (
        genuine(&lua, text, pattern, from),
        ours(text, pattern, from),
    ) {
        prop_assert_eq!(genuine, ours, "{:?} in {:?} from {}", pattern, text, from);
    }
    Ok(())
}

const PIECES: [&str; 18] = [
    "a", "b", ".", "%a", "%d", "%s", "%w", "%S", "%p", "%u", "[ab]", "[^a]", "[%w=]", "[]a-c]",
    "%b()", "%f[%w]", "()", "(%w*)%1",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_as_pattern(text in "[abc(). 1-]{0,12}", pattern in "[]ab.%*+?$^()\\[1wdb-]{0,9}", from in 0usize..4) {
        compare(&text, &pattern, from.min(text.len()))?;
    }

    #[test]
    fn patterns_that_make_sense(
        text in "[abA1 ,=()]{0,16}",
        items in prop::collection::vec((0..PIECES.len(), 0..5usize), 1..6),
        anchors in 0..4u8,
    ) {
        let items: String = items.into_iter().map(|(piece, repeat)| format!("{}{}", PIECES[piece], ["", "*", "+", "-", "?"][repeat])).collect();
        let pattern = format!("{}{items}{}", if anchors & 1 == 1 { "^" } else { "" }, if anchors & 2 == 2 { "$" } else { "" });
        compare(&text, &pattern, 0)?;
    }
}

#[test]
fn faults_are_named() {
    for (pattern, expected) in [
        ("[a", "malformed pattern (missing ']')"),
        ("%", "malformed pattern (ends with '%')"),
        ("%b", "malformed pattern (missing arguments to '%b')"),
        (
            "%f",
            "malformed pattern (missing '[' after '%f' in pattern)",
        ),
        ("(a", "unfinished capture"),
        ("a)", "invalid pattern capture"),
        ("%1", "invalid capture index"),
        ("(%1)", "invalid capture index"),
    ] {
        assert_eq!(
            Pattern::parse(pattern.as_bytes())
                .expect_err("it is malformed")
                .to_string(),
            expected
        );
    }
    assert!(Pattern::parse("()".repeat(33).as_bytes()).is_err());
}
