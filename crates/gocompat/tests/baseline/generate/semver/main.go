// Writes versions and constraints, chosen ones and random ones, with what Masterminds/semver says of them, one JSON line a case. The first
// lines have the versions that every constraint is checked with, their order, and why some of them do not fit.
// go run . writes the committed baseline; go run . COUNT SEED writes other random cases to the standard output; go run . answer answers each
// line of the standard input that has a constraint, or a version, and the versions checked.
package main

import (
	"bufio"
	"encoding/json"
	"math/rand"
	"os"
	"sort"
	"strconv"

	"github.com/Masterminds/semver/v3"
)

type line map[string]any

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func result(v *semver.Version, err error) string {
	if err != nil {
		return "!" + err.Error()
	}
	return v.String()
}

func versionLine(text string) line {
	loose, err := semver.NewVersion(text)
	strict, strictErr := semver.StrictNewVersion(text)
	return line{"version": text, "loose": result(loose, err), "strict": result(strict, strictErr)}
}

// What it says of all versions, and why of one.
func constraintLine(text string, versions []*semver.Version, asked int) line {
	c, err := semver.NewConstraint(text)
	if err != nil {
		return line{"constraint": text, "error": err.Error()}
	}
	checks := ""
	for _, v := range versions {
		if c.Check(v) {
			checks += "1"
		} else {
			checks += "0"
		}
	}
	_, reasons := c.Validate(versions[asked])
	why := []string{}
	for _, reason := range reasons {
		why = append(why, reason.Error())
	}
	return line{"constraint": text, "string": c.String(), "checks": checks, "asked": asked, "why": why}
}

// The lines at the beginning.
func heading(texts []string) (lines []line, versions []*semver.Version) {
	lines = append(lines, line{"checked": texts})
	for _, text := range texts {
		versions = append(versions, semver.MustParse(text))
	}
	for _, v := range versions {
		order := ""
		for _, o := range versions {
			order += string("<=>"[v.Compare(o)+1])
		}
		lines = append(lines, line{"compare": v.Original(), "order": order})
	}
	sorted := append([]*semver.Version{}, versions...)
	sort.Stable(semver.Collection(sorted))
	var order []string
	for _, v := range sorted {
		order = append(order, v.Original())
	}
	return append(lines, line{"sorted": order}), versions
}

func answer() {
	in := bufio.NewReader(os.Stdin)
	enc := json.NewEncoder(os.Stdout)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked struct {
			Constraint, Version *string
			Checked             []string
			Asked               int
		}
		must(json.Unmarshal(text, &asked))
		if asked.Version != nil {
			must(enc.Encode(versionLine(*asked.Version)))
			continue
		}
		_, versions := heading(asked.Checked)
		must(enc.Encode(constraintLine(*asked.Constraint, versions, asked.Asked)))
	}
}

func main() {
	if len(os.Args) == 2 {
		answer()
		return
	}
	count, seed, to, committed := 2000, int64(1), os.Stdout, len(os.Args) != 3
	if committed {
		file, err := os.Create("../../semver.jsonl")
		must(err)
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
	write := func(l line) { must(enc.Encode(l)) }
	write(line{"source": "github.com/Masterminds/semver/v3 v3.5.0"})
	versions := checked
	if !committed {
		// Others for every seed, of those that are versions.
		g := &generator{r: rand.New(rand.NewSource(seed))}
		for versions = nil; len(versions) < 40; {
			if text := g.version(false); result(semver.NewVersion(text))[0] != '!' {
				versions = append(versions, text)
			}
		}
	}
	lines, parsed := heading(versions)
	for _, l := range lines {
		write(l)
	}
	if committed {
		for _, text := range versionTexts {
			write(versionLine(text))
		}
		for i, text := range constraintTexts {
			write(constraintLine(text, parsed, i%len(parsed)))
		}
	}
	for i := range count {
		g := &generator{r: rand.New(rand.NewSource(seed*1_000_003 + int64(i)))}
		write(constraintLine(g.constraint(), parsed, g.r.Intn(len(parsed))))
		if i%4 == 0 {
			write(versionLine(g.damaged(g.version(false), 30)))
		}
	}
}
