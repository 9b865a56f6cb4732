package main

import (
	"fmt"
	"math/rand"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"
)

var versionTexts = []string{
	"", "v", "1", "v1", "V1", "1.2", "v1.2", "1.2.3", "v1.2.3", "1.2.3.4", "01.2.3", "1.02.3", "1.2.03", "1.2.3-01", "1.2.3-0", "1.2.3-a.01", "1.2.3-a.1",
	"1.2.3-", "1.2.3+", "1.2.3-+", "1.2.3-a..b", "1.2.3+a..b", "1.2.3-a_b", "1.2.3+a_b", "1.2.3--", "1.2.3-a-b+c-d", "1.2.3+c-d", "1.2.3+01", "1.2.3+a+b",
	"1..3", ".1.2", "1.2.", "a.b.c", "1.2.x", "1.x", "*", "latest", " 1.2.3", "1.2.3 ", "1.2.3\n", "-1.2.3", "1.-2.3", "1-alpha", "1.2-alpha", "1+m", "1.2+m",
	"18446744073709551615.0.0", "18446744073709551616.0.0", "0.18446744073709551616.0", "0.0.18446744073709551616", "1.2.3-18446744073709551616",
	"1.2.3-18446744073709551615", "é.1.2", "1.2.é", "1.2.3-é", "1.2.3+é", "v01", "v1.2.3-rc.1+build.5", "0.0.0", "0", "1.31.2-gke.1000", "v1.30.1+k3s1",
	strings.Repeat("1", 256), strings.Repeat("1", 257), "1.2.3-" + strings.Repeat("a", 260),
}

var checked = []string{
	"0.0.0", "0.0.1", "0.0.3", "0.1.0", "0.1.9", "0.2.0", "0.2.3", "0.2.4", "1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.2.0", "1.2.2", "1.2.3", "1.2.4", "1.3.0", "1.9.9",
	"2.0.0", "2.1.3", "3.0.0", "11.1.0", "12.0.0", "1.2.3-alpha", "1.2.3-alpha.1", "1.2.3-alpha.beta", "1.2.3-beta", "1.2.3-beta.2", "1.2.3-beta.11", "1.2.3-rc.1",
	"1.2.3+meta", "1.2.0-0", "2.0.0-rc1", "0.0.0-alpha", "0.1.0-beta.1", "v1.29.3-eks-adc7111", "1.30", "1", "1.2.3-18446744073709551616", "1.2.3-99", "1.2.3-9-",
}

var constraintTexts = []string{
	"", " ", "*", "x", "X", "*.*", "x.x.x", "1", "1.x", "1.2.x", "1.X.3", "1.2", "v1.2.3", "=1.2.3", "= 1.2", "==1", "!=1.2.3", "!=1.2", "!=1", "!=*", "!=x.2.3", "!1", ">1", ">1.2",
	">1.2.3", ">*", ">=1.2", ">= 1.2.3", "=>1.2", "<1", "<1.2", "<=1.2", "=<1.2.3", "<=1", "<=*", "<*", ">=*", "~1", "~1.2", "~1.2.3", "~>1.2", "~*", "~0", "~0.0.0", "~0.0", "~x.1", "^1",
	"^1.2", "^1.2.3", "^0", "^0.0", "^0.0.3", "^0.2.3", "^0.2", "^*", "^0.0.0", "^x.2", "~^1", "><1", "> = 1", "1 - 2", "1.2 - 1.2.3", "1.0.0-alpha - 1.2.3-beta", "1 -2", "1- 2", "1-2", " 1 - 2 ",
	"1 - 2 || 3", "1 - 2, !=1.2", "1 - 2 - 3", ">=1 <2", ">=1,<2", ">=1, <2", ">= 1 , < 2", ">=1  <2", ">=1 ,<2", ">=1,,<2", ",>=1", ">=1,", "1 2", "1 || 2", "1||2", "||", "1 ||", "|| 1", "1 | 2", "1|2",
	">=1.2.3-0", ">=1.2.3-alpha", "~1.2.3-alpha", "^1.2.3-beta.2", "=1.2.3-alpha", "!=1.2.3-alpha", "!=1.2.x-alpha", "1.2.x-beta", "<1.2.3-rc.1", ">1.2.3-alpha", "*-0", ">=0-0", "^0-0", ">=1.19-0", ">= 1.19.0-0 < 1.40.0-0",
	">=1.2.3+meta", "=1.2.3+x", "1.2.3 1.2.4", ">1.0\t<2.0", ">1.0\n<2.0", ">1.0\v<2.0", "foo", "v1.x", "vx", "vv1", "1.2.3.4", "01.2", "^01", ">18446744073709551616", "1.xx", "**", "1.*.*", "1.*.3", "*.2.3",
	"\"quoted\"", "é", "a\x00b", "1 - é", "\u2028", ">=1.2.3 || <0.5 !=0.1.0", "~1.2 || ~1.3", ">=1.16.0-0 <1.22.0 || >=1.23", strings.Repeat("1||", 31) + "1", strings.Repeat("1||", 32) + "1", strings.Repeat("1 ", 256) + "1",
}

var signs = []string{"", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^"}

func randomNumber(r *rand.Rand) string {
	switch r.Intn(9) {
	case 0:
		return []string{"x", "X", "*"}[r.Intn(3)]
	case 1:
		return fmt.Sprint(r.Intn(14))
	default:
		return fmt.Sprint(r.Intn(4))
	}
}

func randomVersion(r *rand.Rand) string {
	v := ""
	if r.Intn(12) == 0 {
		v = "v"
	}
	v += randomNumber(r)
	for range r.Intn(3) {
		v += "." + randomNumber(r)
	}
	if r.Intn(5) == 0 {
		v += "-" + []string{"0", "alpha", "beta.2", "rc.1", "beta.11", "alpha.beta"}[r.Intn(6)]
	}
	if r.Intn(15) == 0 {
		v += "+m"
	}
	return v
}

func randomConstraint(r *rand.Rand) string {
	c := ""
	for i := range 1 + r.Intn(2)*r.Intn(3) {
		if i > 0 {
			c += []string{"||", " || ", "|| "}[r.Intn(3)]
		}
		for j := range 1 + r.Intn(2)*r.Intn(3) {
			if j > 0 {
				c += []string{" ", ",", ", ", " , ", "  "}[r.Intn(5)]
			}
			if r.Intn(10) == 0 {
				c += randomVersion(r) + " - " + randomVersion(r)
			} else {
				c += signs[r.Intn(len(signs))] + []string{"", "", " "}[r.Intn(3)] + randomVersion(r)
			}
		}
	}
	return c
}

func result(v *semver.Version, err error) string {
	if err != nil {
		return "!" + err.Error()
	}
	return v.String()
}

func constraintLine(r *rand.Rand, text string, versions []*semver.Version) line {
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
	why := map[string][]string{}
	for range 2 {
		v := versions[r.Intn(len(versions))]
		_, reasons := c.Validate(v)
		texts := []string{}
		for _, reason := range reasons {
			texts = append(texts, reason.Error())
		}
		why[v.Original()] = texts
	}
	return line{"constraint": text, "string": c.String(), "checks": checks, "why": why}
}

func semvers() {
	lines := []line{{"checked": checked}}
	for _, text := range versionTexts {
		loose, err := semver.NewVersion(text)
		strict, strictErr := semver.StrictNewVersion(text)
		lines = append(lines, line{"version": text, "loose": result(loose, err), "strict": result(strict, strictErr)})
	}
	var versions []*semver.Version
	for _, text := range checked {
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
	var texts []string
	for _, v := range sorted {
		texts = append(texts, v.Original())
	}
	lines = append(lines, line{"sorted": texts})
	r := rand.New(rand.NewSource(11))
	for _, text := range constraintTexts {
		lines = append(lines, constraintLine(r, text, versions))
	}
	for range 500 {
		lines = append(lines, constraintLine(r, randomConstraint(r), versions))
	}
	write("semver.jsonl", "github.com/Masterminds/semver/v3 v3.5.0", lines)
}
