// Builds the kustomizations in cases.txt with the real kustomize (5.8.1, of scripts/control-plane, or $KUSTOMIZE) and writes
// ../../kustomize.jsonl.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed cases.txt
var cases string

type line map[string]any

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	kustomize := os.Getenv("KUSTOMIZE")
	if kustomize == "" {
		kustomize = filepath.Join(os.Getenv("HOME"), ".cache/control-plane/bin/kustomize")
	}
	version, err := exec.Command(kustomize, "version").Output()
	must(err)
	var out bytes.Buffer
	write := func(l line) {
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		must(enc.Encode(l))
	}
	write(line{"source": "kustomize " + strings.TrimSpace(string(version))})
	for _, block := range strings.Split(cases, "\n=== ")[1:] {
		head, body, _ := strings.Cut(block, "\n")
		name, rest, _ := strings.Cut(head, " | ")
		words := strings.Fields(rest)
		folder := "."
		if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
			folder, words = words[0], words[1:]
		}
		write(build(kustomize, name, folder, words, parse(body)))
	}
	must(os.WriteFile("../../kustomize.jsonl", out.Bytes(), 0o644))
}

func parse(body string) map[string]string {
	files := map[string]string{}
	for _, part := range strings.Split("\n"+body, "\n-- ")[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		files[name] = strings.TrimRight(text, "\n") + "\n"
	}
	return files
}

func build(kustomize, name, folder string, flags []string, files map[string]string) line {
	root, err := os.MkdirTemp("", "kustomize")
	must(err)
	defer os.RemoveAll(root)
	for path, text := range files {
		path = filepath.Join(root, path)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(text), 0o644))
	}
	command := exec.Command(kustomize, append([]string{"build", folder}, flags...)...)
	command.Dir = root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	result := line{"id": name, "folder": folder, "flags": flags, "files": files}
	if err != nil {
		text := stderr.String()
		if at := strings.Index(text, "Error: "); at >= 0 {
			text = text[at+len("Error: "):]
		}
		result["error"] = strings.ReplaceAll(strings.TrimSpace(text), root, "")
	} else {
		result["yaml"] = string(stdout)
	}
	return result
}
