//! C6: coprocesses.

use std::time::Duration;

use containerpilot_config::diagnostics::Severity;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Backoff, Command, EventPattern, Exec, Job, Repeat, Restarts, Role, Trigger};

use super::support::{errors, faults, host_with, messages, plan, plan_on};

fn coprocess(text: &str) -> Job {
    let mut jobs = plan(&format!("{{ coprocesses: [{{ {text} }}] }}")).jobs;
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

#[test]
fn c6_command_is_the_program_and_its_arguments() {
    let expected = Command { program: "consul".into(), arguments: vec!["agent".into(), "-dev".into()] };
    assert_eq!(coprocess("command: 'consul agent -dev'").exec.program(), Some(&expected));
    assert_eq!(coprocess("command: ['consul', 'agent', '-dev']").exec, Exec::Program(expected));
    assert_eq!(errors("{ coprocesses: [{ name: 'n' }] }"), ["a coprocess needs `command`"]);
}

#[test]
fn c6_name_is_optional_and_defaults_to_the_command() {
    assert_eq!(coprocess("command: 'consul agent', name: 'catalog'").name, "catalog");
    assert_eq!(coprocess("command: ['consul', 'agent']").name, "consul agent");
    assert_eq!(coprocess("command: 'consul', name: ''").name, "consul");
}

#[test]
fn c6_restarts_is_optional_and_defaults_to_never() {
    for (restarts, limit) in [
        ("", Restarts::Limited(0)),
        ("restarts: 'never'", Restarts::Limited(0)),
        ("restarts: 0", Restarts::Limited(0)),
        ("restarts: 1", Restarts::Limited(1)),
        ("restarts: '12'", Restarts::Limited(12)),
        ("restarts: 'unlimited'", Restarts::Unlimited),
    ] {
        assert_eq!(coprocess(&format!("command: 'x', {restarts}")).restarts, limit, "{restarts}");
    }
    for wrong in ["-1", "'often'", "[]"] {
        assert_eq!(errors(&format!("{{ coprocesses: [{{ command: 'x', restarts: {wrong} }}] }}")).len(), 1);
    }
}

#[test]
fn c6_a_coprocess_is_a_job_with_its_own_role() {
    let job = coprocess("command: 'x'");
    assert_eq!(job.role, Role::Coprocess);
    assert!(job.health.is_none() && job.service.is_none(), "it is not registered in the catalog");
    assert!(!job.output.is_raw(), "its output goes through the log");
    let times = [100, 10_000, 10_000].map(Duration::from_millis);
    let [initial, max, reset] = times;
    assert_eq!(job.backoff, Some(Backoff { initial, max, reset }), "it has the back-off of a job");
}

#[test]
fn c6_it_starts_at_startup_or_after_the_job_pre_start() {
    let global = EventPattern { source: Source::Global, code: Code::Startup };
    assert_eq!(
        coprocess("command: 'x'").when.trigger,
        Trigger::Event { event: global, repeat: Repeat::Once }
    );
    let plan = plan("{ jobs: [{ name: 'preStart', exec: 'x' }], coprocesses: [{ command: 'y' }] }");
    let exit = |code| EventPattern { source: Source::Job("preStart".into()), code };
    let expected = Trigger::Any {
        conditions: vec![exit(Code::ExitSuccess), exit(Code::ExitFailed)],
        repeat: Repeat::Once,
    };
    assert_eq!((plan.jobs[0].role, &plan.jobs[0].when.trigger), (Role::Coprocess, &expected));
    assert_eq!(plan.jobs[1].name, "preStart");
}

#[test]
fn c6_environment_variables_can_be_used() {
    let text = "{ coprocesses: [{ command: 'consul agent -join {{ .CONSUL }}' }] }";
    let plan = plan_on(text, &host_with(&[("CONSUL", "10.0.0.3")]));
    assert_eq!(
        plan.jobs[0]
            .exec
            .program()
            .map(|exec| exec.arguments.iter().map(|word| word.text()).collect::<Vec<_>>().join(" "))
            .unwrap(),
        "agent -join 10.0.0.3"
    );
}

#[test]
fn c7_jobs_can_wait_for_a_coprocess_and_its_name_must_be_unique() {
    let waits = "{ jobs: [{ name: 'a', exec: 'x', when: { source: 'co', once: 'exitFailed' } }],
                   coprocesses: [{ name: 'co', command: 'y' }] }";
    assert_eq!(faults(waits), [""; 0]);
    let twice = "{ jobs: [{ name: 'co', exec: 'x' }], coprocesses: [{ name: 'co', command: 'y' }] }";
    assert_eq!(messages(twice, Severity::Warning), ["a job and a coprocess are both named `co`"]);
}
