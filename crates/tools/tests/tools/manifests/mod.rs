//! The manifests of `examples/behind-nginx` for Kubernetes and Nomad, checked without a cluster: well-formed, without
//! unknown fields, and consistent with the configurations in the images.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body};

use crate::support::deadline::InTime;
use crate::support::program::{containerpilot, repository};
use crate::{fixture, tools};

fn file(name: &str) -> PathBuf {
    repository().join("examples/behind-nginx").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

fn kubernetes(paths: &[PathBuf]) -> Result<String, String> {
    let checker = fixture("manifests/kubernetes.py");
    let output = Command::new("/usr/bin/python3").arg(checker).args(paths).output_in_time().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    if output.status.success() { Ok(stdout) } else { Err(stderr) }
}

#[test]
fn kubernetes_manifest_is_valid_for_its_api_version() {
    let objects = kubernetes(&[file("kubernetes.yaml")]).unwrap();
    let expected = "v1 Service/consul\napps/v1 Deployment/consul\napps/v1 Deployment/app\n\
                    policy/v1 PodDisruptionBudget/app\napps/v1 Deployment/nginx\nv1 Service/nginx\n";
    assert_eq!(objects, expected);
}

#[test]
fn kubernetes_manifests_of_recipes_are_valid() {
    let paths: Vec<PathBuf> =
        recipes_with("kubernetes.yaml").iter().map(|folder| folder.join("kubernetes.yaml")).collect();
    assert!(paths.len() > 2);
    kubernetes(&paths).unwrap();
}

#[test]
fn mistakes_in_a_kubernetes_manifest_are_found() {
    let mistakes = [
        ("replicas: 2", "replica: 2", "has no field `replica`"),
        ("replicas: 2", "replicas: two", "must be int"),
        ("  replicas: 2", "\treplicas: 2", "while scanning for the next token"),
        ("image: behind-nginx-app:latest", "imagine: behind-nginx-app:latest", "has no field `imagine`"),
        ("apiVersion: policy/v1", "apiVersion: apps/v1", "there is no PodDisruptionBudget in apps/v1"),
        ("containerPort: 8080", "protocol: TCP", "must not be `None`"),
        ("        app: nginx\n    spec:", "        app: other\n    spec:", "selects no pod"),
    ];
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("manifests");
    fs::create_dir_all(&folder).unwrap();
    let manifest = text("kubernetes.yaml");
    let write = |(number, (good, bad, _)): (usize, &(&str, &str, &str))| {
        assert!(manifest.contains(good), "{good}");
        let path = folder.join(format!("{number}.yaml"));
        fs::write(&path, manifest.replacen(good, bad, 1)).unwrap();
        path
    };
    let paths: Vec<PathBuf> = mistakes.iter().enumerate().map(write).collect();
    let found = kubernetes(&paths).unwrap_err();
    for (path, (_, bad, message)) in paths.iter().zip(mistakes) {
        let line = found.lines().find(|line| line.starts_with(&format!("{}: ", path.display())));
        assert!(line.is_some_and(|line| line.contains(message)), "{bad}: {found}");
    }
}

/// The part of Nomad's job specification that the example uses: the path of a block without labels, its attributes and
/// its inner blocks.
const NOMAD: [(&str, &[&str], &[&str]); 11] = [
    ("", &[], &["job"]),
    ("job", &["datacenters", "type", "region", "namespace"], &["group", "update"]),
    ("job.group", &["count"], &["network", "task", "update", "restart"]),
    ("job.group.update", &["max_parallel", "health_check", "min_healthy_time", "healthy_deadline"], &[]),
    ("job.group.network", &["mode"], &["port"]),
    ("job.group.network.port", &["static", "to"], &[]),
    ("job.group.task", &["driver", "kill_timeout", "kill_signal"], &["config", "env", "resources"]),
    ("job.group.task.config", &["image", "ports", "command", "args"], &[]),
    ("job.group.task.resources", &["cpu", "memory"], &[]),
    // Any name is allowed here.
    ("job.group.task.env", &["CONSUL", "PORT", "ADVERTISE"], &[]),
    ("job.group.restart", &["attempts", "interval", "delay", "mode"], &[]),
];

fn collect_unknown(body: &Body, place: &str, found: &mut Vec<String>) {
    let row = NOMAD.iter().find(|(path, ..)| *path == place);
    let (_, attributes, blocks) = row.unwrap();
    for attribute in body.attributes().filter(|one| !attributes.contains(&one.key.as_str())) {
        found.push(format!("{place} has no attribute {}", attribute.key.as_str()));
    }
    for block in body.blocks() {
        let name = block.ident.as_str();
        if blocks.contains(&name) {
            collect_unknown(&block.body, format!("{place}.{name}").trim_start_matches('.'), found);
        } else {
            found.push(format!("{place} has no block {name}"));
        }
    }
}

/// All blocks with a name, at any depth.
fn all<'a>(body: &'a Body, name: &str) -> Vec<&'a Block> {
    let deeper = body.blocks().flat_map(|block| all(&block.body, name));
    body.blocks().filter(|block| block.ident.as_str() == name).chain(deeper).collect()
}

fn string<'a>(body: &'a Body, key: &str) -> &'a str {
    body.get_attribute(key).and_then(|attribute| attribute.value.as_str()).unwrap()
}

#[test]
fn nomad_job_is_valid_hcl_of_the_job_specification() {
    let body: Body = text("nomad.hcl").parse().unwrap();
    let mut found = Vec::new();
    collect_unknown(&body, "", &mut found);
    assert_eq!(found, Vec::<String>::new());
    let tasks = all(&body, "task");
    assert_eq!(tasks.len(), 2);
    // A task may only use ports of its group.
    for group in all(&body, "group") {
        let port = all(&group.body, "port")[0].labels[0].as_str();
        let config = all(&group.body, "config")[0];
        let Some(Expression::Array(ports)) = config.body.get_attribute("ports").map(|one| &one.value) else {
            panic!("the task of {} has no ports", group.labels[0].as_str())
        };
        assert!(ports.iter().all(|one| one.as_str() == Some(port)));
    }
}

/// The duration in seconds of a key of a configuration.
fn setting(config: &str, key: &str) -> Duration {
    let text = text(config);
    let value = text.split(&format!("{key}: \"")).nth(1).unwrap().split("s\"").next().unwrap();
    Duration::from_secs(value.parse().unwrap())
}

#[test]
fn every_scheduler_waits_longer_than_the_stop_timeout() {
    let body: Body = text("nomad.hcl").parse().unwrap();
    for name in ["app", "nginx"] {
        let config = format!("{name}/containerpilot.json5");
        let stop = setting(&config, "stopTimeout");
        assert!(setting(&config, "drain") < stop);
        let seconds = |text: &str| Duration::from_secs(text.trim().trim_end_matches('s').parse().unwrap());

        let compose = text("docker-compose.yml");
        let service = compose.split(&format!("\n  {name}:\n")).nth(1).unwrap();
        let grace = service.split("stop_grace_period:").nth(1).unwrap().lines().next().unwrap();
        assert!(seconds(grace) > stop, "docker-compose.yml: {name}");

        let kubernetes = text("kubernetes.yaml");
        let deployment = kubernetes
            .split("---")
            .find(|part| part.contains("kind: Deployment") && part.contains(&format!("\n  name: {name}\n")));
        let grace = deployment.unwrap().split("terminationGracePeriodSeconds:").nth(1).unwrap();
        assert!(seconds(grace.lines().next().unwrap()) > stop, "kubernetes.yaml: {name}");

        let task = all(&body, "task").into_iter().find(|task| task.labels[0].as_str() == name).unwrap();
        assert!(seconds(string(&task.body, "kill_timeout")) > stop, "nomad.hcl: {name}");
    }
}

#[test]
fn every_variable_that_a_scheduler_sets_is_read_by_a_configuration() {
    let body: Body = text("nomad.hcl").parse().unwrap();
    for task in all(&body, "task") {
        let config = text(&format!("{}/containerpilot.json5", task.labels[0].as_str()));
        for attribute in all(&task.body, "env")[0].body.attributes() {
            let name = attribute.key.as_str();
            assert!(config.contains(&format!("{{{{ .{name} |")), "no configuration reads {name}");
        }
    }
}

/// Runs `containerpilot audit` and returns its exit code and what it prints.
fn audit(folder: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(tools());
    command.arg("audit").args(arguments).current_dir(folder).env_remove("CONTAINERPILOT");
    let output = command.output_in_time().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn x14_the_examples_pass_the_audit() {
    let examples = repository().join("examples");
    let cases = [
        ("behind-nginx", "app", "app", &["kubernetes.yaml", "nomad.hcl", "docker-compose.yml"][..]),
        ("behind-nginx", "nginx", "nginx", &["kubernetes.yaml", "nomad.hcl", "docker-compose.yml"]),
        ("replicated-db", "db", "db", &["docker-compose.yml"]),
        ("replicated-db", "proxy", "proxy", &["docker-compose.yml"]),
    ];
    for (example, config, container, deployments) in cases {
        for deployment in deployments {
            let config = format!("{config}/containerpilot.json5");
            let arguments = [&*config, "--with", deployment, "--container", container, "--strict"];
            let (code, stdout, stderr) = audit(&examples.join(example), &arguments);
            assert_eq!(code, Some(0), "{example} {arguments:?}: {stderr}");
            assert!(stdout.starts_with(&format!("ok: container {container} of ")), "{stdout}");
        }
        let config = format!("{config}/containerpilot.json5");
        let file = config.replace("containerpilot.json5", "Dockerfile");
        let (code, stdout, stderr) = audit(&examples.join(example), &[&config, "--with", &file, "--strict"]);
        assert_eq!(code, Some(0), "{example} {file}: {stderr}");
        assert!(stdout.starts_with("ok: container image of the last stage in "), "{stdout}");
    }
}

/// The folders of examples with a file, except those in [`x14_the_examples_pass_the_audit`].
fn recipes_with(file: &str) -> Vec<PathBuf> {
    let folders = fs::read_dir(repository().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.join(file).exists()).collect();
    folders.sort();
    assert!(!folders.is_empty());
    folders
}

#[test]
fn x4_recipes_pass_the_check() {
    for folder in recipes_with("containerpilot.json5") {
        let mut command = Command::new(containerpilot());
        command.args(["check", "containerpilot.json5"]).current_dir(&folder).env_remove("CONTAINERPILOT");
        // Its own programs; others need not be installed.
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        command.env("TEMPLATES", &folder);
        let output = command.output_in_time().unwrap();
        assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn x14_recipes_pass_the_audit() {
    // The container of the recipe, where the deployment has others.
    let deployments: [(&str, &[&str]); 3] =
        [("Dockerfile", &[]), ("docker-compose.yml", &["--container", "worker"]), ("kubernetes.yaml", &[])];
    for (deployment, container) in deployments {
        let mut folders = recipes_with(deployment);
        folders.retain(|folder| folder.join("containerpilot.json5").exists());
        assert!(!folders.is_empty(), "{deployment}");
        for folder in folders {
            let arguments = ["containerpilot.json5", "--with", deployment, "--strict"];
            let (code, stdout, stderr) = audit(&folder, &[&arguments, container].concat());
            assert_eq!(code, Some(0), "{} {deployment}: {stdout}{stderr}", folder.display());
        }
    }
}

#[test]
fn x14_the_audit_reports_places_and_exit_codes() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("audit");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write(
        "app.json5",
        "{\n  stopTimeout: \"{{ .STOP }}\",\n  jobs: [{ name: \"app\", exec: \"true\" }],\n}\n",
    );
    // The variables of the container render the template.
    let manifest = |stop: &str, signal: &str| {
        format!(
            "services:\n  app:\n    image: x\n    environment: {{ STOP: {stop} }}\n    stop_signal: {signal}\n    init: true\n"
        )
    };
    write("good.yaml", &manifest("9s", "SIGINT"));
    write("bad.yaml", &manifest("10s", "SIGHUP"));
    let (code, stdout, stderr) = audit(&folder, &["app.json5", "--with", "good.yaml"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "ok: container app of services in good.yaml\nstop: at most 10s of 10s\n")
    );
    assert!(stderr.contains("warning: `init: true`") && stderr.contains("good.yaml:6:5"), "{stderr}");
    let (code, ..) = audit(&folder, &["app.json5", "--with", "good.yaml", "--strict"]);
    assert_eq!(code, Some(1));
    let (code, stdout, stderr) = audit(&folder, &["app.json5", "--with", "bad.yaml"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    for words in [
        "bad.yaml:2:3",
        "up to 11s",
        "in the configuration: app.json5:2:3",
        "bad.yaml:5:5",
        "2 errors, 1 warning",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    let (code, stdout, _) = audit(&folder, &["app.json5", "--with", "bad.yaml", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &json["ok"], json["problems"].as_array().unwrap().len()), (Some(1), &false.into(), 3));
    assert_eq!(json["problems"][0]["line"], 2);
    // Wrong usage, and files that cannot be read.
    write("several.yaml", "services:\n  a: { image: a }\n  b: { image: b }\n");
    write("broken.hcl", "job \"a\" {\n");
    write("broken.json5", "{ jobs: 1 }");
    let failures = [
        (&["app.json5"][..], "name the deployment"),
        (&["app.json5", "--with", "missing.yaml"], "cannot read missing.yaml: no such file or directory"),
        (&["missing.json5", "--with", "good.yaml"], "cannot read missing.json5"),
        (&["app.json5", "--with", "several.yaml"], "--container: services/a; services/b"),
        (&["app.json5", "--with", "several.yaml", "--container", "c"], "no container `c`"),
        (&["app.json5", "--with", "app.json5"], "is no manifest of Kubernetes"),
        (&["app.json5", "--with", "broken.hcl"], "broken.hcl:2: a block is not closed"),
        (&["broken.json5", "--with", "good.yaml"], "the configuration has errors, so it was not audited"),
    ];
    for (arguments, message) in failures {
        let (code, _, stderr) = audit(&folder, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    let (_, stdout, _) = audit(&folder, &["app.json5", "--with", "missing.yaml", "--format", "json"]);
    assert!(stdout.contains("\"ok\": false") && stdout.contains("cannot read missing.yaml"), "{stdout}");
}

#[test]
fn the_manifest_of_the_guide_is_valid() {
    let guide = fs::read_to_string(repository().join("docs/how-to/kubernetes.md")).unwrap();
    let manifest = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guide.yaml");
    fs::write(&path, manifest).unwrap();
    assert_eq!(kubernetes(&[path]).unwrap(), "apps/v1 Deployment/shop\n");
    let guide = fs::read_to_string(repository().join("docs/how-to/nomad.md")).unwrap();
    let job = guide.split("```hcl\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(job.parse::<Body>().is_ok());
}

/// A configuration rendered without variables, without comments, blanks and line breaks.
fn normalise(text: &str) -> String {
    let rendered = containerpilot_config::template::render(text.as_bytes(), &Default::default()).unwrap();
    let rendered = String::from_utf8(rendered.text).unwrap();
    let lines = rendered.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

#[test]
fn guide_shows_the_configurations_of_the_example() {
    let guide = fs::read_to_string(repository().join("docs/how-to/behind-nginx.md")).unwrap();
    let shown: Vec<String> =
        guide.split("```json5\n").skip(1).map(|rest| normalise(rest.split("```").next().unwrap())).collect();
    let files = ["app", "nginx"].map(|name| normalise(&text(&format!("{name}/containerpilot.json5"))));
    assert_eq!(shown, files);
}
