// Writes the committed baselines of crates/gocompat from the Go libraries themselves.
// Run in this folder: go run . (versions are in go.mod and in the first line of each file).
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	"github.com/gobwas/glob"
	"sigs.k8s.io/yaml"
)

type line map[string]any

func write(name, source string, lines []line) {
	f, err := os.Create("../" + name)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	must(enc.Encode(line{"source": source}))
	for _, l := range lines {
		must(enc.Encode(l))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func parse(in string, strict bool) line {
	f := yaml.YAMLToJSON
	if strict {
		f = yaml.YAMLToJSONStrict
	}
	out, err := f([]byte(in))
	l := line{"in": in}
	if strict {
		l["strict"] = true
	}
	if err != nil {
		l["error"] = err.Error()
		return l
	}
	l["out"] = json.RawMessage(out)
	return l
}

// Numbers as Kubernetes decodes them: int64 or float64.
func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		must(err)
		return f
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = typed(v[k])
		}
	}
	return v
}

func emit(value string) (l line) {
	var v any
	dec := json.NewDecoder(strings.NewReader(value))
	dec.UseNumber()
	must(dec.Decode(&v))
	v = typed(v)
	out, err := yaml.Marshal(v)
	for range 20 {
		if again, _ := yaml.Marshal(v); string(again) != string(out) {
			return line{"in": v, "unstable": true} // the order of some mixed keys depends on Go's map iteration
		}
	}
	l = line{"in": v}
	if err != nil {
		l["error"] = err.Error()
		return l
	}
	l["out"] = string(out)
	return l
}

func quote(v any) string {
	b, err := json.Marshal(v)
	must(err)
	return string(b)
}

func yamlParse() {
	var lines []line
	for _, s := range scalars {
		lines = append(lines, parse("v: "+s+"\n", false))
		lines = append(lines, parse("- \""+strings.ReplaceAll(strings.ReplaceAll(s, "\\", "\\\\"), "\"", "\\\"")+"\"\n", false))
		lines = append(lines, parse(s+": 1\n", false))
	}
	for _, tag := range []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary", "!!timestamp", "!foo", "!"} {
		for _, s := range []string{"1", "1.5", "yes", "null", "aGVsbG8=", "2001-01-01", "\"7\"", "x y", "\"\""} {
			lines = append(lines, parse("v: "+tag+" "+s+"\n", false))
		}
	}
	for _, d := range documents {
		lines = append(lines, parse(d, false), parse(d, true))
	}
	write("yaml_parse.jsonl", "sigs.k8s.io/yaml v1.6.0 YAMLToJSON and YAMLToJSONStrict", lines)
}

func yamlEmit() {
	var lines []line
	for _, s := range append(append([]string{}, scalars...), texts...) {
		lines = append(lines, emit(quote(map[string]any{"k": s})), emit(quote(s)), emit(quote([]any{s, map[string]any{"a": []any{s}}})))
		if len(s) < 200 {
			lines = append(lines, emit(quote(map[string]any{s: "v"})))
		}
	}
	for _, v := range values {
		lines = append(lines, emit(v))
	}
	r := rand.New(rand.NewSource(7))
	alphabet := []rune("abc 01:-#\n'\"\\,[]{}&*!|>%@`?.=~_\té世\U0001F600\u00a0\u2028\r")
	for range 400 {
		n := r.Intn(14)
		if r.Intn(6) == 0 {
			n = 60 + r.Intn(120)
		}
		var s []rune
		for range n {
			if r.Intn(3) == 0 {
				s = append(s, ' ')
			} else if r.Intn(2) == 0 {
				s = append(s, rune('a'+r.Intn(26)))
			} else {
				s = append(s, alphabet[r.Intn(len(alphabet))])
			}
		}
		lines = append(lines, emit(quote(map[string]any{"k": []any{string(s)}, "m": map[string]any{"n": string(s)}})))
	}
	for range 100 {
		m := map[string]any{}
		for range 6 {
			var s []rune
			for range 1 + r.Intn(5) {
				s = append(s, []rune("a0b1.-_/Z29")[r.Intn(11)])
			}
			m[string(s)] = 1
		}
		lines = append(lines, emit(quote(m)))
	}
	write("yaml_emit.jsonl", "sigs.k8s.io/yaml v1.6.0 Marshal", lines)
}

func globs() {
	var lines []line
	for _, p := range patterns {
		for _, seps := range []string{"", "/", "."} {
			g, err := glob.Compile(p, []rune(seps)...)
			l := line{"pattern": p, "separators": seps}
			if err != nil {
				l["error"] = err.Error()
			} else {
				l["matches"] = map[string]bool{}
				for _, s := range subjects {
					l["matches"].(map[string]bool)[s] = g.Match(s)
				}
			}
			lines = append(lines, l)
		}
	}
	write("glob.jsonl", "github.com/gobwas/glob v0.2.3", lines)
}

func durations() {
	var lines []line
	for _, s := range durationTexts {
		d, err := time.ParseDuration(s)
		l := line{"in": s}
		if err != nil {
			l["error"] = err.Error()
		} else {
			l["nanos"] = fmt.Sprint(int64(d))
			l["out"] = d.String()
		}
		lines = append(lines, l)
	}
	write("duration.jsonl", "Go time.ParseDuration and Duration.String", lines)
}

func main() {
	yamlParse()
	yamlEmit()
	globs()
	durations()
}
