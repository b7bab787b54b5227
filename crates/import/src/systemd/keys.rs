//! What is known about the keys of a unit.

use crate::document::Value;
use crate::durations::Span;

/// The directories that systemd creates: key, root, variable.
pub(crate) const DIRECTORIES: [(&str, &str, &str); 5] = [
    ("RuntimeDirectory", "/run", "RUNTIME_DIRECTORY"),
    ("StateDirectory", "/var/lib", "STATE_DIRECTORY"),
    ("CacheDirectory", "/var/cache", "CACHE_DIRECTORY"),
    ("LogsDirectory", "/var/log", "LOGS_DIRECTORY"),
    ("ConfigurationDirectory", "/etc", "CONFIGURATION_DIRECTORY"),
];

/// What the number of a limit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Count,
    Bytes,
    Seconds,
    Micros,
}

/// The resource limits.
pub(crate) const LIMITS: [(&str, Base); 16] = [
    ("as", Base::Bytes),
    ("core", Base::Bytes),
    ("cpu", Base::Seconds),
    ("data", Base::Bytes),
    ("fsize", Base::Bytes),
    ("locks", Base::Count),
    ("memlock", Base::Bytes),
    ("msgqueue", Base::Bytes),
    ("nice", Base::Count),
    ("nofile", Base::Count),
    ("nproc", Base::Count),
    ("rss", Base::Bytes),
    ("rtprio", Base::Count),
    ("rttime", Base::Micros),
    ("sigpending", Base::Count),
    ("stack", Base::Bytes),
];

/// The number of a limit.
pub(crate) fn limit(text: &str, base: Base) -> Option<Value> {
    if text == "infinity" {
        return Some("unlimited".into());
    }
    let number = match base {
        Base::Count => text.parse().ok()?,
        Base::Bytes => {
            let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'B']);
            let unit = text.strip_prefix(digits)?.trim_end_matches('B');
            let power = ["", "K", "M", "G", "T"].iter().position(|known| *known == unit)?;
            let factor = 1024_u64.checked_pow(u32::try_from(power).ok()?)?;
            digits.parse::<u64>().ok()?.checked_mul(factor)?
        }
        Base::Seconds | Base::Micros => match (Span::parse(text)?, text.parse::<u64>()) {
            (_, Ok(number)) => number,
            (Span::Finite(limit), _) => {
                let unit = if base == Base::Micros { 1 } else { 1_000_000 };
                u64::try_from(limit.as_micros().div_ceil(unit)).ok()?
            }
            (Span::Infinity, _) => return Some("unlimited".into()),
        },
    };
    (i64::try_from(number).is_ok()).then(|| number.into())
}

/// Keys of `[Unit]`, `[Service]`, `[Install]` and `[Timer]` that become something, or that are not needed here.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "Unit",
        &[
            "Description",
            "Documentation",
            "After",
            "Before",
            "Requires",
            "Requisite",
            "Wants",
            "BindsTo",
            "PartOf",
            "Conflicts",
            "Upholds",
            "OnFailure",
            "OnSuccess",
            "StartLimitBurst",
            "StartLimitIntervalSec",
            "StartLimitInterval",
            "StartLimitAction",
            "FailureAction",
            "SuccessAction",
            "DefaultDependencies",
            "SourcePath",
        ],
    ),
    (
        "Service",
        &[
            "Type",
            "RemainAfterExit",
            "ExecStart",
            "ExecStartPre",
            "ExecStartPost",
            "ExecStop",
            "ExecStopPost",
            "ExecReload",
            "ExecCondition",
            "Restart",
            "RestartSec",
            "RestartSteps",
            "RestartMaxDelaySec",
            "StartLimitBurst",
            "StartLimitInterval",
            "SuccessExitStatus",
            "RestartPreventExitStatus",
            "TimeoutStartSec",
            "TimeoutStopSec",
            "TimeoutSec",
            "RuntimeMaxSec",
            "KillSignal",
            "KillMode",
            "User",
            "Group",
            "WorkingDirectory",
            "UMask",
            "Nice",
            "OOMScoreAdjust",
            "Environment",
            "EnvironmentFile",
            "PassEnvironment",
            "LoadCredential",
            "StandardOutput",
            "StandardError",
            "SyslogIdentifier",
            "WatchdogSec",
            "NotifyAccess",
            "AmbientCapabilities",
            "CapabilityBoundingSet",
            "NoNewPrivileges",
            "ReloadSignal",
            "RuntimeDirectory",
            "StateDirectory",
            "CacheDirectory",
            "LogsDirectory",
            "ConfigurationDirectory",
            "RuntimeDirectoryMode",
            "StateDirectoryMode",
            "CacheDirectoryMode",
            "LogsDirectoryMode",
            "ConfigurationDirectoryMode",
            "RuntimeDirectoryPreserve",
            "BusName",
        ],
    ),
    ("Install", &["WantedBy", "RequiredBy", "UpheldBy", "Alias", "Also", "DefaultInstance"]),
    (
        "Timer",
        &[
            "OnCalendar",
            "OnBootSec",
            "OnStartupSec",
            "OnActiveSec",
            "OnUnitActiveSec",
            "OnUnitInactiveSec",
            "Unit",
            "AccuracySec",
            "Persistent",
            "RandomizedDelaySec",
            "RandomizedOffsetSec",
            "RemainAfterElapse",
        ],
    ),
];

/// The keys of `[Unit]` that name other units. They have the values of all lines, and an empty value does not reset them.
const DEPENDENCIES: &[&str] = &[
    "After",
    "Before",
    "Requires",
    "Requisite",
    "Wants",
    "BindsTo",
    "PartOf",
    "Conflicts",
    "Upholds",
    "OnFailure",
    "OnSuccess",
];

/// Other keys that have the values of all lines.
const LISTS: &[&str] = &[
    "Documentation",
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecStop",
    "ExecStopPost",
    "ExecReload",
    "ExecCondition",
    "SuccessExitStatus",
    "RestartPreventExitStatus",
    "Environment",
    "EnvironmentFile",
    "PassEnvironment",
    "LoadCredential",
    "AmbientCapabilities",
    "CapabilityBoundingSet",
    "RuntimeDirectory",
    "StateDirectory",
    "CacheDirectory",
    "LogsDirectory",
    "ConfigurationDirectory",
];

/// Whether the last of several lines with this key counts.
pub(crate) fn is_single(section: &str, key: &str) -> bool {
    let listed = DEPENDENCIES.contains(&key) || LISTS.contains(&key) || list_of(section, key) != key;
    // All lines of a key without an equivalent are listed.
    section != "Install" && !listed && inexact(section, key).is_none()
}

/// Whether an empty value removes the earlier values. An empty `CapabilityBoundingSet=` is a set without capabilities.
pub(crate) fn can_be_reset(section: &str, key: &str) -> bool {
    !(section == "Unit" && DEPENDENCIES.contains(&key)) && key != "CapabilityBoundingSet"
}

/// The list that a key belongs to: all conditions are one list, and so are all times of a timer.
pub(crate) fn list_of<'a>(section: &str, key: &'a str) -> &'a str {
    match section {
        "Unit" if key.starts_with("Condition") => "Condition",
        "Unit" if key.starts_with("Assert") => "Assert",
        "Timer" if key.starts_with("On") => "On",
        _ => key,
    }
}

/// Beginnings of the keys that isolate a process from the machine, which is what a container does.
const SANDBOX: &[&str] = &[
    "Protect",
    "Private",
    "ReadWrite",
    "ReadOnly",
    "Inaccessible",
    "NoExecPaths",
    "ExecPaths",
    "Bind",
    "TemporaryFileSystem",
    "MountAPIVFS",
    "MountFlags",
    "MountImages",
    "RootDirectory",
    "RootImage",
    "RootHash",
    "Restrict",
    "SystemCall",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "SecureBits",
    "RemoveIPC",
    "ProcSubset",
    "KeyringMode",
    "AppArmorProfile",
    "SELinuxContext",
    "SmackProcessLabel",
    "Device",
    "IPAddress",
    "SocketBind",
    "NetworkNamespacePath",
    "ExtensionImages",
    "ExtensionDirectories",
];

/// Beginnings of the keys of cgroups and of the scheduler.
const RESOURCES: &[&str] = &[
    "Memory",
    "CPU",
    "IO",
    "BlockIO",
    "Tasks",
    "Slice",
    "Delegate",
    "Startup",
    "Allowed",
    "ManagedOOM",
    "NUMA",
    "DisableControllers",
    "OOMPolicy",
];

/// Why a key is left out; `None` if it becomes something, or is not needed here.
pub(crate) fn inexact(section: &str, key: &str) -> Option<&'static str> {
    let starts = |with: &[&str]| with.iter().any(|start| key.starts_with(start));
    let known = KNOWN.iter().find(|(name, _)| *name == section);
    if section.starts_with("X-") || key.starts_with("X-") {
        return None;
    }
    let Some((_, keys)) = known else {
        return Some("this section is unknown");
    };
    let limit = || key.strip_prefix("Limit").map(str::to_ascii_lowercase);
    match section {
        _ if keys.contains(&key) => None,
        "Service" if limit().is_some_and(|name| LIMITS.iter().any(|(known, _)| *known == name)) => None,
        "Service" => Some(match key {
            "PIDFile" => "the supervisor knows the process: start the program in the foreground",
            "SupplementaryGroups" => "add the user to the group in /etc/group of the image",
            "SendSIGKILL" => "SIGKILL always follows when the time is over",
            "FinalKillSignal" | "SendSIGHUP" | "RestartKillSignal" | "WatchdogSignal" => {
                "write an escalation instead: `stopSignal: [\"TERM\", \"10s\", \"QUIT\"]`"
            }
            "UnsetEnvironment" => "every process has the environment of the container",
            "StandardInput" | "StandardInputText" | "StandardInputData" => "stdin of a job is /dev/null",
            "SetCredential" | "SetCredentialEncrypted" | "LoadCredentialEncrypted" | "ImportCredential" => {
                "write the secret to a file, and name it in `secrets`"
            }
            "RestartForceExitStatus" => {
                "`restarts` with `restartOn` decides after which exits it is restarted"
            }
            "RootDirectoryStartOnly" | "PermissionsStartOnly" => "give each job its `user`",
            "Sockets" => "sockets are not passed here: let the program open them",
            "DynamicUser" => "no user is created here: the job runs as root unless `user` is set",
            "IgnoreSIGPIPE" => "a job starts with no signal ignored",
            _ if starts(SANDBOX) => "isolation belongs to the container: set it there",
            _ if starts(RESOURCES) => "limits of memory, CPU and I/O belong to the container: set them there",
            _ => "it has no equivalent",
        }),
        "Unit" if key.starts_with("Condition") || key.starts_with("Assert") => None,
        "Unit" => Some(match key {
            "RequiresMountsFor" | "WantsMountsFor" => "mounts belong to the container: set them there",
            "OnFailureJobMode" | "OnSuccessJobMode" => "the job is started beside the others",
            "PropagatesReloadTo" | "ReloadPropagatedFrom" => "reload each job by itself",
            "PropagatesStopTo" | "StopPropagatedFrom" => {
                "use `requires: [{ source, bind: true }]` in the other job"
            }
            _ => "it has no equivalent",
        }),
        _ => Some("it has no equivalent"),
    }
}
