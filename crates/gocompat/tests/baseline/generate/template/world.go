package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"text/template"
)

// Values that JSON cannot say.

type files map[string][]byte

func (f files) Get(name string) string     { return string(f[name]) }
func (f files) Lines(name string) []string { return strings.Split(string(f[name]), "\n") }
func (f files) Count() int                 { return len(f) }
func (f files) Need(name string) (string, error) {
	if _, ok := f[name]; !ok {
		return "", errors.New("no file " + name)
	}
	return name, nil
}

type versions []string

func (v versions) Has(s string) bool {
	for _, x := range v {
		if x == s {
			return true
		}
	}
	return false
}

type version struct{ Major, Minor string }

func (v *version) String() string     { return "v" + v.Major + "." + v.Minor }
func (v *version) GitVersion() string { return v.String() }

type capabilities struct {
	KubeVersion *version
	APIVersions versions
	Size        int
	Extra       map[string]any
}

func (c *capabilities) String() string { return "caps" }

func (c *capabilities) Sum(a int, rest ...int) int {
	for _, x := range rest {
		a += x
	}
	return a
}

type named map[string]any

func universe(j any) any {
	return named{
		"j": j, "nil": nil, "t": true, "f": false, "i": 42, "zero": 0, "i64": int64(-7), "u": uint(9), "u8": uint8(200), "x": 2.5, "big": 1e21,
		"s": "hello", "e": "", "u0": "héllo ☺", "h": "<a href=\"x\">O'Neil & co=</a>",
		"l": []any{"a", 1, 2.5, nil, true, []any{1.0}}, "el": []any{}, "ss": []string{"x", "y", "z"}, "is": []int{3, 1, 2}, "by": []byte("bytes"),
		"m": map[string]any{"a": 1, "b": "two", "c": nil, "d": map[string]any{"e": 5.0, "f": []any{"g"}}}, "ms": map[string]string{"k": "v", "z": "w"},
		"em": map[string]any{}, "nm": map[string]any(nil), "nl": []any(nil), "Values": named{"q": 1.0, "r": named{"s": "deep"}},
		"Files": files{"a.txt": []byte("one\ntwo"), "b": []byte("")},
		"Cap":   &capabilities{KubeVersion: &version{"1", "33"}, APIVersions: versions{"v1", "apps/v1"}, Size: 3},
		"lm":    []any{map[string]any{"name": "n1", "port": 80.0}, map[string]any{"name": "n2"}},
	}
}

func functions(t *template.Template, included map[string]int, key string) template.FuncMap {
	return template.FuncMap{
		"upper":  strings.ToUpper,
		"repeat": func(n int, s string) string { return strings.Repeat(s, max(0, min(n, 5))) },
		"first": func(l []any) any {
			if len(l) == 0 {
				return nil
			}
			return l[0]
		},
		"keys": func(m map[string]any) []string {
			k := []string{}
			for x := range m {
				k = append(k, x)
			}
			sort.Strings(k)
			return k
		},
		"fail": func(s string) (string, error) { return "", errors.New(s) },
		"id":   func(v any) any { return v },
		"dict": func(v ...any) map[string]any {
			m := map[string]any{}
			for i := 0; i < len(v); i += 2 {
				if i+1 < len(v) {
					m[fmt.Sprint(v[i])] = v[i+1]
				} else {
					m[fmt.Sprint(v[i])] = ""
				}
			}
			return m
		},
		"list": func(v ...any) []any { return v },
		"set": func(m map[string]any, k string, v any) (map[string]any, error) {
			switch v.(type) { // what holds itself ends Go when it is printed
			case map[string]any, named, []any:
				return nil, errors.New("set takes no maps or lists")
			}
			m[k] = v
			return m, nil
		},
		"half":    func(f float64) float64 { return f / 2 },
		"negate":  func(b bool) bool { return !b },
		"i64":     func(i int64) int64 { return i%100 + 1 },
		"unsign":  func(u uint) uint { return u },
		"join":    func(sep string, s ...string) string { return strings.Join(s, sep) },
		"strs":    func(s []string) int { return len(s) },
		"now":     func() string { return "then" },
		"nothing": func() any { return nil },
		"nilmap":  func() map[string]any { return nil },
		"default": func(d any, v ...any) any {
			if len(v) == 0 {
				return d
			}
			if ok, _ := template.IsTrue(v[0]); ok {
				return v[0]
			}
			return d
		},
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			if included[name] > 2 {
				return "", fmt.Errorf("nested too often: %s: %w", name, errors.New("unable"))
			}
			included[name]++
			err := t.ExecuteTemplate(&b, name, data)
			included[name]--
			return b.String(), err
		},
		"tpl": func(text string, data any) (string, error) {
			c, err := t.Clone()
			if err != nil {
				return "", err
			}
			if key != "" {
				c.Option("missingkey=" + key)
			}
			c.Funcs(functions(c, included, key))
			c, err = c.New(t.Name()).Parse(text)
			if err != nil {
				return "", fmt.Errorf("cannot parse template %q: %w", text, err)
			}
			var b strings.Builder
			if err := c.Execute(&b, data); err != nil {
				return "", fmt.Errorf("error during tpl function execution for %q: %w", text, err)
			}
			return b.String(), nil
		},
	}
}
