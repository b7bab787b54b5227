//! Actions of the supervisor (W19), and queues of events (W21).

use std::fs;

use crate::support::supervisor::{Supervisor, modes};

#[test]
fn w19_an_action_signals_a_job_without_a_shell_or_kill() {
    let config = "{ jobs: [
        { name: 'server', exec: ['@programs/on-signal.sh', 'HUP', 'echo reloaded; exit 7'] },
        { name: 'server-reload', do: { signal: 'HUP', to: 'server' }, when: { source: 'SIGHUP' } },
        { name: 'end', do: { shutdown: 42 }, when: { source: 'server', once: 'exitFailed' } } ] }";
    for mode in modes() {
        let mut it = Supervisor::start(mode, config);
        it.wait_for_line("ready");
        it.signal("-HUP");
        let (code, log) = it.wait();
        assert_eq!(code, 42);
        assert!(log.contains("server-reload server: sent SIGHUP to process group"));
        assert!(log.contains("reloaded"));
        assert!(log.contains("exiting with code 42: requested by end"));
    }
}

#[test]
fn w19_an_action_reloads_the_configuration_and_sets_variables() {
    let config = "{ jobs: [
        { name: 'main', exec: ['sh', '-c', 'echo ready; exec sleep 1000'] },
        { name: 'env', do: { setEnv: { GREETING: 'hello from an action' } } },
        { name: 'reload', do: { reload: true }, when: { source: 'SIGHUP' } },
        /* more */ ] }";
    let mut it = Supervisor::start(modes()[0], config);
    it.wait_for_line("ready");
    let file = it.file("config.json5");
    let text = fs::read_to_string(&file).unwrap();
    let more = "{ name: 'new', exec: 'printenv GREETING' },
        { name: 'end', do: { shutdown: 3 }, when: { source: 'new', once: 'exitSuccess' } }";
    fs::write(&file, text.replace("/* more */", more)).unwrap();
    it.signal("-HUP");
    let (code, log) = it.wait();
    assert_eq!(code, 3);
    assert!(log.contains("hello from an action"));
}

#[test]
fn w21_with_queue_all_each_event_has_a_run() {
    let config = "{ jobs: [
        { name: 'tick', exec: ['sh', '-c', 'echo >> @/ticks'], when: { interval: '250ms' },
          timeout: 'never', restarts: 9 },
        { name: 'each', exec: ['sh', '-c', 'until test $(wc -l < @/ticks) -ge 10; do sleep 0.02; done; echo a run'],
          when: { source: 'tick', each: 'exitSuccess', queue: 'all' } } ] }";
    let (code, log) = Supervisor::start(modes()[0], config).wait();
    assert_eq!(code, 0);
    assert_eq!(log.lines().filter(|line| line.ends_with(" a run")).count(), 10);
}
