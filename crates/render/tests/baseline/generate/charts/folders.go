package main

import (
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

var folderFiles = []string{
	"Chart.yaml", "values.yaml", "templates/a.yaml", "templates/.hidden", "templates/sub/.hidden", ".hidden", "README.md", "files/a.txt", "files/b.md", "files/deep/a.txt", "files/deep/c.txt",
	"docs/a.md", "docs/deep/b.md", "build/x", "src/build/x", "crds/x.yaml", "a.tmp", "sub/a.tmp", "äöü.txt", "keep.md", "charts/s/Chart.yaml", "charts/s/.helmignore", "charts/s/x.tmp", "[odd].txt", "a b.txt",
}

var ignoreTexts = []string{
	"", "# comment\n\n  \n", "*.tmp", "*.md", "README.md", "/README.md", "docs", "docs/", "/docs/", "build", "/build", "files/*.txt", "files/deep", "files/*/a.txt", "*/a.txt", "!*.yaml", "!keep.md\n*.md", "*.md\n!keep.md",
	"!docs/", "**/x", "[", "[a-z].tmp", "\\[odd\\].txt", "a\\", "  *.tmp  ", "*.tmp\r\n*.md\r\n", "\ufeff*.tmp", ".*", "*", "templates", "Chart.yaml", "?.tmp", "a b.txt", "ä*", "charts", "charts/", "charts/s/x.tmp", "x.tmp", "/", "!", "sub/", "*/", "[^a-z]*.txt", "f*/d*/c.txt", "#README.md", "\\#a",
}

func folders() {
	dir, err := os.MkdirTemp("", "folders")
	must(err)
	defer os.RemoveAll(dir)
	texts := map[string]string{"Chart.yaml": about, "values.yaml": "x: 1\n", "charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\n", "charts/s/.helmignore": "*.tmp\n"}
	for _, name := range folderFiles {
		path := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(texts[name]), 0o644))
	}
	lines := []line{{"names": folderFiles, "texts": texts}}
	for _, text := range ignoreTexts {
		must(os.WriteFile(filepath.Join(dir, ".helmignore"), []byte(text), 0o644))
		l := line{"ignore": text}
		c, err := loader.LoadDir(dir)
		if err != nil {
			l["error"] = strings.ReplaceAll(err.Error(), dir, "DIR")
		} else {
			l["loaded"] = dump(c)
		}
		lines = append(lines, l)
	}
	write("folders.jsonl", lines)
}
