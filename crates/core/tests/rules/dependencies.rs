//! Who depends on whom in a plan.

use containerpilot_core::plan::{DependencyEdge, DependencyKind, Dependent, Plan, Repeat};

use crate::harness::plan;

/// Each edge in one line.
fn edges(plan: &Plan) -> Vec<String> {
    let text = |DependencyEdge { source, dependent, kind }: DependencyEdge| {
        let dependent = match dependent {
            Dependent::Job(job) => plan.jobs[job.index()].name.clone(),
            Dependent::Watch(watch) => format!("watch.{}", plan.watches[watch.index()].name),
            Dependent::File(file) => format!("file.{}", plan.files[file.index()].name),
            Dependent::Supervisor => "supervisor".to_owned(),
        };
        let kind = match kind {
            DependencyKind::Event { code, repeat, with_others } => {
                let each = if repeat == Repeat::Each { "each " } else { "" };
                let with_others = if with_others { " with others" } else { "" };
                format!("{each}{code}{with_others}")
            }
            DependencyKind::Interval(every) => format!("every {every:?}"),
            DependencyKind::Advertised(job) => format!("advertised by {}", plan.jobs[job.index()].name),
            DependencyKind::ShutDown { job, failed } => {
                format!("shut down by {}, failed: {failed}", plan.jobs[job.index()].name)
            }
            kind => format!("{kind:?}"),
        };
        format!("{source} -> {dependent}: {kind}")
    };
    plan.dependencies().into_iter().map(text).collect()
}

#[test]
fn w1_w4_w12_triggers_are_edges_from_the_sources_of_their_events() {
    let plan = plan(
        "{ jobs: [
            { name: 'first', exec: 'x' },
            { name: 'tick', exec: 'x', when: { interval: '10s' } },
            { name: 'later', exec: 'x', when: { source: 'first', once: 'exitSuccess', interval: '10s' } },
            { name: 'both', exec: 'x', when: { all: [{ source: 'first', event: 'exitSuccess' },
                                                     { source: 'watch.db', event: 'healthy' }] } },
            { name: 'one', exec: 'x', when: { all: [{ source: 'first', event: 'exitSuccess' }] } },
            { name: 'any', exec: 'x', when: { any: [{ source: 'SIGUSR2' }, { source: 'watch.db', event: 'changed' }] } },
            { name: 'queued', exec: 'x', when: { source: 'watch.db', each: 'changed', queue: 'all' } },
            { name: 'by-hand', exec: 'x', when: 'manual' },
        ], watches: [{ name: 'db', interval: 1 }] }",
    );
    assert_eq!(
        edges(&plan),
        [
            "global -> first: startup",
            "global -> tick: every 10s",
            "first -> later: exitSuccess",
            "first -> both: exitSuccess with others",
            "watch.db -> both: healthy with others",
            "first -> one: exitSuccess",
            "SIGUSR2 -> any: signal",
            "watch.db -> any: changed",
            "watch.db -> queued: each changed",
        ]
    );
}

#[test]
fn w18_s5_s10_requirements_stop_order_and_ends_are_edges() {
    let plan = plan(
        "{ jobs: [
            { name: 'db', exec: 'x', onFailure: 'shutdown', when: 'manual' },
            { name: 'app', exec: 'x', requires: ['db', { source: 'watch.cache', bind: true }, 'lock.leader'],
              stopAfter: ['db'], onSuccess: 'shutdown', when: 'manual' },
        ], watches: [{ name: 'cache', interval: 1 }], locks: [{ name: 'leader' }], consul: 'localhost' }",
    );
    assert_eq!(
        edges(&plan),
        [
            "db -> supervisor: shut down by db, failed: true",
            "db -> app: Requires { bind: false }",
            "watch.cache -> app: Requires { bind: true }",
            "lock.leader -> app: Requires { bind: true }",
            "db -> app: StopsAfter",
            "app -> supervisor: shut down by app, failed: false",
        ]
    );
}

#[test]
fn d7_watch_depends_on_the_jobs_whose_service_it_sees() {
    let plan = plan(
        "{ jobs: [
            { name: 'web', exec: 'x', replicas: 2, port: '8000-8001', tags: ['blue'],
              health: { exec: 'c', interval: 1, ttl: 5 }, when: 'manual' },
            { name: 'api', exec: 'x', port: 80, health: { exec: 'c', interval: 1, ttl: 5 }, when: 'manual' },
        ], watches: [{ name: 'web', tag: 'blue', interval: 1 }, { name: 'api', tcp: 'localhost:80', interval: 1 }] }",
    );
    assert_eq!(
        edges(&plan),
        ["web -> watch.web: advertised by web-1", "web -> watch.web: advertised by web-2"],
        "not a service of the same name as a tcp watch"
    );
    let green = plan_with_tag("green");
    assert_eq!(edges(&green), [""; 0], "not a service without the tag");
}

fn plan_with_tag(tag: &str) -> Plan {
    plan(&format!(
        "{{ jobs: [{{ name: 'web', exec: 'x', port: 80, tags: ['blue'], when: 'manual',
                      health: {{ exec: 'c', interval: 1, ttl: 5 }} }}],
            watches: [{{ name: 'web', tag: '{tag}', interval: 1 }}], consul: 'localhost' }}"
    ))
}

#[test]
fn d15_file_depends_on_the_watches_of_its_template() {
    let plan = crate::files::plan_with(crate::files::file());
    let rendered = edges(&plan).into_iter().filter(|edge| edge.ends_with("Rendered"));
    assert_eq!(rendered.collect::<Vec<_>>(), ["watch.app -> file.f: Rendered"]);
}
