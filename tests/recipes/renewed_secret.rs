//! `examples/renewed-secret`.

use super::Container;
use crate::support::program::out;
use crate::support::servers::path_from;
use crate::support::supervisor::wait_until;

/// Shell functions that are the agent. `prepare NAME` makes a certificate, and `publish NAME` swaps a link to it, as the
/// kubelet does. `token TEXT` renames a file.
const AGENT: &str = r#"
set -e
prepare() {
    mkdir -p /run/secrets/tls/..$1
    cd /run/secrets/tls/..$1
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$1 -keyout tls.key -out tls.crt 2>/dev/null
}
publish() {
    cd /run/secrets/tls
    ln -s ..$1 ..new
    mv -T ..new ..data
    for file in tls.key tls.crt; do
        [ -e $file ] || ln -s ..data/$file $file
    done
}
token() {
    mkdir /run/secrets/new
    echo "$1" >/run/secrets/new/token
    if [ -e /run/secrets/api ]; then
        mv /run/secrets/new/token /run/secrets/api/token
        rmdir /run/secrets/new
    else
        mv /run/secrets/new /run/secrets/api
    fi
}
"#;

#[test]
fn d13_w19_p11_programs_are_told_of_renewed_secrets() {
    let nginx = path_from("nginx", "nginx");
    let script = format!(
        "mkdir -p /etc/nginx /var/lib/nginx /run/secrets; cp $recipe/nginx.conf /etc/nginx; PATH={}:$PATH",
        nginx.parent().unwrap().display()
    );
    let Some(mut container) = Container::start("renewed-secret", &script) else { return };
    let agent = |container: &Container, command: &str| drop(container.shell(&format!("{AGENT}{command}")));
    let served = |container: &Container| {
        container.shell(
            "timeout 10 openssl s_client -connect 127.0.0.1:443 </dev/null 2>/dev/null | openssl x509 -noout -subject",
        )
    };
    // Nothing runs before the secrets exist.
    wait_until("nginx waits", || out(&container.pilot(&["explain", "nginx"])).contains("watch.certificate"));
    agent(&container, "prepare one; publish one");
    wait_until("nginx serves the first certificate", || served(&container).trim().ends_with("one"));
    agent(&container, "token secret-1");
    let clients = || out(&container.pilot(&["logs", "client"]));
    wait_until("the client has the first token", || clients().contains("of 8 letters: ***"));

    agent(&container, "prepare two; publish two");
    wait_until("nginx serves the second certificate", || served(&container).trim().ends_with("two"));
    agent(&container, "token secret-22");
    wait_until("the client has the second token", || clients().contains("of 9 letters: ***"));

    // A pair that does not match is refused.
    agent(&container, "prepare three; cp ../..two/tls.key tls.key; publish three");
    container.supervisor.wait_for_line("key values mismatch");
    assert!(served(&container).trim().ends_with("two"));
    assert!(container.shell("curl -ks --max-time 30 https://127.0.0.1/").contains("hello"));

    // No process but the client has a token.
    let leaks = container.shell("grep -l secret-2 /proc/[0-9]*/environ | cut -d / -f 3");
    let client = out(&container.pilot(&["status", "client", "--format", "json"]));
    assert!(
        leaks.lines().count() == 1 && client.contains(&format!("\"pid\":{}", leaks.trim())),
        "{leaks} {client}"
    );
    container.supervisor.signal("-TERM");
    let (code, log) = container.supervisor.wait();
    assert_eq!(code, 0);
    assert_eq!((log.matches("nginx started").count(), log.matches("client started").count()), (1, 2));
    assert!(!log.contains("secret-"), "the log hides the tokens");
}
