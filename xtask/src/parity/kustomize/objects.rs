//! Made-up objects, as text: their scalars are in every style that YAML has.
//!
//! Main functions: [`object`] and [`value`].

use crate::parity::dice::Dice;

/// Scalars in every style; `@` stands for the indentation of the lines of a block.
const SCALARS: &[&str] = &[
    "a",
    "\"a\"",
    "'a'",
    "1",
    "\"1\"",
    "01",
    "0o7",
    "0x1f",
    "1e3",
    "1.0",
    "1.50",
    ".5",
    "5.",
    "-0",
    "+1",
    "1_000",
    "yes",
    "on",
    "\"yes\"",
    "y",
    "\"y\"",
    "N",
    "true",
    "True",
    "TRUE",
    "\"true\"",
    "null",
    "~",
    "Null",
    "\"\"",
    "''",
    "2001-01-01",
    "\"2001-01-01\"",
    "2001-01-01T00:00:00Z",
    "12:30",
    "1:30:45",
    "a b",
    "\"a\\nb\"",
    "\"a\\tb\"",
    "\"é\"",
    "😀",
    "\"# x\"",
    "a#b",
    "\"a: b\"",
    "a:b",
    "\"-\"",
    "\"- x\"",
    "\"*a\"",
    "\"&a\"",
    "\"!a\"",
    "\"%a\"",
    "\"@a\"",
    "\"`a\"",
    "\"{a}\"",
    "\"[a\"",
    "\"a,b\"",
    "\"?\"",
    "\"? a\"",
    "=",
    "\"=\"",
    "<<",
    "\"<<\"",
    "\"~\"",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
    "1E5",
    "0b11",
    "!!str 5",
    "!!int \"5\"",
    "!!float 5",
    "\"  lead\"",
    "\"trail  \"",
    "\"a\\r\\nb\"",
    "\"\\u2028\"",
    "\"\\x07\"",
    "\"a\\\\b\"",
    "'it''s'",
    "\"\\\"\"",
    "\"a\\n\"",
    "\"a\\n\\n\"",
    "\"\\n\"",
    "\"\\na\"",
    "\" a\\nb\"",
    "\"a \\nb\"",
    "\"a\\n b\\n\"",
    "|\n@  x\n@  y\n",
    "|-\n@  x\n@   y",
    "|+\n@  x\n\n",
    ">\n@  x\n@  y\n\n@  z\n",
    ">-\n@  x\n@  y",
    "|2\n@   x\n@  y\n",
    "\"a\\n# b\"",
    "\"\\t\"",
    "\"a\\n\\tb\"",
    "[]",
    "{}",
    "[1, a]",
    "{a: 1}",
    "\"0644\"",
    "0644",
    "0o644",
    "\"1e3\"",
    "1__0",
    "0.1e-5",
    "123456789012345678901234567890",
    "\"null\"",
    "Yes",
    "\"No\"",
    "OFF",
    "\"0x1f\"",
    "\"1.0\"",
    "\"1_000\"",
    "\"12:30\"",
    "\"<<\"",
    "--- x",
    "\"--- x\"",
    "\"...\"",
    "a - b",
    "\"a -\"",
    "a?",
    "\"a?\"",
    "\"\\u00a0\"",
    "\"\\ufeff\"",
    "\"\\U0001F600\"",
    "\"\\x85\"",
    "\"\\e\"",
    "\"\\0\"",
];

/// Keys of which some need quotes.
const KEYS: &[&str] = &[
    "a", "b", "c", "\"y\"", "\"1\"", "x.y/z", "\"a b\"", "\"true\"", "\"null\"", "\"on\"", "\"é\"",
    "\"-\"", "d", "e", "f", "\"0x1\"", "\"1.5\"", "\"a: b\"", "\"#x\"",
];

pub const NAMES: &[&str] = &["app", "web", "db", "gcfg", "gsec", "gen"];
const IMAGES: &[&str] = &[
    "nginx",
    "nginx:1.2",
    "reg:5000/x/y:t",
    "busybox@sha256:abc",
    "a/b:1@sha256:d",
];
const NAMESPACES: &[&str] = &["ns1", "ns2", "default"];

/// Which objects are made up.
pub struct Objects<'a> {
    pub dice: &'a mut Dice,
    /// Whether some have a namespace.
    pub namespaces: bool,
}

/// A scalar as what follows a key whose value is indented so far.
pub fn scalar(dice: &mut Dice, indent: usize) -> String {
    match dice.below(60) {
        0 => format!(" {}", "foo bar baz ".repeat(8).trim_end()),
        1 => format!(" {}", "x".repeat(130)),
        _ => format!(" {}", indented(dice.pick(SCALARS), indent)),
    }
}

/// Only what starts a line stands for something.
fn indented(text: &str, indent: usize) -> String {
    text.replace("\n@", &format!("\n{}", " ".repeat(indent)))
}

/// A value as what follows its key: a scalar, or the lines of a map or a list.
pub fn value(dice: &mut Dice, indent: usize, depth: usize) -> String {
    let what = dice.below(100);
    if depth == 0 || what < 60 {
        return scalar(dice, indent);
    }
    let mut out = String::new();
    if what < 80 {
        let pad = " ".repeat(indent);
        for key in dice.some(KEYS, 4) {
            if dice.percent(12) {
                out.push_str(&format!("\n{pad}# cm {}", dice.pick(&["a", "b", "c"])));
            }
            let inner = value(dice, indent + 2, depth - 1);
            out.push_str(&format!("\n{pad}{key}:{inner}"));
            if dice.percent(10) && !inner.contains('\n') {
                out.push_str(" # tr");
            }
        }
        return out;
    }
    let indent = match dice.percent(50) {
        true => indent,
        false => indent.saturating_sub(2),
    };
    let pad = " ".repeat(indent);
    for _ in 0..=dice.below(4) {
        if dice.percent(10) {
            out.push_str(&format!("\n{pad}# li"));
        }
        if dice.percent(40) {
            let key = dice.pick(&["name", "a", "id"]);
            let text = dice.pick(&["a", "b", "\"1\"", "c"]);
            out.push_str(&format!("\n{pad}- {key}: {text}"));
            if dice.percent(50) {
                for key in dice.some(&["k", "l", "\"m n\""], 2) {
                    let inner = value(dice, indent + 4, depth - 1);
                    out.push_str(&format!("\n{pad}  {key}:{inner}"));
                }
            }
        } else {
            let text = scalar(dice, indent + 2);
            out.push_str(&format!("\n{pad}-{text}"));
        }
    }
    out
}

/// An object without a line break at its end.
pub fn object(of: &mut Objects<'_>) -> String {
    let name = of.dice.pick(NAMES);
    match of.dice.below(100) {
        0..35 => workload(of, name),
        35..50 => config(of, name),
        50..58 => {
            let head = head(of, "v1", "Secret", name);
            format!("{head}\nstringData:\n  k: v")
        }
        58..70 => service(of, name),
        70..75 => head(of, "v1", "ServiceAccount", name),
        75..80 => binding(of, name),
        80..84 => {
            let head = head(of, "rbac.authorization.k8s.io/v1", "Role", name);
            format!(
                "{head}\nrules:\n- apiGroups:\n  - \"\"\n  resources: [configmaps]\n  \
                 resourceNames: [gcfg]\n  verbs: [get]"
            )
        }
        84..88 => {
            let head = head(of, "networking.k8s.io/v1", "Ingress", name);
            let to = of.dice.pick(NAMES);
            format!(
                "{head}\nspec:\n  rules:\n  - host: a.b.c\n    http:\n      paths:\n      - path: /\n        \
                 backend:\n          service:\n            name: {to}\n            port:\n              number: 80"
            )
        }
        88..90 => {
            let name = of.dice.pick(&["ns1", "ns2"]);
            format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}")
        }
        _ => custom(of, name),
    }
}

fn head(of: &mut Objects<'_>, version: &str, kind: &str, name: &str) -> String {
    let mut out = format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}");
    let dice = &mut *of.dice;
    if of.namespaces && dice.percent(25) {
        out.push_str(&format!("\n  namespace: {}", dice.pick(NAMESPACES)));
    }
    if dice.percent(40) {
        out.push_str(&format!("\n  labels:\n    app: {}", dice.pick(&["a", "b"])));
        if dice.percent(30) {
            out.push_str("\n    v: \"1\"");
        }
    }
    if dice.percent(30) {
        let text = scalar(dice, 6).replace(" []", " x").replace(" {}", " x");
        out.push_str(&format!("\n  annotations:\n    k:{text}"));
    }
    out
}

fn config(of: &mut Objects<'_>, name: &str) -> String {
    let mut out = head(of, "v1", "ConfigMap", name);
    out.push_str("\ndata:");
    for key in of.dice.some(&["a", "b", "c.txt", "\"1\""], 3) {
        out.push_str(&format!("\n  {key}:{}", scalar(of.dice, 4)));
    }
    out
}

fn custom(of: &mut Objects<'_>, name: &str) -> String {
    let mut out = head(of, "x.io/v1", "Custom", name);
    out.push_str("\nspec:");
    for key in of.dice.some(KEYS, 6) {
        out.push_str(&format!("\n  {key}:{}", value(of.dice, 4, 3)));
    }
    out
}

fn service(of: &mut Objects<'_>, name: &str) -> String {
    let mut out = head(of, "v1", "Service", name);
    out.push_str("\nspec:\n  selector:\n    app: a\n  ports:");
    for port in of.dice.some(&["80", "443", "53"], 2) {
        out.push_str(&format!("\n  - port: {port}"));
        if of.dice.percent(50) {
            let protocol = of.dice.pick(&["TCP", "UDP"]);
            out.push_str(&format!("\n    protocol: {protocol}"));
        }
        out.push_str(&format!("\n    name: p{port}"));
    }
    out
}

fn binding(of: &mut Objects<'_>, name: &str) -> String {
    let kind = of.dice.pick(&["RoleBinding", "ClusterRoleBinding"]);
    let head = head(of, "rbac.authorization.k8s.io/v1", kind, name);
    let role = of.dice.pick(&["Role", "ClusterRole"]);
    let subject = of.dice.pick(&["app", "web", "db", "default"]);
    let namespace = of
        .dice
        .pick(&["", "\n  namespace: ns1", "\n  namespace: default"]);
    format!(
        "{head}\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role}\n  name: {name}\n\
         subjects:\n- kind: ServiceAccount\n  name: {subject}{namespace}"
    )
}

/// An object with a template of pods.
pub fn workload(of: &mut Objects<'_>, name: &str) -> String {
    let kinds = [
        "Deployment",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "Job",
    ];
    let kind = of.dice.pick(&kinds);
    let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    let mut out = head(of, version, kind, name);
    let dice = &mut *of.dice;
    out.push_str("\nspec:");
    if ["Deployment", "StatefulSet"].contains(&kind) {
        out.push_str(&format!("\n  replicas: {}", dice.below(4)));
    }
    if kind == "StatefulSet" {
        out.push_str(&format!("\n  serviceName: {}", dice.pick(NAMES)));
    }
    if dice.percent(70) {
        out.push_str("\n  selector:\n    matchLabels:\n      app: a");
    }
    out.push_str("\n  template:\n    metadata:\n      labels:\n        app: a\n    spec:");
    out.push_str(&format!("\n      containers:{}", containers(dice)));
    if dice.percent(30) {
        out.push_str(&format!("\n      initContainers:{}", containers(dice)));
    }
    if dice.percent(40) {
        let account = dice.pick(NAMES);
        out.push_str(&format!("\n      serviceAccountName: {account}"));
    }
    if dice.percent(40) {
        out.push_str("\n      volumes:");
        for volume in dice.some(&["v1", "v2"], 2) {
            out.push_str(&format!("\n      - name: {volume}\n        "));
            let name = dice.pick(NAMES);
            out.push_str(&match dice.below(4) {
                0 => format!("configMap:\n          name: {name}"),
                1 => format!("secret:\n          secretName: {name}"),
                2 => "emptyDir: {}".to_owned(),
                _ => format!("persistentVolumeClaim:\n          claimName: {name}"),
            });
        }
    }
    if dice.percent(20) {
        out.push_str("\n      tolerations:\n      - key: a\n        operator: Exists");
    }
    out
}

/// The items of `containers` in a template of pods.
fn containers(dice: &mut Dice) -> String {
    let mut out = String::new();
    for name in dice.some(&["c1", "c2", "c3"], 3) {
        let image = dice.pick(IMAGES);
        out.push_str(&format!("\n      - name: {name}\n        image: {image}"));
        if dice.percent(50) {
            out.push_str("\n        env:");
            for name in dice.some(&["A", "B", "C"], 3) {
                out.push_str(&format!("\n        - name: {name}\n          "));
                if dice.percent(60) {
                    out.push_str(&format!("value:{}", scalar(dice, 12)));
                } else {
                    let kind = dice.pick(&["configMapKeyRef", "secretKeyRef"]);
                    let name = dice.pick(NAMES);
                    out.push_str(&format!("valueFrom: {{{kind}: {{name: {name}, key: k}}}}"));
                }
            }
        }
        if dice.percent(30) {
            let (config, secret) = (dice.pick(NAMES), dice.pick(NAMES));
            out.push_str(&format!(
                "\n        envFrom: [{{configMapRef: {{name: {config}}}}}, {{secretRef: {{name: {secret}}}}}]"
            ));
        }
        if dice.percent(40) {
            out.push_str("\n        ports:");
            for port in dice.some(&["80", "443", "53"], 2) {
                out.push_str(&format!("\n        - containerPort: {port}"));
                if dice.percent(50) {
                    let protocol = dice.pick(&["TCP", "UDP"]);
                    out.push_str(&format!("\n          protocol: {protocol}"));
                }
                if dice.percent(50) {
                    out.push_str(&format!("\n          name: p{port}"));
                }
            }
        }
        if dice.percent(30) {
            let args = dice.some(&["a", "\"1\"", "--x=y", "$(V)"], 2).join(", ");
            out.push_str(&format!("\n        args: [{args}]"));
        }
        if dice.percent(30) {
            let (path, volume) = (dice.pick(&["a", "b"]), dice.pick(&["v1", "v2"]));
            out.push_str(&format!(
                "\n        volumeMounts:\n        - mountPath: /{path}\n          name: {volume}"
            ));
        }
        if dice.percent(20) {
            let cpu = dice.pick(&["1", "\"1\"", "100m", "1.5", "0.10"]);
            out.push_str(&format!(
                "\n        resources:\n          limits:\n            cpu: {cpu}"
            ));
        }
    }
    out
}
