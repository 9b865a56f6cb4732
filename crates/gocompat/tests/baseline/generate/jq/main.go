// Runs jq programs with gojq and writes what came out, one JSON line a case: q program, i input, o results, e the error that ended them,
// c why it does not compile. go run . writes the committed baseline: the cases of cases.go and some random ones;
// go run . COUNT SEED writes other random cases to the standard output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

type line struct {
	Program string          `json:"q"`
	Input   json.RawMessage `json:"i"`
	Results []string        `json:"o,omitempty"`
	Error   string          `json:"e,omitempty"`
	Compile string          `json:"c,omitempty"`
}

const most = 200

// Numbers as the library hands them on: whole ones and floats.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return int(i)
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// False when the program does not end in time, or when gojq itself panics: its assignments do where an argument backtracks.
func run(program, input string) (l line, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	l = line{Program: program, Input: json.RawMessage(input)}
	query, err := gojq.Parse(program)
	if err != nil {
		l.Compile = err.Error()
		return l, true
	}
	code, err := gojq.Compile(query)
	if err != nil {
		l.Compile = err.Error()
		return l, true
	}
	dec := json.NewDecoder(strings.NewReader(input))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		panic(input)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	iter := code.RunWithContext(ctx, plain(v))
	for len(l.Results) < most {
		v, ok := iter.Next()
		if !ok {
			break
		}
		if err, ok := v.(error); ok {
			if ctx.Err() != nil {
				return l, false
			}
			l.Error = err.Error()
			break
		}
		text, err := gojq.Marshal(v)
		if err != nil {
			panic(err)
		}
		if len(text) > 20_000 {
			return l, false
		}
		l.Results = append(l.Results, string(text))
	}
	return l, true
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "github.com/itchyny/gojq" {
			return dep.Version
		}
	}
	return "?"
}

func main() {
	count, seed, to, committed := 500, int64(1), os.Stdout, len(os.Args) != 3
	if committed {
		file, err := os.Create("../../jq.jsonl")
		if err != nil {
			panic(err)
		}
		defer file.Close()
		to = file
	} else {
		count, _ = strconv.Atoi(os.Args[1])
		seed, _ = strconv.ParseInt(os.Args[2], 10, 64)
	}
	w := bufio.NewWriter(to)
	defer w.Flush()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	write := func(v any) {
		if err := enc.Encode(v); err != nil {
			panic(err)
		}
	}
	write(map[string]string{"source": "gojq " + version()})
	emit := func(program, input string) {
		if l, ok := run(program, input); ok {
			write(l)
		} else if committed {
			fmt.Fprintln(os.Stderr, "does not end:", program)
		}
	}
	if committed {
		for _, group := range cases {
			for _, program := range strings.Split(strings.Trim(group.programs, "\n"), "\n") {
				emit(program, group.input)
			}
		}
	}
	for i := range count {
		g := &generator{r: rand.New(rand.NewSource(seed*1_000_003 + int64(i)))}
		emit(g.program(), inputs[g.r.Intn(len(inputs))])
	}
}
