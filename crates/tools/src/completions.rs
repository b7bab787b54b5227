//! Completions of both programs for shells, generated from the table of commands.

use std::collections::BTreeSet;
use std::fmt::Write;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{Arguments, Flag, FlagKind};
use containerpilot_command_line::output::print;
use containerpilot_command_line::table::{COMMANDS, Command, MAIN_FLAGS, Program, TOOLS, TOOLS_FLAGS};

use crate::manual::manual;

/// What is completed after the name of a program.
struct Completed {
    program: &'static str,
    /// The name of the shell function.
    function: &'static str,
    commands: Vec<&'static Command>,
    flags: &'static [&'static Flag],
}

/// `containerpilot` passes the commands of the tools on, so it completes them, too.
fn programs() -> [Completed; 2] {
    let is_new = |tool: &&&Command| !COMMANDS.iter().any(|other| other.name == tool.name);
    [
        Completed {
            program: Program::Containerpilot.name(),
            function: "_containerpilot",
            commands: COMMANDS.iter().chain(TOOLS.iter().filter(is_new)).copied().collect(),
            flags: MAIN_FLAGS,
        },
        Completed {
            program: Program::Tools.name(),
            function: "_containerpilot_tools",
            commands: TOOLS.to_vec(),
            flags: TOOLS_FLAGS,
        },
    ]
}

pub(crate) fn completions(args: &Arguments) -> Result<(), Failure> {
    let shell = args.rest.first().map(|shell| shell.to_string_lossy().into_owned()).unwrap_or_default();
    match shell.as_str() {
        "bash" => print(&programs().iter().map(bash).collect::<String>()),
        "zsh" => print(&zsh(&programs())),
        "fish" => print(&programs().iter().map(fish).collect::<String>()),
        "" => Err(Failure::Usage("`completions` needs a shell: bash, zsh or fish".to_owned())),
        _ => Err(Failure::Usage(format!(
            "unsupported shell `{shell}`: completions exist for bash, zsh and fish"
        ))),
    }
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
            let commands = || COMMANDS.iter().chain(TOOLS).map(|command| command.name);
            let names: BTreeSet<&str> = commands().chain(["topics"]).collect();
            let names = names.into_iter().map(str::to_owned);
            let manual = manual();
            let pages = manual.pages().map(|page| page.topic());
            let (shared, others): (Vec<_>, Vec<_>) =
                pages.partition(|topic| commands().any(|command| command == topic));
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
    ["PATH", "FOLDER"].iter().any(|name| command.arguments.contains(name))
}

fn is_path(flag: &Flag) -> bool {
    matches!(flag.kind, FlagKind::Text("PATH" | "FILE"))
}

fn bash(completed: &Completed) -> String {
    let Completed { program, function, commands, flags: main_flags } = completed;
    let names_of_commands = commands.iter().map(|command| command.name).collect::<Vec<_>>().join(" ");
    let flags = commands.iter().flat_map(|command| command.flags).chain(*main_flags);
    let paths: BTreeSet<_> = flags.filter(|flag| is_path(flag)).map(|flag| flag.name).collect();
    let paths = paths.iter().map(|name| format!("-{name}|--{name}")).collect::<Vec<_>>().join("|");
    let mut out = format!("# bash completions for {program}\n{function}() {{\n    ");
    out.push_str(
        "\
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
        commands.iter().map(|command| (command.name, command.flags)).chain([("", *main_flags)])
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
    for command in commands {
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
        "        *) COMPREPLY=($(compgen -f -W '{names_of_commands} {}' -- \"$word\")) ;;\n    esac\n}}\n\
         complete -o filenames -F {function} {program}",
        names(main_flags)
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

fn zsh(programs: &[Completed]) -> String {
    let names = programs.iter().map(|completed| completed.program).collect::<Vec<_>>().join(" ");
    let mut out = format!("#compdef {names}\n# zsh completions for {}\n", names.replace(' ', " and "));
    for completed in programs {
        zsh_function(&mut out, completed);
    }
    out.push_str("case $service in\n");
    for Completed { program, function, .. } in programs {
        let _ = writeln!(out, "    {program}) {function} \"$@\" ;;");
    }
    out.push_str("esac\n");
    out
}

fn zsh_function(out: &mut String, completed: &Completed) {
    let Completed { function, commands, flags, .. } = completed;
    let _ = writeln!(out, "{function}() {{\n    local -a commands=(");
    for command in commands {
        let _ = writeln!(out, "        '{}:{}'", command.name, quoted(command.about));
    }
    out.push_str("    )\n    local context state line\n    _arguments -C \\\n");
    for flag in *flags {
        let _ = writeln!(out, "        {} \\", zsh_flag(flag));
    }
    out.push_str("        '1:command:->command' '*::argument:->argument'\n    case $state in\n");
    out.push_str(
        "        command) _describe command commands; _files ;;\n        argument)\n            case $words[1] in\n",
    );
    for command in commands {
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
    out.push_str("            esac ;;\n    esac\n}\n");
}

fn fish(completed: &Completed) -> String {
    let Completed { program, commands, flags, .. } = completed;
    let mut out = format!("# fish completions for {program}\ncomplete -c {program} -f\n");
    let fish_flag = |condition: &str, flag: &Flag| {
        let value = match flag.kind {
            FlagKind::Bool => String::new(),
            _ if is_path(flag) => " -r -F".to_owned(),
            FlagKind::Text(_) | FlagKind::Pairs => match values(flag).as_slice() {
                [] => " -x".to_owned(),
                words => format!(" -x -a '{}'", words.join(" ")),
            },
        };
        format!("complete -c {program} -n {condition} -o {}{value} -d '{}'\n", flag.name, quoted(flag.help))
    };
    for flag in *flags {
        out.push_str(&fish_flag("__fish_use_subcommand", flag));
    }
    let _ = writeln!(out, "complete -c {program} -n __fish_use_subcommand -F");
    for command in commands {
        let _ = writeln!(
            out,
            "complete -c {program} -n __fish_use_subcommand -a {} -d '{}'",
            command.name,
            quoted(command.about)
        );
        let condition = format!("'__fish_seen_subcommand_from {}'", command.name);
        for flag in command.flags {
            out.push_str(&fish_flag(&condition, flag));
        }
        let words = choices(command);
        if takes_path(command) {
            let _ = writeln!(out, "complete -c {program} -n {condition} -F");
        } else if takes_job(command) {
            let _ = writeln!(out, "complete -c {program} -n {condition} -a '({JOBS})'");
        } else if !words.is_empty() {
            let _ = writeln!(out, "complete -c {program} -n {condition} -a '{}'", words.join(" "));
        }
    }
    out
}
