//! A deployment, as a job file of Nomad, as YAML and as a Dockerfile: it is read or refused, and every line that is
//! named is one of its lines.

use containerpilot_audit::model::Container;
use containerpilot_import::files::Text;

pub(crate) fn run(bytes: &[u8]) {
    for path in ["job.hcl", "manifest.yaml", "Dockerfile"] {
        let text = Text::new(path, &String::from_utf8_lossy(bytes));
        let lines = text.text.split('\n').count();
        let Ok(containers) = containerpilot_audit::read(&text) else { continue };
        let line = |container: &Container| container.line;
        assert!(containers.iter().all(|one| (1..=lines).contains(&line(one))), "a line that does not exist");
        let _ = containerpilot_audit::choose(&containers, None);
    }
}
