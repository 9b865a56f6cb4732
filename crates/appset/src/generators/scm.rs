//! The repositories of an organization. Main function: [`params`].

use super::{Context, NOT_APPENDED};
use crate::error::{GenerateError, Place};
use crate::names::normalize;
use crate::need::{Answer, Need, Provider, Repository, RepositoryId, unexpected};
use crate::params::{Param, Params};

use tiphys_api::application_set::hosts::{SCMProviderGenerator, SCMProviderGeneratorFilter};
use tiphys_gocompat::regex::Regex;

pub fn params(
    generator: &SCMProviderGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let mut sets = Vec::new();
    for repository in repositories(generator, context).at("error listing repos")? {
        let sha = repository.sha.as_str();
        let mut params = Params::from(
            [
                ("organization", repository.organization.as_str()),
                ("repository", &repository.repository),
                ("url", &repository.url),
                ("branch", &repository.branch),
                ("branchNormalized", &normalize(&repository.branch)),
                ("sha", sha),
                ("short_sha", short(sha, 8)),
                ("short_sha_7", short(sha, 7)),
                ("labels", &repository.labels.join(",")),
            ]
            .map(|(key, text)| (key.to_owned(), text.into())),
        );
        let id = match &repository.repository_id {
            RepositoryId::None => Param::Null,
            RepositoryId::Number(number) => Param::Int(*number),
            RepositoryId::Text(text) => text.as_str().into(),
        };
        params.insert("repository_id".into(), id);
        context
            .add_values(&mut params, &generator.values)
            .at(NOT_APPENDED)?;
        sets.push(params);
    }
    Ok(sets)
}

/// The beginning of a hash.
pub(crate) fn short(sha: &str, length: usize) -> &str {
    sha.get(..length).unwrap_or(sha)
}

struct Filter<'f> {
    repository: Option<Regex>,
    label: Option<Regex>,
    branch: Option<Regex>,
    exist: &'f [String],
    do_not_exist: &'f [String],
    kind: FilterKind,
}

#[derive(Clone, Copy, PartialEq)]
enum FilterKind {
    None,
    Repository,
    Branch,
}

impl<'f> Filter<'f> {
    fn new(filter: &'f SCMProviderGeneratorFilter) -> Result<Self, GenerateError> {
        let repository = regex("RepositoryMatch", filter.repository_match.as_deref())?;
        let label = regex("LabelMatch", filter.label_match.as_deref())?;
        let branch = regex("BranchMatch", filter.branch_match.as_deref())?;
        let of_branch = branch.is_some()
            || !filter.paths_exist.is_empty()
            || !filter.paths_do_not_exist.is_empty();
        let kind = match (of_branch, repository.is_some() || label.is_some()) {
            (true, _) => FilterKind::Branch,
            (_, true) => FilterKind::Repository,
            _ => FilterKind::None,
        };
        Ok(Self {
            repository,
            label,
            branch,
            exist: &filter.paths_exist,
            do_not_exist: &filter.paths_do_not_exist,
            kind,
        })
    }

    fn matches(&self, asked: &Asked<'_>, of: &Repository) -> Result<bool, GenerateError> {
        let fits = |regex: &Option<Regex>, text: &str| {
            regex.as_ref().is_none_or(|regex| regex.is_match(text))
        };
        let labelled = self
            .label
            .as_ref()
            .is_none_or(|regex| of.labels.iter().any(|label| regex.is_match(label)));
        if !fits(&self.repository, &of.repository) || !fits(&self.branch, &of.branch) || !labelled {
            return Ok(false);
        }
        for (paths, wanted) in [(self.exist, true), (self.do_not_exist, false)] {
            for path in paths {
                if asked.has_path(of, path.trim_end_matches('/'))? != wanted {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

pub(crate) fn regex(field: &str, expression: Option<&str>) -> Result<Option<Regex>, GenerateError> {
    expression
        .map(|text| {
            Regex::new(text).map_err(|e| {
                GenerateError::spec(format!("error compiling {field} regexp {text:?}: {e}"))
            })
        })
        .transpose()
}

/// A provider and the answers about it.
struct Asked<'a> {
    provider: Provider,
    context: Context<'a>,
}

impl Asked<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, GenerateError> {
        self.list(Need::Repositories(self.provider.clone()))
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, GenerateError> {
        self.list(Need::Branches {
            provider: self.provider.clone(),
            repository: repository.clone(),
        })
    }

    fn list(&self, need: Need) -> Result<Vec<Repository>, GenerateError> {
        match self.context.facts.ask(need)? {
            Answer::Repositories(list) => Ok(list.clone()),
            _ => Err(unexpected()),
        }
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, GenerateError> {
        let need = Need::HasPath {
            provider: self.provider.clone(),
            repository: repository.clone(),
            path: path.to_owned(),
        };
        match self.context.facts.ask(need)? {
            Answer::HasPath(has) => Ok(*has),
            _ => Err(unexpected()),
        }
    }

    /// Those that one of the filters of a kind accepts; without such filters, all.
    fn filtered(
        &self,
        all: Vec<Repository>,
        filters: &[Filter<'_>],
        kind: FilterKind,
    ) -> Result<Vec<Repository>, GenerateError> {
        if filters.iter().all(|filter| filter.kind != kind) {
            return Ok(all);
        }
        let mut kept = Vec::new();
        let mut missing = false;
        for repository in all {
            let mut accepted = false;
            for filter in filters.iter().filter(|filter| filter.kind == kind) {
                match filter.matches(self, &repository) {
                    Ok(matches) => accepted |= matches,
                    Err(error) if error.is_missing() => missing = true,
                    Err(error) => return Err(error),
                }
                if accepted {
                    break;
                }
            }
            if accepted {
                kept.push(repository);
            }
        }
        match missing {
            true => Err(GenerateError::Missing),
            false => Ok(kept),
        }
    }
}

/// Two groups of filters: repositories first, then branches. One filter of each must accept.
fn repositories(
    generator: &SCMProviderGenerator,
    context: Context<'_>,
) -> Result<Vec<Repository>, GenerateError> {
    let filters = generator
        .filters
        .iter()
        .map(Filter::new)
        .collect::<Result<Vec<_>, _>>()?;
    let asked = Asked {
        provider: Provider::of_scm(generator),
        context,
    };
    let all = asked.repositories()?;
    let mut branches = Vec::new();
    let mut missing = false;
    for repository in asked.filtered(all, &filters, FilterKind::Repository)? {
        match asked.branches(&repository) {
            Ok(list) => branches.extend(list),
            Err(error) if error.is_missing() => missing = true,
            Err(error) => return Err(error),
        }
        crate::limit(branches.len())?;
    }
    if missing {
        return Err(GenerateError::Missing);
    }
    asked.filtered(branches, &filters, FilterKind::Branch)
}
