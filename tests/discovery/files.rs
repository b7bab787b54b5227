//! Rendered files with a real Consul (D15).

use std::fs;

use crate::consul::Agent;
use crate::pilot::Pilot;
use crate::supervisor::wait_until;

#[test]
fn d15_files_follow_services_and_keys_in_consul() {
    let agent = Agent::dev();
    let template = "{{`{{ range watch \"web\" }}{{ .ID }} {{ .Address }}:{{ .Port }} {{ .Tags }} {{ .Meta.zone }};{{ end }} \
                    {{ key \"app/name\" }} {{ keyOrDefault \"app/limit\" \"10\" }} \
                    {{ range keys \"app/\" }}[{{ .Key }}={{ .Value }}]{{ end }}`}}";
    let config = format!(
        "{{ consul: '{}', stopTimeout: 5, control: {{ socket: '@/control' }}, watches: [{{ name: 'web', interval: 1 }}],
            files: [{{ name: 'out', template: '{template}', to: '@/out' }}],
            jobs: [{{ name: 'main', exec: ['sh', '-c', 'echo is up with $(env | grep -c WATCH_KEY); exec sleep 1000'],
                      requires: ['file.out'] }}] }}",
        agent.address()
    );
    let mut pilot = Pilot::start(&config);
    pilot.run.wait_for_line("is not changed: template:1:");
    agent.put("/v1/kv/app/name", &"shop".into());
    // The values of keys that only files use are not in the environment.
    pilot.run.wait_for_line("is up with 0");
    let wait_for = |text: &str| {
        wait_until(&format!("the file is `{text}`"), || {
            fs::read_to_string(pilot.run.file("out")).is_ok_and(|found| found.trim() == text)
        });
    };
    wait_for("\"shop\" 10 [name=\"shop\"]");
    agent.put("/v1/kv/app/limit", &20.into());
    wait_for("\"shop\" 20 [limit=20][name=\"shop\"]");
    let service = |tag: &str| serde_json::json!({ "Name": "web", "ID": "web-1", "Address": "10.0.0.7", "Port": 80, "Tags": [tag], "Meta": { "zone": "a" } });
    agent.put("/v1/agent/service/register", &service("blue"));
    wait_for("web-1 10.0.0.7:80 [blue] a; \"shop\" 20 [limit=20][name=\"shop\"]");
    agent.put("/v1/agent/service/register", &service("green"));
    wait_for("web-1 10.0.0.7:80 [green] a; \"shop\" 20 [limit=20][name=\"shop\"]");
    pilot.run.signal("-TERM");
    assert_eq!(pilot.run.wait().0, 0);
}
