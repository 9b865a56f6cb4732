package main

import (
	"fmt"
	"math/rand"
	"strings"
)

type generator struct {
	r    *rand.Rand
	vars []string
	fns  []string
}

var inputs = []string{
	`null`, `1`, `-2.5`, `"a,b c"`, `[3,1,2,1]`, `[]`, `{}`, `[[1,2],[3],[]]`,
	`{"a":1,"b":{"a":[1,2,{"c":null}],"c":"x"},"c":[true,false,null]}`,
	`{"metadata":{"name":"web","labels":{"app":"web","tier":"x"}},"spec":{"replicas":3,"containers":[{"name":"a","image":"i:1","env":[{"name":"A","value":"1"},{"name":"B"}]},{"name":"b","image":"j:2"}]}}`,
	`[{"name":"x","value":1},{"name":"y","value":null},{"key":"z"}]`,
	`[{"a":2,"b":"q"},{"a":1,"b":"p"},{"a":2,"b":"p"}]`,
}

func (g *generator) pick(of ...string) string { return of[g.r.Intn(len(of))] }

func (g *generator) program() string {
	switch g.r.Intn(10) {
	case 0, 1, 2:
		return "del(" + g.path(3) + ")"
	case 3:
		return "[path(" + g.path(3) + ")]"
	case 4:
		return g.path(2) + " " + g.pick("=", "|=", "+=", "-=", "*=", "//=", "|=", "|=") + " " + g.expr(2)
	case 5:
		return "try (" + g.query(4) + ") catch ."
	default:
		return g.query(4)
	}
}

// Something that may be a path, mostly.
func (g *generator) path(d int) string {
	if d == 0 || g.r.Intn(5) == 0 {
		return g.pick(".", ".a", ".b", ".c", ".[0]", ".[-1]", ".[]", ".[]?", "..", ".metadata", ".spec.replicas", ".spec.containers[]?", ".[1:]", ".[:-1]", ".[\"a\"]", ".name")
	}
	switch g.r.Intn(20) {
	case 0, 1, 2, 3, 4:
		return g.path(d-1) + " | " + g.path(d-1)
	case 5:
		return "(" + g.path(d-1) + ", " + g.path(d-1) + ")"
	case 6, 7:
		return g.path(d-1) + " | select(" + g.expr(d-1) + ")"
	case 8:
		return "if " + g.expr(d-1) + " then " + g.path(d-1) + " else " + g.path(d-1) + " end"
	case 9:
		return g.path(d-1) + " // " + g.path(d-1)
	case 10:
		return g.pick("first", "last", "recurse", "paths", "map", "limit", "getpath", "empty", "until", "error")
	case 11:
		return g.pick("first", "last", "recurse", "isempty") + "(" + g.path(d-1) + ")"
	case 12:
		return "limit(" + g.pick("0", "1", "2") + "; " + g.path(d-1) + ")"
	case 13:
		return "getpath(" + g.pick(`["a"]`, `["b","a"]`, `[0]`, `["spec","containers",0]`, `[]`, `["b","a",2,"c"]`, `paths`, `"a"`) + ")"
	case 14:
		return "(" + g.path(d-1) + ")?"
	case 15:
		return ".[" + g.expr(d-1) + "]"
	case 16:
		return g.pick("to_entries", "with_entries(.value)", "map(.)", "sort", "keys", "values", "strings", "objects", "arrays", "scalars", "numbers")
	case 17:
		return g.expr(1) + " as $p | " + g.path(d-1)
	case 18:
		return "try " + g.pick(".a", ".[0]", "error(\"x\")", "(.a.b)", ".[]") + g.pick("", " catch .", " catch empty")
	default:
		return g.pick("foreach", "reduce") + " (1, 2) as $p (.; " + g.path(d-1) + ")"
	}
}

func (g *generator) query(d int) string {
	if d <= 0 {
		return g.expr(0)
	}
	switch g.r.Intn(16) {
	case 0, 1, 2:
		return g.query(d-1) + " | " + g.query(d-2)
	case 3:
		return g.query(d-1) + ", " + g.query(d-2)
	case 4:
		return g.bind(d)
	case 5:
		name := g.pick("f", "g")
		body := g.query(d - 2)
		g.fns = append(g.fns, name)
		out := "def " + name + ": " + body + "; " + g.query(d-1)
		g.fns = g.fns[:len(g.fns)-1]
		return out
	case 6:
		return "label $out | " + g.query(d-1) + " | if " + g.expr(1) + " then ., break $out else . end"
	case 7:
		return "def h($x; k): " + g.pick("[$x, k]", "$x | k", "k + $x", "x, k") + "; h(" + g.query(d-2) + "; " + g.query(d-2) + ")"
	default:
		return g.expr(d)
	}
}

func (g *generator) bind(d int) string {
	source := g.expr(d - 1)
	pattern, names := g.pattern(2)
	if g.r.Intn(5) == 0 {
		other, more := g.pattern(1)
		pattern, names = pattern+" ?// "+other, append(names, more...)
	}
	n := len(g.vars)
	g.vars = append(g.vars, names...)
	out := source + " as " + pattern + " | " + g.query(d-1)
	g.vars = g.vars[:n]
	return out
}

func (g *generator) pattern(d int) (string, []string) {
	v := g.pick("$x", "$y", "$z")
	if d == 0 {
		return v, []string{v}
	}
	switch g.r.Intn(5) {
	case 0:
		a, x := g.pattern(d - 1)
		b, y := g.pattern(d - 1)
		return "[" + a + ", " + b + "]", append(x, y...)
	case 1:
		a, x := g.pattern(d - 1)
		return "{" + g.pick("a", `"b"`, `("c", "a")`, "$x") + ": " + a + "}", append([]string{"$x"}[:0:0], x...)
	case 2:
		return "{$a, $b}", []string{"$a", "$b"}
	default:
		return v, []string{v}
	}
}

func (g *generator) expr(d int) string {
	if d <= 0 {
		if len(g.vars) > 0 && g.r.Intn(3) == 0 {
			return g.vars[g.r.Intn(len(g.vars))]
		}
		if len(g.fns) > 0 && g.r.Intn(4) == 0 {
			return g.fns[g.r.Intn(len(g.fns))]
		}
		return g.pick(".", ".a", ".b", ".[0]", ".[]?", ".name", "1", "0", "-1", "2.5", `"a"`, `"x,y"`, "null", "true", "false", "[]", "{}", "[1,2]", `{"a":1}`, ".[1:]", "..", "empty")
	}
	e := func() string { return g.expr(d - 1) }
	switch g.r.Intn(24) {
	case 0, 1, 2:
		return "(" + e() + " " + g.pick("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "//") + " " + e() + ")"
	case 3:
		return "[" + g.query(d-1) + "]"
	case 4:
		return "{" + g.pick("a", `"k"`, "(\"p\", \"q\")", "b") + ": " + e() + g.pick("", ", c: "+e(), ", $__loc__"[:0]) + "}"
	case 5:
		return "(if " + e() + " then " + e() + g.pick("", " else "+e(), " elif "+e()+" then 1 else 2") + " end)"
	case 6:
		return "(try " + "(" + e() + ")" + g.pick("", " catch .", " catch type") + ")"
	case 7:
		n := len(g.vars)
		source := e()
		start := e()
		g.vars = append(g.vars, "$r")
		out := "(" + g.pick("reduce", "foreach") + " (" + source + ") as $r (" + start + "; " + g.expr(d-1) + "))"
		g.vars = g.vars[:n]
		return out
	case 8:
		return "\"" + g.pick("", "p-") + "\\(" + e() + ")" + g.pick("", "-s") + "\""
	case 9:
		return g.pick("@json", "@text", "@base64", "@html", "@uri", "@sh", "@csv", "@tsv", "@base64d")
	case 10, 11, 12, 13:
		return "(" + e() + " | " + g.nullary() + ")"
	case 14, 15, 16:
		return g.unary(e)
	case 17:
		return fmt.Sprintf("(%s | %s)", e(), g.textual(e))
	case 18:
		return "(" + e() + " as $v | " + strings.ReplaceAll(e(), "$w", "$v") + ")"
	case 19:
		return "-(" + e() + ")"
	case 20:
		return "(" + e() + ")" + g.pick("[0]", "[]", "[]?", ".a?", ".a", "[1:]", "[:1]", "?", "[\"b\"]", "[-1]")
	case 21:
		return "(" + g.path(1) + " " + g.pick("=", "|=", "+=", "//=") + " " + e() + ")"
	case 22:
		return g.pick("[limit(2; ", "[first(", "[skip(1; ", "[last(", "[nth(1; ", "[isempty(") + g.query(d-1) + ")]"
	default:
		return g.expr(d - 1)
	}
}

func (g *generator) nullary() string {
	return g.pick("length", "keys", "type", "not", "add", "sort", "unique", "reverse", "min", "max", "first", "last", "flatten", "tostring",
		"tojson", "to_entries", "from_entries", "any", "all", "floor", "sqrt", "abs", "ascii_downcase", "explode", "implode", "trim", "tonumber",
		"values", "nulls", "scalars", "paths", "[paths]", "transpose", "tostream", "fromjson", "ltrim", "utf8bytelength", "toboolean",
		"map_values(.)", "recurse", "[..]", "isnan", "error", "infinite", "nan", "combinations", "iterables", "strings", "numbers", "env", "rtrim")
}

func (g *generator) unary(e func() string) string {
	return g.pick("map", "select", "map_values", "sort_by", "group_by", "unique_by", "min_by", "max_by", "any", "all", "with_entries", "has", "contains",
		"inside", "index", "rindex", "indices", "startswith", "endswith", "ltrimstr", "rtrimstr", "trimstr", "split", "join", "flatten", "range", "del",
		"path", "paths", "pick", "walk", "error", "add", "IN", "INDEX", "bsearch", "getpath", "delpaths", "in", "first", "isempty", "recurse", "format") +
		"(" + e() + ")"
}

func (g *generator) textual(e func() string) string {
	re := g.pick(`"a"`, `"[a-z]+"`, `"(?<n>[a-z])"`, `"(x)|(y)"`, `","`, `""`, `"A"`, e())
	flags := g.pick("", "", "; \"g\"", "; \"i\"", "; \"gi\"", "; null")
	switch g.r.Intn(7) {
	case 0:
		return "test(" + re + flags + ")"
	case 1:
		return "[match(" + re + flags + ")]"
	case 2:
		return "capture(" + re + flags + ")"
	case 3:
		return "[scan(" + re + ")]"
	case 4:
		return "sub(" + re + "; " + g.pick(`"-"`, `"<\(.n)>"`, `"p","q"`, `.n`) + flags + ")"
	case 5:
		return "gsub(" + re + "; " + g.pick(`"-"`, `"<\(.n)>"`, `"p","q"`) + ")"
	default:
		return "[splits(" + re + ")]"
	}
}
