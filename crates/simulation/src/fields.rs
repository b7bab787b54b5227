//! The fields of a scenario, in the same form as the fields of a configuration.

use containerpilot_config::decode::DefaultValue::{Is, None as Nothing, Required, Says};
use containerpilot_config::section;
use containerpilot_config::values::{
    DurationOrNever, DurationText, Flag, ListOf, Object, OneOf, OneOrMany, SignalName, SignalNames, Text,
    Timestamp, Whole,
};

use crate::scenario::{CheckAnswer, ExpectedState, StartFailure};

section! {
    /// The whole file.
    pub struct ScenarioFields = "the scenario", "The scenario", any_case,
        "What the world does while the configuration is simulated, and what is expected. Every key is optional. Times count from the start of the simulation." {
        until: DurationText = "until", Says("1m, or 30s after the latest time in the scenario"), "X4",
            "When the simulation ends. A supervisor that still runs then receives SIGTERM.";
        at: Timestamp = "at", Says("`2026-01-01T00:00:00Z`"), "X4, W15",
            "The system clock at the start, for jobs with `when.cron`: a date and time with an offset or `Z`.";
        jobs: ListOf<ScriptFields> = "jobs", Nothing, "X4",
            "What the programs and checks of jobs do.";
        watches: ListOf<WatchFields> = "watches", Nothing, "X4",
            "What watches see.";
        locks: ListOf<LockFields> = "locks", Nothing, "X4, D14",
            "When locks in Consul are acquired and lost.";
        files: ListOf<FileFields> = "files", Nothing, "X4, D15",
            "What goes wrong with rendered files.";
        catalog: Object<CatalogFields> = "catalog", Nothing, "X4, D5",
            "What goes wrong with Consul.";
        happens: ListOf<ActionFields> = "happens", Nothing, "X4",
            "What is done to the supervisor: signals, maintenance mode, manual commands, reloads, a clock that is set.";
        expect: ListOf<ExpectFields> = "expect", Nothing, "X4",
            "What must happen.";
    }
}

section! {
    /// One of `jobs`.
    pub struct ScriptFields = "a job's script", "A job's script", any_case,
        "What the program and the checks of a job do. The defaults are those of a service or a task; see `lasts`." {
        name: Text = "name", Required, "X4",
            "The name of the job in the configuration.";
        runs: OneOrMany<RunFields> = "runs", Nothing, "X4",
            "Its runs, in order. The last one is repeated.";
        checks: OneOrMany<CheckFields> = "checks", Nothing, "X4",
            "The results of its checks at certain times. If several apply, the last one counts.";
    }
}

section! {
    /// One of `runs`.
    pub struct RunFields = "a run", "A run", any_case,
        "One run of a job's program." {
        starts_in: DurationOrNever = "startsIn", Is("0"), "X4, P3",
            "How long the process takes to execute its program. With `never`, the start times out.";
        fails: OneOf<StartFailure> = "fails", Nothing, "X4, P3",
            "Why the program cannot be started.";
        lasts: DurationOrNever = "lasts", Says("`never` for a service, 1s for a task"), "X4",
            "How long it runs before it exits by itself. A job is a task if other jobs wait for its exit, or if it runs at an interval, on every event, or as a stop hook, and if it has no health checks. Every other job is a service.";
        exit: Whole<0, 255> = "exit", Is("0"), "X4",
            "Its exit code then.";
        signal: SignalName = "signal", Nothing, "X4",
            "The signal that kills it, instead of `exit`.";
        stops_in: DurationOrNever = "stopsIn", Is("\"100ms\""), "X4",
            "How long it takes to exit on a stop signal. With `never` it ignores every signal except SIGKILL.";
        stop_exit: Whole<0, 255> = "stopExit", Says("it is killed by the signal"), "X4",
            "Its exit code on a stop signal.";
        ignores: SignalNames = "ignores", Nothing, "X4",
            "The signals that it goes on after, such as SIGHUP for a program that reads its configuration again. Other signals than SIGCHLD, SIGCONT, SIGURG and SIGWINCH end it.";
        outlived_for: DurationOrNever = "outlivedFor", Is("0"), "X4, S14",
            "How long other processes of its process group go on after its exit, as those of a shell without `exec` do. With `never` only SIGKILL ends them.";
        healthy_after: DurationOrNever = "healthyAfter", Is("0"), "X4",
            "When its checks start to pass, counted from its start.";
        ready: DurationOrNever = "ready", Is("0"), "X4, H11",
            "When it says that it is ready, counted from its start, if its job has `ready`.";
        drain: DurationOrNever = "drain", Is("\"100ms\""), "X4, S11",
            "How long its drain program takes, if its job has one. With `never` it runs until its timeout.";
        drain_exit: Whole<0, 255> = "drainExit", Is("0"), "X4, S11",
            "The exit code of its drain program.";
        watchdog_stops: DurationOrNever = "watchdogStops", Is("\"never\""), "X4, H12",
            "When it stops to send WATCHDOG=1, counted from its start, if its job has a `watchdog`.";
        checks: OneOrMany<CheckFields> = "checks", Nothing, "X4, B5",
            "The results of checks in this run, as in `checks` of the job, but counted from the start of the run.";
    }
}

section! {
    /// One of a script's `checks`.
    pub struct CheckFields = "`checks`", "`checks`", any_case,
        "The result of checks for a while. It takes precedence over `healthyAfter`; `checks` of a job over those of a run." {
        check: Text = "check", Says("all checks of the job"), "X4",
            "The name of the check.";
        from: DurationText = "from", Is("0"), "X4",
            "The start.";
        to: DurationText = "to", Says("the end of the simulation"), "X4",
            "The end.";
        answer: OneOf<CheckAnswer> = "answer", Is("\"fail\""), "X4",
            "The result of a check that starts in this time. A check that hangs runs until its timeout.";
        takes: DurationText = "takes", Is("\"10ms\""), "X4",
            "How long it takes.";
    }
}

section! {
    /// One of `watches`.
    pub struct WatchFields = "a watch's script", "A watch's script", any_case,
        "What a watch sees. By default a watch sees the jobs of the configuration that advertise its service; if there are none, one instance after 1s. What a watch of another kind follows is there after 1s." {
        name: Text = "name", Required, "X4",
            "The name of the watch in the configuration.";
        sees: OneOrMany<ObservationFields> = "sees", Required, "X4",
            "What it sees, and when.";
    }
}

section! {
    /// One of `sees`.
    pub struct ObservationFields = "`sees`", "`sees`", any_case,
        "What a watch sees from a time on." {
        at: DurationText = "at", Is("0"), "X4",
            "When.";
        instances: Whole<0, 1000> = "instances", Is("1"), "X4, E6",
            "The number of healthy instances. With 0 the watch becomes unhealthy.";
        up: Flag = "up", Is("true"), "X4, D13",
            "Whether the file is there, or the peer responds. `false` is `instances: 0`.";
        value: Text = "value", Nothing, "X4, D13",
            "The contents of the file, or the body of the response. Another value is a change.";
        others: Flag = "others", Is("false"), "X4, E6",
            "Whether all instances, or the contents, are new, so that the watch changes even if their number does not.";
    }
}

section! {
    /// One of `locks`.
    pub struct LockFields = "a lock's script", "A lock's script", any_case,
        "When the supervisor has a lock in Consul. By default it is acquired after 1s. While Consul is away it is given up in time, and it is back when Consul is." {
        name: Text = "name", Required, "X4",
            "The name of the lock in the configuration.";
        changes: OneOrMany<LockChangeFields> = "changes", Required, "X4, D14",
            "When it is acquired and lost.";
    }
}

section! {
    /// One of `changes`.
    pub struct LockChangeFields = "`changes`", "`changes`", any_case,
        "From when on the supervisor has the lock, or does not." {
        at: DurationText = "at", Is("0"), "X4",
            "When.";
        held: Flag = "held", Is("true"), "X4, D14",
            "Whether it has the lock.";
    }
}

section! {
    /// One of `files`.
    pub struct FileFields = "a file's script", "A file's script", any_case,
        "What happens when a file is rendered and tested. By default both succeed. No template is rendered: a file has another text whenever its watches have found something else." {
        name: Text = "name", Required, "X4",
            "The name of the file in the configuration.";
        takes: DurationText = "takes", Is("\"10ms\""), "X4, D15",
            "How long a rendering takes, and then the writing of the file.";
        fails: OneOrMany<FailureFields> = "fails", Nothing, "X4, D15",
            "When its template has an error.";
        tests: OneOrMany<TestFields> = "tests", Nothing, "X4, D15",
            "The results of its test at certain times. If several apply, the last one counts.";
    }
}

section! {
    /// One of `fails`.
    pub struct FailureFields = "`fails`", "`fails`", any_case,
        "A time in which every rendering of the file fails." {
        from: DurationText = "from", Is("0"), "X4",
            "The start.";
        to: DurationText = "to", Says("the end of the simulation"), "X4",
            "The end.";
    }
}

section! {
    /// One of `tests`.
    pub struct TestFields = "`tests`", "`tests`", any_case,
        "The result of the test of a file for a while." {
        from: DurationText = "from", Is("0"), "X4",
            "The start.";
        to: DurationText = "to", Says("the end of the simulation"), "X4",
            "The end.";
        answer: OneOf<CheckAnswer> = "answer", Is("\"fail\""), "X4",
            "The result of a test that starts in this time. A test that hangs runs until its timeout.";
        takes: DurationText = "takes", Is("\"10ms\""), "X4",
            "How long it takes.";
    }
}

section! {
    /// `catalog`.
    pub struct CatalogFields = "`catalog`", "`catalog`", any_case,
        "What goes wrong with Consul. The embedded catalog is never unreachable." {
        away: OneOrMany<AwayFields> = "away", Nothing, "X4, D5",
            "When it is unreachable.";
        forgets: OneOrMany<ForgetFields> = "forgets", Nothing, "X4, D5",
            "When it loses a service, as an agent does that is restarted without its data.";
    }
}

section! {
    /// One of `away`.
    pub struct AwayFields = "`away`", "`away`", any_case,
        "A time in which Consul is unreachable." {
        from: DurationText = "from", Is("0"), "X4",
            "The start.";
        to: DurationText = "to", Says("the end of the simulation"), "X4",
            "The end.";
    }
}

section! {
    /// One of `forgets`.
    pub struct ForgetFields = "`forgets`", "`forgets`", any_case,
        "A service that Consul loses." {
        at: DurationText = "at", Required, "X4",
            "When.";
        job: Text = "job", Required, "X4",
            "The job whose service it is.";
    }
}

section! {
    /// One of `happens`.
    pub struct ActionFields = "`happens`", "`happens`", any_case,
        "Something that is done to the supervisor: `at` and one of the other keys." {
        at: DurationText = "at", Required, "X4",
            "When.";
        signal: SignalName = "signal", Nothing, "X4, S1, W3",
            "A signal to the supervisor. SIGHUP reloads the same configuration, unless a job waits for it.";
        maintenance: Flag = "maintenance", Nothing, "X4, D8",
            "Enables or disables maintenance mode.";
        clock: Timestamp = "clock", Nothing, "X4, W15",
            "Sets the system clock to a date and time with an offset, as after a sleep of the machine.";
        start: Text = "start", Nothing, "X4, X2",
            "Starts a job by hand.";
        stop: Text = "stop", Nothing, "X4, X2",
            "Stops a job by hand.";
        restart: Text = "restart", Nothing, "X4, X2",
            "Restarts a job by hand.";
        rolling_restart: Text = "rollingRestart", Nothing, "X4, W20",
            "Restarts the replicas of a job by hand, one at a time, each healthy before the next.";
        scale: Text = "scale", Nothing, "X4, W20",
            "Changes the number of replicas of a job: `NAME=NUMBER`.";
        send: SignalName = "send", Nothing, "X4, X2",
            "Sends a signal to the job in `to`.";
        to: Text = "to", Nothing, "X4, X2",
            "The job that receives the signal in `send`.";
        reload: Text = "reload", Nothing, "X4, R1",
            "Loads another configuration. The path is relative to the folder of the scenario.";
        putenv: Text = "putenv", Nothing, "X4, X1",
            "Sets a variable for processes that start later: `NAME=VALUE`. Without a value it is unset.";
    }
}

section! {
    /// One of `expect`.
    pub struct ExpectFields = "`expect`", "`expect`", any_case,
        "An expectation: one of `see`, `never`, `exit` and `job`. Only what happens before the end of the simulation counts; for `exit`, and with `of`, the shutdown at the end counts too." {
        see: Text = "see", Nothing, "X4",
            "A [moment](#moments) that happens for the first time between `after` and `before`; with `times`, this many times in between.";
        never: Text = "never", Nothing, "X4",
            "A [moment](#moments) that does not happen between `after` and `before`.";
        exit: Whole<0, 255> = "exit", Nothing, "X4, S5",
            "The exit code of the supervisor.";
        job: Text = "job", Nothing, "X4",
            "A job whose state is `is`.";
        is: OneOf<ExpectedState> = "is", Nothing, "X4",
            "The state of the job.";
        at: DurationText = "at", Says("at the end of the simulation, before the shutdown"), "X4",
            "When the job is in this state.";
        before: Text = "before", Nothing, "X4",
            "A time, or a [moment](#moments).";
        after: Text = "after", Nothing, "X4",
            "A time, or a [moment](#moments).";
        times: Whole<0, 1_000_000> = "times", Nothing, "X4",
            "How many times.";
        within: DurationText = "within", Nothing, "X4",
            "How soon it must follow each `of` between `after` and `before`.";
        of: Text = "of", Nothing, "X4",
            "The [moment](#moments) that `within` counts from.";
        why: Text = "why", Nothing, "X4",
            "Why this is expected; shown if it does not hold.";
    }
}
