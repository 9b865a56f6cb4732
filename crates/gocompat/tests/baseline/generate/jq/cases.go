package main

// Programs, one a line, for an input.
var cases = []struct{ input, programs string }{
	{`{"metadata":{"annotations":{"a/b":"1","c":"2"}},"spec":{"replicas":3,"containers":[{"name":"web","image":"x:1","env":[{"name":"A","value":"1"},{"name":"B"}]},{"name":"injected-proxy","image":"y:1","resources":{}}]},"webhooks":[{"clientConfig":{"caBundle":"x"}},{"clientConfig":{}}]}`, `
del(.spec.replicas)
del(.webhooks[].clientConfig.caBundle)
del(.webhooks[]?.clientConfig.caBundle, .spec)
del(.webhooks[0].clientConfig)
del(.webhooks[-1])
del(.metadata.annotations["a/b"])
del(.metadata.annotations."a/b", .spec.replicas)
del(.spec.containers[] | select(.name == "injected-proxy"))
del(.spec.containers[] | select(.name | test("^injected")) | .image)
del(.spec.containers[] | select(.name | startswith("web") or endswith("none")).env[] | select(.name=="B"))
del(.spec.containers[]?.env[]?.value)
del(.spec.containers[] | select(.resources == {}) | .resources)
del(.spec.containers[] | select(has("env") and (.env | length > 1)) | .env)
del(.spec.containers[] | select(any(.env[]?; .name == "A")) | .name)
del(.. | .caBundle?)
del(.. | objects | select(.name == "web") | .image)
del(..)
del(.)
del(.spec | .replicas)
del(.spec.nothing.here)
del(.spec.containers | first)
del(.spec.containers | last)
del(if .spec.replicas > 2 then .spec.replicas else empty end)
del(if .spec.replicas > 9 then .spec.replicas else .webhooks end)
del(.spec.none // .spec.replicas)
del(.spec.replicas // .spec.none)
del(.metadata.annotations | to_entries)
del(.metadata.annotations | map(.))
del(map(.))
del(.spec.containers | map(select(.name == "web")) | .[0])
del(.metadata.annotations | keys)
del(.metadata.annotations | .[keys[]])
del(.metadata.annotations[(.metadata.annotations | keys[])])
del(.metadata.annotations | .[keys[] | select(test("/"))])
del(.metadata.annotations | with_entries(select(.key == "c")))
del(.spec.containers[] as $c | select($c.name == "web"))
del("web" as $n | .spec.containers[] | select(.name == $n) | .env)
del(.spec.replicas as $r | .spec.containers[$r - 3])
del(.spec.containers[.spec.replicas - 2])
del(.spec.containers | .[length - 1])
del(.spec.containers[0:1])
del(.spec.containers[1:])
del(.spec.containers[:1][0])
del(.spec.containers[].env | .[1:]?)
del(.spec.containers[] | select(.env | . != null and (map(.name) | index("B"))))
del(.spec.containers[] | select(IN(.name; "web", "x")))
del(.spec.containers[] | select([.name] | inside(["web"])))
del(.spec.containers[] | .env[]? | select(.value | not))
del(paths(type == "number"))
del(getpath(["spec", "replicas"]))
del(getpath(["spec", "containers", 0, "env"])[0])
del(getpath(paths(type == "number")))
del(reduce ("spec", "replicas") as $k (.; .[$k]))
del(foreach ("spec", "replicas") as $k (.; .[$k]))
del(first(.spec.containers[]))
del(limit(1; .spec.containers[]))
del(skip(1; .spec.containers[]))
del(nth(1; .spec.containers[]))
del(last(.spec.containers[]))
del(until(has("replicas"); .spec) | .replicas)
del(recurse(.spec?) | .replicas?)
del(recurse | .replicas?)
del(.spec.containers | .. | .name?)
del(def f: .spec; f | .replicas)
del(def f(g): .spec | g; f(.replicas))
del(def f($k): .[$k]; f("spec", "webhooks"))
del(def r: if type == "object" then .spec | r else . end; r)
del(try .spec.replicas.x catch .)
del(try error("x") catch .spec)
del(.spec.replicas.x?)
del((.spec.replicas.x)?)
del((.spec.replicas[])?)
del((.spec).replicas.x?)
del((.spec.replicas).x?)
del((.spec.replicas[0:1])??)
del(((.spec.replicas.x))?.y)
del(.spec.replicas[]?)
del(.spec.replicas[])
del(.nothing[])
del(.nothing[]?)
del(.spec.replicas.x)
del("text")
del(1)
del(null)
del(true)
del(.spec, .spec.replicas)
del(.spec.replicas, .spec)
del(.a = 1)
del(.spec |= .)
del(.spec.replicas + 1)
del(.spec.replicas | tostring)
del(.webhooks[] | select(.clientConfig | length == 0))
del(.webhooks[] | select(.clientConfig.caBundle?))
del(.webhooks[].clientConfig | select(.caBundle != null) | .caBundle)
del(label $out | .spec.containers[] | if .name == "web" then ., break $out else . end)
del(. as {spec: {replicas: $r}} | .spec.containers[$r - 3].image)
del(. as [$a] ?// {spec: $a} | select($a) | .spec)
del(input)
del(inputs)
del(debug)
del(stderr)
del(env | .x)
del($ENV.x)
del($__loc__)
del($x)
del(nothing)
del(nothing(1))
del(.a; .b)
delpaths([path(.spec[]), ["webhooks", 0]])
delpaths([["spec", "containers", {"start": 0, "end": 1}]])
delpaths([["none", "x"], ["spec", "none"], ["webhooks", 9], ["webhooks", -9]])
delpaths([[0]])
delpaths(["spec"])
delpaths("spec")
delpaths([])
delpaths([[]])
path(.spec.containers[].env[]?.name)
[paths]
[paths(type == "string")]
[path(..)] | length
path(.spec.containers[1:][0])
path(.spec | getpath(["containers", 0]) | .name)
path(.spec.replicas | if . > 1 then . else empty end)
try path(.spec.replicas | . + 1) catch .
try path([.spec]) catch .
try path({a: 1} | .a) catch .
[path(.spec | select(.replicas == 3) | .containers[] | select(.name != "web"))]
path(empty)
path(.spec, .webhooks | .[]?)
pick(.spec.replicas)
pick(.webhooks[1].clientConfig, .metadata.annotations.c)
pick(.spec.containers[0].name, .spec.containers[1].name)
to_entries | map(.key)
with_entries(select(.key | startswith("s"))) | keys
with_entries(.value |= type)
map_values(type)
.spec.containers |= map(select(.name == "web"))
.spec.containers[] |= (select(.name == "web") | .env)
.spec.replicas |= empty
.spec.containers |= map(.image |= sub("x"; "z"))
.spec.replicas += 1 | .spec.replicas
.spec.replicas = (1, 2) | .spec.replicas
.spec.replicas -= (1, 2) | .spec.replicas
.spec.none //= 5 | .spec.none
.spec.replicas //= 5 | .spec.replicas
(.spec.replicas, .spec.other) |= 7 | .spec | del(.containers)
(.spec.containers[] | select(.name == "web") | .image) = "new" | .spec.containers[].image
.spec.containers[0].env[1].value |= "v" | .spec.containers[0].env
.metadata.annotations["a/b"] |= (tonumber | . + 1) | .metadata.annotations
.spec["replicas", "x"] = 1 | .spec.x
walk(if type == "object" then del(.name) else . end)
walk(if type == "string" then ascii_upcase else . end) | .spec.containers[0]
[.. | strings]
[.. | numbers, booleans]
[.spec.containers[] | {name, image}]
[.spec.containers[] | "\(.name)=\(.image)"] | join(";")
.spec.containers | map({(.name): .image}) | add
.spec.containers | INDEX(.name) | map_values(.image)
.spec.containers | group_by(.env == null) | map(map(.name))
.spec.containers | sort_by(.image) | reverse | .[0].name
.spec.containers | map(.name | length) | add / length
.spec.containers | to_entries[] | select(.value.name == "web") | .key
[.spec.containers[] | .env // [] | length]
reduce .spec.containers[] as {$name, $image} ({}; .[$name] = $image)
[foreach .spec.containers[] as $c (0; . + 1; [., $c.name])]
. as {spec: {containers: [{$name}, $second]}} | [$name, $second.name]
tostream | select(length == 2) | select(.[0][-1] == "name")
fromstream(tostream) == .
[1 | truncate_stream([[0], 1], [[1, 0], 2], [[1, 0]], [[1]])]
[leaf_paths]
[splits("a")]
getpath(["spec", "none", "x"])
try getpath(["spec", "replicas", "x"]) catch .
try getpath("a") catch .
try setpath("a"; 1) catch .
try setpath(["spec", "replicas", "x"]; 1) catch .
try setpath([0]; 1) catch .
try setpath([[1]]; 1) catch .
setpath(["spec", "containers", 4]; 1) | .spec.containers | length
try setpath(["spec", "containers", -4]; 1) catch .
has("spec"), has("x")
try has(0) catch .
contains({spec: {replicas: 3}}), contains({spec: {containers: [{name: "we"}]}}), contains({spec: {replicas: 4}})
.spec.containers | any(.name == "web"), all(.name == "web"), any(.name == "no")
`},
	{`null`, `
1, 2 | . + 1
1 + 2 * 3 - 4 / 2 % 3
7 % 3, -7 % 3, 7 % -3, 5.9 % 2.1, -5 % 3
try (1 % 0) catch .
try (1 / 0) catch .
try (0.0 / 0) catch .
1 / 3
10 / 2, 7 / 2
9223372036854775807 + 1
9223372036854775807 * 9223372036854775807
-9223372036854775808 - 1
100000000000000000000 / 10, 100000000000000000001 % 7
100000000000000000000 == 1e20
[100000000000000000000, 1] | sort
1e1000, -1e1000, nan
[nan] | sort, (nan < nan), (nan == nan), ([nan] == [nan])
[nan, 1, nan] | sort
1e17, 1.5e300, 1e-5, 1e-7, 123456789012345680000, 0.1, 100, 1e2
"abc" * 3, "abc" * 0, "abc" * -1, 2 * "ab", "ab" * 1.7
"a,b, c" / ", ", "" / ",", "abc" / ""
{a: {b: 1}} * {a: {c: 2}}, {a: 1} * {a: {c: 2}}
{a: 1} + {a: 2, b: 3}, [1] + [2], null + 1, 1 + null, "a" + "b"
[1, 2, 3, 1] - [1], [] - [1]
try ({} - 1) catch .
try ([] + {}) catch .
try ("a" - "b") catch .
try ({} + "long text that will be cut off somewhere in the middle") catch .
try ([1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16] + 1) catch .
try ({abcdefghij: "klmnopqrst", uvwxyz: 1, more: 2} + 1) catch .
try ("äöüäöüäöüäöüäöüäöüäöü" + 1) catch .
try -"a" catch .
try +[] catch .
-(1, 2), -1.5, +3
1 < 2, "a" < "b", [1] < [1, 0], {a: 1} < {a: 2}, {b: 1} > {a: 2}, null < false, false < true, true < 0, 0 < "", "" < [], [] < {}
1 == 1.0, "1" == 1, [] == [], {} != {}
true and (true, false), (true, false) or (true, false)
null // 1, false // null, (false, 1, 2) // 3, empty // 4, (null, false) // (5, 6)
try (error("x") // 1) catch .
1 // error("x")
1 as $x | 2 as $y | [$x, $y]
[1, [2, 3]] as [$a, [$b, $c]] | $a + $b + $c
{a: 1, b: [2]} as {a: $x, b: [$y]} | [$x, $y]
{a: 1, b: 2} as {$a, $b} | [$a, $b]
{a: {b: 5}} as {$a: {$b}} | [$a, $b]
{"k1": 1} as {("k" + "1"): $v} | $v
{"x": 1, "y": 2} as {("x", "y"): $v} | $v
{"a": 1} as {"a": $v} | $v
{"a1": 1} as {"a\(1)": $v} | $v
[[1, 2]] | .[] as [$a] ?// $b | [$a, $b]
[[1, 2], 3] | .[] as [$a] ?// $a | [$a]
{"a": 1} as [$a] ?// {$a} ?// $b | [$a, $b]
[[3]] | .[] as [$a] ?// $b | if $a != null then error("no") else [$a, $b] end
try (1 as [$a] | $a) catch .
try ("x" as {$a} | $a) catch .
null as [$a, {b: $c}] | [$a, $c]
1 as $x | [$x, (2 as $x | $x), $x]
1, 2 as $x | $x * 10
def f: 1; f
def f(g): g + 1; f(2)
def f($a; $b): $a - $b; f(1, 2; 10, 20)
def f(a; $b): [a, $b]; [f(1, 2; 3, 4)]
def f($x): x + $x; f(1, 2)
def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 10 | fac
def fib: if . < 2 then . else (. - 1 | fib) + (. - 2 | fib) end; 12 | fib
def f: def g: 3; g * 2; f
def f(x): x | x; 2 | f(. * .)
def f: reduce .[] as $x (0; . + $x); [1, 2, 3] | f
def f($n): if $n == 0 then [] else [$n] + f($n - 1) end; f(5)
def f(g): def h: g; [h]; f(1, 2)
def map(f): "mine"; [1] | map(.)
def x: 1; def y: x + 1; def x: 10; y, x
def f(g; h): if . > 3 then h else g | f(g; h) end; 0 | f(. + 1; "done")
[limit(3; 1, 2, 3, 4)], [limit(0; 1, 2)], [limit(1; error("x"))?]
try limit(-1; 1, 2) catch .
[first(range(10))], [first(empty)], first(1, error("x"))
[skip(2; 1, 2, 3, 4)], [skip(0; 1)], [skip(9; 1)]
try skip(-1; 1) catch .
nth(2; range(10)), [nth(20; range(3))]
try nth(-1; 1, 2) catch .
[range(5)], [range(2; 5)], [range(0; 10; 3)], [range(5; 0; -2)], [range(0; 1; 0)], [range(1.5; 4)]
[range(0, 1; 3, 4)]
try range("a") catch .
[until(true; 1)], (1 | until(. > 100; . * 2)), [1 | while(. < 50; . * 2)]
[limit(5; 1 | repeat(. * 2))]
[limit(5; repeat("x"))]
[recurse(if . == null then 0 elif . < 3 then . + 1 else empty end)]
2 | [recurse(. * .; . < 100)]
[1 | recurse(if . < 3 then . + 1, . + 2 else empty end)]
isempty(empty), isempty(1, error("x")), isempty(error("x"))?
any(false, true; .), all(true, false; .), any(empty; .), all(empty; .)
add(1, 2, 3), add(empty)
[.[]?], [..]
reduce range(5) as $i (0; . + $i), (reduce empty as $i (7; 0)), (reduce range(3) as $i (0; empty))
reduce (1, 2) as $x ((10, 20); . + $x)
reduce range(3) as $i (0; ., 10)
[foreach range(5) as $i (0; . + $i)], [foreach range(3) as $i (0; . + $i; [$i, .])], [foreach (1, 2) as $x (0; (1, 2) + .; .)]
[foreach range(5) as $i (0; if $i == 2 then empty else . + $i end)]
label $f | range(10) | ., (select(. == 3) | break $f)
[label $a | label $b | 1, break $a, 2]
[label $a | (label $b | 1, break $b, 2), 3]
label $x | try (1, break $x, 2) catch "caught"
break $x
try error("m") catch ., try error({a: 1}) catch .a, try error(null) catch ., try error catch .
error
error("plain")
error({a: 1})
error(null)
try error("\(1 + 1)") catch .
try (try error("a") catch error("b")) catch .
[(1, 2, error("x"), 3)?]
[.[]?, (try error("x") catch .)]
try (1, error("x"), 3) catch .
(try 1) | error("later")
try ((try 1 catch "inner") | error("outer")) catch .
error("x")?, 1
[error("x")?] | length
if true then "a" end, if false then "a" end, if null then 1 elif 0 then 2 else 3 end
if (true, false) then 1 else 2 end
if empty then 1 else 2 end
[if (1, null, 2) then "t" else "f" end]
"a\(1 + 1)b", "\("x" + "y")", "\(null) \([1, "a"]) \({a: 1})", "\(1, 2)-\(3, 4)"
"a\u00e9\n\t\"\\\/", "\ud83d\ude00", "\ud83d"
@json "x\([1, "a"])", @base64 "a\("bc")d", @html "<\("<&'\">")>", @uri "?q=\("a b/ü&=")", @sh "echo \("it's", 1)", @csv "\([1, "a\"b", null, true])", @tsv "\(["a\tb", "c\\d"])", @text "\([1])"
"YWJj" | @base64d, ("YWI=" | @base64d), ("YQ" | @base64d)
try ("!!" | @base64d) catch .
"%20a%c3%bc" | @urid
[1, "a b", "c'd"] | @sh, @csv, @tsv, @json, @text, @html
try ([[1]] | @csv) catch .
try ({} | @tsv) catch .
try ("a" | @foo) catch .
"x" | format("base64"), format("json")
try ("x" | format("foo")) catch .
try ("x" | format(1)) catch .
{a: 1, "b": 2, "c\(1)": 3, ("d", "e"): 4, @text "f": 5}
1 as $x | {$x, y: $x, "z": 3}
{a: (1, 2), b: (3, 4)}
{if: 1, then: 2, and: 3, def: 4} | .if + .then + .and + .def
try {(1): 2} catch .
try {({}): 2} catch .
{a: 1 | . + 1, b: 2}
{a: {b: {c: 1}}} | .a.b.c, .a["b"].c, ."a"."b"["c"], .["a"]["b"].c
[1, 2, 3] | .[0], .[-1], .[5], .[1:], .[:1], .[-2:], .[0:1], .[1:1], .[:-1], .[1.7], .[null:2], .[-9:9]
"abcdef" | .[2:4], .[-2:], .[:1], .[0], .[-1], .[9]
[1, 2, 1, 2, 1] | .[[1, 2]], indices(1), indices([1, 2]), index(1), rindex(1), index([2, 1]), rindex([2, 1]), indices([]), index(9)
"a,b, cd,e" | indices(","), index(","), rindex(","), indices(", "), indices("")
try ("a" | indices(1)) catch .
null | indices(1), .[0], .a, .[1:], .["x"]
try ({} | .[0]) catch .
try ([] | .a) catch .
try (1 | .[0]) catch .
try ([] | .[{}]) catch .
try ([] | .[true]) catch .
try ("a" | .[true]) catch .
try ({} | .[true]) catch .
try ([1] | .["a":]) catch .
try ("ab" | .[{}:]) catch .
try ({} | .[1:]) catch .
{"start": 1, "end": 2} as $r | [1, 2, 3] | .[$r]
[1, 2, 3] | .[1:] = [9, 8, 7], (.[0] = 5), (.[5] = 1), (.[-1] = 0), (.[1:2] |= map(. * 10))
try ([1] | .[1:] = 5) catch .
try ([1] | .[-5] = 5) catch .
[[1, 2], [3]] | .[][0], (.[] |= length), (.[0][1] = 9)
[1, null, 2] | map(values), (.[] //= 0)
[1, 2, 3, 4] | (.[] | select(. % 2 == 0)) |= empty
[1, 2, 3] | to_entries, (to_entries | from_entries?)
[{"key": "a", "value": 1}, {"k": "b"}, {"name": "c", "value": false}, {"Name": "d", "Value": 4}, {"Key": "e"}] | .[0:1] + .[2:] | from_entries
try ([{"key": 1}] | from_entries) catch .
try ([{"key": null}] | from_entries) catch .
try ([1] | from_entries) catch .
[3, 1, 2] | sort, reverse, min, max, add, length, first, last, unique
[] | min, max, add, first, last, sort, unique, reverse, any, all, transpose, flatten, add
[{"a": 1, "b": 2}, {"a": 0, "b": 3}, {"a": 1, "b": 1}] | sort_by(.a), sort_by(.a, .b), group_by(.a), unique_by(.a), min_by(.b), max_by(.a), (map(.a) | unique)
[null, true, false, 1, "a", [], {}, [1], {"a": 1}, -1, "A"] | sort
try ({} | sort) catch .
try (1 | sort_by(.)) catch .
try (1 | min_by(.)) catch .
[1, [2, [3, [4]]]] | flatten, flatten(1), flatten(0)
try ([] | flatten(-1)) catch .
{"a": 1, "b": [2]} | flatten, add?, length, keys, to_entries, map(type), map_values(. + null), [.[]], tojson
[[1, 2], [3]] | transpose, add, flatten, map(add), combinations
[[1, 2], [3, 4]] | [combinations]
[0, 1] | [combinations(2)]
[1, 3, 5] | bsearch(3), bsearch(0), bsearch(4), bsearch(9)
[1, [2]] | contains([1]), contains([[2]]), contains([3]), inside([1, [2, 3], 4])
"foobar" | contains("oba"), inside("xfoobarx"), startswith("foo"), endswith("bar"), ltrimstr("foo"), rtrimstr("bar"), trimstr("r"), test("o+b")
try ("a" | contains(1)) catch .
try ("a" | startswith(1)) catch .
try (1 | ltrimstr("a")) catch .
"  a b \n" | trim, ltrim, rtrim
try (1 | trim) catch .
"aBcÄ" | ascii_downcase, ascii_upcase, explode, (explode | implode), length, utf8bytelength
try ([-1, 1114112, 55296] | implode) catch .
try (["a"] | implode) catch .
"a-b-c" | split("-"), split(""), split("-"; null), split("[abc]"; "g"), [splits("-")]
try ("a" | split(1)) catch .
["a", 1, null, true, 2.5] | join("-"), join(null)?
[] | join(",")
try ([[1]] | join(",")) catch .
["a", "b"] | join(1)?
"test abc ABC" | test("abc"), test("ABC"; "i"), [match("abc"; "gi").offset], [match("(?<x>a)(b)?"; "g") | .captures | map(.name)], capture("(?<first>[a-z]+) (?<second>[a-z]+)"), [scan("[a-c]+")], [scan("([a-c])([a-c])")], [scan("A"; "i")]
"xyz" | [match("(a)|(x)")], [match(""; "g")], [match("y").string], [match("q")], sub("y"; "Y"), gsub("[xz]"; "-"), gsub("(?<l>[a-z])"; "<\(.l)>"), sub("(?<l>[a-z])"; "1", "2"), gsub("(?<l>[a-z])"; "\(.l)a", "\(.l)b"), gsub(""; "-"), gsub("q"; "-"), sub("x"; empty)
"aXbxc" | [splits("x"; "i")], gsub("x"; "_"; "i"), sub("X"; "_"; "g"), split("x"; "gi")
"äöü ö" | [match("ö"; "g") | [.offset, .length]], sub("ö"; "o"), index("ö"), .[1:2], @uri
"line1\nline2" | [match("^line\\d$"; "g").offset], test("line1.line2"), test("line1.line2"; "m"), [scan("(?m)^l")]
try ("a" | test("(")) catch .
try ("a" | test("a"; "q")) catch .
try ("a" | test(1)) catch .
try (1 | test("a")) catch .
try (1 | match("a"; "g")) catch .
try ("abc" | sub("b"; 1)) catch .
"abc" | [match(["b", "g"][0])] | length
"a1b22" | [match("\\d+"; "g") | .string | tonumber] | add
"2015-03-05T23:51:47Z" | fromdate, strptime("%Y-%m-%dT%H:%M:%SZ"), (strptime("%Y-%m-%dT%H:%M:%SZ") | mktime), fromdateiso8601
1425599507 | todate, gmtime, strftime("%A, %B %d, %Y"), strftime("%Y-%m-%dT%H:%M:%SZ"), (gmtime | mktime), (gmtime | todate), strftime("%j %a %b %H:%M:%S %p %I %y %e %u %w %%")
1425599507.25 | gmtime
[2024, 1, 29, 12, 30, 15, 0, 0] | mktime, todate, strftime("%F %T")
try ("x" | mktime) catch .
try (["x"] | mktime) catch .
try ("x" | gmtime) catch .
try (1 | strptime("%Y")) catch .
try ({} | strftime("%Y")) catch .
try (1 | strftime(1)) catch .
1.5 | floor, ceil, round, trunc, sqrt, fabs, abs, rint, significand, logb, frexp, modf, tostring, tojson
-1.5 | floor, ceil, round, trunc, fabs, abs, length, rint, nearbyint
2.5, 3.5, -2.5 | round, rint
pow(2; 10), pow(2, 3; 1, 2), log2, (8 | log2), (100 | log10), (1 | exp10), (0 | sin, cos, exp, log1p, expm1), atan2(0; 1), fmin(1; 2), fmax(1; 2), fmod(7; 3), hypot(3; 4), ldexp(1; 4), scalb(1; 3), scalbln(1; 2), fma(2; 3; 4), copysign(1; -2), drem(5; 3), fdim(5; 3), nextafter(1; 2), nearbyint?
try ("a" | floor) catch .
try pow("a"; 1) catch .
infinite, -infinite, (infinite | isinfinite, isnormal, isfinite), (nan | isnan), (1 | isnan, isnormal), (0 | isnormal), (null | isnan)
[1, infinite, null, "a"] | map(finites?), map(normals?)
try ("a" | isnan) catch .
"12", "1.5", "-3", "0x1", "1e3", "", " 1", "nan", "+1", ".5", "1." | try tonumber catch .
"true", "false", "x" | try toboolean catch .
try ([] | toboolean) catch .
try ([] | tonumber) catch .
[1, "a", null, {"b": [1.5]}] | tojson, tostring, (tojson | fromjson), map(tostring), map(tojson)
"[1, {\"a\": 2}]", "1 2", "{", "", "nul", "\"a\"", "[1,]" | [try fromjson catch "failed"]
try ([] | fromjson) catch .
null, true, 1, "a", [], {} | type, length?
true | length?
try (true | length) catch .
try (1 | keys) catch .
try (1 | add) catch .
try (1 | reverse) catch .
try ("abc" | reverse) catch .
try (1 | has("a")) catch .
try (1 | .[]) catch .
try (1 | explode) catch .
try ("a" | implode) catch .
try (1 | utf8bytelength) catch .
try (1 | ascii_downcase) catch .
try (1 | to_entries) catch .
try (1 | transpose) catch .
try (1 | flatten) catch .
try (1 | join(",")) catch .
try (1 | min) catch .
try (1 | unique) catch .
try ("a" | abs) catch .
null | not, (1 | not), ([] | not)
[true, false, null] | any, all, map(not)
env | type, length
$ENV | type
[1, 2] | in([5, 6, 7][0:2])?, (0 | in([1])), ("a" | in({"a": 1}))
2 | IN(1, 2), IN(3)
[1, 2] | IN(.[]; 2, 3)
[{"id": 1}, {"id": 2}] | INDEX(.id), [JOIN({"1": "x"}; .id | tostring)]
[JOIN({"1": "x"}; ({"id": 1}, {"id": 3}); .id | tostring)], [JOIN({"1": "x"}; {"id": 1}; .id | tostring; add?)]
input
inputs
debug
stderr
input_line_number
import "a" as a; 1
include "a"; 1
ascii
toarray
have_literal_numbers
getpath(1)
ltrimstr
foo
foo(1; 2)
$foo
.a.
.[
{
"abc
"\q"
"\u12"
1 +
| 1
if 1 then 2
reduce 1 as $x
def f 1; 2
def f: 1
. as [] | 1
. as {} | 1
1 as $x
.a b
1 == 1 == 1
1 < 2 < 3
.a = 1 = 2
1 2
try
@foo "\(1)"
.. a
...
..[0]?
[..[0]?]
1 as $x | $x as $y | $y
. # comment
1 # comment \
2, 3
[.[]?] | . == []
halt
1, halt, 2
try halt catch 1
"x" | halt_error
{} | halt_error(1)
splits("a")?
ltrimstr("a")?
1 |= . + 1
try (1 = 2) catch .
try ((1, 2) |= 3) catch .
[1, 2] | first |= 5, last |= 6, (.[1:] |= [7])
[[1], [2]] | map(first) , (.[] | first) |= . + 1
{"a": [1, 2]} | .a += [3], (.a[1:] += [9]), .a -= [1], (.a[] *= 2), (.a |= reverse), (.a[0] /= 2), (.a[0] %= 1)
{"a": 1} | .b |= 5, .a |= empty, .b.c.d = 1, .["x"] += 1, (.a, .b) = 9, (.[] += 1), (.a as $x | .b = $x)
[1, 2, 3] | del(.[0, 2]), del(.[]), del(.[1:]), del(.[:-1]), del(.[5]), del(.[-1]), del(.[0], .[0]), del(.[] | select(. > 1)), delpaths([[0], [1]])
{"a": {"b": 1}} | del(.a.b), del(.a["b", "c"]), del(.x.y), to_entries, [paths], [leaf_paths?], [path(..)]
{"a": [{"b": 1}, {"b": 2}]} | [path(.a[].b)], [getpath(["a", 0, "b"], ["a", 5, "b"])], path(.a | last), path(.a | first(.[]))
{} | .a.b |= 1, .a[1] = 2, (.["a", "b"] = 1), .[("x", "y")] = 3
limit(3; range(infinite))
[range(3)] | .[1:] as [$a, $b] | $a * $b
"\(1;2)"
[.] | tojson | fromjson | . == [null]
ltrimstr(1), rtrimstr(1)
getpath(["a", "b"]), getpath([]), (try getpath(["a", 0, {}]) catch .)
to_entries
add, any, all, length, (keys)?
splits(1)
tojson, tostring, type, @json, @text, @html, @base64
[tostream], [{"a": [1, {"b": 2}]} | tostream], fromstream({"a": [1, {"b": 2}]} | tostream), ([1, []] | [tostream] | fromstream(.[]))
fromstream(1 | truncate_stream([[0], 1], [[1, 0], 2], [[1, 0]], [[1]]))
[{"a": 1} | walk(1)], ([1, [2]] | walk(if type == "number" then . + 1 else . end)), ({"a": 1} | walk(select(. != 1)))
[splits("a", "b")?]
ascii_downcase?, explode?, "end"
builtins | length > 100
[builtins[] | select(startswith("_"))]
abs?, toboolean?, trimstr("a")?, "end"
`},
	{`[{"name":"b","n":2,"tags":["x","y"]},{"name":"a","n":1,"tags":[]},{"name":"c","n":2,"tags":["x"]}]`, `
map(.name), map(select(.n == 2).name), [.[] | .tags[]] , (map(.n) | add)
sort_by(.name) | map(.name)
sort_by(.n, .name) | map(.name)
sort_by(-.n) | map(.name)
group_by(.n) | map({n: .[0].n, names: map(.name)})
unique_by(.n) | map(.name)
min_by(.n).name, max_by(.n).name
map({(.name): .n}) | add
map({name, n}) | INDEX(.name) | keys
[.[] | select(.tags | index("x"))] | length
[.[] | select(.tags | contains(["x"])) | .name]
[.[] | select(any(.tags[]; . == "y")) | .name]
map(.tags |= length) | map(.tags)
.[1:] | map(.name)
[.[] as {$name, tags: [$first]} | "\($name):\($first)"]
reduce .[] as {$name, $n} ({}; .[$n | tostring] += [$name])
[foreach .[] as $i (0; . + $i.n; {name: $i.name, sum: .})]
to_entries | map(select(.value.n == 2).key)
[paths(type == "array")] | length
del(.[] | select(.n == 2))
del(.[0, 2].tags)
del(.[].tags[0])
del(.[:2])
del(.[1:][0].name)
del(.[] | .tags | select(length == 0))
del(.[(map(.name) | index("a"))])
del(.[length - 1])
del(.[map(.n == 1) | index(true)])
map(del(.tags)) | .[0]
map(to_entries | map("\(.key)") | join(","))
[.[] | to_entries[] | select(.value | type == "number") | .key] | unique
[limit(2; .[] | .name)]
first(.[] | select(.n == 2)).name, last(.[] | select(.n == 2)).name
isempty(.[] | select(.n == 5))
[.[] | .n as $n | [range($n)]]
transpose?
map(.name) | join("+"), @csv, @sh, @tsv, implode?
(.[] | select(.name == "a") | .n) |= . + 10 | map(.n)
(.[].tags[] | select(. == "x")) = "z" | map(.tags)
.[0] * {n: 5, m: {}} | keys
walk(if type == "array" then sort? else . end) | map(.name)
[.[] | has("name", "x")]
map(in({"a": 1})?)
[splits("x")?]
[recurse | select(type == "string")] | unique
[getpath([0, "name"], [1, "tags"])]
path(.[1].tags), [path(.[] | select(.n == 1))]
try path(map(.name)) catch .
try path(sort) catch .
try path(.[0] | .name | ascii_upcase) catch .
try del(sort_by(.name)) catch .
try del(to_entries[] | .value) catch .
`},
}
