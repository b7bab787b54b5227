//! Actions (W19), the queue of events (W21), defaults and groups (W22).

use containerpilot_config::diagnostics::Severity;
use containerpilot_core::plan::{Action, Exec, Repeat, Restarts, Signal, Target, Trigger};

use super::support::{errors, host, job, job_errors, load_files, messages, plan, shown};

/// The action of a job `a` beside a job `web` of the group `front`.
fn action(text: &str) -> Action {
    let text =
        format!("{{ jobs: [{{ name: 'web', exec: 'x', groups: ['front'] }}, {{ name: 'a', do: {text} }}] }}");
    match plan(&text).jobs.remove(1).exec {
        Exec::Action(action) => action,
        other => panic!("{other:?}"),
    }
}

fn action_errors(keys: &str) -> Vec<String> {
    errors(&format!("{{ jobs: [{{ name: 'web', exec: 'x', groups: ['front'] }}, {{ name: 'a', {keys} }}] }}"))
}

#[test]
fn w19_do_is_an_action_of_the_supervisor() {
    let web = || Target::Job("web".into());
    assert_eq!(action("{ signal: 'HUP', to: 'web' }"), Action::Signal(Signal::HUP, web()));
    assert_eq!(
        action("{ signal: 'SIGUSR2', to: '@front' }"),
        Action::Signal(Signal::USR2, Target::Group("front".into()))
    );
    assert_eq!(action("{ start: 'web' }"), Action::Start(web()));
    assert_eq!(action("{ Stop: 'web' }"), Action::Stop(web()));
    assert_eq!(action("{ restart: 'web' }"), Action::Restart(web()));
    assert_eq!(action("{ reload: true }"), Action::Reload);
    assert_eq!(action("{ maintenance: 'enter' }"), Action::Maintenance(true));
    assert_eq!(action("{ maintenance: 'exit' }"), Action::Maintenance(false));
    assert_eq!(action("{ shutdown: 3 }"), Action::Shutdown(3));
    assert_eq!(
        action("{ setEnv: { A: 1, B: null, C: '' } }"),
        Action::SetEnv(vec![("A".into(), Some("1".into())), ("B".into(), None), ("C".into(), None)])
    );
}

#[test]
fn w19_exactly_one_action() {
    assert_eq!(action_errors("do: {}"), ["`do` has no action"]);
    assert_eq!(
        action_errors("do: { start: 'web', stop: 'web' }"),
        ["`do` has both `start` and `stop`, but only one is allowed"]
    );
    assert_eq!(action_errors("do: { signal: 'HUP' }"), ["`signal` needs `to`"]);
    assert_eq!(action_errors("do: { reload: true, to: 'web' }"), ["`to` belongs beside `signal`"]);
    assert_eq!(action_errors("do: { reload: false }"), ["`reload` must be true"]);
    assert_eq!(action_errors("do: { signal: 'HUPP', to: 'web' }").len(), 1);
    assert_eq!(action_errors("do: { shutdown: 256 }").len(), 1);
    assert_eq!(action_errors("do: { setEnv: {} }"), ["`setEnv` is empty"]);
    assert_eq!(action_errors("do: { setEnv: { 'A B': 1 } }").len(), 1);
    assert_eq!(action_errors("do: { kill: 'web' }"), ["unknown key `kill` in `do`"]);
    assert_eq!(job_errors("do: { reload: true }"), ["a job with `do` needs `name`"]);
}

#[test]
fn w19_a_job_with_do_has_no_process() {
    assert_eq!(action_errors("do: { reload: true }, exec: 'x'"), ["a job has either `exec` or `do`"]);
    for key in
        ["port: 80", "user: 'app'", "timeout: '1s'", "env: { A: 1 }", "stopSignal: 'INT'", "tags: ['x']"]
    {
        let name = key.split(':').next().unwrap();
        let errors = action_errors(&format!("do: {{ reload: true }}, {key}"));
        let expected = format!("`{name}` cannot be combined with `do`, which has no process");
        assert!(errors.contains(&expected), "{errors:?}");
    }
    let keys = "do: { start: 'web' }, restarts: 2, restartBackoff: { initial: '1s' }, onFailure: 'shutdown', \
                groups: ['g'], when: { source: 'web', each: 'exitFailed' }";
    assert!(action_errors(keys).is_empty());
    // An action takes no time, so that it would repeat endlessly in one step.
    for backoff in ["false", "{ initial: 0 }"] {
        let errors = action_errors(&format!("do: {{ reload: true }}, restartBackoff: {backoff}"));
        assert_eq!(errors, ["with `do`, `restartBackoff.initial` must be at least 1ms"]);
    }
}

#[test]
fn w19_the_target_must_exist() {
    assert_eq!(action_errors("do: { start: 'wob' }"), ["unknown job `wob`"]);
    assert_eq!(action_errors("do: { start: '@frnt' }"), ["unknown group `@frnt`"]);
    assert_eq!(action_errors("do: { start: 'a' }"), ["`a` cannot act on itself: it has no process"]);
    let text =
        "{ jobs: [{ name: 'web', exec: 'x', groups: ['front'] }, { name: 'a', do: { stop: 'frond' } }] }";
    assert!(shown(&load_files(&[text], &host())).contains("help: the jobs are a, web"));
    let text = text.replace("frond", "front");
    assert!(shown(&load_files(&[&text], &host())).contains("`front` is a group: write \"@front\""));
    let text = text.replace("stop: 'front'", "stop: '@fron'");
    assert!(shown(&load_files(&[&text], &host())).contains("did you mean \"@front\"?"));
}

#[test]
fn w19_a_job_with_do_sends_exit_events() {
    let text = "{ jobs: [{ name: 'a', do: { reload: true } }, \
                { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }] }";
    assert!(messages(text, Severity::Fault).is_empty());
    assert!(messages(text, Severity::Warning).is_empty());
}

#[test]
fn w21_queue_belongs_beside_each() {
    let repeat = |when: &str| match job(&format!("name: 'a', exec: 'x', when: {when}")).when.trigger {
        Trigger::Event { repeat, .. } | Trigger::All { repeat, .. } | Trigger::Any { repeat, .. } => repeat,
        other => panic!("{other:?}"),
    };
    assert_eq!(repeat("{ each: 'enterMaintenance', queue: 'all' }"), Repeat::EachQueued);
    assert_eq!(repeat("{ each: 'enterMaintenance', queue: 'latest' }"), Repeat::Each);
    assert_eq!(repeat("{ each: 'enterMaintenance' }"), Repeat::Each);
    assert_eq!(repeat("{ source: 'SIGHUP', queue: 'all' }"), Repeat::EachQueued);
    assert_eq!(
        repeat("{ any: [{ event: 'enterMaintenance' }], each: true, queue: 'all' }"),
        Repeat::EachQueued
    );
    for when in ["{ once: 'startup', queue: 'all' }", "{ interval: 1, queue: 'all' }", "{ queue: 'latest' }"]
    {
        assert_eq!(
            job_errors(&format!("name: 'a', exec: 'x', when: {when}")),
            ["`queue` belongs beside `each`: it says which events during a run count"],
            "{when}"
        );
    }
    let errors = job_errors("name: 'a', exec: 'x', when: { each: 'startup', queue: 'first' }");
    assert_eq!(errors, ["`queue` must be \"latest\" or \"all\", not the string \"first\""]);
}

#[test]
fn w22_defaults_are_fields_of_every_job() {
    let plan = plan(
        "{ defaults: { restarts: 3, env: { A: 1 }, user: 'app', groups: ['web'] }, \
           coprocesses: [{ command: 'agent' }], telemetry: {}, \
           jobs: [{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', restarts: 1, env: { B: 2 }, user: null }, \
                  { name: 'c', do: { start: 'a' } }] }",
    );
    let restarts: Vec<Restarts> = plan.jobs.iter().map(|job| job.restarts).collect();
    let limited = Restarts::Limited;
    assert_eq!(restarts, [limited(0), limited(3), limited(1), limited(3), limited(0)]);
    let env = |nth: usize| plan.jobs[nth].process.env.keys().cloned().collect::<String>();
    // An object is replaced, not merged. A job with `do` has no process.
    assert_eq!((env(0), env(1), env(2), env(3)), (String::new(), "A".into(), "B".into(), String::new()));
    assert!(plan.jobs[1].process.user.is_some() && plan.jobs[2].process.user.is_none());
    assert!(plan.jobs[3].process.user.is_none());
    let groups: Vec<usize> = plan.jobs.iter().map(|job| job.groups.len()).collect();
    assert_eq!(groups, [0, 1, 1, 1, 0]);
}

#[test]
fn w22_what_makes_a_job_that_job_has_no_default() {
    for key in ["name: 'a'", "exec: 'x'", "do: {}", "when: {}", "port: 80"] {
        let name = key.split(':').next().unwrap();
        assert_eq!(
            errors(&format!("{{ defaults: {{ {key} }}, jobs: [{{ name: 'a', exec: 'x' }}] }}")),
            [format!("unknown key `{name}` in `defaults`")]
        );
    }
}

#[test]
fn w22_an_error_in_a_default_is_reported_once_and_at_the_default() {
    let text = "{\n  defaults: {\n    user: 'ap',\n  },\n  jobs: [{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }],\n}";
    assert_eq!(errors(text), ["unknown user `ap`"]);
    let shown = shown(&load_files(&[text], &host()));
    assert!(shown.contains("0.json5:3:11") && shown.contains("it is a default of the job `a`"), "{shown}");
    // A default without an effect on one job may have one on another.
    let text = "{ defaults: { stopTimeout: '1s', onFailure: 'shutdown' }, \
                jobs: [{ name: 'a', exec: 'x', restarts: 'unlimited' }] }";
    assert!(messages(text, Severity::Warning).is_empty() && messages(text, Severity::Fault).is_empty());
}

#[test]
fn w22_defaults_apply_to_the_jobs_of_all_files() {
    let files = [
        "{ defaults: { restarts: 3 }, jobs: [{ name: 'a', exec: 'x' }] }",
        "{ jobs: [{ name: 'b', exec: 'x' }] }",
        "{ defaults: { restarts: 4 } }",
    ];
    let restarts = |files: &[&str]| -> Vec<Restarts> {
        load_files(files, &host()).plan.unwrap().jobs.iter().map(|job| job.restarts).collect()
    };
    assert_eq!(restarts(&files[..2]), [Restarts::Limited(3); 2]);
    assert_eq!(restarts(&files), [Restarts::Limited(4); 2]);
}

#[test]
fn w22_names_of_groups() {
    assert_eq!(job("name: 'a', exec: 'x', groups: ['web', 'blue', 'web']").groups, ["web", "blue"]);
    assert_eq!(
        job_errors("name: 'a', exec: 'x', groups: ['@web']"),
        ["`@web` cannot be the name of a group"]
    );
    assert_eq!(job_errors("name: 'a', exec: 'x', groups: ['']"), ["`` cannot be the name of a group"]);
    let warnings = messages("{ jobs: [{ name: '@web', exec: 'x' }] }", Severity::Warning);
    assert_eq!(warnings, ["no command can name the job `@web`: as a target, this is a group"]);
}
