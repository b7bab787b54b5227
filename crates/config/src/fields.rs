//! The one table of fields.
//!
//! Each row is a key: its type, its default, the rules it belongs to and one line of help. Decoding, the
//! suggestions for unknown keys, the reference page and the JSON Schema are all made from it; a new field is one new row
//! (and whatever is to happen with its value).

use containerpilot_core::plan::{Format, Level, OnCompletion, OnUnhealthy, Status};

use crate::decode::DefaultValue::{Is, None as Nothing, Required, Says};
use crate::kinds::{
    Account, DurationOrNever, DurationText, DurationWithUnit, Event, EventOrBool, Exec, Flag, HttpUrl,
    Interfaces, Limits, ListOf, LogOutput, MetricType, Mode, Numbers, Object, ObjectOrFalse, ObjectOrText,
    OneOf, OneOrMany, Port, RestartLimit, Scheme, Seconds, SecondsOrUnset, SignalName, TcpAddress, Text,
    TextMap, TextOrUnset, Whole, Words,
};
use crate::section;

section! {
    /// The whole file.
    pub struct ConfigFields = "the configuration", "The configuration", exact,
        "The keys at the top of a file. Their case matters; inside the sections it does not." {
        consul: ObjectOrText<ConsulFields> = "consul", Says("the embedded catalog"), "D1, D2",
            "The Consul agent: `host:port`, a URL, or an object. Without it, services are kept in an embedded catalog.";
        logging: Object<LoggingFields> = "logging", Is("{}"), "L1",
            "How and where the log is written.";
        stop_timeout: SecondsOrUnset = "stopTimeout", Is("5"), "S4",
            "How long a shutdown may take before what is left is killed; 0 is the default.";
        control: Object<ControlFields> = "control", Is("{}"), "X1",
            "The control socket.";
        jobs: ListOf<JobFields> = "jobs", Nothing, "W1",
            "The jobs: processes, with rules for when they run.";
        watches: ListOf<WatchFields> = "watches", Nothing, "D7",
            "The services of the catalog to follow.";
        telemetry: Object<TelemetryFields> = "telemetry", Nothing, "T1",
            "The telemetry server, which Prometheus can scrape.";
        coprocesses: ListOf<CoprocessFields> = "coprocesses", Nothing, "C6",
            "Processes that run alongside the jobs and are secondary to them.";
    }
}

section! {
    /// `consul` as an object.
    pub struct ConsulFields = "`consul`", "`consul`", any_case,
        "How the Consul agent is reached. The environment's `CONSUL_HTTP_TOKEN`, `CONSUL_HTTP_TOKEN_FILE`, `CONSUL_HTTP_SSL`, `CONSUL_CACERT`, `CONSUL_CAPATH`, `CONSUL_CLIENT_CERT`, `CONSUL_CLIENT_KEY`, `CONSUL_TLS_SERVER_NAME` and `CONSUL_HTTP_SSL_VERIFY` override it; `CONSUL_HTTP_ADDR` counts where no address is written." {
        address: TextOrUnset = "address", Says("`CONSUL_HTTP_ADDR`, else `127.0.0.1:8500`"), "D1",
            "`host:port`, or a URL that begins with http://, https:// or unix://.";
        scheme: OneOf<Scheme> = "scheme", Is("\"http\""), "D1",
            "Whether the connection is encrypted; a scheme in the address wins.";
        token: TextOrUnset = "token", Nothing, "D1, L5",
            "The ACL token. It never appears in a log.";
        token_file: TextOrUnset = "tokenfile", Nothing, "D1, L5",
            "File with the ACL token, read again whenever Consul refuses the one that is known. It wins over `token`.";
        tls: Object<TlsFields> = "tls", Is("{}"), "D1",
            "Settings of the encrypted connection.";
    }
}

section! {
    /// `consul.tls`.
    pub struct TlsFields = "`tls`", "`consul.tls`", any_case,
        "Settings of the encrypted connection to Consul." {
        cafile: TextOrUnset = "cafile", Nothing, "D1",
            "File with the certificates of the authorities to trust.";
        capath: TextOrUnset = "capath", Nothing, "D1",
            "Directory with such files.";
        clientcert: TextOrUnset = "clientcert", Nothing, "D1",
            "File with the client's certificate.";
        clientkey: TextOrUnset = "clientkey", Nothing, "D1",
            "File with the client's key.";
        servername: TextOrUnset = "servername", Nothing, "D1",
            "The name the server's certificate must have, if not the host's.";
        verify: Flag = "verify", Is("true"), "D1",
            "Whether the server's certificate is verified.";
    }
}

section! {
    /// `logging` of the whole supervisor.
    pub struct LoggingFields = "`logging`", "`logging`", any_case,
        "How and where the log is written." {
        level: OneOf<Level> = "level", Is("\"info\""), "L1",
            "The lowest level that is written.";
        format: OneOf<Format> = "format", Is("\"default\""), "L1",
            "The form of a line: `default` (time, job, pid, text), `text` (logfmt) or `json`.";
        output: LogOutput = "output", Is("\"stdout\""), "L1",
            "`stdout`, `stderr`, or the path of a file, which is reopened at SIGUSR1.";
    }
}

section! {
    /// `control`.
    pub struct ControlFields = "`control`", "`control`", any_case,
        "The unix socket through which a running supervisor is steered." {
        socket: TextOrUnset = "socket", Is("\"/var/run/containerpilot.socket\""), "X1",
            "The path of the socket, at most 107 bytes. Where it is not written, the environment's `CONTAINERPILOT_SOCKET` counts before the default.";
        mode: Mode = "mode", Is("\"0600\""), "X1",
            "The socket's permissions, in octal digits. Whoever may write may steer.";
        group: Account = "group", Nothing, "X1",
            "The group the socket belongs to, which `mode` lets in.";
    }
}

section! {
    /// A job.
    pub struct JobFields = "a job", "A job", any_case,
        "A process, with rules for when it runs, how it is checked and how it is advertised." {
        name: Text = "name", Says("the program"), "D9, C3",
            "The name, which is also the source of the job's events. With a `port` it matches `^[a-z][a-zA-Z0-9-]+$`.";
        exec: Exec = "exec", Nothing, "P8, W11",
            "The program and its arguments: one text, split at spaces without any quoting, or a list.";
        when: Object<WhenFields> = "when", Says("at startup, once"), "W1",
            "What starts the job.";
        timeout: DurationOrNever = "timeout", Says("none; with `when.interval`, that interval"), "P5",
            "How long one run may take before it is killed; at least 1 ms, or `never`.";
        restarts: RestartLimit = "restarts", Says("\"never\"; with `when.interval`, \"unlimited\""), "W6, W4",
            "How often the job runs again after a run has ended, well or badly. `unlimited` cannot stand beside `when.each`.";
        restart_backoff: ObjectOrFalse<BackoffFields> = "restartBackoff", Is("{}"), "W8",
            "How restarts are spaced; `false` restarts without delay, as 3.8 does.";
        stop_timeout: DurationText = "stopTimeout", Says("until the global `stopTimeout`"), "S2",
            "How long the job waits, when it stops, for the jobs that run at its `stopping`.";
        stop_signal: SignalName = "stopSignal", Is("\"SIGTERM\""), "S2",
            "The signal that asks the job to end.";
        drain: DurationText = "drain", Is("0"), "S2",
            "How long the job goes on after its service has left the catalog and before it is signalled.";
        on_failure: OneOf<OnCompletion> = "onFailure", Is("\"continue\""), "S5",
            "`shutdown` stops the container when the job ends in failure for good.";
        on_success: OneOf<OnCompletion> = "onSuccess", Is("\"continue\""), "S5",
            "`shutdown` stops the container when the job ends in success for good.";
        port: Port = "port", Nothing, "D3, H1",
            "The port the job listens on. With it the job is advertised in the catalog; it then needs `health`.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "D6",
            "Where the advertised address is taken from: `eth0`, `eth0:inet6`, `eth0[1]`, `10.0.0.0/8`, `inet`, `inet6` or `static:IP`; the first match wins.";
        tags: Words = "tags", Nothing, "D3",
            "The service's tags in the catalog.";
        meta: TextMap = "meta", Nothing, "D3",
            "The service's metadata in the catalog.";
        initial_status: OneOf<Status> = "initial_status", Nothing, "D4",
            "Registers the service at once with this status, before its health is known.";
        consul: Object<JobConsulFields> = "consul", Nothing, "D3",
            "Settings of the service that only Consul has.";
        health: OneOrMany<HealthFields> = "health", Nothing, "H1, H2",
            "How the job's health is found out: one check, or a list of which all must pass.";
        logging: Object<JobLoggingFields> = "logging", Nothing, "L2",
            "What happens with the job's output.";
        user: Account = "user", Nothing, "P9",
            "The user the process runs as, by name or number.";
        group: Account = "group", Nothing, "P9",
            "The group the process runs as, by name or number.";
        cwd: Text = "cwd", Nothing, "P9",
            "The directory the process starts in.";
        env: TextMap = "env", Nothing, "P9",
            "Variables for the process beside the supervisor's own.";
        umask: Mode = "umask", Nothing, "P9",
            "The mask for the permissions of new files, in octal digits.";
        limits: Limits = "limits", Nothing, "P9",
            "Resource limits by name, such as `nofile` or `core`: a number or `unlimited` for soft and hard, or `[soft, hard]`.";
        no_new_privileges: Flag = "noNewPrivileges", Is("false"), "P9",
            "Whether the process and its children can never gain privileges.";
    }
}

section! {
    /// A job's `when`.
    pub struct WhenFields = "`when`", "`when`", any_case,
        "What starts a job: an event (`once` or `each`), an interval, a signal, or several events together." {
        source: Text = "source", Says("`global`"), "W2, W3, E1",
            "Where the event comes from: a job, `watch.NAME`, `SIGHUP` or `SIGUSR2`. Not needed for the global events.";
        once: EventOrBool = "once", Nothing, "W2, W12",
            "The event at which the job runs, the first time only. Beside `all` or `any`: true, the default.";
        each: EventOrBool = "each", Nothing, "W2, W7, W12",
            "The event at which the job runs, every time. Beside `all` or `any`: true.";
        event: Event = "event", Nothing, "W2",
            "Another way to write `once` for a global event.";
        interval: DurationText = "interval", Nothing, "W4",
            "Runs the job at startup and then at every interval; at least 1 ms.";
        timeout: DurationText = "timeout", Nothing, "W5",
            "How long the job waits to be started before it gives up.";
        all: ListOf<ConditionFields> = "all", Nothing, "W12",
            "Runs the job when all of these hold.";
        any: ListOf<ConditionFields> = "any", Nothing, "W12",
            "Runs the job at any of these.";
    }
}

section! {
    /// One condition of `all` or `any`.
    pub struct ConditionFields = "a condition", "A condition of `all` or `any`", any_case,
        "An event that counts towards a job's start." {
        source: Text = "source", Says("`global`"), "W12",
            "Where the event comes from, as in `when.source`.";
        event: Event = "event", Says("for a signal, that signal"), "W12",
            "The event.";
    }
}

section! {
    /// A job's `restartBackoff`.
    pub struct BackoffFields = "`restartBackoff`", "`restartBackoff`", any_case,
        "The first restart is at once; while runs keep ending early, the delay doubles." {
        initial: DurationText = "initial", Is("\"100ms\""), "W8",
            "The first delay.";
        max: DurationText = "max", Is("\"10s\""), "W8",
            "The longest delay.";
        reset: DurationText = "reset", Is("\"10s\""), "W8",
            "A run that lasted longer than this starts the count anew.";
    }
}

section! {
    /// A check of a job's health.
    pub struct HealthFields = "`health`", "`health`", any_case,
        "A check of a job's health. Without `exec`, `http` and `tcp` the job counts as healthy while it runs." {
        name: Text = "name", Says("`check.JOB`"), "H2",
            "The check's name in logs.";
        exec: Exec = "exec", Nothing, "H1",
            "A program that exits with 0 when the job is healthy.";
        http: HttpUrl = "http", Nothing, "H5",
            "A URL that answers with 2xx or 3xx when the job is healthy.";
        tcp: TcpAddress = "tcp", Nothing, "H5",
            "An address that accepts a connection when the job is healthy.";
        interval: Seconds = "interval", Required, "H1, H3",
            "The time between two checks.";
        ttl: Seconds = "ttl", Required, "H1, H6",
            "How long the catalog trusts a passed check; longer than `interval`.";
        timeout: DurationText = "timeout", Says("`interval`"), "H1, P5",
            "How long one check may take.";
        heartbeat: Seconds = "heartbeat", Says("`interval`"), "H6",
            "The pace of heartbeats to the catalog while the job is healthy.";
        failures: Whole<1, 1_000_000> = "failures", Is("1"), "H8",
            "How many failed checks in a row make the job unhealthy.";
        on_unhealthy: OneOf<OnUnhealthy> = "onUnhealthy", Is("\"report\""), "H8",
            "`restart` restarts the job when it becomes unhealthy.";
        logging: Object<JobLoggingFields> = "logging", Nothing, "L2",
            "What happens with the check's output.";
    }
}

section! {
    /// `logging` of a job or a check.
    pub struct JobLoggingFields = "`logging` of a job", "`logging` of a job or a check", any_case,
        "What happens with the output of a process. Level and format are set once, at the top of the file." {
        raw: Flag = "raw", Is("false"), "L2",
            "Whether the output goes straight to the supervisor's own streams, not through the log.";
    }
}

section! {
    /// `consul` of a job.
    pub struct JobConsulFields = "`consul` of a job", "`consul` of a job", any_case,
        "Settings of the service that only Consul has." {
        enable_tag_override: Flag = "enableTagOverride", Is("false"), "D3",
            "Whether others may change the service's tags.";
        deregister_after: DurationWithUnit = "deregisterCriticalServiceAfter", Nothing, "D3",
            "When Consul drops the service after it has turned critical, such as \"10m\".";
    }
}

section! {
    /// A watch.
    pub struct WatchFields = "a watch", "A watch", any_case,
        "A service of the catalog to follow. Its events come from `watch.NAME`." {
        name: Text = "name", Required, "D7, D9",
            "The service. It matches `^[a-z][a-zA-Z0-9-]+$`.";
        interval: Seconds = "interval", Required, "D7",
            "The longest time between two looks; a change is seen at once.";
        tag: TextOrUnset = "tag", Nothing, "D7",
            "Only instances with this tag count.";
        dc: TextOrUnset = "dc", Nothing, "D7",
            "The data centre to ask.";
    }
}

section! {
    /// `telemetry`.
    pub struct TelemetryFields = "`telemetry`", "`telemetry`", any_case,
        "The HTTP server with metrics and status, advertised as the job `containerpilot`." {
        port: Port = "port", Is("9090"), "T1",
            "The port it listens on; with 0 any free port, and then it is not advertised.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "T1, D6",
            "Where its address is taken from, as for a job; the first match wins.";
        tags: Words = "tags", Nothing, "T1",
            "Its tags in the catalog; the version is added.";
        metrics: ListOf<MetricFields> = "metrics", Nothing, "T2",
            "The metrics that jobs may send with `putmetric`.";
    }
}

section! {
    /// A metric.
    pub struct MetricFields = "a metric", "A metric", any_case,
        "A metric that jobs may send. Its full name is namespace, subsystem and name, joined by `_`." {
        namespace: Text = "namespace", Nothing, "T2",
            "The first part of the name.";
        subsystem: Text = "subsystem", Nothing, "T2",
            "The second part of the name.";
        name: Text = "name", Nothing, "T2",
            "The last part of the name.";
        help: Text = "help", Nothing, "T2",
            "What the metric is about.";
        kind: OneOf<MetricType> = "type", Required, "T2",
            "How values are kept: added, set, counted in buckets, or as quantiles.";
        exec: Exec = "exec", Nothing, "T2, C8",
            "A program that measures it: its output is a number, the value. Without it, values come by `putmetric` only.";
        interval: Seconds = "interval", Nothing, "T2, C8",
            "The time between two runs of `exec`; the first is at startup.";
        timeout: DurationText = "timeout", Says("`interval`"), "T2, C8",
            "How long one run of `exec` may take.";
        buckets: Numbers = "buckets", Says("Prometheus' own"), "T2",
            "The upper bounds of a histogram's buckets, rising.";
    }
}

section! {
    /// A coprocess.
    pub struct CoprocessFields = "a coprocess", "A coprocess", any_case,
        "A process that runs alongside the jobs and is secondary to them. It starts before them (if there is a job named `preStart`, when that has exited), is stopped after them, and never ends the container." {
        command: Exec = "command", Required, "C6, P8",
            "The program and its arguments.";
        name: TextOrUnset = "name", Says("the command"), "C6",
            "A name for the log.";
        restarts: RestartLimit = "restarts", Is("\"never\""), "C6",
            "How often it is started again when it exits.";
    }
}
