//! D1, D2, D3, D6, D7, D9, T1, T2: Consul, services, watches, telemetry.

use containerpilot_config::diagnostics::Severity;
use containerpilot_config::host::StaticHost;
use containerpilot_core::plan::{
    Catalog, Consul, ConsulAddress, DnsRecord, MetricKind, Page, Role, Status, TokenSource, Watch, WatchKind,
};

use super::support::{
    errors, faults, host_with, job, job_errors, load_files, messages, plan, plan_on, shown,
};

fn consul(text: &str, variables: &[(&str, &str)]) -> Consul {
    match plan_on(text, &host_with(variables)).catalog {
        Catalog::Consul(consul) => consul,
        Catalog::Embedded => panic!("embedded"),
    }
}

#[test]
fn d1_address_and_scheme() {
    for (text, address, https) in [
        ("'c:8500'", "c:8500", false),
        ("'http://c:8500'", "c:8500", false),
        ("'https://c:8501'", "c:8501", true),
        ("{ address: 'c', scheme: 'https' }", "c", true),
        ("{ address: 'http://c', scheme: 'https' }", "c", false),
        ("''", "127.0.0.1:8500", false),
        ("{}", "127.0.0.1:8500", false),
    ] {
        let consul = consul(&format!("{{ consul: {text} }}"), &[]);
        assert_eq!((consul.address, consul.https), (ConsulAddress::Network(address.into()), https), "{text}");
    }
    let unix = consul("{ consul: 'unix:///run/consul.sock' }", &[]);
    assert_eq!(unix.address, ConsulAddress::Unix("/run/consul.sock".into()));
    assert_eq!(errors("{ consul: 'ftp://c' }").len(), 1);
}

#[test]
fn d1_the_parts_of_an_address() {
    let parts = |address: &str, https: bool| {
        let address = ConsulAddress::Network(address.into());
        let parts = address.network_parts(https)?;
        Some((parts.host.to_owned(), parts.port, parts.prefix.to_owned()))
    };
    let some = |host: &str, port: u16, prefix: &str| Some((host.to_owned(), port, prefix.to_owned()));
    assert_eq!(parts("c:8500", false), some("c", 8500, ""));
    assert_eq!((parts("c", false), parts("c", true)), (some("c", 80, ""), some("c", 443, "")));
    assert_eq!(parts("c:8500/consul/", false), some("c", 8500, "/consul/"));
    assert_eq!(parts("[::1]:8500", false), some("::1", 8500, ""));
    assert_eq!(parts("[::1]", true), some("::1", 443, ""));
    assert_eq!(parts("::1", false), some("::1", 80, ""));
    for bad in ["", ":8500", "c:port", "c:70000", "c:0", "[::1]8500", "a b:1", "/path"] {
        assert_eq!(parts(bad, false), None, "{bad}");
    }
    for bad in ["c:port", "http://", "a:b:c", "c:8500/x?y", "c#d:80"] {
        let faults = messages(&format!("{{ consul: '{bad}' }}"), Severity::Fault);
        assert_eq!(faults, [format!("invalid Consul address `{bad}`")]);
    }
    assert!(messages("{ consul: 'https://fe80::1%eth0' }", Severity::Fault).is_empty());
}

#[test]
fn l5_a_password_in_the_address_is_refused_and_not_kept() {
    let refusal = "a Consul address cannot contain a user or password";
    for address in ["http://me:hush@c:8500", "me:hush@c:8500", "https://me:h/u@sh@c:8500"] {
        let text = format!("{{ consul: '{address}' }}");
        assert_eq!(messages(&text, Severity::Fault), [refusal]);
        assert_eq!(consul(&text, &[]).address, ConsulAddress::Network("c:8500".into()));
        let variables = host_with(&[("CONSUL_HTTP_ADDR", address)]);
        let shown = shown(&load_files(&["{ consul: '' }"], &variables));
        assert!(shown.starts_with(&format!("error: CONSUL_HTTP_ADDR: {refusal}\n")), "{shown}");
    }
}

#[test]
fn d1_the_environment_overrides_everything_except_the_address() {
    let variables = [
        ("CONSUL_HTTP_ADDR", "elsewhere:1"),
        ("CONSUL_HTTP_TOKEN", "from-environment"),
        ("CONSUL_HTTP_SSL", "true"),
        ("CONSUL_TLS_SERVER_NAME", "name"),
        ("CONSUL_HTTP_SSL_VERIFY", "false"),
    ];
    let found = consul("{ consul: { address: 'c', token: 'from-file', tls: { verify: true } } }", &variables);
    assert_eq!(found.address, ConsulAddress::Network("c".into()));
    assert_eq!((found.token.as_deref(), found.https), (Some("from-environment"), true));
    assert_eq!((found.tls.server_name.as_deref(), found.tls.verify), (Some("name"), false));
    assert_eq!(consul("{ consul: '' }", &variables).address, ConsulAddress::Network("elsewhere:1".into()));
}

#[test]
fn d1_the_variable_for_encryption_does_not_change_what_the_file_says() {
    let https = |text: &str| consul(&format!("{{ consul: {text} }}"), &[("CONSUL_HTTP_SSL", "true")]).https;
    for encrypted in
        ["''", "{}", "{ address: 'c:1' }", "{ scheme: 'http' }", "{ address: 'https://c:1', scheme: 'http' }"]
    {
        assert!(https(encrypted), "{encrypted}");
    }
    for plain in ["'c:1'", "'http://c:1'", "{ address: 'c:1', scheme: 'http' }", "{ address: 'http://c:1' }"]
    {
        assert!(!https(plain), "{plain}");
    }
}

#[test]
fn d1_a_token_can_be_in_a_file_and_the_environment_takes_precedence() {
    let tokens = |text: &str, variables: &[(&str, &str)]| {
        let found = consul(&format!("{{ consul: {{ address: 'c', {text} }} }}"), variables);
        (found.token, found.token_file)
    };
    let source = |text: &str, variables: &[(&str, &str)]| {
        consul(&format!("{{ consul: {{ address: 'c', {text} }} }}"), variables).token_source
    };
    let (some, file) = (|text: &str| Some(text.to_owned()), "tokenfile: '/run/token'");
    assert_eq!(tokens(file, &[]), (None, some("/run/token")));
    assert_eq!(tokens("token: 't', tokenfile: '/run/token'", &[]), (None, some("/run/token")));
    assert_eq!(tokens(file, &[("CONSUL_HTTP_TOKEN", "e")]), (some("e"), None));
    let both = [("CONSUL_HTTP_TOKEN", "e"), ("CONSUL_HTTP_TOKEN_FILE", "/run/other")];
    assert_eq!(tokens("token: 't'", &both), (None, some("/run/other")));
    assert_eq!(source("", &[]), None);
    assert_eq!(source("token: 't'", &[]), Some(TokenSource::TokenKey));
    assert_eq!(source(file, &[]), Some(TokenSource::TokenFileKey));
    assert_eq!(source(file, &[("CONSUL_HTTP_TOKEN", "e")]), Some(TokenSource::TokenVariable));
    assert_eq!(source(file, &both), Some(TokenSource::TokenFileVariable));
}

#[test]
fn d1_certificates_are_verified_unless_explicitly_disabled() {
    let verify = |text: &str, variables: &[(&str, &str)]| consul(text, variables).tls.verify;
    assert!(verify("{ consul: 'https://c' }", &[]));
    assert!(verify("{ consul: { address: 'c', tls: { verify: '' } } }", &[]));
    assert!(verify(
        "{ consul: { address: 'c', tls: { verify: true } } }",
        &[("CONSUL_HTTP_SSL_VERIFY", "junk")]
    ));
    assert!(!verify("{ consul: { address: 'c', tls: { verify: false } } }", &[]));
    assert!(!verify("{ consul: { address: 'c', tls: { verify: 'false' } } }", &[]));
}

#[test]
fn l5_a_token_is_not_in_the_debug_output_of_the_plan() {
    let plan = plan("{ consul: { address: 'c', token: 'geheim' } }");
    assert!(!format!("{plan:?}").contains("geheim"));
}

#[test]
fn d2_without_consul_the_catalog_is_embedded_with_a_warning() {
    let text = "{ jobs: [{ name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 2 } }] }";
    assert_eq!(plan(text).catalog, Catalog::Embedded);
    assert_eq!(plan("{ consul: null }").catalog, Catalog::Embedded);
    let warnings = messages(text, Severity::Warning);
    assert!(warnings.iter().any(|warning| warning.contains("without `consul`")), "{warnings:?}");
    assert!(messages("{ jobs: [{ name: 'web', exec: 'x' }] }", Severity::Warning).is_empty());
}

#[test]
fn d3_a_service() {
    let job = job(
        "name: 'web', exec: 'x', port: '8080', tags: ['a', 1], meta: { k: 'v' }, initial_status: 'warning', \
         consul: { enableTagOverride: true, deregisterCriticalServiceAfter: '10m' }, health: { interval: 1, ttl: 15 }",
    );
    let service = job.service.unwrap();
    assert_eq!(
        (service.id.as_str(), service.port, service.address.to_string().as_str()),
        ("web-box", 8080, "10.0.0.7")
    );
    assert_eq!(
        (service.tags, service.meta),
        (vec!["a".to_owned(), "1".to_owned()], [("k".into(), "v".into())].into())
    );
    assert_eq!((service.ttl.as_secs(), service.initial_status), (15, Some(Status::Warning)));
    assert!(service.enable_tag_override);
    assert_eq!(service.deregister_critical_after.unwrap().as_secs(), 600);
}

#[test]
fn d6_no_match_lists_the_addresses_of_the_host() {
    let text = "{ jobs: [{ name: 'web', exec: 'x', port: 80, interfaces: 'wlan0', health: { interval: 1, ttl: 2 } }] }";
    let shown = shown(&load_files(&[text], &host_with(&[])));
    assert!(
        shown.contains("no address of this host matches `interfaces`")
            && shown.contains("eth0 10.0.0.7, fe80::7"),
        "{shown}"
    );
}

#[test]
fn d6_a_host_without_addresses_can_advertise_a_static_one() {
    let text = "{ jobs: [{ name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 2 } }] }";
    let shown = shown(&load_files(&[text], &StaticHost::default()));
    assert!(shown.contains("this host has no network address"), "{shown}");
}

#[test]
fn d9_names_of_advertised_jobs_and_of_watches() {
    let advertised = |name: &str| {
        job_errors(&format!("name: '{name}', exec: 'x', port: 1, health: {{ interval: 1, ttl: 2 }}"))
    };
    for good in ["web", "w1", "web-1", "wEB"] {
        assert_eq!(advertised(good), [] as [&str; 0], "{good}");
        assert!(errors(&format!("{{ watches: [{{ name: '{good}', interval: 1 }}] }}")).is_empty());
    }
    for bad in ["w", "Web", "1web", "web_1", "web.1", "-web", "wéb", "a b"] {
        assert_eq!(advertised(bad).len(), 1, "{bad}");
        assert_eq!(errors(&format!("{{ watches: [{{ name: '{bad}', interval: 1 }}] }}")).len(), 1, "{bad}");
        assert!(job_errors(&format!("name: '{bad}', exec: 'x'")).is_empty(), "{bad} without a port");
    }
}

#[test]
fn h1_a_port_needs_health() {
    assert_eq!(job_errors("name: 'web', exec: 'x', port: 80"), ["a job with a `port` needs `health`"]);
    assert!(job_errors("name: 'web', exec: 'x', port: 0").is_empty());
}

#[test]
fn d3_fields_that_need_a_port_are_a_warning_without_one() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', interfaces: 'b@d', consul: { deregisterCriticalServiceAfter: 'junk' } }] }";
    let warnings = messages(text, Severity::Warning);
    assert!(plan(text).jobs[0].service.is_none());
    assert_eq!(
        warnings.iter().filter(|warning| warning.contains("has no effect without a `port`")).count(),
        2
    );
}

#[test]
fn d7_a_watch() {
    let plan = plan("{ watches: [{ name: 'db', interval: '500ms', tag: 'primary', dc: 'ams' }] }");
    let watch = &plan.watches[0];
    assert_eq!(watch.interval.as_millis(), 500);
    assert_eq!(watch.kind, WatchKind::Service { tag: Some("primary".into()), dc: Some("ams".into()) });
    assert_eq!(errors("{ watches: [{}] }"), ["a watch needs `name`", "a watch needs `interval`"]);
}

#[test]
fn t1_telemetry_is_advertised_by_its_own_job() {
    let plan = plan("{ telemetry: { tags: ['x'], interfaces: 'static:10.9.9.9' } }");
    let job = plan.jobs.last().unwrap();
    let service = job.service.as_ref().unwrap();
    assert_eq!((job.name.as_str(), job.role, service.port), ("containerpilot", Role::Telemetry, 9090));
    assert_eq!(service.tags, ["x", "1.2.3"]);
    assert_eq!((service.ttl.as_secs(), job.health.as_ref().unwrap().checks[0].interval.as_secs()), (15, 5));
}

#[test]
fn t5_page_is_on_unless_it_is_switched_off() {
    let page = |text: &str| plan(&format!("{{ telemetry: {{ {text} }} }}")).telemetry.unwrap().page;
    assert_eq!(page(""), Some(Page::default()));
    assert_eq!(page("page: {}"), Some(Page::default()));
    assert_eq!(page("page: true"), Some(Page::default()));
    assert_eq!(page("page: false"), None);
    let page = page("page: { arguments: true, logs: true, hosts: ['a.example.com'] }").unwrap();
    assert_eq!(
        (page.arguments, page.logs, page.hosts.as_slice()),
        (true, true, ["a.example.com".to_owned()].as_slice())
    );
    assert_eq!(
        errors("{ telemetry: { page: { environment: true } } }"),
        ["unknown key `environment` in `page`"]
    );
    assert!(
        errors("{ telemetry: { page: 'on' } }")[0].starts_with("`page` must be an object, true or false")
    );
}

#[test]
fn t2_metrics() {
    let metrics =
        |text: &str| plan(&format!("{{ telemetry: {{ metrics: [{text}] }} }}")).telemetry.unwrap().metrics;
    let metric = &metrics("{ namespace: 'app', name: 'depth', help: 'h', type: 'gauge' }")[0];
    assert_eq!((metric.name.as_str(), metric.legacy_key.as_str()), ("app_depth", "app__depth"));
    let histogram = &metrics("{ name: 'h', type: 'histogram', buckets: [0.1, 1, 10] }")[0];
    assert_eq!(histogram.kind, MetricKind::Histogram { buckets: vec![0.1, 1.0, 10.0] });
    for bad in [
        "{ name: 'a b', type: 'gauge' }",
        "{ name: '1', type: 'gauge' }",
        "{ type: 'gauge' }",
        "{ name: 'a' }",
        "{ name: 'a', type: 'timer' }",
        "{ name: 'a', type: 'gauge', buckets: [1] }",
        "{ name: 'a', type: 'histogram', buckets: [2, 1] }",
        "{ name: 'a', type: 'gauge', help: 'x' }, { name: 'a', type: 'gauge', help: 'y' }",
    ] {
        assert_eq!(errors(&format!("{{ telemetry: {{ metrics: [{bad}] }} }}")).len(), 1, "{bad}");
    }
}

#[test]
fn d4_an_initial_status_is_looked_at_only_with_a_port() {
    let job = "name: 'web', exec: 'x', initial_status: 'pasing', interfaces: 'static:10.0.0.1'";
    let (errors, warnings) =
        (|text: &str| messages(text, Severity::Error), |text: &str| messages(text, Severity::Warning));
    let plain = format!("{{ jobs: [{{ {job} }}] }}");
    assert!(errors(&plain).is_empty());
    assert!(warnings(&plain).iter().any(|one| one == "`initial_status` has no effect without a `port`"));
    let advertised = format!("{{ jobs: [{{ {job}, port: 80, health: {{ interval: 1, ttl: 5 }} }}] }}");
    let words =
        "`initial_status` must be \"passing\", \"warning\" or \"critical\", not the string \"pasing\"";
    assert_eq!(errors(&advertised), [words]);
}

#[test]
fn d6_interfaces_without_a_port_must_still_be_text() {
    let job =
        |interfaces: &str| format!("{{ jobs: [{{ name: 'a', exec: 'x', interfaces: {interfaces} }}] }}");
    let unused = ["`interfaces` has no effect without a `port`"];
    assert_eq!(messages(&job("['!!']"), Severity::Warning), unused);
    let wrong = ["`interfaces` must be a string or a list of strings, not an object"];
    assert_eq!(messages(&job("{ a: 1 }"), Severity::Error), wrong);
}

#[test]
fn d3_negative_port_is_an_error() {
    let wrong = ["`port` must be an integer from 0 to 65535, not the number -1"];
    let job = "{ jobs: [{ name: 'a', exec: 'x', port: -1, health: { interval: 1, ttl: 2 } }] }";
    assert_eq!(messages(job, Severity::Error), wrong);
    assert_eq!(messages("{ telemetry: { port: -1 } }", Severity::Error), wrong);
}

#[test]
fn d13_a_watch_has_one_kind() {
    let kind = |watch: &str| plan(&format!("{{ watches: [{{ name: 'it', {watch} }}] }}")).watches[0].clone();
    assert_eq!(kind("tcp: 'db:5432', interval: 5").kind, WatchKind::Tcp { host: "db".into(), port: 5432 });
    assert_eq!(kind("http: 'http://x/y', interval: 5").target(), "GET http://x:80/y");
    let name = "_db._tcp.example".to_owned();
    assert_eq!(
        kind("dns: '_db._tcp.example', type: 'srv', interval: 5").kind,
        WatchKind::Dns { name, record: DnsRecord::Srv }
    );
    assert_eq!(kind("dns: 'a', interval: 5").target(), "A records of a");
    let file = kind("file: '/etc/x'");
    assert_eq!((file.kind, file.interval.as_secs()), (WatchKind::File { path: "/etc/x".into() }, 5));
    assert_eq!(kind("file: '/etc/x', interval: 60").interval.as_secs(), 60);
    let keys = plan(
        "{ consul: 'c', watches: [{ name: 'one', key: 'a/b', dc: 'ams' }, { name: 'all', prefix: 'a/', interval: 5 }] }",
    );
    let targets: Vec<String> = keys.watches.iter().map(Watch::target).collect();
    assert_eq!(targets, ["key a/b in datacenter ams", "keys below a/"]);
    let intervals: Vec<u64> = keys.watches.iter().map(|watch| watch.interval.as_secs()).collect();
    assert_eq!(intervals, [60, 5]);
}

#[test]
fn d13_a_watch_with_wrong_keys_is_refused() {
    let wrong = |watch: &str| errors(&format!("{{ watches: [{{ name: 'it', {watch} }}] }}"));
    for polled in ["tcp: 'db:1'", "http: 'http://x'", "dns: 'x'", "tag: 'x'"] {
        assert_eq!(wrong(polled), ["a watch needs `interval`"], "{polled}");
    }
    for (watch, message) in [
        ("tcp: 'db:1', file: '/x'", "a watch can have only one of `tcp` and `file`"),
        ("file: '/x', tag: 'y'", "`tag` has no meaning beside `file`"),
        ("tcp: 'db:1', dc: 'y'", "`dc` has no meaning beside `tcp`"),
        ("file: '/x', type: 'A'", "`type` has no meaning beside `file`"),
        ("type: 'A'", "`type` needs `dns`"),
        ("file: 'x'", "`file` must be an absolute path, not \"x\""),
        ("dns: 'a b'", "`dns` must be a name, not \"a b\""),
        ("dns: 'x', type: 'MX'", "`type` must be \"A\", \"AAAA\" or \"SRV\", not the string \"MX\""),
        ("key: '/a'", "`key` must be the name of a key, not \"/a\""),
        ("prefix: ''", "`prefix` must be the name of a key, not \"\""),
        ("prefix: 'a', tag: 'y'", "`tag` has no meaning beside `prefix`"),
        ("tcp: 'db'", "`tcp` must be a host and a port, not the string \"db\""),
        (
            "http: 'ftp://x'",
            "`http` must be a URL that starts with http:// or https://, not the string \"ftp://x\"",
        ),
    ] {
        assert_eq!(wrong(&format!("{watch}, interval: 5")), [message], "{watch}");
    }
    let without_consul = faults("{ watches: [{ name: 'it', key: 'a/b' }, { name: 'all', prefix: 'a/' }] }");
    assert_eq!(
        without_consul,
        [
            "the watch `it` is never answered: its keys are in Consul, and there is no `consul`",
            "the watch `all` is never answered: its keys are in Consul, and there is no `consul`",
        ]
    );
}
