package main

import (
	"fmt"
	"math/rand"
	"strconv"
	"strings"
)

// A generator of templates that mostly make sense: names that exist, arguments that often fit, and sometimes none of it.
type generator struct {
	r      *rand.Rand
	vars   []string
	depth  int
	loops  int
	names  []string
	blocks *int
}

func (g *generator) pick(s ...string) string { return s[g.r.Intn(len(s))] }
func (g *generator) one(n int) bool          { return g.r.Intn(n) == 0 }

func (g *generator) json(depth int) any {
	switch n := g.r.Intn(9); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range g.r.Intn(4) {
			m[g.pick("a", "b", "c", "name", "x-y", "enabled")] = g.json(depth - 1)
		}
		return m
	case n < 4 && depth > 0:
		l := []any{}
		for range g.r.Intn(4) {
			l = append(l, g.json(depth-1))
		}
		return l
	case n == 4:
		return nil
	case n == 5:
		return g.one(2)
	case n == 6:
		return []float64{0, 1, -1, 80, 1e6, 1234567, 0.1, 1e-7, 3.14, 1e21, 123456789012}[g.r.Intn(11)]
	default:
		return g.pick("", "a", "x y", "true", "10", "é", "{{ .s }}", "line\nline", "\"q\"")
	}
}

func (g *generator) file() string {
	var b strings.Builder
	for i := range []int{0, 0, 0, 1, 1, 2}[g.r.Intn(6)] {
		name := fmt.Sprintf("d%d", i)
		inner := *g
		inner.vars, inner.loops = nil, 0
		fmt.Fprintf(&b, "%s%q%s%s{{ end }}", g.pick("{{ define ", "{{- define "), name, g.pick(" }}", " -}}"), inner.body(1))
		g.names = append(g.names, name)
	}
	b.WriteString(g.body(2))
	s := b.String()
	if g.one(8) {
		s = g.mutate(s)
	}
	return s
}

func (g *generator) mutate(s string) string {
	for range 1 + g.r.Intn(2) {
		if len(s) == 0 {
			return s
		}
		i := g.r.Intn(len(s))
		switch g.r.Intn(5) {
		case 0:
			s = s[:i] + s[i+1:]
		case 1:
			s = s[:i]
		case 2:
			s = s[:i] + g.pick("{{", "}}", "(", ")", "|", "\"", "`", "'", ".", "$", ":=", "=", ",", " ", "-", "\n", "{{/*", "*/}}", "é", "0x", "@", "\\", "{{ end }}", "{{ else }}", "{{ break }}", " nil ", "\x01", "☺") + s[i:]
		case 3:
			j := min(len(s), i+g.r.Intn(6))
			s = s[:i] + s[j:]
		case 4:
			j := g.r.Intn(len(s))
			s = s[:i] + s[min(i, j):]
		}
	}
	return s
}

func (g *generator) body(depth int) string {
	var b strings.Builder
	mark := len(g.vars)
	for range 1 + g.r.Intn(2) {
		b.WriteString(g.statement(depth))
	}
	g.vars = g.vars[:mark]
	return b.String()
}

func (g *generator) open() string  { return g.pick("{{ ", "{{", "{{- ", "{{ ") }
func (g *generator) close() string { return g.pick(" }}", "}}", " -}}", " }}") }

func (g *generator) statement(depth int) string {
	o, c := g.open(), g.close()
	n := g.r.Intn(16)
	if depth <= 0 {
		n %= 8
	}
	switch n {
	case 0:
		return g.pick("text", " \n ", "a: b\n", "  - ", "é", "\t", "{ ", "}", "{ { ")
	case 1:
		return g.pick("{{/* c */}}", "{{- /* c */ -}}", "{{/* a\nb */}}")
	case 2:
		p := g.pipeline()
		v := g.pick("$a", "$b", "$v")
		g.vars = append(g.vars, v)
		return o + v + " := " + p + c
	case 3:
		if len(g.vars) > 0 {
			return o + g.vars[g.r.Intn(len(g.vars))] + g.pick(" = ", " = ", " := ") + g.pipeline() + c
		}
		return o + g.pipeline() + c
	case 8, 9:
		s := o + "if " + g.pipeline() + c + g.body(depth-1)
		if g.one(3) {
			s += "{{ else if " + g.pipeline() + " }}" + g.body(depth-1)
		}
		if g.one(2) {
			s += "{{ else }}" + g.body(depth-1)
		}
		return s + "{{ end }}"
	case 10:
		s := o + "with " + g.pick("", "", "$w := ") + g.pipeline() + c + g.body(depth-1)
		if g.one(4) {
			s += "{{ else with " + g.pipeline() + " }}" + g.body(depth-1)
		}
		if g.one(2) {
			s += "{{ else }}" + g.body(depth-1)
		}
		return s + "{{ end }}"
	case 11, 12, 13:
		mark := len(g.vars)
		head := g.pick("", "$k := ", "$k, $e := ", "$k, $e := ")
		if strings.Contains(head, "$k") {
			g.vars = append(g.vars, "$k")
		}
		if strings.Contains(head, "$e") {
			g.vars = append(g.vars, "$e")
		}
		if head != "" && g.one(12) && len(g.vars) > 2 {
			head = g.vars[0] + " = "
		}
		g.loops++
		s := o + "range " + head + g.rangeable() + c + g.body(depth-1)
		if g.one(3) {
			s += "{{ if " + g.pipeline() + " }}" + g.pick("{{ break }}", "{{ continue }}") + "{{ end }}" + g.body(0)
		}
		g.loops--
		g.vars = g.vars[:mark]
		if g.one(4) {
			s += "{{ else }}" + g.body(depth-1)
		}
		return s + "{{ end }}"
	case 14:
		return o + "template " + strconv.Quote(g.name()) + " " + g.pick("", ".", "$", g.pipeline()) + c
	case 15:
		return o + "block " + strconv.Quote(g.blockName()) + " " + g.pipeline() + c + g.isolated(depth-1) + "{{ end }}"
	default:
		return o + g.pipeline() + c
	}
}

func (g *generator) isolated(depth int) string {
	inner := *g
	inner.vars, inner.loops = nil, 0
	return inner.body(depth)
}

func (g *generator) name() string {
	if len(g.names) > 0 && !g.one(6) {
		return g.names[g.r.Intn(len(g.names))]
	}
	if !g.one(4) {
		return "always"
	}
	return g.pick("blk1", "nope")
}

func (g *generator) blockName() string {
	*g.blocks++
	return fmt.Sprintf("blk%d", *g.blocks)
}

func (g *generator) rangeable() string {
	if g.one(2) {
		return g.pick(".l", ".m", ".ss", ".is", ".ms", ".j", ".Files", ".Cap.APIVersions", "3", ".i64", "$.lm", ".el", ".nil", "(list 1 \"b\" .)", "(keys .m)", ".u8", ".by", "$", ".d", "0")
	}
	return g.pipeline()
}

func (g *generator) pipeline() string {
	g.depth++
	defer func() { g.depth-- }()
	s := g.command()
	for g.one(5) {
		s += g.pick(" | ", " | ", "|") + g.stage()
	}
	return s
}

// A command that takes what comes down the pipeline.
func (g *generator) stage() string {
	switch g.r.Intn(12) {
	case 0:
		return "printf " + g.format()
	case 1:
		return "default " + g.arg()
	case 2:
		return g.pick("eq", "ne", "lt", "gt", "le", "ge", "and", "or", "index .m", "index .l", "index .ms") + " " + g.arg()
	case 3:
		return g.pick(".Files.Get", ".Cap.APIVersions.Has", ".s", "(upper)", ".Cap.Sum 1", ".nil.x", "$.Files.Need")
	case 4:
		return "set (dict) " + g.str()
	case 5, 6, 7, 8, 9:
		return g.pick("print", "println", "html", "js", "urlquery", "list", "id", "not", "printf \"%v\"", "printf \"%q\"", "printf \"%s|%d\" .s", "default .s", "dict .s", "and .t", "or .f")
	default:
		return g.pick("len", "not", "upper", "print", "println", "html", "js", "urlquery", "printf", "first", "keys", "half", "negate", "i64", "unsign", "join", "strs", "list", "dict", "fail", "id", "repeat 2", "printf \"%q\"", "call", "now", "include \"d0\"", "tpl \"{{ . }}\"")
	}
}

func (g *generator) command() string {
	if g.depth > 3 || g.one(3) {
		return g.operand()
	}
	if !g.one(3) {
		return g.typed()
	}
	switch g.r.Intn(22) {
	case 0, 1:
		return "printf " + g.format() + g.args(g.r.Intn(4))
	case 2:
		return g.pick("print", "println", "html", "js", "urlquery") + g.args(g.r.Intn(4))
	case 3, 4:
		return g.pick("eq", "ne", "lt", "le", "gt", "ge", "eq") + g.args(2)
	case 5:
		return g.pick("eq", "and", "or", "and", "or") + g.args(1+g.r.Intn(3))
	case 6:
		return g.pick("index .l 1", "index .m \"d\" \"e\"", "index .ss", "index .j", "index .ms \"k\"", "index .s 1", "index") + g.args(g.r.Intn(2))
	case 7:
		return g.pick("slice .s", "slice .ss", "slice .l", "slice .u0", "slice") + g.args(g.r.Intn(3))
	case 8:
		return g.pick("len", "not", "call") + g.args(1)
	case 9:
		return "upper" + g.args(1)
	case 10:
		return g.pick("repeat", "join", "set .m", "default", "dict", "list") + g.args(2)
	case 11:
		return g.pick("first", "keys", "half", "negate", "i64", "unsign", "strs", "fail", "id") + g.args(1)
	case 12:
		return "include " + strconv.Quote(g.name()) + " " + g.arg()
	case 13:
		return "tpl " + g.pick(".s", "\"{{ .s }}\"", "\"{{ .nope.x }}\"", "\"{{ if }}\"", "`{{ define \"z\" }}zz{{ end }}{{ include \"z\" . }}`", "`{{ include \"d0\" . }}`", ".j") + " " + g.pick(".", "$", g.arg())
	case 14:
		return g.pick(".Files.Get \"a.txt\"", ".Files.Lines \"a.txt\"", ".Files.Get", ".Files.Get 1", ".Files.Count", ".Files.Need \"q\"", ".Files.Nope", ".Files.Count 1", "$.Files.b", ".Cap.APIVersions.Has \"v1\"", "$.Cap.APIVersions.Has .s", ".Cap.KubeVersion.Major", ".Cap.KubeVersion", ".Cap.KubeVersion.GitVersion", ".Cap.Nope", ".Cap.Sum 1 2 3", ".Cap.Sum", ".Cap.Sum 1 2.5", ".Cap.Sum \"a\"", ".Cap.Size 1", ".Cap.Extra.x", ".Cap.Extra", ".Cap.APIVersions", ".Cap.Sum .i .i")
	case 15:
		return g.pick(".m.a 1", ".s.x", ".nil.x", ".nope.x", ".nope.x.y", ".m.c.d", ".x.y", "$.m.d.e.f", "(index .l 0).y", "(index .lm 0).name", "(.m).d.e", "(dict \"a\" nil).a.b", "(print 1).x", "nothing.x", "now.x", "(nothing).x", ".Values.r.s", ".Values.r.nope", "$.Values.nope.x", "(first .lm).port")
	case 16:
		if !g.one(3) {
			return g.operand()
		}
		return g.pick("nil", "nil | id", "\"a\" | nil", "(nil)", "1 2", "\"x\" .s", ". 1", "true .", "$ 1", "(1) 2", "undefinedfn 1", "$undefined", "len", "and", "printf", "eq 1", "not 1 2", "slice \"abc\" 1 2 3", "nil.x", "(eq .nil nil)", "eq nil nil")
	default:
		return g.operand()
	}
}

// A call with arguments of the types that it wants.
func (g *generator) typed() string {
	switch g.r.Intn(18) {
	case 0:
		return "upper " + g.str()
	case 1:
		return "repeat 3 " + g.str()
	case 2:
		return "index " + g.list() + " 0"
	case 3:
		return "index " + g.mapping() + " " + g.str()
	case 4:
		return "len " + g.pick(g.str(), g.list(), g.mapping())
	case 5:
		return g.pick("eq", "ne", "lt", "le", "gt", "ge") + " " + g.str() + " " + g.str()
	case 6:
		return g.pick("eq", "ne", "lt", "le", "gt", "ge") + " " + g.number() + " " + g.number()
	case 7:
		return "join \",\" " + g.str() + " " + g.str()
	case 8:
		return "keys (dict " + g.str() + " " + g.arg() + ")"
	case 9:
		return "set (dict) " + g.str() + " " + g.arg()
	case 10:
		return "dict " + g.str() + " " + g.arg() + " " + g.str() + " " + g.arg()
	case 11:
		return "list" + g.args(g.r.Intn(4))
	case 12:
		return "printf " + g.pick("\"%v\" "+g.arg(), "\"%d\" "+g.number(), "\"%s-%s\" "+g.str()+" "+g.str(), "\"%q\" "+g.list(), "\"%5.2f\" .x", "\"%T\" "+g.arg(), "\"%#v\" "+g.arg(), "\"%+v\" "+g.mapping(), "\"%-8s|\" "+g.str(), "\"%08.3f|%x\" 2.5 "+g.str(), "\"%*d\" 5 .i")
	case 13:
		return g.pick("and", "or") + g.args(2)
	case 14:
		return "slice " + g.pick(g.str(), ".l 1 2", ".ss 1", ".is 0 2", ".s 1 3")
	case 15:
		if len(g.names) > 0 {
			return "include " + strconv.Quote(g.names[0]) + g.pick(" .", " $", " "+g.arg())
		}
		return "tpl \"{{ . }}\" " + g.arg()
	default:
		return g.pick("print", "println", "html", "js", "urlquery", "default", "id") + " " + g.arg()
	}
}

func (g *generator) str() string {
	return g.pick("$.s", "$.s", "$.u0", "$.h", "$.e", "\"a\"", "\"k\"", "\"x y\"", "`r`", "(print "+g.operand()+")", "(upper $.s)", "$.ms.k")
}

func (g *generator) number() string {
	return g.pick("1", "2", "$.i", "$.zero", "$.i64", "$.u", "$.u8", "-3", "42", "(len $.s)", "$.x", "2.5")
}

func (g *generator) list() string {
	return g.pick("$.l", "$.ss", "$.is", "(list 1 2)", "(list "+g.operand()+")", "$.by", "$.lm", "$.Cap.APIVersions")
}

func (g *generator) mapping() string {
	return g.pick("$.m", "$.ms", "$.Values", "(dict \"a\" "+g.operand()+")", "$.m.d", "$.em", "$.nm", "$.Files")
}

func (g *generator) format() string {
	if g.one(10) {
		return g.arg()
	}
	s := g.pick("", "a", "x=")
	for range 1 + g.r.Intn(2) {
		s += "%" + g.pick("", "", "", "", "+", "-", "#", "0", " ", "+0", "-0", "#0", "[1]", "[2]", "[9]", "[x]", "# ") + g.pick("", "", "", "5", "10", "*", "1", "200") + g.pick("", "", "", ".2", ".0", ".", ".*", ".10") + g.pick("v", "v", "s", "d", "q", "x", "X", "t", "f", "e", "g", "T", "c", "U", "b", "o", "O", "G", "E", "F", "%", "z", "w", "", "é", "v %v", "d %s")
	}
	return strconv.Quote(s)
}

func (g *generator) args(n int) string {
	s := ""
	for range n {
		s += " " + g.arg()
	}
	return s
}

func (g *generator) arg() string {
	if g.one(4) && g.depth < 4 {
		return "(" + g.pipeline() + ")"
	}
	return g.operand()
}

func (g *generator) operand() string {
	switch g.r.Intn(10) {
	case 0:
		if !g.one(8) {
			return g.pick("1", "0", "-1", "42", "1.5", "1e6", "3", "0x1F", "'a'", "1_0", "2.5e-3")
		}
		return g.pick("1", "0", "-1", "42", "1.5", "1e6", "1e21", "0x1F", "0b11", "0o17", "017", "1_0", "'a'", "'\\n'", "'é'", "1i", "1+2i", "1.0", "3.", ".5", "9223372036854775808", "0x1p4", "1e3", "+5", "1e400", "08", "''", "100000000000000000000", "2.5e-3", "-0", "0x_1", "0.1")
	case 1, 2:
		if !g.one(8) {
			return g.pick("\"a\"", "\"\"", "`raw`", "\"k\"", "\"x\\ty\"", "\"b\"")
		}
		return g.pick("\"a\"", "\"\"", "`raw`", "\"x\\ty\"", "\"\\u00e9\"", "\"k\"", "\"%d\"", "\"a.txt\"", "\"\\x41\"", "\"\\xff\"", "`a\nb`", "\"\\q\"", "\"b\"", "\"hello\"")
	case 3:
		return g.pick("true", "false", "$.nil", ".", "$", "now", "nothing", "nilmap")
	case 4:
		if len(g.vars) > 0 {
			return g.vars[g.r.Intn(len(g.vars))] + g.pick("", "", "", "", "", "", "", ".name", ".a.b")
		}
		return "."
	default:
		return g.pick("", "$", "$", "$") + g.pick(".j", ".nil", ".t", ".f", ".i", ".zero", ".i64", ".u", ".u8", ".x", ".big", ".s", ".e", ".u0", ".h", ".l", ".el", ".ss", ".is", ".by", ".m", ".ms", ".em", ".nm", ".nl", ".Values.q", ".Values", ".m.d", ".m.a", ".m.d.f", ".ms.k", ".ms.nope", ".nope", ".m.nope", ".lm", ".j.a", ".j.name", ".m.c", ".Cap.Size", ".Cap.APIVersions", ".Cap.KubeVersion", ".Files")
	}
}
