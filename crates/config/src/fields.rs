//! The table of fields.
//!
//! Each row is a key with its type, its default, its rules and one line of help. The decoder, the suggestions for unknown keys,
//! the reference page and the JSON Schema are generated from this table, so a new field is one new row.

use containerpilot_core::plan::{
    DnsRecord, Format, HttpMethod, Level, OnCompletion, OnStartLimit, OnUnhealthy, RestartOn, Status,
    StopScope,
};

use crate::decode::DefaultValue::{Is, None as Nothing, Required, Says};
use crate::decode::{DecodeContext, Section, SectionInfo, Shape, Skip, ValueType};
use crate::json5::Node;
use crate::section;
use crate::values::{
    Account, CapabilityNames, CollectorUrl, CronText, DurationOrNever, DurationOrObject, DurationText,
    DurationWithUnit, EnvFiles, Event, EventOrBool, Exec, ExitStatuses, Flag, Headers, HttpStatuses, HttpUrl,
    Interfaces, Limits, ListOf, LogOutput, Maintenance, MetricType, Mode, Numbers, Object, ObjectOrBool,
    ObjectOrManual, ObjectOrText, OneOf, OneOrMany, Port, Ports, Queue, RestartLimit, Scheme, Seconds,
    SecondsOrUnset, Secrets, SignalName, SignalNames, Size, SpannedWords, StopSignals, TaggedAddresses,
    TcpAddress, Text, TextMap, TextOrUnset, TextsOrObjects, UncheckedOneOf, UrlOrObject, Variables, Whole,
    Words,
};

section! {
    /// The whole file.
    pub struct ConfigFields = "the configuration", "The configuration", exact,
        "The top-level keys. They are case-sensitive; the keys of all other sections are not." {
        consul: ObjectOrText<ConsulFields> = "consul", Says("the embedded catalog"), "D1, D2",
            "The Consul agent: `host:port`, a URL or an object. Without it, services are registered in an embedded catalog.";
        logging: Object<LoggingFields> = "logging", Is("{}"), "L1",
            "Level, format and output of the log.";
        record: Object<RecordFields> = "record", Is("{}"), "B1, B2",
            "The recording of what happens, to look at later: `containerpilot record`.";
        stop_timeout: SecondsOrUnset = "stopTimeout", Is("5"), "S4",
            "How long each process has after its stop signal; then it gets SIGKILL. Stop hooks have a time of their own, their `timeout`. 0 means the default.";
        stop_on: SignalNames = "stopOn", Is("[\"SIGTERM\", \"SIGINT\", \"SIGQUIT\"]"), "S8",
            "The signals that shut down the container. `docker stop` sends the `STOPSIGNAL` of the image.";
        control: Object<ControlFields> = "control", Is("{}"), "X1",
            "The control socket.";
        jobs: ListOf<JobFields> = "jobs", Nothing, "W1",
            "The jobs: processes, and when they run.";
        defaults: JobDefaults = "defaults", Nothing, "W22",
            "Fields that every job has unless it has its own, or null. An object replaces the default as a whole.";
        watches: ListOf<WatchFields> = "watches", Nothing, "D7",
            "The services in the catalog to watch for changes.";
        locks: ListOf<LockFields> = "locks", Nothing, "D14",
            "Locks that at most a certain number of supervisors have at the same time, for example for a leader election.";
        files: ListOf<FileFields> = "files", Nothing, "D15",
            "Files that are rendered from templates, again whenever a watch that a template uses changes.";
        telemetry: Object<TelemetryFields> = "telemetry", Nothing, "T1",
            "The telemetry server, which Prometheus can scrape.";
        otlp: Object<OtlpFields> = "otlp", Nothing, "T6",
            "Exports log entries, traces and metrics to an OpenTelemetry collector.";
        coprocesses: ListOf<CoprocessFields> = "coprocesses", Nothing, "C6",
            "Sidecar processes that run beside the jobs.";
        env: TextMap = "env", Nothing, "P10",
            "Environment variables of every process. Those that `putenv` sets and those of a job win over them.";
        env_file: EnvFiles = "envFile", Nothing, "P10",
            "Files with environment variables of every process, in dotenv syntax: a path, `{ path, optional: true }`, or a list of them. `env` wins over them.";
        secrets: Secrets = "secrets", Nothing, "P11",
            "Secrets of every process: `{ NAME: { file: \"/run/secrets/name\" } }` passes the content of the file as the variable NAME.";
    }
}

section! {
    /// `consul` as an object.
    pub struct ConsulFields = "`consul`", "`consul`", any_case,
        "The connection to the Consul agent. The environment variables `CONSUL_HTTP_TOKEN`, `CONSUL_HTTP_TOKEN_FILE`, `CONSUL_HTTP_SSL`, `CONSUL_CACERT`, `CONSUL_CAPATH`, `CONSUL_CLIENT_CERT`, `CONSUL_CLIENT_KEY`, `CONSUL_TLS_SERVER_NAME` and `CONSUL_HTTP_SSL_VERIFY` take precedence; `CONSUL_HTTP_ADDR` is used if there is no address." {
        address: TextOrUnset = "address", Says("`CONSUL_HTTP_ADDR`, else `127.0.0.1:8500`"), "D1",
            "`host:port`, or a URL with http://, https:// or unix://.";
        scheme: OneOf<Scheme> = "scheme", Is("\"http\""), "D1",
            "`https` encrypts the connection. A scheme in the address takes precedence.";
        token: TextOrUnset = "token", Nothing, "D1, L5",
            "The ACL token. It is never logged.";
        token_file: TextOrUnset = "tokenfile", Nothing, "D1, L5",
            "File with the ACL token. It is read again when Consul rejects the token, and takes precedence over `token`.";
        tls: Object<TlsFields> = "tls", Is("{}"), "D1",
            "TLS settings.";
    }
}

section! {
    /// `consul.tls`.
    pub struct TlsFields = "`tls`", "`tls`", any_case,
        "TLS settings of the connection to Consul, or to an OpenTelemetry collector." {
        cafile: TextOrUnset = "cafile", Nothing, "D1",
            "File with the trusted CA certificates.";
        capath: TextOrUnset = "capath", Nothing, "D1",
            "Directory of files with trusted CA certificates.";
        clientcert: TextOrUnset = "clientcert", Nothing, "D1",
            "File with the client certificate.";
        clientkey: TextOrUnset = "clientkey", Nothing, "D1",
            "File with the client key.";
        servername: TextOrUnset = "servername", Nothing, "D1",
            "The expected name in the server certificate, if it is not the host of the address.";
        verify: Flag = "verify", Is("true"), "D1",
            "Whether to verify the server certificate.";
    }
}

section! {
    /// `logging` of the whole supervisor.
    pub struct LoggingFields = "`logging`", "`logging`", any_case,
        "Level, format and output of the log." {
        level: OneOf<Level> = "level", Is("\"info\""), "L1",
            "The minimum level of logged messages.";
        format: OneOf<Format> = "format", Is("\"default\""), "L1",
            "The format of a line: `default` (time, job, pid, message), `text` (logfmt) or `json`.";
        output: LogOutput = "output", Is("\"stdout\""), "L1",
            "`stdout`, `stderr`, or the path of a file, which is reopened on SIGUSR1.";
    }
}

section! {
    /// `record`.
    pub struct RecordFields = "`record`", "`record`", any_case,
        "The recording: what the supervisor was told, and when, without environment values, output and secrets." {
        memory: Size = "memory", Is("\"256KiB\""), "B1",
            "The memory for the recording; the oldest part is dropped when it is full. At least 128 KB; 0 means that nothing is recorded.";
        file: TextOrUnset = "file", Nothing, "B2",
            "The path of a file that gets the recording, too. Each start of the supervisor begins a new one; `FILE.1` is that of the start before.";
        max_size: Size = "maxSize", Is("\"10MB\""), "B2",
            "A new file is begun before the file gets larger than about this. 0 means never; otherwise at least 128 KB.";
        keep: Whole<0, 1000> = "keep", Is("5"), "B2",
            "How many old files are kept.";
    }
}

section! {
    /// `control`.
    pub struct ControlFields = "`control`", "`control`", any_case,
        "The unix socket that controls a running supervisor." {
        socket: TextOrUnset = "socket", Is("\"/var/run/containerpilot.socket\""), "X1",
            "The path of the socket, at most 107 bytes. Without it, the environment variable `CONTAINERPILOT_SOCKET` takes precedence over the default.";
        mode: Mode = "mode", Is("\"0600\""), "X1",
            "The permissions of the socket, in octal. Anyone with write access can control the supervisor.";
        group: Account = "group", Nothing, "X1",
            "The group of the socket; `mode` must give it write access.";
    }
}

section! {
    /// A job.
    pub struct JobFields = "a job", "A job", any_case,
        "A process: when it runs, how its health is checked, and how it is advertised." {
        name: Text = "name", Says("the program"), "D9, C3",
            "The name, which is also the source of its events. With a `port` it must match `^[a-z][a-zA-Z0-9-]+$`.";
        exec: Exec = "exec", Nothing, "P8, W11",
            "The program and its arguments: a string, which is split at spaces without quoting, or a list.";
        action: Object<ActionFields> = "do", Nothing, "W19",
            "An action of the supervisor in place of `exec`, such as `{ signal: \"HUP\", to: \"nginx\" }`. No program is needed.";
        when: ObjectOrManual<WhenFields> = "when", Says("at startup, once"), "W1, W17",
            "What starts the job. `\"manual\"`: only the command `start`.";
        port: Ports = "port", Nothing, "D3, H1, W20",
            "The port of the job. A job with a port is registered in the catalog and needs `health`. With `replicas`, a range such as `\"8000-8009\"`, from which each replica takes one.";
        replicas: Whole<1, 1000> = "replicas", Nothing, "W20",
            "Makes this many jobs, `NAME-1`, `NAME-2` and so on, from this definition. `$CONTAINERPILOT_REPLICA` and `$CONTAINERPILOT_PORT` in its commands and checks are replaced.";
        groups: Words = "groups", Nothing, "W22",
            "The groups of the job. Commands and actions take `@GROUP` in place of a job.";
        requires: TextsOrObjects<RequirementFields> = "requires", Nothing, "W18",
            "What must be there before the job starts: jobs, watches as `watch.NAME`, rendered files as `file.NAME`, and locks as `lock.NAME`. The job stops before the jobs that it requires.";
        timeout: DurationOrNever = "timeout", Says("none; with `when.interval`, that interval"), "P5",
            "Timeout of one run, after which it is killed: at least 1 ms, or `never`. A stop hook has 5 minutes without one, also with `never`.";
        restarts: RestartLimit = "restarts", Says("\"never\"; with `when.interval`, \"unlimited\""), "W6, W4",
            "Restart policy: the number of restarts after a run exits, with success or failure. `unlimited` cannot be combined with `when.each`.";
        restart_on: OneOf<RestartOn> = "restartOn", Is("\"exit\""), "W13",
            "After which runs `restarts` counts: after each (`exit`), a failed one (`failure`) or a successful one (`success`).";
        success_codes: ExitStatuses = "successCodes", Is("[0]"), "W13",
            "The exit codes and signals that are a success: `[0, 143, \"SIGTERM\"]`.";
        start_limit: Object<StartLimitFields> = "startLimit", Nothing, "W14",
            "The limit of automatic starts, after which the job fails.";
        restart_backoff: ObjectOrBool<BackoffFields> = "restartBackoff", Is("{}"), "W8",
            "Back-off between restarts; `false` restarts without delay, as in 3.8.";
        stop_timeout: DurationText = "stopTimeout", Says("until its hooks are complete"), "S2",
            "Not a kill timeout: how long a stopping job waits for its hooks, the jobs that run on its `stopping` event. SIGKILL comes after the global `stopTimeout`.";
        stop_signal: StopSignals = "stopSignal", Is("\"SIGTERM\""), "S2, S9",
            "The signal that stops the job, or an escalation of signals with the times between them: `[\"QUIT\", \"10s\", \"TERM\", \"5s\", \"KILL\"]`.";
        kill_after: DurationText = "killAfter", Says("the global `stopTimeout`"), "S9",
            "How long after the stop signal the job gets SIGKILL.";
        stop_scope: OneOf<StopScope> = "stopScope", Is("\"group\""), "S9",
            "Which processes get the stop signal: the process group (`group`), or only the process of the job (`process`). SIGKILL goes to all.";
        drain: DurationOrObject<DrainFields> = "drain", Is("0"), "S2, S11",
            "How long the job keeps running after its service is deregistered and before it gets the stop signal: a duration, or an object with a program that is run and waited for.";
        stop_after: SpannedWords = "stopAfter", Nothing, "S10",
            "The jobs that must have ended before this one stops, in addition to those that require it.";
        on_failure: OneOf<OnCompletion> = "onFailure", Is("\"continue\""), "S5",
            "`shutdown` stops the container when the job has failed and is not restarted.";
        on_success: OneOf<OnCompletion> = "onSuccess", Is("\"continue\""), "S5",
            "`shutdown` stops the container when the job has succeeded and is not restarted.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "D6",
            "The interface or network of the advertised address: `eth0`, `eth0:inet6`, `eth0[1]`, `10.0.0.0/8`, `inet`, `inet6` or `static:IP`. The first match is used.";
        tags: Words = "tags", Nothing, "D3",
            "The tags of the service in the catalog.";
        meta: TextMap = "meta", Nothing, "D3",
            "The metadata of the service in the catalog.";
        service: Object<ServiceFields> = "service", Nothing, "D10",
            "The service in the catalog, where it differs from the job: its name, id and addresses.";
        initial_status: UncheckedOneOf<Status> = "initial_status", Nothing, "D4",
            "Registers the service at startup with this status, before its first health check.";
        consul: Object<JobConsulFields> = "consul", Nothing, "D3",
            "Settings of the service that are specific to Consul.";
        health: OneOrMany<HealthFields> = "health", Nothing, "H1, H2",
            "Health checks: one check, or a list of checks that must all pass.";
        ready: ObjectOrText<ReadyFields> = "ready", Nothing, "H11",
            "How the process tells that it is ready: `\"notify\"` (`sd_notify`: READY=1 to `NOTIFY_SOCKET`), `{ fd: 3 }` (a newline on that descriptor) or `{ line: \"regex\" }` (a line of its output). The job is healthy only while it is ready; `health` is not needed then.";
        watchdog: DurationText = "watchdog", Nothing, "H12",
            "With `ready: \"notify\"`: a process that is ready and does not send WATCHDOG=1 within this time has failed a check.";
        logging: Object<JobLoggingFields> = "logging", Nothing, "L2",
            "How the output of the job is logged.";
        user: Account = "user", Nothing, "P9",
            "The user of the process, by name or numeric id.";
        group: Account = "group", Nothing, "P9",
            "The group of the process, by name or numeric id.";
        cwd: Text = "cwd", Nothing, "P9",
            "The working directory of the process.";
        env: TextMap = "env", Nothing, "P9",
            "Environment variables of the process, in addition to those of the supervisor.";
        env_file: EnvFiles = "envFile", Nothing, "P10",
            "Files with environment variables of the process, in dotenv syntax: a path, `{ path, optional: true }`, or a list of them. `env` wins over them.";
        secrets: Secrets = "secrets", Nothing, "P11",
            "Secrets of the process: `{ NAME: { file: \"/run/secrets/name\" } }` passes the content of the file as the variable NAME. The log shows `***` in place of the value.";
        umask: Mode = "umask", Nothing, "P9",
            "The file mode creation mask of the process, in octal: `\"0022\"`.";
        limits: Limits = "limits", Nothing, "P9",
            "Resource limits by name, such as `nofile` or `core`: a number or `unlimited` for both limits, or `[soft, hard]`.";
        no_new_privileges: Flag = "noNewPrivileges", Is("false"), "P9",
            "Prevents the process and its children from gaining privileges.";
        nice: Whole<-20, 19> = "nice", Says("that of the supervisor"), "P13",
            "The nice value of the process: a higher value means less CPU time beside other processes.";
        oom_score_adj: Whole<-1000, 1000> = "oomScoreAdj", Says("that of the supervisor"), "P13",
            "How likely the kernel kills the process when memory is short: 1000 first, -1000 never.";
        capabilities: CapabilityNames = "capabilities", Says("those of the supervisor; with `user`, none"), "P13",
            "The Linux capabilities that the process keeps, such as `[\"NET_BIND_SERVICE\"]`; all others are dropped. `[]` drops all.";
    }
}

section! {
    /// One file of `envFile`.
    pub struct EnvFileFields = "`envFile`", "`envFile`", any_case,
        "A file with environment variables, one `NAME=value` per line. It is read at the start and at every reload." {
        path: TextOrUnset = "path", Required, "P10",
            "The path of the file.";
        optional: Flag = "optional", Is("false"), "P10",
            "Whether the file may be missing.";
    }
}

section! {
    /// One of `secrets`.
    pub struct SecretFields = "a secret", "A secret", any_case,
        "A value that is read from a file whenever a process starts, without one trailing newline. At most 64 KiB." {
        file: TextOrUnset = "file", Required, "P11",
            "The path of the file.";
    }
}

/// The number of rows at the start of [`JobFields`] that cannot have a default: they make a job that job.
const OWN_FIELDS: usize = 6;

/// The keys of `defaults`: those of a job, without the first ones.
pub const DEFAULTS: SectionInfo = SectionInfo {
    name: "`defaults`",
    title: "`defaults`",
    help: "Fields that every job has unless it has its own. `name`, `exec`, `do`, `when`, `port` and `replicas` belong to one job. They do not apply to coprocesses. A job with `do` takes only those that do not concern a process.",
    any_case: true,
    fields: JobFields::INFO.fields.split_at(OWN_FIELDS).1,
};

/// The fields of `defaults`, which are those of a job.
pub struct JobDefaults;

impl ValueType for JobDefaults {
    type Value = JobFields;
    const SHAPE: Shape = Shape::Object(&DEFAULTS);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<JobFields> {
        let members = cx.members(key, node, "{ restarts: 3 }")?;
        let mut fields = JobFields::empty(cx.at(node.span));
        cx.section(&DEFAULTS, node.span, members, &mut Skip(OWN_FIELDS, &mut fields));
        Some(fields)
    }
}

section! {
    /// A job's `do`.
    pub struct ActionFields = "`do`", "`do`", any_case,
        "An action of the supervisor in place of a program: exactly one of these keys, and `to` beside `signal`. It sends `exitSuccess` or, if it is refused, `exitFailed`." {
        signal: SignalName = "signal", Nothing, "W19",
            "Sends this signal to the process group of the job `to`. It fails if that job does not run.";
        to: Text = "to", Nothing, "W19",
            "The job that gets the signal, or `@GROUP`.";
        start: Text = "start", Nothing, "W19",
            "Starts this job, or the jobs of `@GROUP`.";
        stop: Text = "stop", Nothing, "W19",
            "Stops this job, or the jobs of `@GROUP`, until they are started again.";
        restart: Text = "restart", Nothing, "W19",
            "Restarts this job, or the jobs of `@GROUP`.";
        reload: Flag = "reload", Nothing, "W19, R1",
            "true reloads the configuration. The run succeeds when the reload is requested.";
        maintenance: OneOf<Maintenance> = "maintenance", Nothing, "W19, D8",
            "`enter` or `exit` maintenance mode.";
        shutdown: Whole<0, 255> = "shutdown", Nothing, "W19, S5",
            "Shuts down the container, which exits with this code.";
        set_env: Variables = "setEnv", Nothing, "W19, P7",
            "Sets environment variables of every process that is started from then on. null and the empty string unset a variable.";
    }
}

section! {
    /// A job's `ready` as an object.
    pub struct ReadyFields = "`ready`", "`ready`", any_case,
        "How a process tells that it is ready: by one of these keys, or by `ready: \"notify\"`." {
        fd: Whole<3, 1023> = "fd", Nothing, "H11",
            "The descriptor to which the process writes a newline when it is ready, as for s6.";
        line: Text = "line", Nothing, "H11",
            "A regular expression in Go's syntax (RE2). The process is ready when a line of its output matches; the first 4096 bytes of a line count.";
    }
}

section! {
    /// A job's `when`.
    pub struct WhenFields = "`when`", "`when`", any_case,
        "What starts a job: an event (`once` or `each`), an interval, times of day, a signal, or a combination of events." {
        source: Text = "source", Says("`global`"), "W2, W3, E1",
            "The source of the event: a job, `watch.NAME`, `file.NAME`, `lock.NAME`, or a signal such as `SIGHUP`. Global events have no source.";
        once: EventOrBool = "once", Nothing, "W2, W12",
            "Runs the job the first time that this event is sent. With `all` or `any`: true, the default.";
        each: EventOrBool = "each", Nothing, "W2, W7, W12",
            "Runs the job every time that this event is sent. Of several events during a run, one starts a further run. With `all` or `any`: true.";
        queue: OneOf<Queue> = "queue", Says("\"latest\""), "W21, W7",
            "Which events during a run count, beside `each`: `latest` starts one further run; `all` runs the job once for every event, in order. At most 1,000 events are pending; then the oldest one is dropped.";
        event: Event = "event", Nothing, "W2",
            "The same as `once`, for a global event.";
        interval: DurationText = "interval", Nothing, "W4",
            "Runs the job at startup, or at the event of `once`, and then at every interval of at least 1 ms.";
        cron: CronText = "cron", Nothing, "W15, W16",
            "Runs the job at these times: minute, hour, day of the month, month and day of the week, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. With `once`, from that event on.";
        timezone: TextOrUnset = "timezone", Says("`UTC`"), "W15",
            "The time zone of `cron`, such as `Europe/Berlin`.";
        timeout: DurationText = "timeout", Nothing, "W5",
            "How long the job waits for its event before it gives up.";
        all: ListOf<ConditionFields> = "all", Nothing, "W12",
            "Runs the job when all of these events have been sent.";
        any: ListOf<ConditionFields> = "any", Nothing, "W12",
            "Runs the job when any of these events is sent.";
    }
}

section! {
    /// One condition of `all` or `any`.
    pub struct ConditionFields = "a condition", "A condition of `all` or `any`", any_case,
        "An event that a job waits for." {
        source: Text = "source", Says("`global`"), "W12",
            "The source of the event, as in `when.source`.";
        event: Event = "event", Says("for a signal, that signal"), "W12",
            "The event.";
    }
}

section! {
    /// An element of a job's `requires`.
    pub struct RequirementFields = "a requirement", "A requirement", any_case,
        "Something that must be there before a job starts: a job with checks is healthy, a job that runs once has succeeded, any other job runs, a watch is healthy, a file is rendered, a lock is held." {
        source: Text = "source", Required, "W18",
            "The job, `watch.NAME`, `file.NAME` or `lock.NAME`.";
        bind: Flag = "bind", Is("false"), "W18",
            "Whether the job is stopped when the source is no longer there, and started again when it is back. A lock is always bound.";
    }
}

section! {
    /// A job's `restartBackoff`.
    pub struct BackoffFields = "`restartBackoff`", "`restartBackoff`", any_case,
        "The first restart is immediate. In a crash loop, the delay doubles with every restart." {
        initial: DurationText = "initial", Is("\"100ms\""), "W8",
            "The first delay.";
        max: DurationText = "max", Is("\"10s\""), "W8",
            "The longest delay.";
        reset: DurationText = "reset", Is("\"10s\""), "W8",
            "A run that is longer than this resets the delay.";
    }
}

section! {
    /// A job's `drain` as an object.
    pub struct DrainFields = "`drain`", "`drain`", any_case,
        "A program that runs after the service has left the catalog, with the environment, user and directory of the job. The stop signal follows its exit." {
        exec: Exec = "exec", Required, "S11",
            "The program and its arguments.";
        timeout: DurationText = "timeout", Says("the global `stopTimeout`"), "S11",
            "How long it may take; then it is killed, and the job is stopped.";
    }
}

section! {
    /// A job's `startLimit`.
    pub struct StartLimitFields = "`startLimit`", "`startLimit`", any_case,
        "The limit of automatic starts. A job that would be started more often sends `crashLoop` and fails." {
        count: Whole<1, 1000> = "count", Required, "W14",
            "The number of starts.";
        within: DurationText = "within", Required, "W14",
            "The time in which they are counted.";
        then: OneOf<OnStartLimit> = "then", Is("\"fail\""), "W14",
            "`shutdown` also stops the container, with the exit code of the job.";
    }
}

section! {
    /// A check of a job's health.
    pub struct HealthFields = "`health`", "`health`", any_case,
        "A health check. Without `exec`, `http` and `tcp`, the job is healthy while it runs or, with `ready`, while it is ready." {
        name: Text = "name", Says("`check.JOB`"), "H2",
            "The name of the check in logs.";
        exec: Exec = "exec", Nothing, "H1",
            "A program that exits with code 0 when the job is healthy.";
        http: UrlOrObject<HttpFields> = "http", Nothing, "H5, H10",
            "A URL that responds with status 2xx or 3xx when the job is healthy, or an object that says more about request and response.";
        tcp: TcpAddress = "tcp", Nothing, "H5",
            "An address that accepts a connection when the job is healthy.";
        interval: Seconds = "interval", Required, "H1, H3",
            "The interval between checks.";
        ttl: Seconds = "ttl", Says("three times `interval`, at least 10"), "H1, H6, H14",
            "How long the service stays healthy in the catalog after a passed check; longer than `interval`.";
        timeout: DurationText = "timeout", Says("`interval`"), "H1, P5",
            "Timeout of one check.";
        heartbeat: Seconds = "heartbeat", Says("`interval`"), "H6",
            "The interval of heartbeats to the catalog while the job is healthy.";
        failures: Whole<1, 1_000_000> = "failures", Is("1"), "H8",
            "The number of consecutive failed checks that make the job unhealthy.";
        successes: Whole<1, 1_000_000> = "successes", Is("1"), "H9",
            "The number of consecutive passed checks that make the job healthy.";
        start_period: DurationText = "startPeriod", Says("none"), "H9",
            "How long after the start of the process failed checks do not count.";
        on_unhealthy: OneOf<OnUnhealthy> = "onUnhealthy", Is("\"report\""), "H8",
            "`restart` restarts the job when it becomes unhealthy.";
        logging: Object<CheckLoggingFields> = "logging", Nothing, "L2",
            "How the output of the check is logged.";
    }
}

section! {
    /// `http` as an object.
    pub struct HttpFields = "`http`", "`http`", any_case,
        "An HTTP request, and the response that is a success. Redirects are not followed." {
        url: HttpUrl = "url", Required, "H10",
            "The URL, with http:// or https://.";
        method: OneOf<HttpMethod> = "method", Is("\"GET\""), "H10",
            "The method. The request has no body.";
        headers: Headers = "headers", Nothing, "H10",
            "Headers of the request, such as `{ Host: \"example.com\" }`: at most 64, with 8 KiB in all.";
        status: HttpStatuses = "status", Is("[\"2xx\", \"3xx\"]"), "H10",
            "The statuses that are a success: codes, or classes such as `\"2xx\"`.";
        body: Text = "body", Nothing, "H10",
            "A regular expression in Go's syntax (RE2) that a part of the body must match. The first 64 KiB of the body count.";
        cafile: TextOrUnset = "cafile", Says("the certificates of the system"), "H10",
            "File with the trusted CA certificates, for https.";
    }
}

section! {
    /// `logging` of a job.
    pub struct JobLoggingFields = "`logging` of a job", "`logging` of a job", any_case,
        "How the output of a job is logged. Level and format are set in the top-level `logging`." {
        raw: Flag = "raw", Is("false"), "L2",
            "Passes the output through unchanged to stdout and stderr of the supervisor.";
        file: TextOrUnset = "file", Nothing, "L8",
            "The path of a file that gets the output in place of the log. With `replicas`, it must contain `$CONTAINERPILOT_REPLICA`.";
        max_size: Size = "maxSize", Is("\"10MB\""), "L8",
            "The file is rotated before it gets larger than this. 0 means never; otherwise at least 4 KB.";
        keep: Whole<0, 1000> = "keep", Is("5"), "L8",
            "How many old files are kept: `FILE.1` is the newest of them.";
        stderr: OneOf<Level> = "stderr", Is("\"info\""), "L8",
            "The level of what the job writes to stderr.";
        join: TextOrUnset = "join", Nothing, "L8",
            "A regular expression in Go's syntax (RE2). A line that matches belongs to the entry before it: `\"^\\\\s\"` for stack traces.";
    }
}

section! {
    /// `logging` of a check.
    pub struct CheckLoggingFields = "`logging` of a check", "`logging` of a check", any_case,
        "How the output of a check is logged. It is always in the log of the supervisor, unless it is `raw`." {
        raw: Flag = "raw", Is("false"), "L2",
            "Passes the output through unchanged to stdout and stderr of the supervisor.";
    }
}

section! {
    /// A job's `service`.
    pub struct ServiceFields = "`service`", "`service`", any_case,
        "The service of a job in the catalog. Its port, tags, metadata and interfaces are keys of the job." {
        name: TextOrUnset = "name", Says("the name of the job"), "D10, D9",
            "The name of the service. Several jobs can be instances of one service.";
        id: TextOrUnset = "id", Says("`JOB-HOSTNAME`"), "D10",
            "The id of this instance. With `replicas`, it must contain `$CONTAINERPILOT_REPLICA`.";
        address: TextOrUnset = "address", Says("that of `interfaces`"), "D10, D6",
            "The advertised IP address, for example that of the host.";
        tagged_addresses: TaggedAddresses = "taggedAddresses", Nothing, "D10",
            "Addresses of the service in other networks, such as `{ wan: \"198.51.100.7:80\" }`. The port is that of the service unless there is one.";
    }
}

section! {
    /// `consul` of a job.
    pub struct JobConsulFields = "`consul` of a job", "`consul` of a job", any_case,
        "Settings of the service that are specific to Consul." {
        enable_tag_override: Flag = "enableTagOverride", Is("false"), "D3",
            "Whether other agents may change the tags of the service.";
        deregister_after: DurationWithUnit = "deregisterCriticalServiceAfter", Nothing, "D3",
            "The time after which Consul deregisters a critical service, such as \"10m\".";
    }
}

section! {
    /// A watch.
    pub struct WatchFields = "a watch", "A watch", any_case,
        "A service in the catalog to watch, or what one of `tcp`, `http`, `dns`, `file`, `key` and `prefix` names. The source of its events is `watch.NAME`." {
        name: Text = "name", Required, "D7, D9",
            "The name of the watch, and of the service. It must match `^[a-z][a-zA-Z0-9-]+$`.";
        interval: Seconds = "interval", Says("required, except for `file`: 5, and for `key` and `prefix`: 60"), "D7, D13",
            "The longest time between two looks. Changes in the catalog and of files are detected at once; a file is polled only where inotify does not work.";
        tag: TextOrUnset = "tag", Nothing, "D7",
            "Watches only instances with this tag. Only for a service.";
        dc: TextOrUnset = "dc", Nothing, "D7",
            "The Consul data centre. Only for a service, `key` and `prefix`.";
        tcp: TcpAddress = "tcp", Nothing, "D13",
            "An address: the watch is healthy while it accepts connections.";
        http: UrlOrObject<HttpFields> = "http", Nothing, "D13, H10",
            "A URL, or an object as in a check: the watch is healthy while it responds as expected, and changes with the body.";
        dns: Text = "dns", Nothing, "D13",
            "A name: its records are the instances. It is looked up again when its TTL passes, at the latest after `interval`.";
        record: OneOf<DnsRecord> = "type", Says("`A` beside `dns`"), "D13",
            "The type of the records. Only for `dns`.";
        file: Text = "file", Nothing, "D13",
            "The absolute path of a file or a directory: the watch is healthy while it exists, and changes with its contents. Of a directory its files count, without those of its directories.";
        key: Text = "key", Nothing, "D13",
            "A key in Consul: the watch is healthy while it exists, and changes with its value.";
        prefix: Text = "prefix", Nothing, "D13",
            "The keys in Consul that begin with this: the watch is healthy while there are some, and changes with them and their values.";
    }
}

section! {
    /// A lock.
    pub struct LockFields = "a lock", "A lock", any_case,
        "A lock in Consul, or without Consul a local one. The source of its events is `lock.NAME`, and each process has its fencing number in the variable `CONTAINERPILOT_LOCK_NAME`." {
        name: Text = "name", Required, "D14",
            "The name of the lock: letters, digits, dashes and underscores.";
        key: TextOrUnset = "key", Says("`containerpilot/locks/NAME`"), "D14",
            "The key in Consul; for several slots, the prefix of the keys.";
        ttl: DurationText = "ttl", Is("\"15s\""), "D14",
            "After this time without contact to Consul no process that requires the lock runs any more, and another supervisor can get it. From 10s to 24h.";
        slots: Whole<1, 1000> = "slots", Is("1"), "D14",
            "How many supervisors have the lock at the same time. One is a leader lock, more are a semaphore.";
    }
}

section! {
    /// A rendered file.
    pub struct FileFields = "a file", "A rendered file", any_case,
        "A file that is rendered from a template with what watches have found. The source of its events is `file.NAME`. Jobs can require it as `file.NAME`." {
        name: Text = "name", Required, "D15",
            "The name of the file: letters, digits, `-`, `_` and `.`.";
        from: TextOrUnset = "from", Nothing, "D15",
            "The path of the template, of at most 1 MiB. It is read at the start and at every reload.";
        template: TextOrUnset = "template", Nothing, "D15",
            "The template itself, in place of `from`. A configuration is a template, too: write it in backquotes inside {{ }}.";
        to: TextOrUnset = "to", Required, "D15",
            "The path of the file. Its directory must exist.";
        mode: Mode = "mode", Is("\"0644\""), "D15",
            "The permissions of the file.";
        user: Account = "user", Says("that of the supervisor"), "D15",
            "The owner of the file.";
        group: Account = "group", Says("that of the supervisor"), "D15",
            "The group of the file.";
        test: Exec = "test", Nothing, "D15",
            "A program that must exit with code 0 before a new text is written. The path of that text is in `CONTAINERPILOT_FILE`.";
        timeout: DurationText = "timeout", Is("\"10s\""), "D15",
            "Timeout of `test`.";
        debounce: DurationText = "debounce", Is("\"0s\""), "D15",
            "How long the watches must be calm before the file is rendered again. It is delayed by four times this time at most.";
    }
}

section! {
    /// `telemetry`.
    pub struct TelemetryFields = "`telemetry`", "`telemetry`", any_case,
        "The HTTP server for metrics and status, which is advertised as the service `containerpilot`." {
        port: Port = "port", Is("9090"), "T1",
            "The port of the server. 0 uses any free port, and the server is not advertised.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "T1, D6",
            "The interface or network of its address, as in a job. The first match is used.";
        tags: Words = "tags", Nothing, "T1",
            "Its tags in the catalog, in addition to the version of containerpilot.";
        metrics: ListOf<MetricFields> = "metrics", Nothing, "T2",
            "The metrics that jobs can record with `putmetric`.";
        page: ObjectOrBool<PageFields> = "page", Is("{}"), "T5",
            "The live page at `/`; `true` is the same as `{}`, `false` switches it off.";
    }
}

section! {
    /// `telemetry.page`.
    pub struct PageFields = "`page`", "`page`", any_case,
        "The live page of the telemetry server, for people. It shows jobs, their dependencies, events and explanations, and changes nothing." {
        arguments: Flag = "arguments", Is("false"), "T5",
            "Whether it shows the command lines of jobs, and why a start, a check or a watch failed: such messages can quote them.";
        logs: Flag = "logs", Is("false"), "T5",
            "Whether it shows the last lines of the output of jobs, and what processes say about themselves.";
        hosts: Words = "hosts", Nothing, "T5",
            "Public host names under which browsers may open it. Addresses and names that are not public, such as `localhost` and `web.default.svc.cluster.local`, need no entry.";
    }
}

section! {
    /// `otlp`.
    pub struct OtlpFields = "`otlp`", "`otlp`", any_case,
        "An OpenTelemetry collector, to which log entries, traces and metrics are sent (OTLP over HTTP). Without the keys, the variables `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` are used. Nothing is exported without `otlp`." {
        endpoint: CollectorUrl = "endpoint", Says("`OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`"), "T6",
            "The URL of the collector, to which `/v1/logs`, `/v1/traces` and `/v1/metrics` are added.";
        logs: Flag = "logs", Is("true"), "T6",
            "Whether log entries are exported: lines of jobs, and those of the supervisor.";
        traces: Flag = "traces", Is("true"), "T6",
            "Whether spans are exported. Then jobs get the variable `TRACEPARENT`.";
        metrics: Flag = "metrics", Is("true"), "T6",
            "Whether metrics are exported: those of `/metrics`.";
        headers: Headers = "headers", Says("`OTEL_EXPORTER_OTLP_HEADERS`"), "T6, L5",
            "Headers of every request, for example `{ authorization: \"Bearer …\" }`. Their values are never logged.";
        tls: Object<TlsFields> = "tls", Nothing, "T6",
            "TLS settings, for an endpoint with https://.";
        timeout: DurationText = "timeout", Is("\"10s\""), "T6",
            "Timeout of one request.";
        interval: DurationText = "interval", Is("\"60s\""), "T6",
            "How often metrics are sent: at least `1s`.";
        resource: TextMap = "resource", Nothing, "T6",
            "Attributes that tell who sends, such as `{ \"service.name\": \"shop\" }`. They win over those of the variables.";
    }
}

section! {
    /// A metric.
    pub struct MetricFields = "a metric", "A metric", any_case,
        "A metric that jobs can record. Its full name is namespace, subsystem and name, joined by `_`." {
        namespace: Text = "namespace", Nothing, "T2",
            "The first part of the name.";
        subsystem: Text = "subsystem", Nothing, "T2",
            "The second part of the name.";
        name: Text = "name", Nothing, "T2",
            "The last part of the name.";
        help: Text = "help", Nothing, "T2",
            "The description of the metric.";
        kind: OneOf<MetricType> = "type", Required, "T2",
            "The Prometheus type of the metric.";
        exec: Exec = "exec", Nothing, "T2, C8",
            "A program that prints the value. Without it, values come only from `putmetric`.";
        interval: Seconds = "interval", Nothing, "T2, C8",
            "The interval between runs of `exec`; the first run is at startup.";
        timeout: DurationText = "timeout", Says("`interval`"), "T2, C8",
            "Timeout of one run of `exec`.";
        buckets: Numbers = "buckets", Says("the defaults of Prometheus"), "T2",
            "The upper bounds of the buckets of a histogram, in ascending order.";
    }
}

section! {
    /// A coprocess.
    pub struct CoprocessFields = "a coprocess", "A coprocess", any_case,
        "A sidecar process. It starts before the jobs (or, if there is a job named `preStart`, when that has exited), stops after them, and never stops the container." {
        command: Exec = "command", Required, "C6, P8",
            "The program and its arguments.";
        name: TextOrUnset = "name", Says("the command"), "C6",
            "Its name in the log.";
        restarts: RestartLimit = "restarts", Is("\"never\""), "C6",
            "The number of restarts after it exits.";
    }
}
