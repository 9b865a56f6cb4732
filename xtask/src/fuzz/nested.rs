//! Inputs of arbitrary nesting depth, for every target: recursion over them must stop before the
//! stack overflows.
//!
//! Main function: [`of`]. docs/limits.md lists the limit of each recursion.

/// Creates an input with this many levels.
pub type Nested = fn(usize) -> String;

/// `open` repeated `levels` times, the core, and `close` as often.
pub fn nest(open: &str, core: &str, close: &str, levels: usize) -> String {
    format!("{}{core}{}", open.repeat(levels), close.repeat(levels))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A template as the first part of a chart.
fn chart(template: &str) -> String {
    format!(
        "[{}, {}, \"a: 1\", \"b: 2\"]",
        quoted(template),
        quoted("{{ define \"again\" }}{{ include \"again\" . }}{{ end }}")
    )
}

/// A value that a template builds with this depth, for a function to walk over.
fn built(levels: usize, use_it: &str) -> String {
    chart(&format!(
        "{{{{ $v := 1 }}}}{{{{ range until {levels} }}}}{{{{ $v = list $v }}}}{{{{ end }}}}{{{{ {use_it} }}}}"
    ))
}

/// The nested inputs of a target.
pub fn of(target: &str) -> &'static [Nested] {
    match target {
        "json" => JSON,
        "json-patch" => JSON_PATCH,
        "strategic-merge" => STRATEGIC_MERGE,
        "fields-v1" => FIELDS_V1,
        "crd-schema" => CRD_SCHEMA,
        "template" => TEMPLATE,
        "chart" => CHART,
        "strvals" => STRVALS,
        "yaml" => YAML,
        "jq" => JQ,
        "lua" => LUA,
        "selector" => SELECTOR,
        "values-schema" => VALUES_SCHEMA,
        "toml" => TOML,
        "pgp" => &[super::signed::nested],
        "query" => QUERY,
        "kube-body" => KUBE_BODY,
        "expr" => EXPR,
        "jsonnet" => JSONNET,
        "tree" => &[super::outside::owners],
        "kustomization" => super::kustomize::NESTED,
        "plugin-frames" => super::plugin::NESTED,
        "worker-frames" => super::worker::NESTED,
        _ => &[],
    }
}

const JSON: &[Nested] = &[
    |n| nest("[", "1", "]", n),
    |n| nest("{\"a\":", "1", "}", n),
    |n| "[".repeat(n),
];

const JSON_PATCH: &[Nested] = &[
    // Each operation adds a level to the result of the previous one.
    |n| {
        let add = |k: usize| {
            format!(
                "{{\"op\":\"add\",\"path\":\"{}\",\"value\":{{}}}}",
                "/a".repeat(k)
            )
        };
        format!(
            "[{{}},[{}],{{}}]",
            (1..n.min(2_000)).map(add).collect::<Vec<_>>().join(",")
        )
    },
    |n| {
        let again = ",{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"add\",\"path\":\"/a\",\"value\":{}},{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/a/b\"}";
        format!(
            "[{{\"a\":1}},[{{\"op\":\"test\",\"path\":\"/a\",\"value\":1}}{}],{{}}]",
            again.repeat(n.min(3_000))
        )
    },
    |n| format!("[{{}},[],{}]", nest("{\"a\":", "1", "}", n)),
];

const STRATEGIC_MERGE: &[Nested] = &[|n| {
    let deep = format!("{{\"metadata\":{}}}", nest("{\"a\":", "1", "}", n));
    format!("[{deep},{deep},{{}}]")
}];

const FIELDS_V1: &[Nested] = &[|n| format!("[{},{{}},{{}}]", nest("{\"f:a\":", "{}", "}", n))];

const CRD_SCHEMA: &[Nested] = &[
    |n| {
        format!(
            "[{},{{}}]",
            nest(
                "{\"type\":\"object\",\"properties\":{\"a\":",
                "{\"type\":\"string\"}",
                "}}",
                n
            )
        )
    },
    |n| {
        format!(
            "[{},[]]",
            nest(
                "{\"type\":\"array\",\"items\":",
                "{\"type\":\"string\"}",
                "}",
                n
            )
        )
    },
    |n| {
        format!(
            "[{},{}]",
            nest("{\"not\":", "{}", "}", n),
            nest("{\"a\":", "1", "}", n)
        )
    },
];

const TEMPLATE: &[Nested] = &[
    |n| format!("{{{{ {} }}}}", nest("(", "1", ")", n)),
    |n| nest("{{ if true }}", "x", "{{ end }}", n),
    |n| nest("{{ range .L }}", "x", "{{ end }}", n),
    |n| nest("{{ with 1 }}", "x", "{{ end }}", n),
    |n| nest("{{ if 0 }}{{ else if 1 }}", "x", "{{ end }}", n),
    |n| format!("{{{{ 1 {} }}}}", "| print ".repeat(n)),
    |n| format!("{{{{ {} }}}}", ".a".repeat(n.max(1))),
    |_| "{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}".to_owned(),
    |n| nest("{{ block \"x\" . }}", "x", "{{ end }}", n),
];

const CHART: &[Nested] = &[
    |n| built(n, "$v | toJson"),
    |n| built(n, "$v | toYaml"),
    |n| built(n, "printf \"%v\" $v"),
    |n| built(n, "eq (toString $v) (print $v)"),
    |n| built(n, "deepCopy (dict \"a\" $v) | len"),
    |n| built(n, "merge (dict \"a\" $v) (dict \"a\" $v) | len"),
    |n| built(n, "dict \"a\" $v | toToml"),
    |n| built(n, "$v | kindOf"),
    |n| built(n, "deepEqual $v $v"),
    |n| built(n, "default 1 $v | empty"),
    |n| chart(&format!("{{{{ fromJson (repeat {n} \"{{\\\"a\\\":\") }}}}")),
    |n| {
        chart(&format!(
            "{{{{ fromYaml (print \"a: \" (repeat {n} \"[\") (repeat {n} \"]\")) }}}}"
        ))
    },
    |n| chart(&format!("{{{{ fromYamlArray (repeat {n} \"- \") }}}}")),
    |n| {
        chart(&format!(
            "{{{{ regexMatch (print (repeat {n} \"(\") (repeat {n} \")\")) \"a\" }}}}"
        ))
    },
    |n| {
        chart(&format!(
            "{{{{ tpl (print (repeat {n} \"{{{{ if 1 }}}}\") (repeat {n} \"{{{{ end }}}}\")) . }}}}"
        ))
    },
    |_| chart("{{ include \"again\" . }}"),
    |_| {
        chart(
            "{{ define \"b\" }}{{ tpl \"{{ include \\\"b\\\" . }}\" . }}{{ end }}{{ include \"b\" . }}",
        )
    },
    |n| {
        format!(
            "[\"a: 1\",\"\",{},{}]",
            quoted(&nest("{a: ", "1", "}", n)),
            quoted(&nest("{a: ", "1", "}", n))
        )
    },
];

const STRVALS: &[Nested] = &[
    |n| format!("{}=1", vec!["a"; n.max(1)].join(".")),
    |n| format!("a{}=1", "[0]".repeat(n)),
    |n| format!("a={}", nest("{", "1", "}", n)),
    |n| format!("a={}", nest("[", "1", "]", n)),
];

const YAML: &[Nested] = &[
    |n| nest("[", "1", "]", n),
    |n| nest("{a: ", "1", "}", n),
    |n| "- ".repeat(n),
    |n| "? ".repeat(n),
    |n| {
        (0..n.min(1_500))
            .map(|k| format!("{}a:\u{1f}", " ".repeat(k)))
            .collect()
    },
    |n| format!("a: &a [{}]", "*a, ".repeat(n)),
    |n| {
        (0..n.min(2_000))
            .map(|k| format!("a{}: &a{} [*a{k}]\u{1f}", k + 1, k + 1))
            .collect::<String>()
            .replacen("*a0", "1", 1)
    },
];

const JQ: &[Nested] = &[
    |n| nest("(", ".", ")", n),
    |n| nest("[", ".", "]", n),
    |n| nest("{a:", ".", "}", n),
    |n| nest("if . then ", ".", " else . end", n),
    |n| nest("\"\\(", ".", ")\"", n),
    |n| nest("try ", ".", "", n),
    |n| nest("reduce ", ".", " as $x (0; .)", n),
    |n| nest("foreach ", ".", " as [$x, {a: $y}] (0; .)", n),
    |n| nest("{\"a\": 1 | ", "{}", "}", n),
    |n| format!(". as {} | 1", nest("[", "$x", "]", n)),
    |n| nest(". as $x | ", ".", "", n),
    |n| nest("def f: ", ".", "; f", n),
    |n| nest("-", "1", "", n),
    |n| format!(".{}", ".a".repeat(n)),
    |n| format!(".{}", "[0]".repeat(n)),
    |n| format!(".{}", "?".repeat(n)),
    |n| format!(".{}", " | .".repeat(n)),
    |n| format!(".{}", ", .".repeat(n)),
    |n| format!(".{}", " // .".repeat(n)),
    |n| format!(".{}", " and .".repeat(n)),
    |n| format!(".{}", " + .".repeat(n)),
    |_| "def f: [f]; f".to_owned(),
    |_| "def f: f; f".to_owned(),
    |_| "def f: 1 + f; f".to_owned(),
    |n| format!("reduce range({n}) as $i (0; [.]) | tojson"),
    |n| format!("reduce range({n}) as $i (0; {{a: .}}) | ., paths"),
    |n| format!("reduce range({n}) as $i (0; [.]) | . == ., flatten, sort, unique, tostring"),
    |n| {
        format!(
            "[limit({n}; repeat(\"a\"))] as $p | null | setpath($p; 1) | getpath($p), delpaths([$p])"
        )
    },
    |n| format!("(\"[\" * {n}) | fromjson"),
    |n| format!("\"a\" | test((\"(\" * {n}) + (\")\" * {n}))"),
    |n| format!("reduce range({n}) as $i ({{}}; {{a: .}}) | . * ."),
];

const LUA: &[Nested] = &[
    |n| format!("local t = {{}} for i = 1, {n} do t = {{t}} end return t"),
    |n| {
        format!(
            "local t = {{}} for i = 1, {n} do t = {{a = t}} end return {{status = 'Healthy', t = t}}"
        )
    },
    |_| "local t = {} t.a = t return t".to_owned(),
    |_| "local function f() return 1 + f() end return f()".to_owned(),
    |_| "local function f() return f() end return f()".to_owned(),
    |_| "local function f() return pcall(f) end return {f()}".to_owned(),
    |_| "local function f() return (string.gsub('a', 'a', f)) end return f()".to_owned(),
    |_| {
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end return t.a".to_owned()
    },
    |_| {
        "local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) return tostring(t)".to_owned()
    },
    |_| "local function f() return coroutine.wrap(f)() end return f()".to_owned(),
    |_| {
        "local function f() table.sort({3, 2, 1}, function() f() return true end) end f()"
            .to_owned()
    },
    |_| "local function f() return xpcall(function() error('x') end, f) end return f()".to_owned(),
    |n| format!("return {}", nest("(", "1", ")", n)),
    |n| format!("return {}", nest("{", "", "}", n)),
    |n| format!("return {}", nest("function() return ", "1", " end", n)),
    |n| nest("if true then ", "", " end", n),
    |n| nest("do ", "", " end", n),
    |n| format!("return 'a'{}", " .. 'a'".repeat(n)),
    |n| format!("return 1{}", " ^ 1".repeat(n)),
    |n| format!("return {} 1", "not ".repeat(n)),
    |n| format!("return {} 1", "- ".repeat(n)),
    |n| format!("return string.find('a', string.rep('(', {n}) .. 'a' .. string.rep(')', {n}))"),
    |n| format!("return string.find(string.rep('a', {n}), string.rep('a?', {n}) .. 'b')"),
    |n| format!("return string.find(string.rep('(', {n}) .. string.rep(')', {n}), '%b()')"),
];

const SELECTOR: &[Nested] = &[
    |n| format!("a in {}", nest("(", "b", ")", n)),
    |n| format!("{}a", "!".repeat(n)),
    |n| format!("a{}", ",a".repeat(n)),
    |n| format!("a={}", "=".repeat(n)),
    |n| nest("{\"matchExpressions\":[", "", "]}", n),
    |n| nest("{", "a", "}", n),
    |n| nest("[", "a", "]", n),
    |n| format!("{}a", "*".repeat(n.min(16_000))),
    |n| format!("{}a", "**/".repeat(n.min(5_000))),
    |n| nest("{a,", "b", "}", n.min(2_000)),
    |n| format!(">1{}", " || >1".repeat(n)),
];

const VALUES_SCHEMA: &[Nested] = &[
    |n| {
        format!(
            "[{},{}]",
            nest("{\"properties\":{\"a\":", "{}", "}}", n),
            nest("{\"a\":", "1", "}", n)
        )
    },
    |n| format!("[{},{{\"a\":1}}]", nest("{\"allOf\":[", "{}", "]}", n)),
    |n| format!("[{},{{\"a\":1}}]", nest("{\"not\":", "{}", "}", n)),
    |_| "[{\"$ref\":\"#\"},{\"a\":1}]".to_owned(),
    |_| "[{\"allOf\":[{\"$ref\":\"#\"}]},{\"a\":1}]".to_owned(),
    |_| {
        "[{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}}},{\"a\":1}]".to_owned()
    },
    |_| {
        "[{\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/properties/a\"},{\"type\":\"string\"}]}}},{\"a\":1}]".to_owned()
    },
    |n| {
        format!(
            "[{{\"additionalProperties\":{{\"$ref\":\"#\"}}}},{}]",
            nest("{\"a\":", "1", "}", n)
        )
    },
    |n| {
        format!(
            "[{{\"properties\":{{\"a\":{{\"pattern\":\"{}\"}}}}}},{{\"a\":\"b\"}}]",
            nest("(", "x", ")", n)
        )
    },
    |n| {
        let link = |k: usize| format!("\"d{k}\":{{\"$ref\":\"#/$defs/d{}\"}}", k + 1);
        let links = (0..n.min(20_000)).map(link).collect::<Vec<_>>().join(",");
        format!(
            "[{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{links}{}\"d{}\":{{}}}}}},{{\"a\":1}}]",
            if n > 0 { "," } else { "" },
            n.min(20_000)
        )
    },
];

const TOML: &[Nested] = &[
    |n| format!("{}=1", vec!["a"; n.max(1)].join(".")),
    |n| format!("[{}]\na=1", vec!["a"; n.max(1)].join(".")),
    |n| format!("a={}", nest("[", "1", "]", n)),
    |n| format!("a={}", nest("{a=", "1", "}", n)),
    |n| {
        (1..n.min(1_500))
            .map(|k| format!("[[{}]]\n", vec!["a"; k].join(".")))
            .collect()
    },
];

const QUERY: &[Nested] = &[
    |n| format!("{}=1", vec!["a"; n.max(1)].join(".")),
    |n| format!("fields={}", vec!["a"; n.max(1)].join(".")),
    |n| format!("fields={}", vec!["a"; n.max(1)].join(",")),
    |n| "a=1&".repeat(n),
    |n| format!("\u{1f}{}", nest("{\"application\":", "1", "}", n)),
    |n| format!("\u{1f}{}", nest("[", "1", "]", n)),
];

fn post(media: &str, body: &str) -> String {
    format!("POST /api/v1/namespaces/default/configmaps {media}\n{body}")
}
fn patch(media: &str, body: &str) -> String {
    format!(
        "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m&force=true {media}\n{body}"
    )
}
fn definition(schema: &str) -> String {
    format!(
        "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions application/json\n{}",
        format_args!(
            "{{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{{\"name\":\"xs.x.io\"}},\
             \"spec\":{{\"group\":\"x.io\",\"scope\":\"Cluster\",\"names\":{{\"plural\":\"xs\",\"kind\":\"X\"}},\"versions\":[{{\"name\":\"v1\",\
             \"served\":true,\"storage\":true,\"schema\":{{\"openAPIV3Schema\":{schema}}}}}]}}}}"
        )
    )
}
fn rule(rule: &str) -> String {
    definition(&format!(
        "{{\"type\":\"object\",\"x-kubernetes-validations\":[{{\"rule\":{}}}]}}",
        quoted(rule)
    ))
}

const HEAD: &str = "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"";

/// `METHOD path media`, and the body.
const KUBE_BODY: &[Nested] = &[
    |n| {
        post(
            "application/json",
            &format!("{{{HEAD}}},\"data\":{}}}", nest("{\"a\":", "1", "}", n)),
        )
    },
    |n| {
        post(
            "application/json",
            &format!("{{{HEAD},\"annotations\":{}}}}}", nest("[", "1", "]", n)),
        )
    },
    |n| {
        post(
            "application/yaml",
            &format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {}",
                nest("{a: ", "1", "}", n)
            ),
        )
    },
    |n| {
        patch(
            "application/apply-patch+yaml",
            &format!(
                "apiVersion: v1\nkind: ConfigMap\ndata: {}",
                nest("[", "1", "]", n)
            ),
        )
    },
    |n| {
        patch(
            "application/merge-patch+json",
            &format!("{{\"data\":{}}}", nest("{\"a\":", "1", "}", n)),
        )
    },
    |n| {
        patch(
            "application/strategic-merge-patch+json",
            &format!("{{\"data\":{}}}", nest("{\"a\":", "1", "}", n)),
        )
    },
    |n| {
        let add = |k: usize| {
            format!(
                "{{\"op\":\"add\",\"path\":\"/metadata{}\",\"value\":{{}}}}",
                "/x".repeat(k)
            )
        };
        patch(
            "application/json-patch+json",
            &format!(
                "[{}]",
                (1..n.min(1_000)).map(add).collect::<Vec<_>>().join(",")
            ),
        )
    },
    |n| {
        definition(&nest(
            "{\"type\":\"object\",\"properties\":{\"a\":",
            "{\"type\":\"string\"}",
            "}}",
            n,
        ))
    },
    |n| {
        definition(&format!(
            "{{\"type\":\"object\",\"default\":{}}}",
            nest("{\"a\":", "1", "}", n)
        ))
    },
    |n| rule(&format!("{} == 1", nest("(", "1", ")", n))),
    |n| rule(&format!("{}true", "!".repeat(n))),
    |n| rule(&format!("{}1 < 2", "-".repeat(n))),
    |n| {
        rule(&format!(
            "{} == {}",
            nest("[", "1", "]", n),
            nest("[", "1", "]", n)
        ))
    },
    |n| {
        rule(&format!(
            "{} == {}",
            nest("{'a': ", "1", "}", n),
            nest("{'a': ", "1", "}", n)
        ))
    },
    |n| rule(&format!("self{} == 1", ".a".repeat(n))),
    |n| rule(&format!("self{} == 1", "[0]".repeat(n))),
    |n| rule(&format!("1{} == 1", " + 1".repeat(n))),
    |n| rule(&format!("true{}", " && true".repeat(n))),
    |n| rule(&format!("{}true", "true ? true : ".repeat(n))),
    |n| rule(&nest("[1].all(x, ", "true", ")", n)),
    |n| rule(&format!("size({}) == 1", nest("string(", "1", ")", n))),
    |n| rule(&format!("'a'.matches('{}')", nest("(", "a", ")", n))),
    |n| {
        format!(
            "GET /api/v1/configmaps?labelSelector=a%20in%20{} application/json\n",
            nest("(", "b", ")", n.min(10_000))
        )
    },
    |n| {
        format!(
            "GET /api/v1/configmaps?fieldSelector=metadata.name%3D{} application/json\n",
            "%3D".repeat(n.min(10_000))
        )
    },
    |n| format!("GET /{} application/json\n", "a/".repeat(n.min(10_000))),
];

const EXPR: &[Nested] = &[
    |n| nest("(", "1", ")", n),
    |n| nest("[", "1", "]", n),
    |n| nest("{\"a\": ", "1", "}", n),
    |n| format!("{}1", "-".repeat(n)),
    |n| format!("{}true", "not ".repeat(n)),
    |n| format!("1{}", " + 1".repeat(n)),
    |n| format!("a{}", ".a".repeat(n)),
    |n| format!("{}1", "true ? 1 : ".repeat(n)),
    |n| nest("map([1], ", "1", ")", n),
];

const JSONNET: &[Nested] = &[
    |n| nest("[", "1", "]", n),
    |n| nest("(", "1", ")", n),
    |n| nest("{ a: ", "1", "}", n),
    |n| format!("{}1", "-".repeat(n)),
    |n| format!("1{}", " + 1".repeat(n)),
    |n| format!("{}1", "local a = 1; ".repeat(n)),
    |n| format!("{}1", "if true then ".repeat(n)),
    |n| format!("{{}}{}", ".a".repeat(n)),
    |n| format!("local f(n) = 1 + f(n + 1); f({n})"),
];
