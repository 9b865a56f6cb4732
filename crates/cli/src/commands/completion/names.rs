//! Which names a word of a command line may be. Main function: [`asked`].

/// The rest of the command that prints the names which the last word may be, such as `app list -o
/// name`, for the server that the words name. `None` where only clap's own script knows what may
/// stand there.
pub(super) fn asked(program: &clap::Command, words: &[String]) -> Option<Vec<String>> {
    let (last, before) = words.split_last()?;
    let mut program = program.clone();
    program.build();
    let (mut parent, mut command) = ("", &program);
    let mut values: Vec<&str> = Vec::new();
    let mut connection: Vec<String> = Vec::new();
    let mut flag: Option<&clap::Arg> = None;
    for word in before {
        if let Some(flag) = flag.take() {
            if flag.is_global_set() {
                connection.push(word.clone());
            }
        } else if word.starts_with('-') && word.len() > 1 {
            let named = flag_of(command, word);
            if named.is_some_and(clap::Arg::is_global_set) {
                connection.push(word.clone());
            }
            flag = named.filter(|named| takes_the_next(named, word));
        } else if let Some(verb) = command.find_subcommand(word).filter(|_| values.is_empty()) {
            (parent, command) = (command.get_name(), verb);
        } else {
            values.push(word);
        }
    }
    let names = if let Some(flag) = flag {
        of_flag(flag.get_id().as_str())?
    } else if last.starts_with('-') {
        last.contains('=').then_some(())?;
        of_flag(flag_of(command, last)?.get_id().as_str())?
    } else {
        let mut positionals = command.get_positionals();
        let argument = positionals
            .nth(values.len())
            .or_else(|| command.get_positionals().last().filter(|arg| is_many(arg)))?;
        let help = argument.get_help().map(ToString::to_string);
        let names = of_argument(argument.get_id().as_str(), &help.unwrap_or_default())?;
        // What is created has no name yet.
        let is_new = ["add", "create"].contains(&command.get_name());
        if is_new && names.group() == parent {
            return None;
        }
        names
    };
    let mut asking = names.command(&values)?;
    asking.append(&mut connection);
    Some(asking)
}

/// What names are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Applications,
    ApplicationSets,
    Projects,
    /// Those of the project that is the first value on the command line.
    Roles,
    Clusters,
    Repositories,
    Credentials,
}

impl Names {
    /// The command that knows them.
    fn group(self) -> &'static str {
        match self {
            Self::Applications => "app",
            Self::ApplicationSets => "appset",
            Self::Projects | Self::Roles => "proj",
            Self::Clusters => "cluster",
            Self::Repositories => "repo",
            Self::Credentials => "repocreds",
        }
    }

    /// The command that prints them.
    fn command(self, values: &[&str]) -> Option<Vec<String>> {
        let group = self.group();
        let words = match self {
            Self::Roles => vec![
                group,
                "role",
                "list",
                values.first().copied()?,
                "-o",
                "name",
            ],
            Self::Clusters => vec![group, "list", "-o", "server"],
            Self::Repositories | Self::Credentials => vec![group, "list", "-o", "url"],
            Self::Applications | Self::ApplicationSets | Self::Projects => {
                vec![group, "list", "-o", "name"]
            }
        };
        Some(words.into_iter().map(str::to_owned).collect())
    }
}

/// The flag that a word names.
fn flag_of<'c>(command: &'c clap::Command, word: &str) -> Option<&'c clap::Arg> {
    let mut flags = command.get_arguments().filter(|arg| !arg.is_positional());
    match word.strip_prefix("--") {
        Some(long) => {
            let long = long.split('=').next();
            flags.find(|arg| {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == long || long.is_some_and(|long| aliases.contains(&long))
            })
        }
        // The last of several short ones, as in `-pl`.
        None => flags.find(|arg| arg.get_short() == word.chars().last()),
    }
}

/// Whether the value of a flag is the word after it.
fn takes_the_next(flag: &clap::Arg, word: &str) -> bool {
    let range = flag.get_num_args();
    flag.get_action().takes_values()
        && range.is_none_or(|range| range.min_values() > 0)
        && !flag.is_require_equals_set()
        && !word.contains('=')
}

fn is_many(argument: &clap::Arg) -> bool {
    argument
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1)
}

fn of_flag(id: &str) -> Option<Names> {
    match id {
        "project" | "projects" => Some(Names::Projects),
        "dest_server" | "cluster" => Some(Names::Clusters),
        _ => None,
    }
}

/// By the name of the argument, and what its help says that it is: `name` is one of many things.
fn of_argument(id: &str, help: &str) -> Option<Names> {
    let begins = |with: &[&str]| with.iter().any(|with| help.starts_with(with));
    if begins(&[
        "The application",
        "Name of the application",
        "Name of the Application",
    ]) || (id == "apps" && help.is_empty())
    {
        // What a command creates has no name to complete.
        return (!help.contains("[default:")).then_some(Names::Applications);
    }
    if begins(&["The project", "Name of the project", "Names of projects"]) {
        return Some(Names::Projects);
    }
    if begins(&["The role"]) {
        return Some(Names::Roles);
    }
    if begins(&["The ApplicationSet", "The ApplicationSets"]) {
        return Some(Names::ApplicationSets);
    }
    if begins(&[
        "The cluster",
        "Address of the cluster",
        "Addresses or names of clusters",
    ]) || begins(&["Address or name of the cluster", "Name of the cluster"])
    {
        return Some(Names::Clusters);
    }
    if begins(&["URL of the repository", "URLs of repositories"]) {
        return Some(Names::Repositories);
    }
    begins(&["URLs of the credentials"]).then_some(Names::Credentials)
}

#[cfg(test)]
mod tests {
    use super::super::tests::program;
    use super::asked;

    fn names(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        asked(&program(), &words).map(|asked| asked.join(" "))
    }

    #[test]
    fn each_word_has_the_names_of_what_it_is() {
        for (line, expected) in [
            ("app get ", Some("app list -o name")),
            ("app sync web sh", Some("app list -o name")),
            ("app sync --prune ", Some("app list -o name")),
            ("app delete ", Some("app list -o name")),
            ("app logs --tail 5 ", Some("app list -o name")),
            ("app actions list ", Some("app list -o name")),
            ("app sync --project ", Some("proj list -o name")),
            ("app sync --project shop we", Some("app list -o name")),
            ("app list -p ", Some("proj list -o name")),
            ("proj delete ", Some("proj list -o name")),
            ("proj set ", Some("proj list -o name")),
            ("proj add-destination ", Some("proj list -o name")),
            ("proj role list ", Some("proj list -o name")),
            ("proj role get shop ", Some("proj role list shop -o name")),
            ("appset get ", Some("appset list -o name")),
            ("appset delete ", Some("appset list -o name")),
            ("cluster rm ", Some("cluster list -o server")),
            ("cluster set ", Some("cluster list -o server")),
            ("cluster rotate-auth ", Some("cluster list -o server")),
            ("repo rm ", Some("repo list -o url")),
            ("repocreds rm ", Some("repocreds list -o url")),
            ("app sync --project=sh", Some("proj list -o name")),
            // A new name, a verb, a flag, and what no server knows.
            ("app create ", None),
            ("proj create ", None),
            ("repo add ", None),
            ("proj role create ", Some("proj list -o name")),
            ("app ", None),
            ("app get --ref", None),
            ("app get web ", None),
            ("version ", None),
            ("", None),
        ] {
            assert_eq!(names(line).as_deref(), expected, "{line}");
        }
    }
}
