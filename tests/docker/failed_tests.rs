//! What a test that fails prints of its container.

use super::engine::{Container, busybox};
use crate::support::failure::{CASE, in_own_process};

#[test]
fn a_failed_test_prints_the_log_of_its_container() {
    if std::env::var_os(CASE).is_some() {
        let config = "{ jobs: [{ name: 'a', exec: ['sh', '-c', 'echo from the job; exec sleep 1000'] }] }";
        let container = Container::start(config, &[], busybox());
        container.wait_for_log("from the job");
        panic!("on purpose");
    }
    let test = "docker::failed_tests::a_failed_test_prints_the_log_of_its_container";
    let (code, printed) = in_own_process(test, "running");
    assert!(code == 101 && printed.matches("from the job").count() == 1, "exit code {code}:\n{printed}");
}
