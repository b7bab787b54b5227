//! Fuzz target: any bytes as a command line, with a NUL after each argument. No argument is lost or invented.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::flags::{FlagErrorKind, parse, parse_mixed};
use crate::table::{COMMANDS, MAIN_FLAGS, TOOLS, TOOLS_FLAGS};

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let args: Vec<OsString> =
        bytes.split(|byte| *byte == 0).map(|arg| OsString::from_vec(arg.to_vec())).collect();
    let flags = COMMANDS.iter().chain(TOOLS).map(|command| command.flags).chain([MAIN_FLAGS, TOOLS_FLAGS]);
    for flags in flags {
        for found in [parse(flags, &args), parse_mixed(flags, &args)] {
            match found {
                Ok(found) => {
                    let names: Vec<_> = found.names().collect();
                    assert!(names.iter().all(|name| flags.iter().any(|flag| flag.name == *name)));
                    assert!(names.len() + found.rest.len() + usize::from(found.double_dash) <= args.len());
                    assert!(found.rest.iter().all(|word| args.contains(word)));
                    for name in names {
                        assert!(found.pairs(name).keys().all(|key| !key.contains('=')));
                        let _ = (found.text(name), found.is_on(name));
                    }
                }
                Err(error) => assert!(error.kind == FlagErrorKind::Help || !error.to_string().is_empty()),
            }
        }
    }
}
