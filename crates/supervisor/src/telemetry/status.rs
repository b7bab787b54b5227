//! `/status` as in 3.8: the jobs, services and watches and their health (T1).

use containerpilot_core::plan::Role;
use containerpilot_core::report::status::JobOverview;
use containerpilot_views::snapshot::Snapshot;
use serde::Serialize;

/// An empty list is `null`, as Go prints it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct StatusPage<'a> {
    version: &'a str,
    jobs: Option<Vec<JobEntry<'a>>>,
    services: Option<Vec<ServiceEntry<'a>>>,
    watches: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct JobEntry<'a> {
    name: &'a str,
    status: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceEntry<'a> {
    name: &'a str,
    address: String,
    port: u16,
    status: &'static str,
}

/// The page, with a line break.
pub(super) fn page(snapshot: &Snapshot, version: &str) -> String {
    let (mut jobs, mut services) = (Vec::new(), Vec::new());
    for job in snapshot.overview.jobs.iter().filter(|job| !matches!(job.role, Role::Sensor(_))) {
        let (name, status) = (&*job.name, health(job, snapshot.overview.maintenance));
        match job.service {
            None => jobs.push(JobEntry { name, status }),
            Some((address, port)) => {
                services.push(ServiceEntry { name, address: address.to_string(), port, status });
            }
        }
    }
    let watches = snapshot.overview.watches.iter().map(|watch| watch.name.as_str()).collect();
    let page = StatusPage {
        version,
        jobs: non_empty(jobs),
        services: non_empty(services),
        watches: non_empty(watches),
    };
    // Serializing these types to memory cannot fail.
    let mut text = serde_json::to_string(&page).unwrap_or_default();
    text.push('\n');
    text
}

fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// The state of a job in the words of 3.8, which only knows its health.
const fn health(job: &JobOverview, maintenance: bool) -> &'static str {
    match job.status.health() {
        // The telemetry server is handling this request.
        _ if matches!(job.role, Role::Telemetry) => "healthy",
        _ if maintenance => "maintenance",
        Some(true) => "healthy",
        Some(false) => "unhealthy",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestCore;
    use super::*;
    use containerpilot_core::Input;

    const PLAN: &str = "{
        consul: 'localhost:8500',
        jobs: [
            { name: 'myjob1', exec: 'sleep 10' },
            { name: 'myjob2', exec: 'sleep 10', port: 80, interfaces: ['static:10.1.2.3'],
              health: { exec: 'true', interval: 1, ttl: 10 } },
            { name: 'myjob3', exec: 'sleep 10', health: { exec: 'true', interval: 1, ttl: 10 } },
        ],
        watches: [{ name: 'watch1', interval: 1 }, { name: 'watch2', interval: 2 }],
        telemetry: { port: 9090, interfaces: ['static:fd00::1'] },
    }";

    #[test]
    fn t1_the_status_page_is_byte_for_byte_that_of_3_8() {
        let mut core = TestCore::new(PLAN);
        let expected = |two: &str, three: &str| {
            format!(
                "{}{}{}{}",
                "{\"Version\":\"3.8.0\",\"Jobs\":[{\"Name\":\"myjob1\",\"Status\":\"unknown\"},",
                format_args!("{{\"Name\":\"myjob3\",\"Status\":\"{three}\"}}],\"Services\":["),
                format_args!(
                    "{{\"Name\":\"myjob2\",\"Address\":\"10.1.2.3\",\"Port\":80,\"Status\":\"{two}\"}},"
                ),
                concat!(
                    "{\"Name\":\"containerpilot\",\"Address\":\"fd00::1\",\"Port\":9090,\"Status\":\"healthy\"}],",
                    "\"Watches\":[\"watch1\",\"watch2\"]}\n"
                ),
            )
        };
        assert_eq!(page(&core.snapshot(), "3.8.0"), expected("unknown", "unknown"));
        core.start();
        core.check("myjob2", Ok(()));
        core.check("myjob3", Err("no".to_owned()));
        core.advance(2);
        core.check("myjob3", Err("no".to_owned()));
        assert_eq!(page(&core.snapshot(), "3.8.0"), expected("healthy", "unhealthy"));
        core.maintenance(true);
        let text = page(&core.snapshot(), "3.8.0");
        assert_eq!(text.matches("\"maintenance\"").count(), 3, "{text}");
        core.step(Input::Tick);
    }

    #[test]
    fn t1_empty_lists_are_null() {
        let text = page(
            &TestCore::new("{ telemetry: { port: 0, interfaces: 'static:127.0.0.1' } }").snapshot(),
            "x",
        );
        let expected = "{\"Version\":\"x\",\"Jobs\":[{\"Name\":\"containerpilot\",\"Status\":\"healthy\"}],\
                        \"Services\":null,\"Watches\":null}\n";
        assert_eq!(text, expected);
    }
}
