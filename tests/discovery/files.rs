//! Rendered files with a real Consul (D15).

use std::fs;

use super::pilot::Pilot;
use crate::support::consul::Agent;
use crate::support::supervisor::wait_until;

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

#[test]
fn d13_d15_a_value_of_one_mebibyte_is_rendered_and_a_longer_one_keeps_the_file() {
    const MEBIBYTE: usize = 1024 * 1024;
    let agent = Agent::dev_with(&serde_json::json!({ "limits": { "kv_max_value_size": 2 * MEBIBYTE } }));
    let config = format!(
        "{{ consul: '{}', stopTimeout: 5, control: {{ socket: '@/control' }},
            files: [{{ name: 'out', template: '{{{{`{{{{ key \"large\" }}}}`}}}}', to: '@/out' }}],
            jobs: [{{ name: 'main', exec: 'sleep 1000', requires: ['file.out'] }}] }}",
        agent.address()
    );
    // The quotation marks of JSON count, too.
    let put = |letter: &str, bytes: usize| agent.put("/v1/kv/large", &letter.repeat(bytes - 2).into());
    put("a", MEBIBYTE);
    let mut pilot = Pilot::start(&config);
    pilot.run.wait_for_line("main started");
    let out = pilot.run.file("out");
    let begins_with = |text: &str| fs::read_to_string(&out).unwrap().starts_with(text);
    assert_eq!(pilot.run.size("out"), MEBIBYTE as u64);
    put("b", MEBIBYTE + 1);
    pilot.run.wait_for_line("the value has more than 1 MiB; store it in several keys");
    assert!(begins_with("\"aaa"));
    put("c", MEBIBYTE);
    wait_until("the next value is rendered", || begins_with("\"ccc"));
    pilot.run.signal("-TERM");
    assert_eq!(pilot.run.wait().0, 0);
}
