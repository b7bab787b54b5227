//! The one table of a scenario's fields, made and read as that of a configuration is.

use containerpilot_config::decode::DefaultValue::{Is, None as Nothing, Required, Says};
use containerpilot_config::kinds::{
    DurationOrNever, DurationText, Flag, ListOf, Object, OneOf, OneOrMany, SignalName, Text, Whole,
};
use containerpilot_config::section;

use crate::scenario::{CheckAnswer, ExpectedState, StartFailure};

section! {
    /// The whole file.
    pub struct ScenarioFields = "the scenario", "The scenario", any_case,
        "What the world does while the configuration is rehearsed, and what is expected. Every key may be left out. Times count from the beginning." {
        until: DurationText = "until", Says("1m, or 30 s after the last thing that the scenario names"), "X4",
            "When the rehearsal ends: a container that still runs is then stopped with SIGTERM.";
        jobs: ListOf<ScriptFields> = "jobs", Nothing, "X4",
            "What the programs and the checks of jobs do.";
        watches: ListOf<WatchFields> = "watches", Nothing, "X4",
            "What watches see.";
        catalog: Object<CatalogFields> = "catalog", Nothing, "X4, D5",
            "What goes wrong with Consul.";
        happens: ListOf<ActionFields> = "happens", Nothing, "X4",
            "What is done to the supervisor: signals, maintenance, commands by hand, reloads.";
        expect: ListOf<ExpectFields> = "expect", Nothing, "X4",
            "What must come of it.";
    }
}

section! {
    /// One of `jobs`.
    pub struct ScriptFields = "a job's script", "A job's script", any_case,
        "What the programs and the checks of a job do. Where nothing is said, a program does what one of its sort usually does." {
        name: Text = "name", Required, "X4",
            "The job, as the configuration calls it.";
        runs: OneOrMany<RunFields> = "runs", Nothing, "X4",
            "Its runs: the first, the second, and so on; the last one stands for all that follow.";
        checks: OneOrMany<CheckFields> = "checks", Nothing, "X4",
            "How its checks answer at which times. Of several that fit, the last one counts.";
    }
}

section! {
    /// One of `runs`.
    pub struct RunFields = "a run", "A run", any_case,
        "One run of a job's program." {
        starts_in: DurationText = "startsIn", Is("0"), "X4",
            "How long it takes until the process is there.";
        fails: OneOf<StartFailure> = "fails", Nothing, "X4, P3",
            "The program cannot be started, and why.";
        lasts: DurationOrNever = "lasts", Says("`never` for a service, 1 s for a task"), "X4",
            "How long it runs before it ends by itself. A task is a job whose end others wait for, or that runs at an interval, at every event or before another one stops; it has no health checks.";
        exit: Whole<0, 255> = "exit", Is("0"), "X4",
            "The code it then exits with.";
        signal: SignalName = "signal", Nothing, "X4",
            "The signal it is ended by, in the place of `exit`.";
        stops_in: DurationOrNever = "stopsIn", Is("\"100ms\""), "X4",
            "How long it takes to end when it is asked to; `never` ignores every signal but SIGKILL.";
        stop_exit: Whole<0, 255> = "stopExit", Says("it is ended by the signal"), "X4",
            "The code it exits with when it was asked to end.";
        healthy_after: DurationOrNever = "healthyAfter", Is("0"), "X4",
            "From when on its checks pass, counted from its start.";
    }
}

section! {
    /// One of a script's `checks`.
    pub struct CheckFields = "`checks`", "`checks`", any_case,
        "How checks answer for a while, whatever `healthyAfter` says." {
        check: Text = "check", Says("all checks of the job"), "X4",
            "The check, by its name.";
        from: DurationText = "from", Is("0"), "X4",
            "From when on.";
        to: DurationText = "to", Says("for ever"), "X4",
            "Until when.";
        answer: OneOf<CheckAnswer> = "answer", Is("\"fail\""), "X4",
            "What comes of a check that is begun in that time; one that hangs is abort short by its timeout.";
        takes: DurationText = "takes", Is("\"10ms\""), "X4",
            "How long it takes.";
    }
}

section! {
    /// One of `watches`.
    pub struct WatchFields = "a watch's script", "A watch's script", any_case,
        "What a watch sees. A watch that has none sees the jobs of the configuration that are advertised under its name; if there are none, one instance after 1 s." {
        name: Text = "name", Required, "X4",
            "The watch, as the configuration calls it.";
        sees: OneOrMany<ObservationFields> = "sees", Required, "X4",
            "What it sees, and when.";
    }
}

section! {
    /// One of `sees`.
    pub struct ObservationFields = "`sees`", "`sees`", any_case,
        "What a watch sees from a moment on." {
        at: DurationText = "at", Is("0"), "X4",
            "When.";
        instances: Whole<0, 1000> = "instances", Is("1"), "X4, E6",
            "How many healthy instances there are; with 0, the watch becomes unhealthy.";
        others: Flag = "others", Is("false"), "X4, E6",
            "Whether they are others than before, so that the watch has changed although there are as many.";
    }
}

section! {
    /// `catalog`.
    pub struct CatalogFields = "`catalog`", "`catalog`", any_case,
        "What goes wrong with Consul. The embedded catalog is never away." {
        away: OneOrMany<AwayFields> = "away", Nothing, "X4, D5",
            "When it cannot be reached.";
        forgets: OneOrMany<ForgetFields> = "forgets", Nothing, "X4, D5",
            "When it forgets a service, as an agent that is restarted does.";
    }
}

section! {
    /// One of `away`.
    pub struct AwayFields = "`away`", "`away`", any_case,
        "A time in which Consul cannot be reached." {
        from: DurationText = "from", Is("0"), "X4",
            "From when on.";
        to: DurationText = "to", Says("for ever"), "X4",
            "Until when.";
    }
}

section! {
    /// One of `forgets`.
    pub struct ForgetFields = "`forgets`", "`forgets`", any_case,
        "A service that Consul forgets." {
        at: DurationText = "at", Required, "X4",
            "When.";
        job: Text = "job", Required, "X4",
            "The job whose service it is.";
    }
}

section! {
    /// One of `happens`.
    pub struct ActionFields = "`happens`", "`happens`", any_case,
        "Something that is done to the supervisor: `at`, and one of the others." {
        at: DurationText = "at", Required, "X4",
            "When.";
        signal: SignalName = "signal", Nothing, "X4, S1, W3",
            "A signal to the supervisor. Without a job that waits for it, SIGHUP reads the same configuration again.";
        maintenance: Flag = "maintenance", Nothing, "X4, D8",
            "Maintenance begins, or ends.";
        start: Text = "start", Nothing, "X4, X2",
            "A job is started by hand.";
        stop: Text = "stop", Nothing, "X4, X2",
            "A job is stopped by hand.";
        restart: Text = "restart", Nothing, "X4, X2",
            "A job is restarted by hand.";
        send: SignalName = "send", Nothing, "X4, X2",
            "A signal is sent to the job that `to` names.";
        to: Text = "to", Nothing, "X4, X2",
            "The job that the signal of `send` goes to.";
        reload: Text = "reload", Nothing, "X4, R1",
            "Another configuration is loaded: its path, counted from the folder of the scenario.";
    }
}

section! {
    /// One of `expect`.
    pub struct ExpectFields = "`expect`", "`expect`", any_case,
        "Something that must come of it: one of `see`, `never`, `exit` and `job`. It holds for what happens before the end of the rehearsal; `exit`, and what has an `of`, also for the stop at its end." {
        see: Text = "see", Nothing, "X4",
            "A [moment](#moments) that comes: for the first time between `after` and `before`; with `times`, so many times in between.";
        never: Text = "never", Nothing, "X4",
            "A [moment](#moments) that does not come between `after` and `before`.";
        exit: Whole<0, 255> = "exit", Nothing, "X4, S5",
            "The code with which the supervisor exits.";
        job: Text = "job", Nothing, "X4",
            "A job that is as `is` says.";
        is: OneOf<ExpectedState> = "is", Nothing, "X4",
            "How the job is.";
        at: DurationText = "at", Says("at the end of the rehearsal, before everything is stopped"), "X4",
            "When it is so.";
        before: Text = "before", Nothing, "X4",
            "A time, or a [moment](#moments).";
        after: Text = "after", Nothing, "X4",
            "A time, or a [moment](#moments).";
        times: Whole<0, 1_000_000> = "times", Nothing, "X4",
            "How often.";
        within: DurationText = "within", Nothing, "X4",
            "How soon it comes after each `of` that lies between `after` and `before`.";
        of: Text = "of", Nothing, "X4",
            "The [moment](#moments) from which `within` counts.";
        why: Text = "why", Nothing, "X4",
            "What it is good for; shown where it does not hold.";
    }
}
