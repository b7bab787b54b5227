//! What the flags of ContainerPilot 3 request.

use crate::flags::Arguments;

/// What the flags of ContainerPilot 3 request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `-version`.
    Version,
    /// `-template`.
    Template,
    /// A request to a running supervisor; holds the name of the first such flag.
    Control(&'static str),
    /// Run the supervisor, or a command.
    Run,
}

/// Chooses the action if there are several flags, in the order of 3.8.
pub fn action(flags: &Arguments) -> Action {
    if flags.is_on("version") {
        return Action::Version;
    }
    if flags.is_on("template") {
        return Action::Template;
    }
    let given = |name: &&str| match *name {
        "reload" | "ping" => flags.is_on(name),
        "maintenance" => !flags.text(name).is_empty(),
        _ => !flags.pairs(name).is_empty(),
    };
    let control = ["reload", "maintenance", "putenv", "putmetric", "ping"].into_iter().find(given);
    control.map_or(Action::Run, Action::Control)
}
