//! `examples/cron`.

use super::Container;
use crate::support::clock::clock_jumps;
use crate::support::program::Folder;

#[test]
fn w15_recipe_runs_at_local_times_and_never_twice_at_once() {
    let (folder, Some(program)) = clock_jumps("recipe-cron") else { return };
    let _folder = Folder(folder);
    // Five seconds before half past two in Berlin in winter. The import waits to be released.
    let script = format!(
        "mkdir $CONTAINERPILOT_TEST/bin
         printf '#!/bin/sh\necho importing; until [ -e /run/release ]; do sleep 0.1; done\n' > $CONTAINERPILOT_TEST/bin/import
         chmod +x $CONTAINERPILOT_TEST/bin/import; PATH=$CONTAINERPILOT_TEST/bin:$PATH
         export CLOCK_SHIFT=$(($(date -ud '2026-01-09 01:29:55' +%s) - $(date +%s)))
         set -- {} \"$@\"",
        program.display()
    );
    let Some(mut container) = Container::start("cron", &script) else { return };
    container.supervisor.wait_for_line("control: serving");
    assert!(container.pilot(&["start", "import"]).status.success());
    container.supervisor.wait_for_lines("importing", 1);

    // The output is in the log, with the name of the job. The time is that of the zone.
    container.supervisor.wait_for_lines("is written", 1);
    container.supervisor.wait_for_lines("skipped this run", 1);
    let log = container.supervisor.log_so_far();
    let report = log.lines().find(|line| line.contains("report started")).unwrap();
    assert!(report.starts_with("2026-01-09T01:3") && report.contains("cause: cron"), "{report}");
    assert_eq!(log.matches("import started").count(), 1);

    container.shell("touch /run/release");
    container.supervisor.wait_for_line("import exited with code 0");
    container.supervisor.signal("-TERM");
    assert_eq!(container.supervisor.wait().0, 0);
}
