package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

type entry struct {
	name, text string
	flag       byte
}

const about = "apiVersion: v2\nname: a\nversion: 1.0.0\n"

var long = strings.Repeat("folder/", 40) + "file.txt"

var archiveCases = []struct {
	name    string
	entries []entry
}{
	{"a chart", []entry{{"a/Chart.yaml", about, '0'}, {"a/values.yaml", "x: 1\n", '0'}, {"a/templates/x.yaml", "y", '0'}}},
	{"folders", []entry{{"a/", "", '5'}, {"a/Chart.yaml", about, '0'}, {"a/templates/", "", '5'}}},
	{"another folder", []entry{{"b/Chart.yaml", about, '0'}, {"c/values.yaml", "x: 1\n", '0'}}},
	{"a mark", []entry{{"a/Chart.yaml", "\ufeff" + about, '0'}}},
	{"a long name", []entry{{"a/Chart.yaml", about, '0'}, {"a/" + long, "x", '0'}}},
	{"a name that is not ASCII", []entry{{"a/Chart.yaml", about, '0'}, {"a/äöü.txt", "x", '0'}}},
	{"no folder", []entry{{"Chart.yaml", about, '0'}}},
	{"a bare file", []entry{{"file", "x", '0'}}},
	{"parents", []entry{{"a/Chart.yaml", about, '0'}, {"a/../x", "x", '0'}}},
	{"parents inside", []entry{{"a/Chart.yaml", about, '0'}, {"a/b/../x", "x", '0'}}},
	{"parents of parents", []entry{{"a/Chart.yaml", about, '0'}, {"a/b/../../x", "x", '0'}}},
	{"two dots in a name", []entry{{"a/Chart.yaml", about, '0'}, {"a/..x", "x", '0'}}},
	{"absolute", []entry{{"/a/Chart.yaml", about, '0'}}},
	{"absolute inside", []entry{{"a//Chart.yaml", about, '0'}}},
	{"a drive", []entry{{"a/c:/Chart.yaml", about, '0'}}},
	{"backslashes", []entry{{"a\\Chart.yaml", about, '0'}, {"a\\templates\\x.yaml", "x", '0'}}},
	{"backslashes and parents", []entry{{"a\\..\\Chart.yaml", about, '0'}}},
	{"Chart.yaml as a folder", []entry{{"a/Chart.yaml", about, '0'}, {"Chart.yaml/x", "x", '0'}}},
	{"nothing", nil},
	{"only folders", []entry{{"a/", "", '5'}}},
	{"a large file", []entry{{"a/Chart.yaml", about, '0'}, {"a/large", strings.Repeat("0", 5<<20+1), '0'}}},
	{"the largest file", []entry{{"a/Chart.yaml", about, '0'}, {"a/large", strings.Repeat("0", 5<<20), '0'}}},
	{"many large files", append([]entry{{"a/Chart.yaml", about, '0'}}, many(21)...)},
}

func many(n int) (out []entry) {
	for i := range n {
		out = append(out, entry{"a/" + strings.Repeat("x", i+1), strings.Repeat("0", 5<<20), '0'})
	}
	return out
}

func pack(entries []entry) []byte {
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	must(err)
	w := tar.NewWriter(zip)
	for _, e := range entries {
		must(w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.text)), Mode: 0o644, Typeflag: e.flag}))
		_, err := w.Write([]byte(e.text))
		must(err)
	}
	must(w.Close())
	must(zip.Close())
	return buf.Bytes()
}

func archiveLine(name string, data []byte) line {
	l := line{"name": name, "tgz": base64.StdEncoding.EncodeToString(data)}
	c, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		l["error"] = err.Error()
	} else {
		l["loaded"] = dump(c)
	}
	return l
}

func archives() {
	var lines []line
	for _, c := range archiveCases {
		lines = append(lines, archiveLine(c.name, pack(c.entries)))
	}
	whole := pack(archiveCases[0].entries)
	nested := pack([]entry{{"p/Chart.yaml", "apiVersion: v2\nname: p\nversion: 1.0.0\n", '0'}, {"p/charts/a-1.0.0.tgz", string(whole), '0'}, {"p/charts/_b.tgz", "x", '0'}})
	lines = append(lines, archiveLine("an archive in an archive", nested))
	lines = append(lines, archiveLine("no archive in an archive", pack([]entry{{"a/Chart.yaml", about, '0'}, {"a/charts/b.tgz", "text", '0'}})))
	lines = append(lines, archiveLine("empty", nil), archiveLine("one byte", []byte{31}), archiveLine("text", []byte("apiVersion: v2\n")), archiveLine("cut", whole[:len(whole)/2]))
	lines = append(lines, archiveLine("two members", append(append([]byte{}, pack(nil)...), whole...)))
	write("archives.jsonl", lines)
}
