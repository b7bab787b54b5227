//! The Dockerfiles of this project and of the manual, tested without pulling an image.

use std::fs;
use std::path::Path;

use super::engine::{
    Container, busybox, docker, folder, import, new_name, put_busybox, scratch, static_binary,
};

fn project(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
#[ignore = "slow: needs the static binary"]
fn x3_dockerfile_builds_an_image_of_the_binary() {
    let context = folder("context");
    fs::create_dir_all(context.join("target/artifacts")).unwrap();
    // The same program stands in for the tools.
    for name in ["containerpilot", "containerpilot-tools"] {
        fs::copy(static_binary(), context.join("target/artifacts").join(name)).unwrap();
    }
    fs::write(context.join("Dockerfile"), project("Dockerfile")).unwrap();
    fs::write(context.join(".dockerignore"), project(".dockerignore")).unwrap();
    fs::create_dir_all(context.join("target/debug")).unwrap();
    let (image, slim) = (new_name("plain"), new_name("slim"));
    docker(&["build", "--quiet", "--tag", &image, context.to_str().unwrap()]);
    docker(&["build", "--quiet", "--target", "slim", "--tag", &slim, context.to_str().unwrap()]);
    fs::remove_dir_all(context).unwrap();
    for image in [&image, &slim] {
        assert!(docker(&["run", "--rm", image, "-version"]).starts_with("Version: "));
        let again = docker(&["run", "--rm", image, "--", "/bin/containerpilot", "-version"]);
        assert_eq!(again.lines().count(), 3);
    }
    // X15: only the default image has the tools.
    let tools = ["/bin/containerpilot-tools", "-version"];
    assert_eq!(docker(&["run", "--rm", &image, "--", tools[0], tools[1]]).lines().count(), 3);
    assert_eq!(Container::start_with_args(&[], &slim, &["--", tools[0], tools[1]]).exit_code(), "127");
}

/// The image of the Rust compiler is replaced by one whose `cargo` only copies the finished binary.
#[test]
#[ignore = "slow: needs the static binary"]
fn x3_dockerfile_build_compiles_and_builds_the_same_image() {
    let base = folder("base");
    put_busybox(&base);
    fs::copy(static_binary(), base.join("ready")).unwrap();
    let cargo = "#!/bin/sh\nset -e\ntest \"$1\" != fetch || exit 0\n\
                 case \"$*\" in 'build --profile=dist --locked --target x86_64-unknown-linux-gnu --package='*) ;; *) exit 1 ;; esac\n\
                 echo \"$CARGO_ENCODED_RUSTFLAGS\" | grep -qF target-feature=+crt-static\ntest -e Cargo.toml\ntest ! -e .git\n\
                 test \"$CONTAINERPILOT_GIT_HASH $CONTAINERPILOT_BUILD_DATE\" = 'abc 2026-01-02'\n\
                 mkdir -p target/x86_64-unknown-linux-gnu/dist\ncp /ready target/x86_64-unknown-linux-gnu/dist/${6#*=}\n";
    let rustc = "#!/bin/sh\necho 'host: x86_64-unknown-linux-gnu'\n";
    for (name, script) in [("cargo", cargo), ("rustc", rustc)] {
        fs::write(base.join("bin").join(name), script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(base.join("bin").join(name), mode).unwrap();
    }
    let compiler = import(&base);
    let context = folder("context");
    fs::create_dir_all(context.join("scripts")).unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["Cargo.toml", ".dockerignore", "Dockerfile.build", "scripts/static"] {
        fs::copy(repository.join(name), context.join(name)).unwrap();
    }
    fs::create_dir_all(context.join(".git")).unwrap();
    fs::write(context.join(".git/config"), "").unwrap();
    let image = new_name("built");
    let file = context.join("Dockerfile.build");
    let arguments =
        [format!("RUST={compiler}"), "GIT_HASH=abc".to_owned(), "BUILD_DATE=2026-01-02".to_owned()];
    let mut command = vec!["build", "--tag", &image, "--file", file.to_str().unwrap()];
    for argument in &arguments {
        command.extend(["--build-arg", argument]);
    }
    command.push(context.to_str().unwrap());
    docker(&command);
    fs::remove_dir_all(context).unwrap();
    assert!(docker(&["run", "--rm", &image, "-version"]).starts_with("Version: "));
}

/// The Dockerfile lines of the manual, appended to a base image that exists here.
#[test]
#[ignore = "slow: needs the static binary"]
fn x4_dockerfile_lines_of_the_manual_build_working_images() {
    let page = project("docs/container.md");
    let blocks: Vec<&str> =
        page.split("```dockerfile\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let [with_file, alone, check] = blocks[..] else { panic!("{} Dockerfiles", blocks.len()) };
    let image = |lines: &str| {
        let context = folder("context");
        let lines = lines.replace("--from=containerpilot ", &format!("--from={} ", scratch()));
        fs::write(context.join("Dockerfile"), format!("FROM {}\n{lines}", busybox())).unwrap();
        fs::write(
            context.join("containerpilot.json5"),
            "{ jobs: [{ name: 'a', exec: 'echo from the file' }] }",
        )
        .unwrap();
        let image = new_name("manual");
        docker(&["build", "--quiet", "--tag", &image, context.to_str().unwrap()]);
        fs::remove_dir_all(context).unwrap();
        image
    };
    let first = Container::start_with_args(&[], &image(&format!("{with_file}{check}")), &[]);
    assert_eq!(first.exit_code(), "0");
    assert!(first.logs().contains("from the file"), "{}", first.logs());
    assert_eq!(first.inspect("{{.Config.Healthcheck.Test}}"), "[CMD /bin/containerpilot health]");
    let second = Container::start_with_args(&[], &image(alone), &["sh", "-c", "exit 5"]);
    assert_eq!(second.exit_code(), "5");
}
