// Calls the real helm (4.2.4, of scripts/control-plane, or $HELM) for each Application of cases.json as Argo CD 3.6 would, and writes
// ../../helm_source.json. What a case's options become on the command line, in Argo CD's order, stands in its args.
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

//go:embed cases.json
var input []byte

// What is in cases.json, and what becomes of it.
type baseline struct {
	Helm  string            `json:"helm"`
	Files map[string]string `json:"files"`
	Cases []recorded        `json:"cases"`
}

type recorded struct {
	Name string `json:"name"`
	// spec.source.helm
	Options json.RawMessage `json:"helm"`
	Prints  string          `json:"prints,omitempty"`
	Fails   string          `json:"fails,omitempty"`
}

type called struct {
	Name    string          `json:"name"`
	Options json.RawMessage `json:"helm"`
	// Besides what is below; `inline:TEXT` is the path of a file with this text.
	Args        []string `json:"args"`
	Release     string   `json:"release"`
	Namespace   string   `json:"namespace"`
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions"`
	SkipCRDs    bool     `json:"skipCrds"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func main() {
	helm := or(os.Getenv("HELM"), filepath.Join(os.Getenv("HOME"), ".cache/control-plane/bin/helm"))
	version, err := exec.Command(helm, "version", "--template", "{{.Version}}").Output()
	must(err)
	var in struct {
		Files map[string]string
		Cases []called
	}
	must(json.Unmarshal(input, &in))
	dir, err := os.MkdirTemp("", "source")
	must(err)
	defer os.RemoveAll(dir)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	for name, text := range in.Files {
		write(name, text)
	}
	all := baseline{Helm: string(version), Files: in.Files}
	for _, c := range in.Cases {
		words := c.words(func(text string) string { return write("inline.yaml", text) })
		all.Cases = append(all.Cases, c.record(exec.Command(helm, words...), filepath.Join(dir, "app")))
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	must(enc.Encode(all))
	must(os.WriteFile("../../helm_source.json", out.Bytes(), 0o644))
}

// The command line; inline makes a file of a text.
func (c called) words(inline func(string) string) []string {
	words := []string{"template", ".", "--name-template", or(c.Release, "shop"), "--namespace", or(c.Namespace, "prod")}
	words = append(words, "--kube-version", or(c.KubeVersion, "1.36.3"))
	for _, word := range c.Args {
		if text, ok := strings.CutPrefix(word, "inline:"); ok {
			word = inline(text)
		}
		words = append(words, word)
	}
	apis := c.APIVersions
	if apis == nil {
		apis = []string{"apps/v1", "apps/v1/Deployment"}
	}
	for _, version := range apis {
		words = append(words, "--api-versions", version)
	}
	if !c.SkipCRDs {
		words = append(words, "--include-crds")
	}
	return words
}

func (c called) record(command *exec.Cmd, dir string) recorded {
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	made := recorded{Name: c.Name, Options: c.Options}
	if command.Run() == nil {
		made.Prints = stdout.String()
	} else {
		made.Fails = strings.TrimSpace(stderr.String())
	}
	return made
}
