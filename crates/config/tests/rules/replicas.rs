//! W20, D10: the jobs that are made from one definition.

use containerpilot_core::plan::{HttpProbe, HttpTarget, Probe, Replica};

use super::support::{errors, faults, job_errors, plan};

const WEB: &str = "name: 'web', exec: 'server --port $CONTAINERPILOT_PORT -n ${CONTAINERPILOT_REPLICA}', port: '8000-8009', \
     health: [{ http: 'http://localhost:$CONTAINERPILOT_PORT/x', interval: 1, ttl: 3 }, { tcp: '[::1]:${CONTAINERPILOT_PORT}', interval: 1 }, \
     { exec: 'check :$CONTAINERPILOT_PORT', name: 'own', interval: 1 }]";

#[test]
fn w20_each_replica_is_a_job_with_its_own_name_and_port() {
    let plan = plan(&format!("{{ jobs: [{{ {WEB}, replicas: 3 }}, {{ name: 'b', exec: 'x' }}] }}"));
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "web-3", "b"]);
    let second = &plan.jobs[1];
    let expected = Replica { group: "web".into(), number: 2, port: Some(8001) };
    assert_eq!(second.replica.as_deref(), Some(&expected));
    assert_eq!(plan.jobs[3].replica, None);
    let exec = second.exec.program().unwrap();
    assert_eq!(exec.arguments, ["--port", "8001", "-n", "2"]);
    let checks = &second.health.as_ref().unwrap().checks;
    let target = HttpTarget { https: false, host: "localhost".into(), port: 8001, path: "/x".into() };
    assert_eq!(checks[0].probe, Probe::Http(HttpProbe::get(target)));
    assert_eq!(checks[1].probe, Probe::Tcp { host: "::1".into(), port: 8001 });
    let Probe::Exec(command) = &checks[2].probe else { panic!("{checks:?}") };
    assert_eq!(command.arguments, [":8001"]);
    assert_eq!(
        [&checks[0].name, &checks[1].name, &checks[2].name],
        ["check.web-2.1", "check.web-2.2", "own"]
    );
}

#[test]
fn d10_a_service_can_differ_from_its_job() {
    let health = "health: { tcp: 'x:1', interval: 1, ttl: 3 }";
    let service = |text: &str| {
        let job = format!("name: 'Web A', exec: 'x', port: 80, {health}, service: {{ {text} }}");
        super::support::job(&job).service.unwrap()
    };
    let full = service(
        "name: 'web', id: 'a', address: '198.51.100.7', taggedAddresses: { wan: 'web.example:81', lan: '10.0.0.7', v6: '::1', v6port: '[::1]:82' }",
    );
    assert_eq!((full.name.as_str(), full.id.as_str()), ("web", "a"));
    assert_eq!((full.address.to_string().as_str(), full.port), ("198.51.100.7", 80));
    let tagged: Vec<_> = full
        .tagged_addresses
        .iter()
        .map(|(name, one)| (name.as_str(), one.address.as_str(), one.port))
        .collect();
    assert_eq!(
        tagged,
        [
            ("lan", "10.0.0.7", None),
            ("v6", "::1", None),
            ("v6port", "::1", Some(82)),
            ("wan", "web.example", Some(81))
        ]
    );
    assert_eq!(service("name: 'web'").id, "Web A-box", "each job is another instance");

    for (bad, message) in [
        ("name: 'Web'", "`Web` is not a valid service name"),
        ("name: 'web', address: 'web.example'", "`address` must be an IP address, not `web.example`"),
        ("name: 'web', taggedAddresses: { wan: 'a b' }", "each address in `taggedAddresses` must be a host"),
        ("name: 'web', taggedAddresses: ['a']", "`taggedAddresses` must be an object, not a list"),
        (
            "name: 'web', id: 'a-$CONTAINERPILOT_REPLICA'",
            "`$CONTAINERPILOT_REPLICA` in `id` needs `replicas`",
        ),
        ("name: 'web', port: 1", "port"),
    ] {
        let errors = job_errors(&format!("name: 'a', exec: 'x', port: 80, {health}, service: {{ {bad} }}"));
        assert!(errors.len() == 1 && errors[0].contains(message), "{bad}: {errors:?}");
    }
    let two = |more: &str| {
        let job = |name: &str| {
            format!("{{ name: '{name}', exec: 'x', port: 80, {health}, service: {{ name: 'web' {more} }} }}")
        };
        errors(&format!("{{ jobs: [{}, {}] }}", job("a"), job("b")))
    };
    assert!(two("").is_empty());
    assert_eq!(two(", id: 'x'"), ["the job `a` has the service id `x`, too"]);
}

#[test]
fn d10_replicas_can_have_ids_of_their_own() {
    let ids = |service: &str| {
        let plan = plan(&format!("{{ jobs: [{{ {WEB}, replicas: 2, service: {{ {service} }} }}] }}"));
        plan.jobs
            .iter()
            .map(|job| job.service.clone().unwrap())
            .map(|one| (one.name, one.id))
            .collect::<Vec<_>>()
    };
    let pairs = |all: [(&str, &str); 2]| all.map(|(name, id)| (name.to_owned(), id.to_owned()));
    assert_eq!(ids("name: 'shop'"), pairs([("shop", "web-1-box"), ("shop", "web-2-box")]));
    let own = ids("id: 'web-x-${CONTAINERPILOT_REPLICA}'");
    assert_eq!(own, pairs([("web", "web-x-1"), ("web", "web-x-2")]));
    let errors = job_errors(&format!("{WEB}, replicas: 2, service: {{ id: 'x' }}"));
    assert_eq!(errors, ["each replica needs an `id` of its own"]);
}

#[test]
fn d10_replicas_are_one_service_with_an_id_each() {
    let plan = plan(&format!("{{ jobs: [{{ {WEB}, replicas: 2 }}] }}"));
    let services = plan.jobs.iter().map(|job| job.service.as_ref().unwrap());
    let services: Vec<_> =
        services.map(|service| (service.name.as_str(), service.id.as_str(), service.port)).collect();
    assert_eq!(services, [("web", "web-1-box", 8000), ("web", "web-2-box", 8001)]);
}

#[test]
fn w20_a_range_needs_replicas_and_enough_ports() {
    assert_eq!(job_errors(WEB)[0], "a range of ports, 8000 to 8009, needs `replicas`");
    // A wrong number of replicas is one error, whatever else needs replicas.
    for key in [
        "",
        "logging: { file: '/log-$CONTAINERPILOT_REPLICA' },",
        "service: { id: 'a-$CONTAINERPILOT_REPLICA' },",
    ] {
        let wrong = format!("{key} replicas: 'many', {WEB}");
        let errors = job_errors(&wrong);
        assert_eq!(
            errors,
            ["`replicas` must be an integer from 1 to 1000, not the string \"many\""],
            "{wrong}"
        );
    }
    assert_eq!(job_errors(&format!("{WEB}, replicas: 11")), ["10 ports for 11 replicas"]);
    let one = "name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 3 }, replicas: 2";
    assert_eq!(job_errors(one), ["1 port for 2 replicas"]);
    for range in ["8009-8000", "0-5", "1-65536", "a-b", "80-", "8000-8001-8002"] {
        let job = format!("name: 'web', exec: 'x', port: '{range}', health: {{ interval: 1, ttl: 3 }}");
        assert_eq!(job_errors(&job), [format!("`{range}` is not a range of ports")], "{range}");
    }
    for count in ["0", "1001", "'many'"] {
        assert_eq!(job_errors(&format!("name: 'a', exec: 'x', replicas: {count}")).len(), 1, "{count}");
    }
    let unknown =
        "name: 'a', exec: 'x', health: { tcp: 'localhost:$CONTAINERPILOT_PORT', interval: 1, ttl: 3 }";
    assert_eq!(job_errors(unknown), ["`$CONTAINERPILOT_PORT` needs `replicas` in this job"]);
    let without = format!("{unknown}, replicas: 2");
    assert_eq!(job_errors(&without), ["`$CONTAINERPILOT_PORT` needs a `port` in this job"]);
}

#[test]
fn w20_names_of_replicas_belong_to_them_alone() {
    let with =
        |other: &str| errors(&format!("{{ jobs: [{{ name: 'a', exec: 'x', replicas: 2 }}, {other}] }}"));
    assert_eq!(with("{ name: 'a-2', exec: 'x' }"), ["`a-2` is the name of a replica of `a`"]);
    assert_eq!(with("{ name: 'a', exec: 'x', replicas: 2 }"), ["another job is named `a`"]);
    assert_eq!(with("{ name: 'a', exec: 'x' }"), ["another job is named `a`"]);
    assert_eq!(with("{ name: 'a-3', exec: 'x' }"), [""; 0]);
}

#[test]
fn w20_a_group_and_each_replica_can_be_waited_for() {
    let waits = |source: &str| {
        let other =
            format!("{{ name: 'b', exec: 'x', when: {{ source: '{source}', once: 'exitSuccess' }} }}");
        faults(&format!("{{ jobs: [{{ name: 'a', exec: 'x', replicas: 2 }}, {other}] }}"))
    };
    assert_eq!(waits("a"), [""; 0]);
    assert_eq!(waits("a-2"), [""; 0]);
    assert_eq!(waits("a-3"), ["unknown job or watch `a-3`"]);
}

#[test]
fn w20_scale_makes_the_plan_with_another_number() {
    let plan = plan(&format!("{{ jobs: [{{ {WEB}, replicas: 2 }}, {{ name: 'b', exec: 'x' }}] }}"));
    let names = |count| {
        let plan = plan.scaled("web", count).map_err(|error| error.to_string())?;
        Ok(plan.jobs.iter().map(|job| job.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(1), Ok(vec!["web-1".to_owned(), "b".to_owned()]));
    assert_eq!(names(10).map(|names: Vec<String>| names.len()), Ok(11));
    assert_eq!(names(11), Err("at most 10 replicas: the ports are 8000 to 8009".to_owned()));
    assert!(names(0).unwrap_err().starts_with("at least 1 replica"));
    assert_eq!(plan.scaled("b", 2).unwrap_err().to_string(), "`b` has no `replicas`");
    let (one, ten) = (plan.scaled("web", 1).unwrap(), plan.scaled("web", 10).unwrap());
    assert_eq!(ten.jobs[0], one.jobs[0]);
    assert_eq!(plan.clone().with_scale_of(&ten), ten, "a reload keeps it");
    assert_eq!(one.with_scale_of(&plan).jobs.len(), 2, "a number that was not set by hand is not kept");
}
