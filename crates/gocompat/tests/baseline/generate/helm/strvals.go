package main

import (
	"encoding/json"
	"errors"
	"math/rand"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
)

var forms = map[string]func(string, map[string]any) error{
	"set":     strvals.ParseInto,
	"string":  strvals.ParseIntoString,
	"literal": strvals.ParseLiteralInto,
	"json":    strvals.ParseJSON,
	"file": func(s string, dest map[string]any) error {
		return strvals.ParseIntoFile(s, dest, func(rs []rune) (any, error) {
			if strings.HasPrefix(string(rs), "missing") {
				return nil, errors.New("open " + string(rs) + ": no such file or directory")
			}
			return "content of " + string(rs), nil
		})
	},
}

var setTexts = []string{
	"", "a", "a=", "a=1", "a=b,c=d", "a=1,", "a=,b=1", "a,b=1", ",a=1", ",", "=", "=1", "a==1", "a=b=c", "a.b=1", "a.b", "a.b=", "a.=1", ".a=1", "a..b=1", "a.b.c.d.e=1", "a.b=1,a.c=2", "a=null", "a=NULL", "a.b=null", "a=true", "a=TRUE", "a=False",
	"a=tRuE", "a=0", "a=00", "a=01", "a=-0", "a=+1", "a=-1", "a=1.5", "a=1e3", "a=0x1", "a=9223372036854775807", "a=9223372036854775808", "a=-9223372036854775808", "a=1_000", "a= 1", "a=1 ", " a=1", "a b=c d", "a=\\,b", "a=b\\,c,d=e", "a\\.b=c", "a\\=b=c",
	"a\\[0\\]=1", "a=b\\", "a\\", "a=\\\\", "a=\\n", "a={1,2}", "a={}", "a={,}", "a={1}", "a={1,2", "a={1},b=2", "a={1}b=2", "a={1} ,b=2", "a={a\\,b,c}", "a={a\\}b}", "a={{1},2}", "a={null,true,0}", "a=x{1}", "a[0]=1", "a[1]=1", "a[0]", "a[0]=", "a[0].b=1",
	"a[0].b=1,a[0].c=2", "a[1].b=1,a[0].b=2", "a[0][0]=1", "a[1][2]=3", "a[0][0].b=1", "a[]=1", "a[x]=1", "a[-1]=1", "a[0", "a[", "a[0]x=1", "a[0]x", "a[65536]=1", "a[65537]=1", "a[2147483647]=1", "a[9223372036854775808]=1", "a[ 0]=1", "a[+1]=1", "a[01]=1", "a[1_0]=1",
	"a[0]={1,2}", "a[0]={1", "a[0].b", "a[0].=1", "a[0].b,c=1", "a[0]=1,b=2", "a[0]\\=1", "[0]=1", "[0].a=1", "a.[0]=1", "a.b[0].c[1].d=1", "]=1", "a]=1", "]={}].", "a=b,a=c", "a=b,a.c=d", "a[0]=1,a.b=2", "a.b=1,a[0]=2", "a[0]=1,a[0][0]=2", "a[0].b=1,a[0][0]=2",
	"k.l=1", "k=1", "k.l.m=1", "k[0]=1", "l[0]=x", "l[5]=x", "l[1].n=1", "l[0].n=1", "l.x=1", "n.o.p=null", "n.o=null", "n=null", "s.t=1", "s[0]=1", "z.a=1", "z[0]=1", "l[2][1]=q", "l[2][0]=q", "l[0][0]=q", "global.x=1", "é=ü", "日.本=語", "a=\U0001F600", "a=x\ny", "a\nb=1",
	"a=b c=d", "a=\"b\"", "a='b'", "a=[1,2]", "a={\"x\":1}", "a={\"x\":1},b=2", "a={\"x\":{\"y\":[1,2.5,null]}} , b=[1]", "a=[1,2],b=3", "a=\"x\",b=null", "a=,b=", "a= ,b=1", "a=1 2", "a=1,2", "a={\"x\":}", "a={\"x\"", "a=tru", "a=\"x", "a[0]={\"b\":1}", "a[0]=,a[1]=2", "a[2]=[]",
	"a.b={\"c\":null}", "a=1e400", "a=1.0", "a=12345678901234567890", "a=[1,]", "a=nul", "a=-", "a=\"\\u00e9\"", "a=\"\\ud800\"", "a=x", "a=\t1", "a=1\t,\tb=2", "a=1;b=2", "a=}", "a=]", "a=NaN", "a=01", "a=1.", "a=.5", "a=\"\t\"",
	"missing", "a=missing.txt", "a=missing1,b=f", "a=f.txt,b=g.txt", "a[0]=missing", "a={f,g}", "a={missing,g}", "a={f,missing}", "a.b=missing",
	strings.Repeat("a.", 30) + "a=1", strings.Repeat("a.", 31) + "a=1", strings.Repeat("a[0].", 29) + "a=1", strings.Repeat("a[0].", 31) + "a=1", "a" + strings.Repeat("[0]", 40) + "=1",
}

const destination = `{"k":{"l":"old","m":2},"l":["a",{"n":0},["x"],null],"n":{"o":{"p":1}},"s":"text","z":null}`

func setLine(form, text string, into bool) line {
	dest := map[string]any{}
	if into {
		must(json.Unmarshal([]byte(destination), &dest))
	}
	err := forms[form](text, dest)
	l := line{"form": form, "in": text}
	if into {
		l["into"] = true
	}
	if err != nil {
		l["error"] = err.Error()
		return l
	}
	if out, err := json.Marshal(dest); err == nil && len(out) < 2000 {
		l["out"] = json.RawMessage(out)
		return l
	}
	l["long"] = true
	return l
}

func setLines() {
	lines := []line{{"into": json.RawMessage(destination)}}
	names := []string{"set", "string", "literal", "json", "file"}
	for _, text := range setTexts {
		for _, form := range names {
			lines = append(lines, setLine(form, text, false))
			if strings.ContainsAny(text, "klnsz") {
				lines = append(lines, setLine(form, text, true))
			}
		}
	}
	r := rand.New(rand.NewSource(5))
	pieces := []string{"a", "b", "k", "l", "n", "s", "z", "o", "p", ".", "=", "[0]", "[1]", "[2]", ",", "=1", "=x", "={1,b}", "=null", "=[1]", "={\"c\":1}", "\\", "{", "}", "[", "]", " ", "=true", ".b=2", "=,"}
	for range 1500 {
		text := ""
		for range 2 + r.Intn(7) {
			text += pieces[r.Intn(len(pieces))]
		}
		form := names[r.Intn(len(names))]
		lines = append(lines, setLine(form, text, r.Intn(2) == 0))
	}
	write("strvals.jsonl", "helm.sh/helm/v4 v4.2.4 pkg/strvals", lines)
}
