//! The table of fields of ContainerPilot 2 files (C8).

use crate::decode::DefaultValue::{Is, None as Nothing, Required, Says};
use crate::decode::{DecodeContext, Shape, ValueType};
use crate::fields::{ConsulFields, CoprocessFields, JobConsulFields, LoggingFields};
use crate::json5::Node;
use crate::section;
use crate::values::{
    DurationText, Exec, Interfaces, ListOf, MetricType, Object, ObjectOrText, OneOf, Port, Seconds,
    SecondsOrUnset, Text, TextOrUnset, Whole, Words,
};

/// A catalog that is not supported.
pub struct Etcd;

impl ValueType for Etcd {
    type Value = ();
    const SHAPE: Shape = Shape::Map;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<()> {
        let help = "use Consul, for example consul: \"localhost:8500\"";
        cx.error(node.span, format!("`{key}` is not supported"), help);
        None
    }
}

section! {
    /// The whole file.
    pub struct LegacyFields = "a ContainerPilot 2 configuration", "ContainerPilot 2: the configuration", exact,
        "The top-level keys of a ContainerPilot 2 file. The main program is on the command line." {
        consul: ObjectOrText<ConsulFields> = "consul", Says("the embedded catalog"), "C8, D1",
            "The Consul agent: `host:port`, a URL or an object.";
        logging: Object<LoggingFields> = "logging", Is("{}"), "C8, L1",
            "Level, format and output of the log.";
        stop_timeout: SecondsOrUnset = "stopTimeout", Is("5"), "C8, S4",
            "How long the main program may take to exit before it gets SIGKILL; -1 sends SIGKILL at once.";
        pre_start: Exec = "preStart", Nothing, "C8",
            "Runs before everything else. If it fails, the container exits with its exit code.";
        on_start: Exec = "onStart", Nothing, "C8",
            "An old name of `preStart`, which wins if both are given.";
        pre_stop: Exec = "preStop", Nothing, "C8, S2",
            "Runs before the main program gets its stop signal.";
        post_stop: Exec = "postStop", Nothing, "C8, S3",
            "Runs after the main program has exited.";
        services: ListOf<LegacyServiceFields> = "services", Nothing, "C8, W11",
            "The services of this container.";
        backends: ListOf<BackendFields> = "backends", Nothing, "C8, D7",
            "The services in the catalog to watch for changes.";
        tasks: ListOf<TaskFields> = "tasks", Nothing, "C8, W4",
            "Periodic tasks.";
        coprocesses: ListOf<CoprocessFields> = "coprocesses", Nothing, "C8, C6",
            "Sidecar processes that run beside the main program.";
        etcd: Etcd = "etcd", Nothing, "C8",
            "The other catalog of version 2, which is not supported any more.";
        telemetry: Object<LegacyTelemetryFields> = "telemetry", Nothing, "C8, T1",
            "The telemetry server, which Prometheus can scrape.";
    }
}

section! {
    /// A service.
    pub struct LegacyServiceFields = "a service", "ContainerPilot 2: a service", any_case,
        "A service in this container that is checked and advertised in the catalog." {
        name: Text = "name", Required, "C8, D9",
            "The name in the catalog. It must match `^[a-z][a-zA-Z0-9-]+$`.";
        port: Whole<1, 65535> = "port", Required, "C8, D3",
            "The port of the service.";
        health: Exec = "health", Says("none: it always passes"), "C8, H1",
            "A program that exits with code 0 when the service is healthy.";
        poll: Seconds = "poll", Required, "C8, H1",
            "The interval between checks.";
        ttl: Seconds = "ttl", Required, "C8, H6",
            "How long the service stays healthy in the catalog after a passed check; longer than `poll`.";
        timeout: DurationText = "timeout", Says("`poll`"), "C8, P5",
            "Timeout of one check.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "C8, D6",
            "The interface or network of the advertised address. The first match is used.";
        tags: Words = "tags", Nothing, "C8, D3",
            "Its tags in the catalog.";
        consul: Object<JobConsulFields> = "consul", Nothing, "C8, D3",
            "Settings of the service that are specific to Consul.";
    }
}

section! {
    /// A backend.
    pub struct BackendFields = "a backend", "ContainerPilot 2: a backend", any_case,
        "A service in the catalog, and the program that runs when its instances change." {
        name: Text = "name", Required, "C8, D9",
            "The name of the service. It must match `^[a-z][a-zA-Z0-9-]+$`.";
        poll: Seconds = "poll", Required, "C8, D7",
            "The catalog is polled at least this often; a change is detected at once.";
        on_change: Exec = "onChange", Required, "C8",
            "Runs when the healthy instances change.";
        tag: TextOrUnset = "tag", Nothing, "C8, D7",
            "Watches only instances with this tag.";
        timeout: DurationText = "timeout", Says("none"), "C8, P5",
            "Timeout of `onChange`, after which it is killed.";
    }
}

section! {
    /// A task.
    pub struct TaskFields = "a task", "ContainerPilot 2: a task", any_case,
        "A periodic task." {
        name: TextOrUnset = "name", Says("the command"), "C8",
            "Its name in the log.";
        command: Exec = "command", Required, "C8, P8",
            "The program and its arguments.";
        frequency: DurationText = "frequency", Required, "C8, W4",
            "The interval between runs; at least 1 ms.";
        timeout: DurationText = "timeout", Says("`frequency`"), "C8, P5",
            "Timeout of one run, after which it is killed; at least 1 ms.";
    }
}

section! {
    /// `telemetry`.
    pub struct LegacyTelemetryFields = "`telemetry`", "ContainerPilot 2: `telemetry`", any_case,
        "The HTTP server for metrics, which is advertised as the service `containerpilot`." {
        port: Port = "port", Is("9090"), "C8, T1",
            "The port of the server.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "C8, D6",
            "The interface or network of its address. The first match is used.";
        tags: Words = "tags", Nothing, "C8, T1",
            "Its tags in the catalog, in addition to the version of containerpilot.";
        sensors: ListOf<SensorFields> = "sensors", Nothing, "C8, T2",
            "The metrics, and the programs that measure them.";
    }
}

section! {
    /// A sensor.
    pub struct SensorFields = "a sensor", "ContainerPilot 2: a sensor", any_case,
        "A metric, and the program that measures it. Its full name is namespace, subsystem and name, joined by `_`." {
        namespace: Text = "namespace", Nothing, "C8, T2",
            "The first part of the name.";
        subsystem: Text = "subsystem", Nothing, "C8, T2",
            "The second part of the name.";
        name: Text = "name", Required, "C8, T2",
            "The last part of the name.";
        help: Text = "help", Nothing, "C8, T2",
            "The description of the metric.";
        kind: OneOf<MetricType> = "type", Required, "C8, T2",
            "The Prometheus type of the metric.";
        poll: Seconds = "poll", Required, "C8, T2",
            "The interval between measurements.";
        check: Exec = "check", Required, "C8, T2",
            "A program that prints the value.";
        timeout: DurationText = "timeout", Says("`poll`"), "C8, P5",
            "Timeout of one measurement.";
    }
}
