//! Completions for shells, generated from the table of commands.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use super::client::Client;
use super::flags::{Arguments, Flag, FlagKind};
use super::manual::manual;
use super::responses::Status;
use super::table::{COMMANDS, Command, MAIN_FLAGS};
use super::terminal::sanitized;
use super::{Failure, print};

pub(super) fn completions(args: &Arguments) -> Result<(), Failure> {
    let shell = args.rest.first().map(|shell| shell.to_string_lossy().into_owned()).unwrap_or_default();
    match shell.as_str() {
        "bash" => print(&bash()),
        "zsh" => print(&zsh()),
        "fish" => print(&fish()),
        // Called by the completion scripts.
        "jobs" => print(&jobs(args)),
        "" => Err(Failure::Usage("`completions` needs a shell: bash, zsh or fish".to_owned())),
        _ => Err(Failure::Usage(format!(
            "unsupported shell `{shell}`: completions exist for bash, zsh and fish"
        ))),
    }
}

/// The names of the running supervisor's jobs and groups, one per line; nothing if the supervisor does not answer.
fn jobs(args: &Arguments) -> String {
    // Completion must be fast and must not print errors.
    let client = Client::of(&args.flags_only()).with_timeout(Duration::from_secs(1));
    let status = client.get("/v3/status").map_err(Failure::from).and_then(|response| response.json());
    let status: Status = status.unwrap_or_default();
    let groups: BTreeSet<String> =
        status.jobs.iter().flat_map(|job| &job.groups).map(|group| format!("@{group}")).collect();
    let names = status.jobs.iter().map(|job| &job.name).chain(&groups);
    names.map(|name| format!("{}\n", sanitized(name))).collect()
}

/// The command by which a completion script gets the names of the jobs.
const JOBS: &str = "containerpilot completions jobs 2>/dev/null";

fn takes_job(command: &Command) -> bool {
    command.arguments.contains("JOB")
}

fn names(flags: &[&Flag]) -> String {
    flags.iter().map(|flag| format!("-{}", flag.name)).collect::<Vec<_>>().join(" ")
}

/// The values of a command's argument, if they are a fixed set.
fn choices(command: &Command) -> Vec<String> {
    match command.name {
        "help" => {
            let names = COMMANDS.iter().map(|command| command.name).chain(["topics"]).map(str::to_owned);
            let manual = manual();
            let pages = manual.pages().map(|page| page.topic());
            let (shared, others): (Vec<_>, Vec<_>) =
                pages.partition(|topic| COMMANDS.iter().any(|command| command.name == topic));
            names.chain(others).chain(shared.iter().map(|topic| format!("manual/{topic}"))).collect()
        }
        _ if command.arguments.contains('|') => command.arguments.split('|').map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The values of a flag, if they are a fixed set.
fn values(flag: &Flag) -> Vec<&'static str> {
    match flag.kind {
        FlagKind::Text("FORMAT") => vec!["human", "json"],
        FlagKind::Text(choice) if choice.contains('|') => choice.split('|').collect(),
        _ => Vec::new(),
    }
}

fn takes_path(command: &Command) -> bool {
    command.arguments.contains("PATH")
}

fn is_path(flag: &Flag) -> bool {
    matches!(flag.kind, FlagKind::Text("PATH" | "FILE"))
}

fn bash() -> String {
    let commands = COMMANDS.iter().map(|command| command.name).collect::<Vec<_>>().join(" ");
    let flags = COMMANDS.iter().flat_map(|command| command.flags).chain(MAIN_FLAGS);
    let paths: BTreeSet<_> = flags.filter(|flag| is_path(flag)).map(|flag| flag.name).collect();
    let paths = paths.iter().map(|name| format!("-{name}|--{name}")).collect::<Vec<_>>().join("|");
    let mut out = String::from(
        "# bash completions for containerpilot\n\
         _containerpilot() {\n    \
         local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words=\n    \
         local each\n    \
         for each in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n        \
         case $each in -*) ;; *) command=$each; break ;; esac\n    \
         done\n    \
         case $before in\n",
    );
    let _ = writeln!(
        out,
        "        {paths}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n    esac\n    case $command:${{before#-}} in"
    );
    for (name, flags) in
        COMMANDS.iter().map(|command| (command.name, command.flags)).chain([("", MAIN_FLAGS)])
    {
        for flag in flags {
            let values = values(flag);
            if !values.is_empty() {
                let _ = writeln!(
                    out,
                    "        {name}:{0}|{name}:-{0}) COMPREPLY=($(compgen -W '{1}' -- \"$word\")); return ;;",
                    flag.name,
                    values.join(" ")
                );
            }
        }
    }
    out.push_str("    esac\n    case $command in\n");
    for command in COMMANDS {
        let words = [names(command.flags), choices(command).join(" ")].join(" ");
        let files = if takes_path(command) { " -f" } else { "" };
        let jobs = if takes_job(command) { format!("\"$({JOBS})\"") } else { String::new() };
        let _ = writeln!(
            out,
            "        {}) COMPREPLY=($(compgen{files} -W '{} '{jobs} -- \"$word\")) ;;",
            command.name,
            words.trim()
        );
    }
    let _ = writeln!(
        out,
        "        *) COMPREPLY=($(compgen -f -W '{commands} {}' -- \"$word\")) ;;\n    esac\n}}\n\
         complete -o filenames -F _containerpilot containerpilot",
        names(MAIN_FLAGS)
    );
    out
}

/// Replaces the characters that have a meaning inside the quoted descriptions of zsh and fish.
fn quoted(text: &str) -> String {
    text.replace('\'', "").replace('[', "(").replace(']', ")").replace(':', " -")
}

fn zsh_flag(flag: &Flag) -> String {
    let value = match flag.kind {
        FlagKind::Bool => String::new(),
        _ if is_path(flag) => ":path:_files".to_owned(),
        FlagKind::Text(_) => format!(":value:({})", values(flag).join(" ")),
        FlagKind::Pairs => ":pair:".to_owned(),
    };
    let repeat = if flag.kind == FlagKind::Pairs { "*" } else { "" };
    format!("'{repeat}-{}[{}]{value}'", flag.name, quoted(flag.help))
}

fn zsh() -> String {
    let mut out =
        String::from("#compdef containerpilot\n# zsh completions for containerpilot\n_containerpilot() {\n");
    out.push_str("    local -a commands=(\n");
    for command in COMMANDS {
        let _ = writeln!(out, "        '{}:{}'", command.name, quoted(command.about));
    }
    out.push_str("    )\n    local context state line\n    _arguments -C \\\n");
    for flag in MAIN_FLAGS {
        let _ = writeln!(out, "        {} \\", zsh_flag(flag));
    }
    out.push_str("        '1:command:->command' '*::argument:->argument'\n    case $state in\n");
    out.push_str(
        "        command) _describe command commands; _files ;;\n        argument)\n            case $words[1] in\n",
    );
    for command in COMMANDS {
        let flags = command.flags.iter().map(|flag| zsh_flag(flag)).collect::<Vec<_>>().join(" ");
        let argument = match choices(command).as_slice() {
            [] if takes_path(command) => "'*:path:_files'".to_owned(),
            [] if takes_job(command) => format!("'*:job:{{compadd -- ${{(f)\"$({JOBS})\"}}}}'"),
            [] => String::new(),
            words => format!("'1:word:({})'", words.join(" ")),
        };
        let _ = writeln!(
            out,
            "                {}) _arguments {} ;;",
            command.name,
            format!("{flags} {argument}").trim()
        );
    }
    out.push_str("            esac ;;\n    esac\n}\n_containerpilot \"$@\"\n");
    out
}

fn fish() -> String {
    let mut out = String::from("# fish completions for containerpilot\ncomplete -c containerpilot -f\n");
    let fish_flag = |condition: &str, flag: &Flag| {
        let value = match flag.kind {
            FlagKind::Bool => String::new(),
            _ if is_path(flag) => " -r -F".to_owned(),
            FlagKind::Text(_) | FlagKind::Pairs => match values(flag).as_slice() {
                [] => " -x".to_owned(),
                words => format!(" -x -a '{}'", words.join(" ")),
            },
        };
        format!(
            "complete -c containerpilot -n {condition} -o {}{value} -d '{}'\n",
            flag.name,
            quoted(flag.help)
        )
    };
    for flag in MAIN_FLAGS {
        out.push_str(&fish_flag("__fish_use_subcommand", flag));
    }
    out.push_str("complete -c containerpilot -n __fish_use_subcommand -F\n");
    for command in COMMANDS {
        let _ = writeln!(
            out,
            "complete -c containerpilot -n __fish_use_subcommand -a {} -d '{}'",
            command.name,
            quoted(command.about)
        );
        let condition = format!("'__fish_seen_subcommand_from {}'", command.name);
        for flag in command.flags {
            out.push_str(&fish_flag(&condition, flag));
        }
        let words = choices(command);
        if takes_path(command) {
            let _ = writeln!(out, "complete -c containerpilot -n {condition} -F");
        } else if takes_job(command) {
            let _ = writeln!(out, "complete -c containerpilot -n {condition} -a '({JOBS})'");
        } else if !words.is_empty() {
            let _ = writeln!(out, "complete -c containerpilot -n {condition} -a '{}'", words.join(" "));
        }
    }
    out
}
