//! Expressions with the answers of the real library.

use super::value::Value;
use super::{Env, Program, declare};
use crate::structural::Node;
use serde_json::json;

fn schema() -> Node {
    Node::read(&json!({"type": "object", "properties": {
        "i": {"type": "integer"}, "s": {"type": "string"}, "n": {"type": "number"}, "ios": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "items": {"type": "string"}}, "li": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}}, "t": {"type": "string", "format": "date-time"},
        "o": {"type": "object", "properties": {"a-b": {"type": "string"}, "namespace": {"type": "string"}}}}}))
}

fn env() -> Env {
    let ty = declare::of_schema(&schema(), false, "selfType").expect("an object has a type");
    Env {
        vars: [("self".to_owned(), ty)].into(),
        patches: false,
    }
}

fn run(source: &str) -> Result<Value, String> {
    let object = json!({"i": 1, "s": "abc", "n": 2, "ios": "5%", "l": ["a", "b"], "li": [3, 1, 2], "set": ["x", "y"], "m": {"k": "v"},
        "t": "2023-01-01T00:00:00Z", "o": {"a-b": "x", "namespace": "y"}});
    let this = declare::value(&object, &schema(), false);
    let program = Program::compile(&env(), source)?;
    let vars = |name: &str| (name == "self").then(|| Ok(this.clone()));
    program
        .run(&vars, 1_000_000)
        .0
        .map_err(|e| e.text().to_owned())
}

#[test]
fn these_are_true() {
    let sources = "self.i == 1 && self.n == 2.0 && self.s.startsWith('a')
self.l.all(x, x.size() == 1) && self.l.exists(x, x == 'b') && self.li.exists_one(x, x == 1)
self.li.map(x, x * 2) == [6, 2, 4] && self.li.filter(x, x > 1).size() == 2
self.li.sort() == [1, 2, 3] && self.li.sum() == 6 && self.li.max() == 3 && !self.li.isSorted()
self.set == ['y', 'x'] && sets.contains(self.set, ['x']) && self.set + ['x'] == self.set
self.l.all(i, v, i < 2) && self.l.transformList(i, v, v + string(i)) == ['a0', 'b1']
self.m.transformMap(k, v, v + 'x') == {'k': 'vx'} && 'k' in self.m && self.m.?zz.orValue('d') == 'd'
self.o.a__dash__b == 'x' && self.o.__namespace__ == 'y' && self.o.namespace == 'y'
type(self.ios) == string && self.ios.endsWith('%') && dyn(self.i) == 1.0
self.t.getFullYear() == 2023 && self.t + duration('1h') > self.t && duration('90m').getHours() == 1
false && self.li[9] == 1 || true
'%s-%d-%.2f'.format([self.s, self.i, 1.5]) == 'abc-1-1.50'
'a,b'.split(',') == ['a', 'b'] && self.s.substring(1, 2) == 'b' && self.s.replace('a', 'z') == 'zbc' && self.s.indexOf('c') == 2
'abc 12'.find('[0-9]+') == '12' && 'a1b2'.findAll('[0-9]').size() == 2 && self.s.matches(r'^\\w+$')
quantity('1Gi').isGreaterThan(quantity('1M')) && quantity('1k').sub(1).compareTo(quantity('999')) == 0 && !isQuantity('x')
ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('1.2.3') && ip('fe80::1').isLinkLocalUnicast()
url('https://a:80/b?c=d').getHost() == 'a:80' && url('https://a/b?c=d').getQuery()['c'] == ['d'] && !isURL('a b')
semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1', true).major() == 1 && !isSemver('1.2')
!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()
optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().hasValue() && [?optional.none(), 1].size() == 1
lists.range(3) == [0, 1, 2] && [[1], [2]].flatten() == [1, 2] && [1, 2, 3].slice(1, 3) == [2, 3] && [1, 1].distinct() == [1]";
    for source in sources.lines() {
        assert!(
            matches!(run(source), Ok(Value::Bool(true))),
            "{source}: {:?}",
            run(source)
        );
    }
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        (
            "self.zz > 1",
            "ERROR: <input>:1:5: undefined field 'zz'\n | self.zz > 1\n | ....^",
        ),
        (
            "self.i == 'x'",
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'\n | self.i == 'x'\n | .......^",
        ),
        (
            "foo(1) == 1",
            "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(1) == 1\n | ...^",
        ),
        (
            "self.s.startsWith(1)",
            "ERROR: <input>:1:18: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.s.startsWith(1)\n | .................^",
        ),
        (
            "self.i === 1",
            "ERROR: <input>:1:10: Syntax error: token recognition error at: '= '\n | self.i === 1\n | .........^",
        ),
        (
            "self.i == 1 1",
            "ERROR: <input>:1:13: Syntax error: extraneous input '1' expecting <EOF>\n | self.i == 1 1\n | ............^",
        ),
        (
            "[1, 'a'].size() == 2",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'].size() == 2\n | ....^",
        ),
        ("self.li[9] == 1", "index out of bounds: 9"),
        ("self.m['zz'] == ''", "no such key: zz"),
        ("self.i / 0 == 1", "division by zero"),
        ("9223372036854775807 + self.i == 0", "integer overflow"),
    ];
    for (source, error) in cases {
        assert_eq!(run(source).map(|_| ()), Err(error.to_owned()), "{source}");
    }
}

#[test]
fn nothing_runs_for_long() {
    let loops = "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))";
    assert_eq!(run(loops).map(|_| ()), Err(super::COST_TEXT.to_owned()));
    assert!(run("lists.range(100000000).size() == 1").is_err());
    let deep = "(".repeat(5000) + "1" + &")".repeat(5000);
    assert!(run(&deep).is_err());
    assert!(run(&("1".to_owned() + &"+1".repeat(5000))).is_err());
    assert!(run(&format!("{}true", "!".repeat(20_000))).is_ok());
}

/// A list that has the one before it twice, so many times; without sharing it has no memory.
fn doubled(times: usize) -> Value {
    (0..times).fold(Value::list(vec![Value::Int(1)]), |inner, _| {
        Value::list(vec![inner.clone(), inner])
    })
}

#[test]
fn shared_lists_are_compared_once() {
    assert!(doubled(60).equals(&doubled(60)));
    assert!(!doubled(60).equals(&doubled(61)));
    // The elements of sets are compared with each other.
    let set = |inner: &Value| {
        Value::List(std::sync::Arc::new(super::value::List {
            items: vec![inner.clone(), inner.clone()],
            kind: super::value::ListKind::Set,
        }))
    };
    let sets = |times: usize| (0..times).fold(doubled(1), |inner, _| set(&inner));
    assert!(sets(60).equals(&sets(60)));
}

#[test]
fn the_cost_of_shared_lists_is_limited() {
    let ty = super::types::Type::Dyn;
    let env = Env {
        vars: [("large".to_owned(), ty.clone()), ("small".to_owned(), ty)].into(),
        patches: false,
    };
    let cost = |source: &str| {
        let program = Program::compile(&env, source).expect("an expression");
        let vars = |name: &str| Some(Ok(doubled(if name == "large" { 60 } else { 5 })));
        let (result, cost) = program.run(&vars, 1_000_000);
        (result.map(|_| ()), cost)
    };
    let exceeded = Err(super::EvalError::Cost);
    assert_eq!(cost("large == large").0, exceeded);
    assert_eq!(cost("large.flatten(100).size() == 0").0, exceeded);
    // 32 elements cost 4, and the two variables 1 each.
    assert_eq!(cost("large == small"), (Ok(()), 6));
    assert_eq!(cost("small == small"), (Ok(()), 6));
}
