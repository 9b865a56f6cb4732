// Renders the charts in cases.txt with the real helm (4.2.4, of scripts/control-plane, or $HELM) and writes ../../renders.jsonl.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed cases.txt
var cases string

const about = "apiVersion: v2\nname: a\nversion: 1.0.0\n"

type line map[string]any

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	helm := os.Getenv("HELM")
	if helm == "" {
		helm = filepath.Join(os.Getenv("HOME"), ".cache/control-plane/bin/helm")
	}
	version, err := exec.Command(helm, "version", "--template", "{{.Version}}").Output()
	must(err)
	var out bytes.Buffer
	write := func(l line) {
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		must(enc.Encode(l))
	}
	write(line{"source": "helm " + string(version)})
	for _, block := range strings.Split(cases, "\n=== ")[1:] {
		head, body, _ := strings.Cut(block, "\n")
		name, args, _ := strings.Cut(head, " | ")
		files := parse(body)
		if each, ok := files["each"]; ok {
			delete(files, "each")
			for _, expression := range strings.Split(strings.TrimSpace(each), "\n") {
				one := map[string]string{"templates/t.yaml": "v: {{ (" + expression + ") | toString | toJson }}\n"}
				for name, text := range files {
					one[name] = text
				}
				write(render(helm, name+": "+expression, args, one))
			}
			continue
		}
		if schemas, ok := files["schemas"]; ok {
			for _, line := range strings.Split(strings.TrimSpace(schemas), "\n") {
				schema, values, _ := strings.Cut(line, " => ")
				one := map[string]string{"values.schema.json": schema, "values.yaml": values}
				write(render(helm, name+": "+line, args, one))
			}
			continue
		}
		write(render(helm, name, args, files))
	}
	must(os.WriteFile("../../renders.jsonl", out.Bytes(), 0o644))
}

// Files behind lines `-- NAME --`.
func parse(body string) map[string]string {
	files := map[string]string{}
	for _, part := range strings.Split("\n"+body, "\n-- ")[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		files[name] = text + "\n"
	}
	return files
}

func render(helm, name, args string, files map[string]string) line {
	dir, err := os.MkdirTemp("", "chart")
	must(err)
	defer os.RemoveAll(dir)
	if _, ok := files["Chart.yaml"]; !ok {
		files["Chart.yaml"] = about
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(text), 0o644))
	}
	words := strings.Fields(args)
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		words = append([]string{"release-name"}, words...)
	}
	command := exec.Command(helm, append([]string{"template", words[0], dir}, words[1:]...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	l := line{"name": name, "args": words, "files": files}
	if err := command.Run(); err == nil {
		l["output"] = stdout.String()
		return l
	}
	_, told, found := strings.Cut("\n"+stderr.String(), "\nError: ")
	if !found {
		panic(fmt.Sprintf("%s: %s", name, stderr.String()))
	}
	told, _, _ = strings.Cut(told, "\n\nUse --debug flag")
	l["error"] = strings.TrimSuffix(told, "\n")
	return l
}
