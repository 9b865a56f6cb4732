// Writes the baseline of gocompat's strvals from the library that Helm uses.
// Run in this folder: go run . (versions are in go.mod and in the first line of each file).
package main

import (
	"encoding/json"
	"os"
)

type line map[string]any

func write(name, source string, lines []line) {
	f, err := os.Create("../../" + name)
	must(err)
	defer f.Close()
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	must(enc.Encode(line{"source": source}))
	for _, l := range lines {
		must(enc.Encode(l))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	setLines()
}
