// Makes random templates, executes them with Go's text/template and writes what came out, one JSON line a case.
// go run . writes the committed baseline; go run . COUNT SEED writes other cases to the standard output.
// crates/gocompat/tests/template has the same functions and values in Rust.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"
)

type caseLine struct {
	Text  string `json:"t"`
	Data  any    `json:"j,omitempty"`
	Key   string `json:"k,omitempty"`
	Out   string `json:"o,omitempty"`
	Error string `json:"e,omitempty"`
	Hex   bool   `json:"x,omitempty"`
}

const always = "{{- define \"always\" -}}<{{ with . }}{{ print . | upper }}{{ end }}>{{- end -}}"

// Ends without an outcome when a template loops too long.
func execute(text, key string, data any) (out, failure string, ok bool) {
	type outcome struct{ out, failure string }
	done := make(chan outcome, 1)
	go func() {
		out, failure := executeNow(text, key, data)
		done <- outcome{out, failure}
	}()
	select {
	case o := <-done:
		return o.out, o.failure, true
	case <-time.After(2 * time.Second):
		return "", "", false
	}
}

func executeNow(text, key string, data any) (out, failure string) {
	root := template.New("root")
	if key != "" {
		root.Option("missingkey=" + key)
	}
	included := map[string]int{}
	root.Funcs(functions(root, included, key))
	if _, err := root.New("always.tpl").Parse(always); err != nil {
		panic(err)
	}
	if _, err := root.New("dir/t.yaml").Parse(text); err != nil {
		return "", err.Error()
	}
	var b strings.Builder
	if err := root.ExecuteTemplate(&b, "dir/t.yaml", data); err != nil {
		return b.String(), err.Error()
	}
	return b.String(), ""
}

func main() {
	count, seed, to := 2000, int64(1), os.Stdout
	if len(os.Args) == 3 {
		count, _ = strconv.Atoi(os.Args[1])
		seed, _ = strconv.ParseInt(os.Args[2], 10, 64)
	} else {
		file, err := os.Create("../../template.jsonl")
		if err != nil {
			panic(err)
		}
		defer file.Close()
		to = file
	}
	w := bufio.NewWriter(to)
	defer w.Flush()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]string{"source": "text/template of " + runtime.Version()}); err != nil {
		panic(err)
	}
	for i := range count {
		g := &generator{r: rand.New(rand.NewSource(seed*1_000_003 + int64(i))), blocks: new(int)}
		c := caseLine{Text: g.file()}
		c.Key = []string{"", "zero", "zero", "zero", "error"}[g.r.Intn(5)]
		c.Data = g.json(3)
		if !utf8.ValidString(c.Text) {
			continue
		}
		// Decoded again, so that numbers are float64 as they are in charts.
		raw, err := json.Marshal(c.Data)
		if err != nil {
			panic(err)
		}
		var j any
		if err := json.Unmarshal(raw, &j); err != nil {
			panic(err)
		}
		var ok bool
		if c.Out, c.Error, ok = execute(c.Text, c.Key, universe(j)); !ok {
			continue
		}
		var again any
		if err := json.Unmarshal(raw, &again); err != nil {
			panic(err)
		}
		if out, failure, _ := execute(c.Text, c.Key, universe(again)); out != c.Out || failure != c.Error {
			continue // addresses, or a changed value that was seen again
		}
		if !utf8.ValidString(c.Out) || !utf8.ValidString(c.Error) {
			c.Hex, c.Out, c.Error = true, fmt.Sprintf("%x", c.Out), fmt.Sprintf("%x", c.Error)
		}
		if len(c.Out)+len(c.Error) > 20000 {
			continue
		}
		if err := enc.Encode(c); err != nil {
			panic(err)
		}
	}
}
