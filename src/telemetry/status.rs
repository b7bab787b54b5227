//! `/status`, as 3.8 has it: which jobs, services and watches there are, and how they are (T1).

use containerpilot_config::json::Json;
use containerpilot_core::plan::Role;
use containerpilot_core::report::status::JobOverview;

use crate::runtime::query::Snapshot;

/// The page. What there is none of is `null`, as Go writes an empty list.
pub(super) fn page(snapshot: &Snapshot, version: &str) -> String {
    let (mut jobs, mut services) = (Vec::new(), Vec::new());
    for (job, planned) in snapshot.jobs().filter(|(job, _)| !matches!(job.role, Role::Sensor(_))) {
        let name = ("Name", Json::text(&job.name));
        let status = ("Status", Json::text(word(job, snapshot.overview.maintenance)));
        match planned.service {
            None => jobs.push(Json::object([name, status])),
            Some((address, port)) => {
                let address = ("Address", Json::text(&address.to_string()));
                services.push(Json::object([name, address, ("Port", Json::whole(port)), status]));
            }
        }
    }
    let watches = snapshot.overview.watches.iter().map(|watch| Json::text(&watch.name)).collect();
    let list = |items: Vec<Json>| if items.is_empty() { Json::Null } else { Json::List(items) };
    Json::object([
        ("Version", Json::text(version)),
        ("Jobs", list(jobs)),
        ("Services", list(services)),
        ("Watches", list(watches)),
    ])
    .line()
}

/// 3.8's word for how a job is. It has one for health only.
const fn word(job: &JobOverview, maintenance: bool) -> &'static str {
    match job.status.healthy {
        // The server that answers is there.
        _ if matches!(job.role, Role::Telemetry) => "healthy",
        _ if maintenance => "maintenance",
        Some(true) => "healthy",
        Some(false) => "unhealthy",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stage;
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
    fn t1_the_status_is_that_of_3_8_to_the_letter() {
        let mut stage = Stage::new(PLAN);
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
        assert_eq!(page(&stage.snapshot(), "3.8.0"), expected("unknown", "unknown"));
        stage.begin();
        stage.check("myjob2", Ok(()));
        stage.check("myjob3", Err("no".to_owned()));
        stage.later(2);
        stage.check("myjob3", Err("no".to_owned()));
        assert_eq!(page(&stage.snapshot(), "3.8.0"), expected("healthy", "unhealthy"));
        stage.maintenance(true);
        let text = page(&stage.snapshot(), "3.8.0");
        assert_eq!(text.matches("\"maintenance\"").count(), 3, "{text}");
        stage.tell(Input::Tick);
    }

    #[test]
    fn t1_what_there_is_none_of_is_null() {
        let text =
            page(&Stage::new("{ telemetry: { port: 0, interfaces: 'static:127.0.0.1' } }").snapshot(), "x");
        let expected = "{\"Version\":\"x\",\"Jobs\":[{\"Name\":\"containerpilot\",\"Status\":\"healthy\"}],\
                        \"Services\":null,\"Watches\":null}\n";
        assert_eq!(text, expected);
    }
}
