//! The Go formats that users already write, parsed and printed byte for byte as the Go libraries
//! do.
//!
//! Main entry points: [`yaml`] (sigs.k8s.io/yaml, both ways), [`json`] (encoding/json), [`glob`]
//! (gobwas/glob), [`path_match`] (path.Match), [`doublestar`] (bmatcuk/doublestar), [`patterns`]
//! (lists of globs and regexp2 expressions), [`regex`] (regexp), [`cron`] (robfig/cron), [`duration`] (time.Duration),
//! [`template`] (text/template), [`sprig`] (its functions in Helm), [`toml`] (BurntSushi/toml, both
//! ways), [`document`] (what their printers take), [`semver`] (Masterminds/semver), [`strvals`] (Helm's `--set`), [`url`] (net/url),
//! [`netip`] (net/netip), [`x509`] (crypto/x509), [`known_hosts`] (golang.org/x/crypto/ssh), [`jq`] (gojq),
//! [`fnv`] (hash/fnv) and [`expr`] (expr-lang). Pure, and it knows no Kubernetes word: it must not learn what an object, a
//! manifest or an Application is.

pub mod cron;
pub mod document;
pub mod doublestar;
pub mod duration;
pub mod expr;
pub mod fnv;
pub mod glob;
pub mod jq;
pub mod json;
pub mod json_error;
pub mod known_hosts;
pub mod netip;
pub mod path_match;
pub mod patterns;
mod power;
mod printable;
pub mod regex;
pub mod semver;
pub mod sprig;
pub mod strvals;
pub mod template;
pub mod text;
pub mod toml;
pub mod url;
pub mod x509;
pub mod yaml;
