//! A loaded policy, and its decisions.
//!
//! Main type: [`Policy`].

use crate::{
    builtin,
    lines::{self, Line, PolicyFault},
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};
use tiphys_gocompat::{glob::Glob, regex::Regex};

/// Links of roles that casbin follows.
const LINKS: usize = 10;
/// Subjects whose rules are remembered.
const SUBJECTS: usize = 10_000;

/// How the fields of a permission are compared with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    #[default]
    Glob,
    Regex,
}

/// What is to be done with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub resource: &'a str,
    pub action: &'a str,
    pub object: &'a str,
}

/// What a subject may do to the objects whose names begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The same to all of them.
    Whole(bool),
    /// It depends on the rest of the name.
    Rest(Lines),
}

/// The permissions, by their index, that what follows decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    denying: Vec<usize>,
    allowing: Vec<usize>,
    /// Whether another one allows it in any case.
    is_allowed: bool,
}

/// Permissions and roles.
#[derive(Debug)]
pub struct Policy {
    permissions: Vec<Permission>,
    /// The roles of a member.
    roles: HashMap<String, Vec<String>>,
    mode: MatchMode,
    /// The permissions that count for a subject, by their index.
    known: Mutex<HashMap<String, Arc<[usize]>>>,
}

#[derive(Debug)]
struct Permission {
    /// The fields as they were written.
    text: String,
    subject: String,
    resource: Pattern,
    action: Pattern,
    object: Pattern,
    effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Allow,
    Deny,
    /// Any other word. Argo CD ignores such a line.
    None,
}

#[derive(Debug)]
enum Pattern {
    Glob(Glob),
    Regex(Regex),
    /// A glob that cannot be compiled.
    Nothing,
    /// A regular expression that cannot be compiled: whoever meets it is refused.
    Broken,
}

impl Pattern {
    fn new(text: &str, mode: MatchMode) -> Self {
        match mode {
            MatchMode::Glob => Glob::new(text, &[]).map_or(Self::Nothing, Self::Glob),
            MatchMode::Regex => Regex::new(text).map_or(Self::Broken, Self::Regex),
        }
    }

    /// Whether it matches all texts that begin like this, or none; `None`: it depends, or the
    /// pattern is broken.
    fn matches_all_after(&self, beginning: &str) -> Option<bool> {
        match self {
            Self::Glob(glob) => glob.matches_all_after(beginning),
            Self::Nothing => Some(false),
            Self::Regex(_) | Self::Broken => None,
        }
    }

    /// `None`: the pattern is broken.
    fn matches(&self, text: &str) -> Option<bool> {
        match self {
            Self::Glob(glob) => Some(glob.matches(text)),
            Self::Regex(regex) => Some(regex.is_match(text)),
            Self::Nothing => Some(false),
            Self::Broken => None,
        }
    }
}

impl Permission {
    fn new([subject, resource, action, object, effect]: [String; 5], mode: MatchMode) -> Self {
        let text = [&subject, &resource, &action, &object, &effect].map(String::as_str);
        Self {
            text: text.join(", "),
            subject,
            resource: Pattern::new(&resource, mode),
            action: Pattern::new(&action, mode),
            object: Pattern::new(&object, mode),
            effect: match effect.as_str() {
                "allow" => Effect::Allow,
                "deny" => Effect::Deny,
                _ => Effect::None,
            },
        }
    }

    fn line(&self) -> String {
        format!("p, {}", self.text)
    }

    /// From left to right: what is not reached cannot be broken.
    fn matches(&self, request: Request<'_>) -> Option<bool> {
        Some(
            self.resource.matches(request.resource)?
                && self.action.matches(request.action)?
                && self.object.matches(request.object)?,
        )
    }
}

impl Policy {
    /// The built-in roles with `builtin`, and the lines of the texts.
    ///
    /// # Errors
    /// A line that cannot be read.
    pub fn load(builtin: bool, texts: &[&str], mode: MatchMode) -> Result<Self, PolicyFault> {
        let mut policy = Self {
            permissions: Vec::new(),
            roles: HashMap::new(),
            mode,
            known: Mutex::default(),
        };
        if builtin {
            policy.add(lines::read(&builtin::text())?);
        }
        for text in texts {
            policy.add(lines::read(text)?);
        }
        if policy.permissions.is_empty() {
            // casbin asks one permission of empty texts then, and takes a match for an allow.
            let empty: [String; 5] = std::array::from_fn(|_| String::new());
            let mut pseudo = Permission::new(empty, mode);
            pseudo.effect = Effect::Allow;
            policy.permissions.push(pseudo);
        }
        Ok(policy)
    }

    fn add(&mut self, lines: Vec<(usize, Line)>) {
        for (_, line) in lines {
            match line {
                Line::Permission(fields) => {
                    self.permissions.push(Permission::new(fields, self.mode));
                }
                Line::Role(member, role) => {
                    self.roles.entry(member).or_default().push(role);
                }
            }
        }
    }

    /// Whether a permission of the subject or of its roles allows it and none denies it.
    pub fn permits(&self, subject: &str, request: Request<'_>) -> bool {
        let mut allowed = false;
        for index in self.of(subject).iter() {
            let permission = &self.permissions[*index];
            match (permission.matches(request), permission.effect) {
                (None, _) | (Some(true), Effect::Deny) => return false,
                (Some(true), Effect::Allow) => allowed = true,
                _ => {}
            }
        }
        allowed
    }

    /// What [`Self::permits`] answers for all objects whose names begin with that of the request.
    pub(crate) fn says(&self, subject: &str, request: Request<'_>) -> Said {
        let mut lines = Lines {
            denying: Vec::new(),
            allowing: Vec::new(),
            is_allowed: false,
        };
        for index in self.of(subject).iter() {
            let permission = &self.permissions[*index];
            let matched = permission.resource.matches(request.resource);
            let matched = match matched {
                Some(true) => permission.action.matches(request.action),
                other => other,
            };
            let all = match (matched, &permission.object) {
                (None, _) | (Some(true), Pattern::Broken) => return Said::Whole(false),
                (Some(false), _) => continue,
                (Some(true), object) => object.matches_all_after(request.object),
            };
            match (permission.effect, all) {
                (Effect::Deny, Some(true)) => return Said::Whole(false),
                (Effect::Deny, None) => lines.denying.push(*index),
                (Effect::Allow, Some(true)) => lines.is_allowed = true,
                (Effect::Allow, None) => lines.allowing.push(*index),
                (_, Some(false)) | (Effect::None, _) => {}
            }
        }
        if lines.is_allowed {
            lines.allowing.clear();
        }
        match (lines.is_allowed, lines.allowing.is_empty()) {
            (true, _) if lines.denying.is_empty() => Said::Whole(true),
            (false, true) => Said::Whole(false),
            _ => Said::Rest(lines),
        }
    }

    /// What [`Self::permits`] answers for one object of those that [`Self::says`] was asked about.
    pub(crate) fn decides(&self, lines: &Lines, object: &str) -> bool {
        let matches = |index: &usize| self.permissions[*index].object.matches(object) == Some(true);
        (lines.is_allowed || lines.allowing.iter().any(matches))
            && !lines.denying.iter().any(matches)
    }

    /// The line that decides for a subject: the first that denies it or cannot be applied, else the
    /// first that allows it.
    pub fn rule(&self, subject: &str, request: Request<'_>) -> Option<String> {
        let mut allowing = None;
        for index in self.of(subject).iter() {
            let permission = &self.permissions[*index];
            match (permission.matches(request), permission.effect) {
                (None, _) | (Some(true), Effect::Deny) => return Some(permission.line()),
                (Some(true), Effect::Allow) if allowing.is_none() => allowing = Some(permission),
                _ => {}
            }
        }
        allowing.map(Permission::line)
    }

    /// Whether the subject is a member of a role. Only such groups count.
    pub fn is_member(&self, subject: &str) -> bool {
        self.roles.contains_key(subject)
    }

    fn of(&self, subject: &str) -> Arc<[usize]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(indices) = known.get(subject) {
            return Arc::clone(indices);
        }
        let subjects = self.with_roles(subject);
        let counts =
            |(_, permission): &(usize, &Permission)| subjects.contains(permission.subject.as_str());
        let indices: Arc<[usize]> = self
            .permissions
            .iter()
            .enumerate()
            .filter(counts)
            .map(|(index, _)| index)
            .collect();
        if known.len() >= SUBJECTS {
            known.clear();
        }
        known.insert(subject.to_owned(), Arc::clone(&indices));
        indices
    }

    /// Whether a permission of the subject or of its roles exists.
    pub(crate) fn has_permissions(&self, subject: &str) -> bool {
        !self.of(subject).is_empty()
    }

    /// Those that the policy gives roles or permissions to.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &str> {
        let permissions = self.permissions.iter();
        self.roles
            .keys()
            .chain(permissions.map(|permission| &permission.subject))
            .map(String::as_str)
    }

    /// A subject and its roles, and their roles.
    pub(crate) fn with_roles<'a>(&'a self, subject: &'a str) -> HashSet<&'a str> {
        let mut found = HashSet::from([subject]);
        let mut queue = VecDeque::from([(subject, 0)]);
        while let Some((member, links)) = queue.pop_front() {
            if links == LINKS {
                continue;
            }
            for role in self.roles.get(member).into_iter().flatten() {
                if found.insert(role) {
                    queue.push_back((role, links + 1));
                }
            }
        }
        found
    }
}
