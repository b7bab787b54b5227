//! The table of fields of ContainerPilot 2 files (C8), in the form of [`crate::fields`].

use crate::decode::DefaultValue::{Is, None as Nothing, Required, Says};
use crate::decode::{DecodeContext, Shape, ValueType};
use crate::fields::{ConsulFields, CoprocessFields, JobConsulFields, LoggingFields};
use crate::json5::Node;
use crate::section;
use crate::values::{
    DurationText, Exec, Interfaces, ListOf, MetricType, Object, ObjectOrText, OneOf, Port, Seconds,
    SecondsOrUnset, Text, TextOrUnset, Whole, Words,
};

/// A catalog that is not spoken to.
pub struct Etcd;

impl ValueType for Etcd {
    type Value = ();
    const SHAPE: Shape = Shape::Map;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<()> {
        let help = "containerpilot speaks to Consul only: write consul: \"localhost:8500\"";
        cx.error(node.span, format!("`{key}` is not spoken to"), help);
        None
    }
}

section! {
    /// The whole file.
    pub struct LegacyFields = "a ContainerPilot 2 configuration", "ContainerPilot 2: the configuration", exact,
        "The keys at the top of a ContainerPilot 2 file. The main program is named on the command line." {
        consul: ObjectOrText<ConsulFields> = "consul", Says("the embedded catalog"), "C8, D1",
            "The Consul agent: `host:port`, a URL, or an object.";
        logging: Object<LoggingFields> = "logging", Is("{}"), "C8, L1",
            "How and where the log is written.";
        stop_timeout: SecondsOrUnset = "stopTimeout", Is("5"), "C8, S4",
            "How long the main program has to end before it is killed; -1 kills it at once.";
        pre_start: Exec = "preStart", Nothing, "C8",
            "Runs before everything else; if it fails, the container ends with its code.";
        pre_stop: Exec = "preStop", Nothing, "C8, S2",
            "Runs when the main program is to stop, before it is signalled.";
        post_stop: Exec = "postStop", Nothing, "C8, S3",
            "Runs when the main program has ended.";
        services: ListOf<ServiceFields> = "services", Nothing, "C8, W11",
            "The services of this container.";
        backends: ListOf<BackendFields> = "backends", Nothing, "C8, D7",
            "The services elsewhere that are followed.";
        tasks: ListOf<TaskFields> = "tasks", Nothing, "C8, W4",
            "What runs again and again.";
        coprocesses: ListOf<CoprocessFields> = "coprocesses", Nothing, "C8, C6",
            "Processes that run alongside the main program.";
        etcd: Etcd = "etcd", Nothing, "C8",
            "The other catalog of version 2, which is refused: containerpilot speaks to Consul only.";
        telemetry: Object<LegacyTelemetryFields> = "telemetry", Nothing, "C8, T1",
            "The telemetry server, which Prometheus can scrape.";
    }
}

section! {
    /// A service.
    pub struct ServiceFields = "a service", "ContainerPilot 2: a service", any_case,
        "Something in this container that is checked and advertised in the catalog." {
        name: Text = "name", Required, "C8, D9",
            "The name in the catalog. It matches `^[a-z][a-zA-Z0-9-]+$`.";
        port: Whole<1, 65535> = "port", Required, "C8, D3",
            "The port it listens on.";
        health: Exec = "health", Says("none: it always passes"), "C8, H1",
            "A program that exits with 0 when the service is healthy.";
        poll: Seconds = "poll", Required, "C8, H1",
            "The time between two checks.";
        ttl: Seconds = "ttl", Required, "C8, H6",
            "How long the catalog trusts a passed check; longer than `poll`.";
        timeout: DurationText = "timeout", Says("`poll`"), "C8, P5",
            "How long one check may take.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "C8, D6",
            "Where the advertised address is taken from; the first match wins.";
        tags: Words = "tags", Nothing, "C8, D3",
            "Its tags in the catalog.";
        consul: Object<JobConsulFields> = "consul", Nothing, "C8, D3",
            "Settings of the service that only Consul has.";
    }
}

section! {
    /// A backend.
    pub struct BackendFields = "a backend", "ContainerPilot 2: a backend", any_case,
        "A service elsewhere, and what runs when its instances change." {
        name: Text = "name", Required, "C8, D9",
            "The service. It matches `^[a-z][a-zA-Z0-9-]+$`.";
        poll: Seconds = "poll", Required, "C8, D7",
            "The longest time between two looks; a change is seen at once.";
        on_change: Exec = "onChange", Required, "C8",
            "Runs at every change of the healthy instances.";
        tag: TextOrUnset = "tag", Nothing, "C8, D7",
            "Only instances with this tag count.";
        timeout: DurationText = "timeout", Says("none"), "C8, P5",
            "How long `onChange` may take before it is killed.";
    }
}

section! {
    /// A task.
    pub struct TaskFields = "a task", "ContainerPilot 2: a task", any_case,
        "Something that runs again and again." {
        name: TextOrUnset = "name", Says("the command"), "C8",
            "A name for the log.";
        command: Exec = "command", Required, "C8, P8",
            "The program and its arguments.";
        frequency: DurationText = "frequency", Required, "C8, W4",
            "The time between two runs; at least 1 ms.";
        timeout: DurationText = "timeout", Says("`frequency`"), "C8, P5",
            "How long one run may take before it is killed; at least 1 ms.";
    }
}

section! {
    /// `telemetry`.
    pub struct LegacyTelemetryFields = "`telemetry`", "ContainerPilot 2: `telemetry`", any_case,
        "The HTTP server with metrics, advertised as the service `containerpilot`." {
        port: Port = "port", Is("9090"), "C8, T1",
            "The port it listens on.";
        interfaces: Interfaces = "interfaces", Is("[\"eth0:inet\", \"inet\"]"), "C8, D6",
            "Where its address is taken from; the first match wins.";
        tags: Words = "tags", Nothing, "C8, T1",
            "Its tags in the catalog; the version is added.";
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
            "What the metric is about.";
        kind: OneOf<MetricType> = "type", Required, "C8, T2",
            "How values are kept: added, set, counted in buckets, or as quantiles.";
        poll: Seconds = "poll", Required, "C8, T2",
            "The time between two measurements.";
        check: Exec = "check", Required, "C8, T2",
            "A program whose output is a number: the value.";
        timeout: DurationText = "timeout", Says("`poll`"), "C8, P5",
            "How long one measurement may take.";
    }
}
