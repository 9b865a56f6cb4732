// Writes the baselines of render's charts and values from Helm's own library.
// Run in this folder: go run . (versions are in go.mod and in the first line of each file).
// With folders as arguments it prints what Helm makes of the charts there instead, one a line.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"strings"

	chartapi "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

type line map[string]any

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func write(name string, lines []line) {
	f, err := os.Create("../../" + name)
	must(err)
	defer f.Close()
	print(f, append([]line{{"source": "helm.sh/helm/v4 v4.2.4"}}, lines...))
}

func print(w io.Writer, lines []line) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		must(enc.Encode(l))
	}
}

func names(files []*common.File) []string {
	out := []string{}
	for _, f := range files {
		out = append(out, f.Name)
	}
	return out
}

// The chart with its subcharts, which Helm keeps in no order.
func dump(c *chart.Chart) line {
	a, err := chartapi.NewAccessor(c)
	must(err)
	deps := []line{}
	list := append([]*chart.Chart{}, c.Dependencies()...)
	sort.SliceStable(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
	for _, d := range list {
		deps = append(deps, dump(d))
	}
	values := c.Values
	if values == nil {
		values = map[string]any{}
	}
	return line{"chart": a.MetadataAsMap(), "templates": names(c.Templates), "files": names(c.Files), "values": values, "schema": c.Schema != nil, "locked": c.Lock != nil, "dependencies": deps}
}

func warnings(buf *bytes.Buffer) []string {
	out := []string{}
	for _, l := range strings.Split(buf.String(), "\n") {
		l = strings.TrimPrefix(l, "WARN ")
		if l != "" && !strings.HasPrefix(l, "INFO") {
			out = append(out, l)
		}
	}
	sort.Strings(out)
	return out
}

// What Helm makes of a chart that was loaded.
func process(l line, load func() (*chart.Chart, error), values map[string]any) {
	var buf bytes.Buffer
	log.SetOutput(&buf)
	log.SetFlags(0)
	c, err := load()
	if err != nil {
		l["error"] = err.Error()
		return
	}
	l["loaded"] = dump(c)
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		l["processError"] = err.Error()
		return
	}
	l["processed"] = dump(c)
	top, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "r", Namespace: "n"}, nil)
	l["warnings"] = warnings(&buf)
	if err != nil {
		l["valuesError"] = err.Error()
		return
	}
	l["final"] = top["Values"]
}

func cases() {
	var lines []line
	for _, c := range chartCases {
		files := map[string]string{}
		var names []string
		for _, part := range strings.Split(c.files, "\n-- ")[1:] {
			name, text, _ := strings.Cut(part, " --\n")
			files[name] = text
			names = append(names, name)
		}
		sort.Strings(names)
		values := map[string]any{}
		if c.values != "" {
			v, err := loader.LoadValues(strings.NewReader(c.values))
			must(err)
			values = v
		}
		l := line{"name": c.name, "files": files, "user": values}
		// the order of subcharts is Go's order of maps: only what does not depend on it is a fact
		first := ""
		for try := range 6 {
			out := line{}
			process(out, func() (*chart.Chart, error) {
				var buffered []*archive.BufferedFile
				for _, name := range names {
					buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(files[name])})
				}
				return loader.LoadFiles(buffered)
			}, values)
			text, err := json.Marshal(out)
			must(err)
			if try == 0 {
				first = string(text)
				for k, v := range out {
					l[k] = v
				}
			} else if first != string(text) {
				fmt.Fprintln(os.Stderr, c.name, "is not the same each time")
				l["unstable"] = true
			}
		}
		lines = append(lines, l)
	}
	write("charts.jsonl", lines)
}

func main() {
	if len(os.Args) > 1 {
		for _, dir := range os.Args[1:] {
			l := line{"dir": dir}
			process(l, func() (*chart.Chart, error) { return loader.Load(dir) }, map[string]any{})
			print(os.Stdout, []line{l})
		}
		return
	}
	cases()
	archives()
	folders()
}
