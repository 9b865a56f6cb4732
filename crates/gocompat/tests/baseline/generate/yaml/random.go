package main

import (
	"fmt"
	"math/rand"
	"strings"
)

type generator struct {
	r       *rand.Rand
	anchors []string
}

func (g *generator) chance(percent int) bool { return g.r.Intn(100) < percent }

func (g *generator) pick(from []string) string { return from[g.r.Intn(len(from))] }

// Plain texts as people write them, and those that look like something else.
var words = []string{
	"a", "b", "name", "key", "x y", "http://x/y#z", "a:b", "nginx:1.2", "-a", "--flag=x", "-", "?", ":", "?a", ":a", "a#b", "a #b", "é", "日本", "😀 x", "a\u00a0b", "\u2028", "a\u0085b",
	"true", "True", "yes", "No", "on", "off", "y", "N", "null", "~", "Null", "", "0", "-0", "1", "+1", "007", "08", "0o7", "0x1F", "-0x1", "0b11", "1_000", "_1", "1e3", "1E-3",
	"1.", ".5", "1.5", "+.5", "-1.5e+10", "1e400", "1e-400", ".inf", "-.Inf", ".nan", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551616", "0xFFFFFFFFFFFFFFFF", "1:30", "190:20:30.15", "2001-01-01", "2001-01-01T01:02:03Z", "2001-1-1 1:2:3", "2001-02-30", "1.2.3", "v1.2",
	"=", "<<", "@a", "`a", "%a", "a, b", "a]", "{{ .x }}", "a: b", "a\tb", "*.log", "!x", "&", "*", "|", ">", "a  b", "a ", "...", "---", "--- a", "0.1", "100000000000000000000", "1e21", "123456789.123456789",
}

var names = []string{"a", "b", "x", "a1", "x-y", "x_y", "x.", "é", "x:", "x,y", "x]", "", "1"}

var tags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!binary", "!!timestamp", "!!set", "!!merge", "!a", "!", "!<tag:yaml.org,2002:str>", "!e!a", "!!", "!<a", "!a%20b"}

var escapes = []string{`\n`, `\t`, `\"`, `\\`, `\/`, `\x41`, `\u00e9`, `\U0001F600`, `\0`, `\e`, `\_`, `\N`, `\L`, `\P`, `\ `, "\\\n  ", `\q`, `\x4`, `\ud800`, `\'`, `\a`, "\\\t"}

func (g *generator) word() string {
	if g.chance(94) {
		return words[g.r.Intn(9)]
	}
	return g.pick(words)
}

func (g *generator) properties() string {
	p := ""
	if g.chance(7) {
		name := names[g.r.Intn(4)]
		if g.chance(15) {
			name = g.pick(names)
		}
		g.anchors = append(g.anchors, name)
		p += "&" + name + " "
	}
	if g.chance(4) {
		tag := tags[g.r.Intn(5)]
		if g.chance(50) {
			tag = g.pick(tags)
		}
		p += tag + " "
		if g.chance(5) {
			p += g.pick([]string{"&x ", "!!str ", "\n", " # c\n"})
		}
	}
	return p
}

func (g *generator) quoted(indent int, quote string) string {
	var b strings.Builder
	b.WriteString(quote)
	for range g.r.Intn(5) {
		switch g.r.Intn(9) {
		case 0:
			b.WriteString("\n" + strings.Repeat(" ", max(0, indent+g.r.Intn(4)-1)))
		case 1:
			b.WriteString(strings.Repeat("\n", 1+g.r.Intn(3)) + strings.Repeat(" ", indent+1))
		case 2, 3:
			if quote == `"` {
				b.WriteString(g.pick(escapes))
			} else {
				b.WriteString("''")
			}
		case 4:
			b.WriteString(g.pick([]string{" ", "  ", " # ", ": ", "\t", ", ", "{", "]", "'", " \t\n   "}))
		default:
			w := g.word()
			if quote == `'` || !strings.Contains(w, `"`) {
				b.WriteString(w)
			}
		}
	}
	b.WriteString(quote)
	return b.String()
}

// A literal or folded text below something at an indentation.
func (g *generator) block(indent int) string {
	header := g.pick([]string{"|", ">", "|", ">", "|-", ">-", "|+", ">+"})
	own := indent + 1 + g.r.Intn(3)
	if g.chance(20) {
		header += g.pick([]string{"1", "2", "3", "0", "9", "-2", "2+", "+-", "10"})
	}
	if g.chance(10) {
		header += g.pick([]string{" # c", "# c", " ", " x", "\t"})
	}
	b := header + "\n"
	for range g.r.Intn(5) {
		switch g.r.Intn(8) {
		case 0:
			b += strings.Repeat("\n", 1+g.r.Intn(2))
		case 1:
			b += strings.Repeat(" ", g.r.Intn(own+3)) + "\n"
		case 2:
			b += strings.Repeat(" ", own) + g.pick([]string{" ", "\t", "  ", "# ", "- "}) + g.word() + "\n"
		case 3:
			b += strings.Repeat(" ", max(0, own+g.r.Intn(3)-1)) + g.word() + "\n"
		default:
			b += strings.Repeat(" ", own) + g.word() + g.pick([]string{"", "", "", " ", ": x", " # c", "\t"}) + "\n"
		}
	}
	if g.chance(10) {
		b = strings.TrimSuffix(b, "\n")
	}
	return b
}

func (g *generator) alias() string {
	if len(g.anchors) > 0 && g.chance(85) {
		return "*" + g.pick(g.anchors)
	}
	return "*" + g.pick(names)
}

func (g *generator) scalar(indent int) string {
	switch g.r.Intn(12) {
	case 0:
		return g.quoted(indent, `"`)
	case 1:
		return g.quoted(indent, `'`)
	case 2:
		if g.chance(40) {
			return g.alias()
		}
		return g.word()
	case 3:
		deeper := indent + g.r.Intn(3)
		if g.chance(10) {
			deeper = max(0, indent-1)
		}
		return g.word() + "\n" + strings.Repeat(" ", deeper) + g.word()
	default:
		return g.word()
	}
}

func (g *generator) flow(depth, indent int) string {
	space := func() string {
		return g.pick([]string{"", "", " ", " ", " ", "", "", " ", "\n" + strings.Repeat(" ", indent+g.r.Intn(3)), " # c\n ", "\t"})
	}
	item := func() string {
		if depth > 0 && g.chance(25) {
			return g.flow(depth-1, indent)
		}
		return g.properties() + g.scalar(indent)
	}
	list := g.chance(45)
	b := "{"
	if list {
		b = "["
	}
	for i := range g.r.Intn(4) {
		if i > 0 {
			b += g.pick([]string{",", ", ", ", ", ", ", ", ", " ,", ",\n  "})
		}
		b += space()
		if g.chance(4) {
			b += "? "
		}
		b += item()
		if !list && g.chance(90) || g.chance(10) {
			b += g.pick([]string{": ", ": ", ": ", ": ", ":", " : ", " :", ":\t"}) + item()
		}
		b += space()
	}
	if g.chance(5) {
		b += ","
	}
	if g.chance(3) {
		return b + ","
	}
	if list != g.chance(2) {
		return b + "]"
	}
	return b + "}"
}

func (g *generator) key() string {
	switch g.r.Intn(24) {
	case 0:
		return g.quoted(0, `"`)
	case 1:
		return g.quoted(0, `'`)
	case 2:
		if g.chance(60) {
			return g.word()
		}
		return g.pick(words)
	case 3:
		return "<<"
	case 4:
		return g.properties() + g.word()
	case 5:
		if g.chance(60) {
			return g.word()
		}
		return g.pick([]string{"? a\n", "? ", "[a]", "{a: b}", "!!str", "&a", "*a ", "*a", "a b", "a\tb"})
	default:
		return words[g.r.Intn(4)] + g.pick([]string{"", "", "1", "2", "-x", ".y/z"})
	}
}

// What follows a key or a dash, with the line break at its end.
func (g *generator) value(depth, indent int) string {
	comment := g.pick([]string{"", "", "", "", "", "", " # c", "  ", "\t", "\t# c", "#c"})
	switch n := g.r.Intn(20); {
	case n < 4 && depth > 0:
		return " " + g.properties() + comment + "\n" + g.mapping(depth-1, indent+1+g.r.Intn(3))
	case n < 7 && depth > 0:
		return " " + g.properties() + comment + "\n" + g.sequence(depth-1, indent+g.r.Intn(3))
	case n == 7:
		return " " + g.properties() + g.block(indent)
	case n == 8 || n == 9:
		return " " + g.properties() + g.flow(2, indent+1) + comment + "\n"
	case n == 10:
		return comment + "\n"
	case n == 11:
		return "\n" + strings.Repeat(" ", indent+1) + g.properties() + g.scalar(indent+1) + comment + "\n"
	default:
		return g.pick([]string{" ", " ", " ", " ", "  ", "\t", " \t", ""}) + g.properties() + g.scalar(indent+1) + comment + "\n"
	}
}

func (g *generator) between() string {
	if g.chance(93) {
		return ""
	}
	return g.pick([]string{"\n", "# c\n", "   # c\n", "\t\n", "  \n", "\t# c\n", "\r\n", "...\n", "---\n", "%YAML 1.1\n"})
}

func (g *generator) mapping(depth, indent int) string {
	b := ""
	for range 1 + g.r.Intn(4) {
		own := indent
		if g.chance(1) {
			own = max(0, indent+g.r.Intn(3)-1)
		}
		b += strings.Repeat(" ", own) + g.key() + g.pick([]string{":", ":", ":", ":", ":", " :", ":", ":", ":", ":", ":", ":", ":", ":", ":", ""}) + g.value(depth, own) + g.between()
	}
	return b
}

func (g *generator) sequence(depth, indent int) string {
	b := ""
	for range 1 + g.r.Intn(3) {
		own := indent
		if g.chance(1) {
			own = max(0, indent+g.r.Intn(3)-1)
		}
		b += strings.Repeat(" ", own) + "-"
		if depth > 0 && g.chance(30) {
			step := 1 + g.r.Intn(2)
			inner := g.mapping(depth-1, own+1+step)
			if g.chance(25) {
				inner = g.sequence(depth-1, own+1+step)
			}
			b += strings.Repeat(" ", step) + strings.TrimLeft(inner, " ")
		} else {
			b += g.value(depth, own)
		}
		b += g.between()
	}
	return b
}

var damage = []string{"\n", " ", "  ", "\t", "- ", ": ", ":", "|", ">", "#", " #", "'", "\"", "{", "}", "[", "]", ",", "&a ", "*a", "!", "?", "? ", "---\n", "...\n", "\\", "%", "@", "\r", "\u0085", "\u2029", "\ufeff", "\x01", "é", "~", "0"}

func (g *generator) document() string {
	doc := ""
	switch n := g.r.Intn(20); {
	case n < 12:
		doc = g.mapping(1+g.r.Intn(3), 0)
	case n < 15:
		doc = g.sequence(1+g.r.Intn(2), 0)
	case n == 15:
		doc = g.properties() + g.flow(3, 0) + "\n"
	case n == 16:
		doc = g.properties() + g.scalar(0) + "\n"
	case n == 17:
		doc = g.properties() + g.block(0)
	default:
		doc = g.mapping(3, g.r.Intn(3))
	}
	if g.chance(8) {
		doc = g.pick([]string{"---\n", "--- ", "# c\n", "\n", "%YAML 1.1\n---\n", "%TAG !e! tag:e,1:\n---\n", "\ufeff", "---\t", "--- # c\n", "%FOO\n---\n", "%YAML 1.2\n---\n", "%YAML 2.0\n---\n", "..."}) + doc
	}
	if g.chance(5) {
		doc += g.pick([]string{"...\n", "---\nb: 1\n", "... # c\n", "...", "---", "... x\n"})
	}
	if g.chance(5) {
		doc = strings.TrimSuffix(doc, "\n")
	}
	if g.chance(3) {
		doc = strings.ReplaceAll(doc, "\n", "\r\n")
	}
	for g.chance(15) {
		text := []rune(doc)
		at := g.r.Intn(len(text) + 1)
		end := at
		if g.chance(40) {
			end = min(len(text), at+1+g.r.Intn(3))
		}
		with := ""
		if g.chance(70) {
			with = g.pick(damage)
		}
		doc = string(text[:at]) + with + string(text[end:])
	}
	return doc
}

var letters = []rune("abc 01:-#\n'\"\\,[]{}&*!|>%@`?.=~_+\té世\U0001F600\u00a0\u2028\u2029\u0085\r\ufeff\x00\x07\x1b\x7f\ufffd/<eExXoOyYnN")

func (g *generator) text() string {
	if g.chance(35) {
		return g.pick(words)
	}
	n := g.r.Intn(12)
	if g.chance(10) {
		n = 60 + g.r.Intn(120)
	}
	var s []rune
	for len(s) < n {
		switch g.r.Intn(5) {
		case 0:
			s = append(s, ' ')
		case 1:
			s = append(s, letters[g.r.Intn(len(letters))])
		case 2:
			s = append(s, []rune(g.word())...)
		default:
			s = append(s, rune('a'+g.r.Intn(26)))
		}
	}
	return string(s)
}

var numbers = []any{0.0, 1.0, -1.0, 1.5, 1e20, 1e21, 1e-7, 123456789.0, 9007199254740993.0, 1e300, 5e-324, 0.1, 100000.0, 1234567.5, 1e6, 1e15, 1e16, 1e17,
	int64(0), int64(1), int64(-1), int64(9223372036854775807), int64(-9223372036854775808), uint64(18446744073709551615), int64(1000000)}

// A value as the JSON of a manifest gives it.
func (g *generator) tree(depth int) any {
	switch n := g.r.Intn(12); {
	case n < 4 && depth > 0:
		m := map[string]any{}
		for range g.r.Intn(4) {
			key := fmt.Sprint(g.pick([]string{"a", "b", "key", "x"}), g.r.Intn(12))
			if g.chance(30) {
				key = g.text()
			}
			m[key] = g.tree(depth - 1)
		}
		return m
	case n < 6 && depth > 0:
		l := []any{}
		for range g.r.Intn(4) {
			l = append(l, g.tree(depth-1))
		}
		return l
	case n == 6:
		return g.chance(50)
	case n == 7:
		return nil
	case n == 8:
		return numbers[g.r.Intn(len(numbers))]
	default:
		return g.text()
	}
}
