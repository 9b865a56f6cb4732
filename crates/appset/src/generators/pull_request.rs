//! The open pull requests of a repository. Main function: [`params`].

use super::scm::{regex, short};
use super::{Context, NOT_APPENDED};
use crate::error::{GenerateError, Place};
use crate::names::{LONGEST_SLUG, Slug};
use crate::need::{Answer, Need, Provider, PullRequest, unexpected};
use crate::params::{Param, Params};
use tiphys_api::application_set::hosts::PullRequestGenerator;
use tiphys_gocompat::regex::Regex;

const SLUG: Slug = Slug {
    max: LONGEST_SLUG,
    smart: true,
    no_underscores: true,
};

pub fn params(
    generator: &PullRequestGenerator,
    context: Context<'_>,
) -> Result<Vec<Params>, GenerateError> {
    let filters = generator
        .filters
        .iter()
        .map(|filter| {
            Ok([
                regex("BranchMatch", filter.branch_match.as_deref())?,
                regex("TargetBranchMatch", filter.target_branch_match.as_deref())?,
                regex("TitleMatch", filter.title_match.as_deref())?,
            ])
        })
        .collect::<Result<Vec<_>, GenerateError>>()
        .at("error listing repos")?;
    let need = Need::PullRequests(Provider::of_pull_requests(generator));
    let all = match context.facts.ask(need) {
        Ok(Answer::PullRequests(all)) => all,
        Ok(_) => return Err(unexpected()),
        Err(GenerateError::Outside(error))
            if error.not_found && generator.continue_on_repo_not_found_error =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.at("error listing repos")),
    };
    let mut sets = Vec::new();
    for pull in all {
        if !filters.is_empty() && !filters.iter().any(|filter| matches(filter, pull)) {
            continue;
        }
        let mut params = of_pull(pull);
        if context.is_go() {
            let labels = match &pull.labels {
                Some(labels) => Param::Strings(labels.clone()),
                None => Param::NoStrings,
            };
            params.insert("labels".into(), labels);
        }
        context
            .add_values(&mut params, &generator.values)
            .at(NOT_APPENDED)?;
        sets.push(params);
    }
    Ok(sets)
}

fn matches(filter: &[Option<Regex>; 3], pull: &PullRequest) -> bool {
    [&pull.branch, &pull.target_branch, &pull.title]
        .into_iter()
        .zip(filter)
        .all(|(text, regex)| regex.as_ref().is_none_or(|regex| regex.is_match(text)))
}

fn of_pull(pull: &PullRequest) -> Params {
    let sha = pull.head_sha.as_str();
    Params::from(
        [
            ("number", pull.number.to_string().as_str()),
            ("title", &pull.title),
            ("branch", &pull.branch),
            ("branch_slug", &SLUG.make(&pull.branch)),
            ("target_branch", &pull.target_branch),
            ("target_branch_slug", &SLUG.make(&pull.target_branch)),
            ("head_sha", sha),
            ("head_short_sha", short(sha, 8)),
            ("head_short_sha_7", short(sha, 7)),
            ("author", &pull.author),
        ]
        .map(|(key, text)| (key.to_owned(), text.into())),
    )
}
