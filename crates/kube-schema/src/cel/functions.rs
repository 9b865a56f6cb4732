//! Declarations of the functions that expressions may call. Main function: [`find`].

use super::authz;
use super::types::Type;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// One overload of a function; a method has its target as the first argument.
#[derive(Debug)]
pub struct Overload {
    pub method: bool,
    pub args: Vec<Type>,
    pub result: Type,
}

/// `name: arguments -> result`; a method is `target.(arguments)`. Single capital letters are type
/// variables.
const DECLARATIONS: &str = "
_?_:_: (bool, A, A) -> A
_&&_: (bool, bool) -> bool
_||_: (bool, bool) -> bool
!_: (bool) -> bool
@not_strictly_false: (bool) -> bool
_==_: (A, A) -> bool
_!=_: (A, A) -> bool
_+_: (bytes, bytes) -> bytes; (double, double) -> double; (duration, duration) -> duration; (duration, timestamp) -> timestamp; (timestamp, duration) -> timestamp; (int, int) -> int; (list(A), list(A)) -> list(A); (string, string) -> string; (uint, uint) -> uint
_-_: (double, double) -> double; (duration, duration) -> duration; (int, int) -> int; (timestamp, duration) -> timestamp; (timestamp, timestamp) -> duration; (uint, uint) -> uint
_*_: (double, double) -> double; (int, int) -> int; (uint, uint) -> uint
_/_: (double, double) -> double; (int, int) -> int; (uint, uint) -> uint
_%_: (int, int) -> int; (uint, uint) -> uint
-_: (double) -> double; (int) -> int
@in: (A, list(A)) -> bool; (A, map(A, B)) -> bool
_[_]: (list(A), int) -> A; (map(A, B), A) -> B; (optional(list(V)), int) -> optional(V); (optional(map(K, V)), K) -> optional(V)
_[?_]: (list(V), int) -> optional(V); (optional(list(V)), int) -> optional(V); (map(K, V), K) -> optional(V); (optional(map(K, V)), K) -> optional(V)
size: (bytes) -> int; bytes.() -> int; (list(A)) -> int; list(A).() -> int; (map(A, B)) -> int; map(A, B).() -> int; (string) -> int; string.() -> int
type: (A) -> type(A)
dyn: (A) -> dyn
bool: (bool) -> bool; (string) -> bool
bytes: (bytes) -> bytes; (string) -> bytes
double: (double) -> double; (int) -> double; (string) -> double; (uint) -> double
duration: (duration) -> duration; (int) -> duration; (string) -> duration
int: (int) -> int; (double) -> int; (duration) -> int; (string) -> int; (timestamp) -> int; (uint) -> int
string: (string) -> string; (bool) -> string; (bytes) -> string; (double) -> string; (duration) -> string; (int) -> string; (timestamp) -> string; (uint) -> string; (net.IP) -> string; (net.CIDR) -> string
timestamp: (timestamp) -> timestamp; (int) -> timestamp; (string) -> timestamp
uint: (uint) -> uint; (double) -> uint; (int) -> uint; (string) -> uint
contains: string.(string) -> bool
endsWith: string.(string) -> bool
startsWith: string.(string) -> bool
matches: (string, string) -> bool; string.(string) -> bool
getFullYear: timestamp.() -> int; timestamp.(string) -> int
getMonth: timestamp.() -> int; timestamp.(string) -> int
getDayOfYear: timestamp.() -> int; timestamp.(string) -> int
getDayOfMonth: timestamp.() -> int; timestamp.(string) -> int
getDate: timestamp.() -> int; timestamp.(string) -> int
getDayOfWeek: timestamp.() -> int; timestamp.(string) -> int
getHours: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
getMinutes: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
getSeconds: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
getMilliseconds: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
charAt: string.(int) -> string
indexOf: string.(string) -> int; string.(string, int) -> int; list(A).(A) -> int
lastIndexOf: string.(string) -> int; string.(string, int) -> int; list(A).(A) -> int
lowerAscii: string.() -> string
upperAscii: string.() -> string
replace: string.(string, string) -> string; string.(string, string, int) -> string
split: string.(string) -> list(string); string.(string, int) -> list(string)
substring: string.(int) -> string; string.(int, int) -> string
trim: string.() -> string
format: string.(list(dyn)) -> string
strings.quote: (string) -> string
join: list(string).() -> string; list(string).(string) -> string
isSorted: list(int).() -> bool; list(uint).() -> bool; list(double).() -> bool; list(bool).() -> bool; list(duration).() -> bool; list(timestamp).() -> bool; list(string).() -> bool; list(bytes).() -> bool
sum: list(int).() -> int; list(uint).() -> uint; list(double).() -> double; list(duration).() -> duration
max: list(int).() -> int; list(uint).() -> uint; list(double).() -> double; list(bool).() -> bool; list(duration).() -> duration; list(timestamp).() -> timestamp; list(string).() -> string; list(bytes).() -> bytes
min: list(int).() -> int; list(uint).() -> uint; list(double).() -> double; list(bool).() -> bool; list(duration).() -> duration; list(timestamp).() -> timestamp; list(string).() -> string; list(bytes).() -> bytes
slice: list(T).(int, int) -> list(T)
flatten: list(list(T)).() -> list(T); list(dyn).(int) -> list(dyn)
sort: list(int).() -> list(int); list(uint).() -> list(uint); list(double).() -> list(double); list(bool).() -> list(bool); list(duration).() -> list(duration); list(timestamp).() -> list(timestamp); list(string).() -> list(string); list(bytes).() -> list(bytes)
@sortByAssociatedKeys: list(T).(list(int)) -> list(T); list(T).(list(uint)) -> list(T); list(T).(list(double)) -> list(T); list(T).(list(bool)) -> list(T); list(T).(list(duration)) -> list(T); list(T).(list(timestamp)) -> list(T); list(T).(list(string)) -> list(T); list(T).(list(bytes)) -> list(T)
lists.range: (int) -> list(int)
reverse: list(T).() -> list(T)
distinct: list(T).() -> list(T)
first: list(T).() -> optional(T)
last: list(T).() -> optional(T)
find: string.(string) -> string
findAll: string.(string) -> list(string); string.(string, int) -> list(string)
sets.contains: (list(T), list(T)) -> bool
sets.equivalent: (list(T), list(T)) -> bool
sets.intersects: (list(T), list(T)) -> bool
url: (string) -> kubernetes.URL
isURL: (string) -> bool
getScheme: kubernetes.URL.() -> string
getHost: kubernetes.URL.() -> string
getHostname: kubernetes.URL.() -> string
getPort: kubernetes.URL.() -> string
getEscapedPath: kubernetes.URL.() -> string
getQuery: kubernetes.URL.() -> map(string, list(string))
ip: (string) -> net.IP; net.CIDR.() -> net.IP
isIP: (string) -> bool
ip.isCanonical: (string) -> bool
family: net.IP.() -> int
isUnspecified: net.IP.() -> bool
isLoopback: net.IP.() -> bool
isLinkLocalMulticast: net.IP.() -> bool
isLinkLocalUnicast: net.IP.() -> bool
isGlobalUnicast: net.IP.() -> bool
cidr: (string) -> net.CIDR
isCIDR: (string) -> bool
containsIP: net.CIDR.(string) -> bool; net.CIDR.(net.IP) -> bool
containsCIDR: net.CIDR.(string) -> bool; net.CIDR.(net.CIDR) -> bool
masked: net.CIDR.() -> net.CIDR
prefixLength: net.CIDR.() -> int
quantity: (string) -> kubernetes.Quantity
isQuantity: (string) -> bool
sign: kubernetes.Quantity.() -> int
isInteger: kubernetes.Quantity.() -> bool
asInteger: kubernetes.Quantity.() -> int
asApproximateFloat: kubernetes.Quantity.() -> double
isGreaterThan: kubernetes.Quantity.(kubernetes.Quantity) -> bool; kubernetes.Semver.(kubernetes.Semver) -> bool
isLessThan: kubernetes.Quantity.(kubernetes.Quantity) -> bool; kubernetes.Semver.(kubernetes.Semver) -> bool
compareTo: kubernetes.Quantity.(kubernetes.Quantity) -> int; kubernetes.Semver.(kubernetes.Semver) -> int
add: kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity; kubernetes.Quantity.(int) -> kubernetes.Quantity
sub: kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity; kubernetes.Quantity.(int) -> kubernetes.Quantity
semver: (string) -> kubernetes.Semver; (string, bool) -> kubernetes.Semver
isSemver: (string) -> bool; (string, bool) -> bool
major: kubernetes.Semver.() -> int
minor: kubernetes.Semver.() -> int
patch: kubernetes.Semver.() -> int
format.named: (string) -> optional(kubernetes.NamedFormat)
validate: kubernetes.NamedFormat.(string) -> optional(list(string))
optional.of: (V) -> optional(V)
optional.ofNonZeroValue: (V) -> optional(V)
optional.none: () -> optional(V)
hasValue: optional(V).() -> bool
value: optional(V).() -> V
or: optional(V).(optional(V)) -> optional(V)
orValue: optional(V).(V) -> V
optional.unwrap: (list(optional(V))) -> list(V)
unwrapOpt: list(optional(V)).() -> list(V)
path: kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.PathCheck
group: kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.GroupCheck
serviceAccount: kubernetes.authorization.Authorizer.(string, string) -> kubernetes.authorization.Authorizer
resource: kubernetes.authorization.GroupCheck.(string) -> kubernetes.authorization.ResourceCheck
subresource: kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
namespace: kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
name: kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
fieldSelector: kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
labelSelector: kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
check: kubernetes.authorization.PathCheck.(string) -> kubernetes.authorization.Decision; kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.Decision
allowed: kubernetes.authorization.Decision.() -> bool
reason: kubernetes.authorization.Decision.() -> string
errored: kubernetes.authorization.Decision.() -> bool
error: kubernetes.authorization.Decision.() -> string
jsonpatch.escapeKey: (string) -> string
cel.@mapInsert: (map(K, V), K, V) -> map(K, V); (map(K, V), map(K, V)) -> map(K, V)
";

/// Formats that `format.<name>()` gives.
pub const FORMATS: &[&str] = &[
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

const COMPARABLE: &[&str] = &[
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "timestamp",
    "duration",
];
const NUMBERS: &[&str] = &["int", "uint", "double"];

type Table = HashMap<String, Vec<Overload>>;

/// The overloads of a function; None if there is no such function.
pub fn find(name: &str) -> Option<&'static [Overload]> {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(table).get(name).map(Vec::as_slice)
}

fn table() -> Table {
    let mut table = Table::new();
    for line in DECLARATIONS.lines().filter(|l| !l.is_empty()) {
        let (name, forms) = line.split_once(": ").unwrap_or((line, ""));
        table.insert(
            name.to_owned(),
            forms.split("; ").filter_map(overload).collect(),
        );
    }
    for operator in ["_<_", "_<=_", "_>_", "_>=_"] {
        let same = COMPARABLE.iter().map(|t| format!("({t}, {t}) -> bool"));
        let mixed = NUMBERS.iter().flat_map(|a| {
            NUMBERS
                .iter()
                .filter(move |b| a != *b)
                .map(move |b| format!("({a}, {b}) -> bool"))
        });
        table.insert(
            operator.to_owned(),
            same.chain(mixed).filter_map(|f| overload(&f)).collect(),
        );
    }
    for format in FORMATS {
        table.insert(
            format!("format.{format}"),
            overload("() -> kubernetes.NamedFormat")
                .into_iter()
                .collect(),
        );
    }
    table
}

fn overload(text: &str) -> Option<Overload> {
    let (left, result) = text.rsplit_once(" -> ")?;
    let (target, args) = match left.split_once(".(") {
        Some((target, rest)) => (Some(target), rest.strip_suffix(')')?),
        None => (None, left.strip_prefix('(')?.strip_suffix(')')?),
    };
    let list = split(args).into_iter().map(ty);
    Some(Overload {
        method: target.is_some(),
        args: target.map(ty).into_iter().chain(list).collect(),
        result: ty(result),
    })
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

fn ty(text: &str) -> Type {
    let inner = |prefix: &str| {
        text.strip_prefix(prefix)
            .and_then(|t| t.strip_prefix('('))
            .and_then(|t| t.strip_suffix(')'))
    };
    if let Some(of) = inner("list") {
        return Type::list(ty(of));
    }
    if let Some(of) = inner("optional") {
        return Type::optional(ty(of));
    }
    if let Some(of) = inner("type") {
        return Type::of_type(ty(of));
    }
    if let Some(of) = inner("map") {
        let parts = split(of);
        return Type::map(
            ty(parts.first().copied().unwrap_or("dyn")),
            ty(parts.get(1).copied().unwrap_or("dyn")),
        );
    }
    match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "kubernetes.URL" => Type::Opaque("kubernetes.URL"),
        "kubernetes.Quantity" => Type::Opaque("kubernetes.Quantity"),
        "kubernetes.Semver" => Type::Opaque("kubernetes.Semver"),
        "kubernetes.NamedFormat" => Type::Opaque("kubernetes.NamedFormat"),
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        "kubernetes.authorization.Authorizer" => authz::AUTHORIZER,
        "kubernetes.authorization.PathCheck" => Type::Opaque("kubernetes.authorization.PathCheck"),
        "kubernetes.authorization.GroupCheck" => {
            Type::Opaque("kubernetes.authorization.GroupCheck")
        }
        "kubernetes.authorization.ResourceCheck" => authz::RESOURCE_CHECK,
        "kubernetes.authorization.Decision" => Type::Opaque("kubernetes.authorization.Decision"),
        var => Type::Var(Arc::from(var)),
    }
}
