// Calls the functions of Masterminds/sprig from templates and writes what came out, one JSON line a call.
// Run in this folder: go run . (versions are in go.mod and in the first line). crates/gocompat/tests/sprig has the same values in Rust.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"sort"
	"strings"
	"text/template"
	"time"
	_ "time/tzdata"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"
)

type line struct {
	Text  string `json:"t"`
	Out   string `json:"o,omitempty"`
	Error string `json:"e,omitempty"`
}

const random = 14

func functions() template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env")
	delete(f, "expandenv")
	f["getHostByName"] = func(string) string { return "" }
	return f
}

// The dot: what templates cannot make themselves.
func dot() map[string]any {
	return map[string]any{
		"nil": nil, "u8": uint8(200), "i32": int32(-7), "by": []byte("bytes"), "ss": []string{"x", "b", "x"}, "is": []int{3, 1, 3},
		"nm": map[string]any(nil), "nl": []any(nil), "ms": map[string]string{"k": "v", "z": "w"},
		"m": map[string]any{"a": 1, "b": "two", "c": nil, "d": map[string]any{"e": 5.0, "f": []any{"g"}}, "l": []any{1, "x"}},
		"l": []any{"a", 1, 2.5, nil, true, []any{1.0}, "a"}, "bad": "a\xffb",
	}
}

func execute(text string) (out, failure string) {
	t, err := template.New("t").Funcs(functions()).Parse(text)
	if err != nil {
		return "", err.Error()
	}
	var b strings.Builder
	if err := t.Execute(&b, dot()); err != nil {
		return b.String(), err.Error()
	}
	return b.String(), ""
}

type writer struct {
	enc  *json.Encoder
	seen map[string]bool
}

func (w *writer) call(text string) {
	if w.seen[text] {
		return
	}
	w.seen[text] = true
	out, failure := execute(text)
	for range 4 { // what Go answers differently each time is no baseline
		again, failed := execute(text)
		if again != out || failed != failure {
			return
		}
	}
	if !utf8.ValidString(out) || !utf8.ValidString(failure) || len(out)+len(failure) > 3000 {
		return
	}
	if err := w.enc.Encode(line{text, out, failure}); err != nil {
		panic(err)
	}
}

// Calls of every function with random arguments of its kinds; one in eight is of another kind.
func (w *writer) random(r *rand.Rand) {
	names := []string{}
	for name := range signatures {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		kinds := strings.Fields(signatures[name])
		for range random {
			args := []string{}
			for _, kind := range kinds {
				times := 1
				if strings.HasSuffix(kind, "*") {
					kind, times = strings.TrimSuffix(kind, "*"), r.Intn(4)
				}
				for range times {
					if r.Intn(8) == 0 && kind != "date" { // what is no date is now
						kind = "any"
					}
					pool := pools[kind]
					if kind == "str" && strings.Contains(strings.ToLower(name), "regex") && name != "regexQuoteMeta" {
						pool = slices.DeleteFunc(slices.Clone(pool), func(arg string) bool { return arg == ".bad" }) // a known difference
					}
					args = append(args, pool[r.Intn(len(pool))])
				}
			}
			w.call(fmt.Sprintf("{{ $d := dict \"a\" 1 \"m\" (dict \"x\" 1 \"l\" (list 1)) }}{{ $r := %s %s }}{{ printf \"%%T %%v %%q\" $r $r $r }} {{ $d }}", name, strings.Join(args, " ")))
		}
	}
}

func main() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	time.Local = berlin
	f, err := os.Create("../../sprig.jsonl")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	w := &writer{enc: json.NewEncoder(f), seen: map[string]bool{}}
	w.enc.SetEscapeHTML(false)
	if err := w.enc.Encode(map[string]string{"source": "github.com/Masterminds/sprig/v3 v3.3.0"}); err != nil {
		panic(err)
	}
	for _, text := range chosen {
		w.call(text)
	}
	w.random(rand.New(rand.NewSource(1)))
}
