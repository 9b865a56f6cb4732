// Makes random YAML documents and values, and writes what sigs.k8s.io/yaml (and go-yaml v3, for Helm's toYamlPretty) make of them, one
// JSON line a case: d document, s read strictly, j its JSON, e why it is none; v value, y its YAML, p the same by go-yaml v3.
// go run . writes the committed baseline; go run . COUNT SEED writes other cases to the standard output; go run . answer answers each line
// of the standard input that has a d or a v.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

type line struct {
	Document *string         `json:"d,omitempty"`
	Strict   bool            `json:"s,omitempty"`
	JSON     json.RawMessage `json:"j,omitempty"`
	Error    string          `json:"e,omitempty"`
	Value    json.RawMessage `json:"v,omitempty"`
	YAML     string          `json:"y,omitempty"`
	Pretty   string          `json:"p,omitempty"`
}

// False when it has keys that only differ in type, of which Go takes any.
func read(document string, strict bool) (l line, ok bool) {
	convert := yaml.YAMLToJSON
	if strict {
		convert = yaml.YAMLToJSONStrict
	}
	l = line{Document: &document, Strict: strict}
	defer func() {
		if r := recover(); r != nil {
			l.Error, ok = fmt.Sprint("panic: ", r), true
		}
	}()
	for i := range 4 {
		out, err := convert([]byte(document))
		switch {
		case err != nil:
			l.Error = err.Error()
		case i > 0 && !bytes.Equal(out, l.JSON):
			return l, false
		default:
			l.JSON = out
		}
	}
	return l, true
}

func pretty(v any) (string, error) {
	var b bytes.Buffer
	enc := yaml3.NewEncoder(&b)
	enc.SetIndent(2)
	err := enc.Encode(v)
	return b.String(), err
}

// False when the order of some keys depends on the order in which Go goes through a map.
func print(v any) (l line, ok bool) {
	for i := range 4 {
		out, err := yaml.Marshal(v)
		if err != nil {
			l.Error = err.Error()
		}
		nice, err := pretty(v)
		if err != nil {
			return l, false
		}
		if i > 0 && (string(out) != l.YAML || nice != l.Pretty) {
			return l, false
		}
		l.YAML, l.Pretty = string(out), nice
	}
	value, err := json.Marshal(v)
	must(err)
	l.Value = value
	return l, true
}

// Numbers as Kubernetes decodes them: whole ones and floats.
func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return u
		}
		f, _ := v.Float64()
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

func parsed(text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	must(dec.Decode(&v))
	return typed(v)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func encoder(w *bufio.Writer) func(any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return func(v any) { must(enc.Encode(v)) }
}

func answer() {
	w := bufio.NewWriter(os.Stdout)
	write := encoder(w)
	in := bufio.NewReader(os.Stdin)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked line
		must(json.Unmarshal(text, &asked))
		if asked.Document != nil {
			l, _ := read(*asked.Document, asked.Strict)
			write(l)
		} else if l, ok := print(parsed(asked.Value)); ok {
			write(l)
		} else {
			write(line{Value: asked.Value})
		}
		must(w.Flush())
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "answer" {
		answer()
		return
	}
	count, seed, to := 2000, int64(1), os.Stdout
	if len(os.Args) == 3 {
		count, _ = strconv.Atoi(os.Args[1])
		seed, _ = strconv.ParseInt(os.Args[2], 10, 64)
	} else {
		file, err := os.Create("../../yaml.jsonl")
		must(err)
		defer file.Close()
		to = file
	}
	w := bufio.NewWriter(to)
	defer w.Flush()
	write := encoder(w)
	write(map[string]string{"source": "sigs.k8s.io/yaml v1.6.0 with go.yaml.in/yaml/v2 v2.4.3, go.yaml.in/yaml/v3 v3.0.4"})
	for i := range count {
		g := &generator{r: rand.New(rand.NewSource(seed*1_000_003 + int64(i)))}
		document := strings.ToValidUTF8(g.document(), "")
		if l, ok := read(document, g.chance(15)); ok {
			write(l)
		}
		// Through JSON, as everything that is printed came.
		value, err := json.Marshal(g.tree(3))
		must(err)
		if l, ok := print(parsed(value)); ok {
			write(l)
		}
	}
}
