package main

import (
	"fmt"
	"math/rand"
	"strings"
)

type generator struct{ r *rand.Rand }

func (g *generator) chance(percent int) bool { return g.r.Intn(100) < percent }

func (g *generator) pick(from []string) string { return from[g.r.Intn(len(from))] }

var signs = []string{"", "", "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^"}

var pieces = []string{"0", "alpha", "beta.2", "rc.1", "beta.11", "alpha.beta", "1", "01", "-", "a-b", "18446744073709551616", "é", "", "a..b", "a_b", "9", "10", "x"}

func (g *generator) number(any bool) string {
	switch n := g.r.Intn(100); {
	case n < 10 && any:
		return g.pick([]string{"x", "X", "*"})
	case n < 20:
		return fmt.Sprint(g.r.Intn(14))
	case n == 20:
		return g.pick([]string{"00", "01", "18446744073709551615", "18446744073709551616", "9999999999", "é", ""})
	default:
		return fmt.Sprint(g.r.Intn(4))
	}
}

func (g *generator) version(any bool) string {
	v := ""
	if g.chance(8) {
		v = "v"
	}
	v += g.number(any)
	for range []int{2, 2, 2, 1, 0, 3}[g.r.Intn(6)] {
		v += "." + g.number(any)
	}
	if g.chance(25) {
		n := 6
		if g.chance(20) {
			n = len(pieces)
		}
		v += "-" + pieces[g.r.Intn(n)]
	}
	if g.chance(8) {
		v += "+" + g.pick([]string{"m", "build.5", "a..b", "", "a+b", "é"})
	}
	return v
}

var damage = []string{" ", ",", "||", "|", "-", " - ", "x", ".", "v", "=", ">", "<", "!", "~", "^", "*", "\t", "\n", "\u00a0", "é", "\"", "0", "(", "\\"}

func (g *generator) damaged(text string, percent int) string {
	for g.chance(percent) {
		r := []rune(text)
		at := g.r.Intn(len(r) + 1)
		end := at
		if g.chance(40) {
			end = min(len(r), at+1)
		}
		with := ""
		if g.chance(70) {
			with = g.pick(damage)
		}
		text = string(r[:at]) + with + string(r[end:])
	}
	return text
}

func (g *generator) constraint() string {
	c := ""
	for i := range 1 + g.r.Intn(2)*g.r.Intn(3) {
		if i > 0 {
			c += g.pick([]string{"||", " || ", "|| ", " ||"})
		}
		for j := range 1 + g.r.Intn(2)*g.r.Intn(3) {
			if j > 0 {
				c += g.pick([]string{" ", ",", ", ", " , ", "  "})
			}
			if g.chance(10) {
				c += g.version(true) + g.pick([]string{" - ", " - ", "  -  ", " -", "- "}) + g.version(true)
			} else {
				c += g.pick(signs) + g.pick([]string{"", "", " ", "  "}) + g.version(true)
			}
		}
	}
	return strings.ToValidUTF8(g.damaged(c, 8), "")
}
