//! Folders of jobs that are replaced by links to places of the supervisor (L8, D13, D15, P11).

use std::time::Instant;

use super::fixture::{Hostile, as_init_and_child};

/// What a job runs, as a user that owns `@/own`.
fn script(text: &str) -> String {
    serde_json::to_string(&["sh", "-c", text]).unwrap()
}

/// A folder and a file of root. Their names are in the test's directory, which everyone can enter.
const OF_ROOT: &str =
    "mkdir -m 755 @/root; echo hidden-text > @/root/secret; chmod 600 @/root/secret; chmod 755 @/";

#[test]
fn l8_folder_of_a_log_file_that_becomes_a_link_leads_nowhere() {
    let config = "logging: { output: '@/log' }, jobs: [{ name: 'attack', user: 'nobody',
        exec: '@/programs/swaps-log-folder.sh', logging: { file: '@/own/logs/app.log', maxSize: '4KB', keep: 3 } }]";
    as_init_and_child(|rank| {
        let mut hostile = Hostile::with_setup(rank, OF_ROOT, 5, config);
        hostile.await_file("own/done");
        hostile.await_log("`logs` on the way is a symbolic link that user 65534 can change");
        hostile.stops();
        let names = std::fs::read_dir(hostile.run.file("root")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"], "{}", hostile.log());
    });
}

#[test]
fn d13_watched_file_that_becomes_a_link_is_read_with_the_rights_of_its_owner() {
    let config = "watches: [{ name: 'watched', file: '@/own/watched' }],
        files: [{ name: 'f', from: '@/template', to: '@/out', mode: '0644' }],
        jobs: [{ name: 'attack', user: 'nobody', exec: '@/programs/swaps-watched-file.sh' },
               { name: 'env', exec: 'env', when: { source: 'watch.watched', each: 'changed' } }]";
    as_init_and_child(|rank| {
        let mut hostile = Hostile::with_setup(
            rank,
            &format!("{OF_ROOT}; echo none > @/own/watched; echo '{{{{ watch \"watched\" }}}}' > @/template"),
            5,
            config,
        );
        hostile.await_log("own/watched: permission denied");
        assert_eq!(hostile.read("out").trim(), "public");
        hostile.stops();
        assert!(!hostile.log().contains("hidden-text"), "{}", hostile.log());
    });
}

#[test]
fn d13_file_that_changes_all_the_time_is_read_and_logged_within_bounds() {
    let config = "watches: [{ name: 'flips', file: '@/own/w' }],
        jobs: [{ name: 'flip', exec: '@/programs/flips-file.sh', user: 'nobody' },
               { name: 'seen', exec: 'true', when: { source: 'watch.flips', each: 'changed' } },
               { name: 'clock', exec: 'true', when: { interval: '100ms' } }]";
    as_init_and_child(|rank| {
        let began = Instant::now();
        let mut hostile = Hostile::start(rank, 1, config);
        hostile.await_job("clock", "has run 50 times", |job| job["runs"]["success"].as_u64() >= Some(50));
        let log = hostile.log();
        let entries =
            log.lines().filter(|line| line.contains("watch.flips is ") || line.contains("seen started"));
        let (entries, most) = (entries.count() as u64, 2 * (12 + began.elapsed().as_secs()));
        assert!((3..most).contains(&entries), "{entries} of {most}");
        hostile.stops();
    });
}

#[test]
fn p11_secret_that_becomes_a_link_is_read_with_the_rights_of_its_owner() {
    let swap = script("ln -s @/root/secret @/own/token; touch @/own/done; sleep 1000");
    let config = format!(
        "jobs: [{{ name: 'attack', user: 'nobody', exec: {swap} }},
                {{ name: 'reader', user: 'nobody', exec: {}, secrets: {{ TOKEN: {{ file: '@/own/token' }} }}, restarts: 0 }}]",
        script("echo \"$TOKEN\" | tr h j")
    );
    // The link is there before the reader starts.
    let config =
        config.replace("restarts: 0 }]", "restarts: 0, when: { source: 'attack', once: 'exitFailed' } }]");
    as_init_and_child(|rank| {
        let mut hostile = Hostile::with_setup(rank, OF_ROOT, 5, &config);
        hostile.await_file("own/done");
        hostile.post("/v3/jobs/reader/start");
        hostile.await_log("own/token: permission denied");
        assert!(!hostile.log().contains("jidden"), "{}", hostile.log());
        hostile.stops();
    });
}

#[test]
fn d15_file_in_a_folder_of_a_job_is_tested_as_its_user_or_not_at_all() {
    let who = script("id -u > @/own/tested-by-$(basename $CONTAINERPILOT_FILE | cut -d. -f2)");
    let config = format!(
        "files: [{{ name: 'a', template: 'text', to: '@/own/a', test: {who} }},
                 {{ name: 'b', template: 'text', to: '@/own/b', test: {who}, user: 'nobody' }}],
         jobs: [{{ name: 'main', exec: 'sleep 1000' }}]"
    );
    as_init_and_child(|rank| {
        let mut hostile = Hostile::with_setup(rank, "chmod 755 @/", 5, &config);
        hostile.await_file("own/b");
        hostile.await_log("own/a cannot be tested in a folder in which others can replace it");
        assert_eq!(hostile.read("own/tested-by-b"), "65534\n");
        assert!(!hostile.run.file("own/tested-by-a").exists() && !hostile.run.file("own/a").exists());
        hostile.stops();
    });
}

#[test]
fn d15_file_on_a_disk_that_was_full_is_written_when_there_is_room() {
    let setup = "mkdir @/small; mount -t tmpfs -o size=64k tmpfs @/small; dd if=/dev/zero of=@/small/fill bs=1k count=64 2>/dev/null || true";
    let config = "files: [{ name: 'f', template: 'text', to: '@/small/f' }],
         jobs: [{ name: 'main', exec: 'sleep 1000', requires: ['file.f'] },
                { name: 'clean', exec: 'rm @/small/fill', when: { source: 'file.f', once: 'failed' } }]";
    as_init_and_child(|rank| {
        let mut hostile = Hostile::with_setup(rank, setup, 5, config);
        hostile.await_log("no space left on device");
        hostile.await_log("main started");
        hostile.stops();
        assert_eq!(hostile.log().matches("is not changed").count(), 1, "{}", hostile.log());
    });
}
