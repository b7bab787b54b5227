//! Docker commands, images built by the tests, and containers that are removed when they are dropped.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::deadline::InTime;
use crate::support::deadline::wait_until_within;
use crate::support::failure::report;
use crate::support::program::containerpilot;

/// The test fails if a single wait takes longer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A unique name for an image, container, network or directory.
pub(crate) fn new_name(what: &str) -> String {
    format!("cp-{what}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Runs a Docker command, which may fail.
pub(crate) fn try_docker(args: &[&str]) -> Output {
    assert!(
        Command::new("docker").arg("version").output_in_time().is_ok_and(|output| output.status.success()),
        "Docker does not respond; run these tests with `make test-docker`"
    );
    Command::new("docker").args(args).stdin(Stdio::null()).output_in_time().unwrap()
}

/// Runs a Docker command that must succeed; returns its standard output.
pub(crate) fn docker(args: &[&str]) -> String {
    let output = try_docker(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {}: {stderr}", args.join(" "));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The static binary, for the Dockerfiles of the project: an image FROM scratch has no dynamic loader.
pub(crate) fn static_binary() -> PathBuf {
    std::env::var_os("STATIC_BINARY").expect("STATIC_BINARY is not set; run `make test-docker`").into()
}

/// A folder of this test's own.
pub(crate) fn folder(what: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(new_name(what));
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_until_within(TIMEOUT, || what.to_owned(), holds);
}

/// The image that contains only the binary, and its libraries if it is not static.
pub(crate) fn scratch() -> &'static str {
    static IMAGE: OnceLock<String> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let root = folder("scratch");
        put_binary(&root);
        import(&root)
    })
}

/// The image with the binary, busybox, users, and the usual `/var/run`.
pub(crate) fn busybox() -> &'static str {
    static IMAGE: OnceLock<String> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let root = folder("busybox");
        put_binary(&root);
        put_busybox(&root);
        for folder in ["etc", "run", "tmp", "var"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        symlink("/run", root.join("var/run")).unwrap();
        fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nweb:x:1000:1000::/:/bin/sh\n").unwrap();
        fs::write(root.join("etc/group"), "root:x:0:\nweb:x:1000:\nlogs:x:77:web\n").unwrap();
        import(&root)
    })
}

/// The static binary, or else the ordinary one, which takes no second build.
fn put_binary(root: &Path) {
    let binary = std::env::var_os("STATIC_BINARY").map_or_else(|| containerpilot().into(), PathBuf::from);
    put_program(root, &binary, "containerpilot");
}

/// Copies a program and the libraries that it needs.
pub(crate) fn put_program(root: &Path, program: &Path, name: &str) {
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::copy(program, root.join("bin").join(name)).unwrap();
    // It prints nothing to standard output for a static program.
    let needs = Command::new("ldd").arg(program).output_in_time().unwrap().stdout;
    for library in String::from_utf8(needs).unwrap().split_whitespace().filter(|word| word.starts_with('/')) {
        let target = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(library, target).unwrap();
    }
}

pub(crate) fn put_busybox(root: &Path) {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("busybox"))
        .find(|file| file.exists());
    let busybox = found.expect("busybox is missing: apt-get install busybox-static");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::copy(&busybox, root.join("bin/busybox")).unwrap();
    let list = Command::new(&busybox).arg("--list").output_in_time().unwrap().stdout;
    for applet in String::from_utf8(list).unwrap().lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
}

/// Creates an image from a directory, with the supervisor as its entry point.
pub(crate) fn import(root: &Path) -> String {
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    let name = new_name("image");
    let archive = root.with_extension("tar");
    let done = Command::new("tar")
        .args(["--owner=0", "--group=0", "-C"])
        .arg(root)
        .arg("-cf")
        .arg(&archive)
        .arg(".")
        .status_in_time()
        .unwrap();
    assert!(done.success());
    let entry = r#"ENTRYPOINT ["/bin/containerpilot"]"#;
    let path = "ENV PATH=/bin";
    docker(&["import", "--change", entry, "--change", path, archive.to_str().unwrap(), &name]);
    fs::remove_dir_all(root).unwrap();
    fs::remove_file(archive).unwrap();
    name
}

pub(crate) struct Container {
    pub(crate) name: String,
    folder: PathBuf,
}

impl Container {
    /// Starts a container with a configuration file and options of `docker run`.
    pub(crate) fn start(config: &str, options: &[&str], image: &str) -> Self {
        Self::with(config, options, image, &[])
    }

    /// Starts a container with arguments instead of a configuration file.
    pub(crate) fn start_with_args(options: &[&str], image: &str, args: &[&str]) -> Self {
        Self::with("", options, image, args)
    }

    fn with(config: &str, options: &[&str], image: &str, args: &[&str]) -> Self {
        let folder = folder("container");
        let name = new_name("container");
        let file = folder.join("containerpilot.json5");
        let mount = format!("{}:/etc/containerpilot.json5:ro", file.display());
        let mut command = vec!["run", "--detach", "--name", &name];
        if !config.is_empty() {
            fs::write(&file, config).unwrap();
            command.extend(["--volume", &mount]);
        }
        command.extend(options);
        command.push(image);
        command.extend(args);
        let container = Self { name: name.clone(), folder };
        docker(&command);
        container
    }

    pub(crate) fn logs(&self) -> String {
        let output = try_docker(&["logs", &self.name]);
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    /// Waits until its log contains `part`; returns the log.
    pub(crate) fn wait_for_log(&self, part: &str) -> String {
        wait_until(&format!("the log contains {part:?}"), || self.logs().contains(part));
        self.logs()
    }

    pub(crate) fn inspect(&self, format: &str) -> String {
        docker(&["inspect", "--format", format, &self.name])
    }

    /// Waits until it exits; returns its exit code.
    pub(crate) fn exit_code(&self) -> String {
        wait_until("the container exits", || self.inspect("{{.State.Running}}") == "false");
        self.inspect("{{.State.ExitCode}}")
    }

    /// Runs a command in the container.
    pub(crate) fn exec(&self, args: &[&str]) -> Output {
        try_docker(&[&["exec", &self.name], args].concat())
    }

    /// Runs a shell script in the container, which must succeed; returns its output.
    pub(crate) fn shell(&self, script: &str) -> String {
        docker(&["exec", &self.name, "/bin/sh", "-c", script])
    }

    pub(crate) fn kill(&self, signal: &str) {
        docker(&["kill", "--signal", signal, &self.name]);
    }

    /// Runs `docker stop` with a timeout in seconds; returns how long it took.
    pub(crate) fn stop(&self, seconds: u32) -> Duration {
        let began = Instant::now();
        docker(&["stop", "--time", &seconds.to_string(), &self.name]);
        began.elapsed()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        report(&format!("container {}", self.name), &self.logs());
        try_docker(&["rm", "--force", "--volumes", &self.name]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A Docker network that is removed when it is dropped.
pub(crate) struct Network(pub(crate) String);

impl Network {
    pub(crate) fn new() -> Self {
        let name = new_name("network");
        docker(&["network", "create", &name]);
        Self(name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        try_docker(&["network", "rm", &self.0]);
    }
}
