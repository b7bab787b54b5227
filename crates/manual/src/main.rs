//! Makes the site together with mdBook; `scripts/site` calls this.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use containerpilot_manual::site;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["stage", out] => {
            let repository = std::env::var("SITE_REPOSITORY").ok().filter(|address| !address.is_empty());
            site::stage(&site::root(), Path::new(out), repository.as_deref())
        }
        ["finish", source, out] => {
            let out = Path::new(out);
            let finished = site::finish(Path::new(source), out).and_then(|()| site::check(out));
            finished.and_then(|wrong| out.parent().map_or(Ok(()), site::join_versions).map(|()| wrong))
        }
        _ => {
            eprintln!("usage: containerpilot-manual stage FOLDER | finish SOURCE SITE");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("{}", wrong.join("\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cannot make the site: {error}");
            ExitCode::FAILURE
        }
    }
}
