use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::clients::script;
use crate::support::{
    Lab, Ran, Signal, fake_host, http, python, send_signal, spawn_piped, tunnels_to,
};

#[test]
fn the_command_is_run_and_its_code_passed_on() {
    let lab = Lab::new();
    lab.run(["with", "--", "sh", "-c", "echo out; echo err >&2; exit 7"])
        .exits(7)
        .prints("out\n")
        .says("err");
    lab.run(["with", "sh", "-c", "kill -KILL $$"]).exits(137);
    lab.run(["with", "--", "no-such-program"]).exits(127).says("no-such-program");
    lab.run(["with", "--", "/etc/passwd"]).exits(126).says("/etc/passwd");
    lab.run(["with"]).exits(2).says("<COMMAND>");
}

#[test]
fn nothing_is_left_behind() {
    let lab = Lab::new();
    let temporary = lab.dir().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = lab.command();
    command.env("TMPDIR", &temporary).args(["with", "--", "sh", "-c", "ls $TMPDIR"]);
    let ran: Ran = command.output().unwrap().into();
    assert!(ran.ok().stdout.starts_with("perflab-with-"));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(!lab.home().join("server.sock").exists());
}

#[test]
fn signals_reach_the_command() {
    let lab = Lab::new();
    for (name, signal) in [("TERM", Signal::TERM), ("INT", Signal::INT), ("HUP", Signal::HUP)] {
        let script = format!("trap 'exit 5' {name}; echo ready; while :; do sleep 0.01; done");
        let mut command = lab.command();
        // Not in the foreground group of a terminal in which the tests may run.
        command.process_group(0).args(["with", "--", "sh", "-c", &script]);
        let mut child = spawn_piped(&mut command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        send_signal(child.id(), signal);
        assert_eq!(child.wait().unwrap().code(), Some(5), "{name}");
    }
}

#[test]
fn ctrl_c_is_the_terminals_to_send_also_when_the_input_is_a_file() {
    let lab = Lab::new();
    let mut command = Command::new(python());
    command
        .arg(script("in_terminal.py"))
        .arg(env!("CARGO_BIN_EXE_perflab"))
        .args(["with", "--"])
        .arg(python())
        .arg(script("passed_on.py"))
        .env("PERFLAB_HOME", lab.home());
    let ran: Ran = command.output().unwrap().into();
    let ran = ran.ok();
    assert!(ran.stdout.contains("passed on: False"), "{}", ran.stdout);
}

/// A script in which `"$0" "$1" CATEGORY MESSAGE` posts a message to `PERFLAB_SERVER`.
fn run_shell(lab: &Lab, shell_script: &str) -> Ran {
    let mut command = lab.command();
    command.args(["with", "--", "sh", "-c", shell_script]).arg(python());
    command.arg(script("post.py")).output().unwrap().into()
}

#[test]
fn a_server_runs_for_the_time_of_the_command() {
    let lab = Lab::new();
    let script = "scribe_cat c one && \"$0\" \"$1\" c two && test -S \"$PERFLAB_HOME/server.sock\"";
    run_shell(&lab, script).ok();
    assert!(!lab.home().join("server.sock").exists());
    assert_eq!(lab.messages("c"), ["one", "two"]);
}

#[test]
fn a_running_server_is_used_also_when_it_asks_for_tokens() {
    let lab = Lab::new();
    let server = lab.serve();
    lab.run(["token", "add", "--name", "other", "--write", "*"]).ok();
    let script = "scribe_cat c one && \"$0\" \"$1\" c two";
    run_shell(&lab, script).ok();
    server.kill();
    assert_eq!(lab.messages("c"), ["one", "two"]);
}

#[test]
fn a_server_elsewhere_is_used_with_its_token() {
    let (lab, elsewhere) = (Lab::new(), Lab::new());
    let server = elsewhere.serve();
    let token = elsewhere.run(["token", "add", "--name", "ci", "--write", "*"]).ok().stdout;
    let script = "scribe_cat c one && echo $PERFLAB_SERVER $SCRIBE_GRAPHQL_ACCESS_TOKEN";
    let mut command = lab.command();
    command
        .env("PERFLAB_SERVER", &server.url)
        .env("PERFLAB_TOKEN", token.trim())
        .args(["with", "--", "sh", "-c", script]);
    let ran: Ran = command.output().unwrap().into();
    ran.ok().prints(&format!("{} {}\n", server.url, token.trim()));
    assert_eq!(elsewhere.messages("c"), ["one"]);
}

#[test]
fn the_home_is_the_commands_home_also_with_a_server_elsewhere() {
    let lab = Lab::new();
    let other = lab.dir().join("other");
    let away = ["--server", "http://127.0.0.1:1", "--home", "other"];
    let show = ["with", "--", "sh", "-c", "scribe_cat c m && echo $PERFLAB_HOME"];
    lab.run(away.iter().chain(&show)).ok().prints(&format!("{}\n", other.display()));
    assert!(other.join("spool-remote").exists(), "what waits is where --home says");
}

#[test]
fn a_home_that_is_held_and_silent_ends_it() {
    let lab = Lab::new();
    let server = lab.serve();
    fs::remove_file(lab.home().join("server.sock")).unwrap();
    let pid = server.pid().to_string();
    lab.run(["with", "--", "true"]).exits(3).says(&format!("process {pid}"));
}

/// A run that waits, with its proxy's address and password.
struct Run {
    child: Child,
    address: String,
    authorization: String,
}

impl Run {
    fn start(lab: &Lab, variables: &[(&str, &str)]) -> Self {
        let mut command = lab.command();
        command.envs(variables.iter().copied());
        command.args(["with", "--", "sh", "-c", "echo $HTTPS_PROXY; read line"]);
        let mut child = spawn_piped(&mut command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (user, address) = line.trim().strip_prefix("http://").unwrap().split_once('@').unwrap();
        let authorization = STANDARD.encode(user);
        Self { child, address: address.to_owned(), authorization }
    }

    /// Opens a tunnel through the proxy.
    fn tunnel(&self, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {}\r\n\r\n",
            self.authorization
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        stream
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Sends back what it gets.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut &stream, &mut &stream).ok());
        }
    });
    port
}

#[track_caller]
fn assert_echoes(mut stream: TcpStream) {
    let sent = b"\x16\x03\x01 any bytes \x00\xff";
    stream.write_all(sent).unwrap();
    let mut got = vec![0; sent.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, sent);
}

#[test]
fn other_hosts_are_tunnelled_untouched() {
    let lab = Lab::new();
    let run = Run::start(&lab, &[]);
    assert_echoes(run.tunnel(&format!("127.0.0.1:{}", echo())));
    run.end();
}

#[test]
fn the_proxy_that_was_set_before_is_used_unless_no_proxy_says_otherwise() {
    let lab = Lab::new();
    let echo = echo();
    let (proxy, heads) = tunnels_to(echo);
    let proxy = format!("http://me:secret@127.0.0.1:{proxy}");
    let run = Run::start(&lab, &[("HTTPS_PROXY", &proxy), ("NO_PROXY", "127.0.0.1")]);
    assert_echoes(run.tunnel("some.host.example:443"));
    assert_echoes(run.tunnel(&format!("127.0.0.1:{echo}")));
    run.end();
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 1, "the second went straight");
    assert!(heads[0].starts_with("CONNECT some.host.example:443 HTTP/1.1\r\n"), "{}", heads[0]);
    let password = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("me:secret"));
    assert!(heads[0].contains(&password), "{}", heads[0]);
}

#[test]
fn nobody_else_can_use_the_gateway() {
    let lab = Lab::new();
    let run = Run::start(&lab, &[]);
    let answer = http(
        &run.address,
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 407"), "{answer}");
    for path in ["/", "/healthz", "/0123456789abcdef0123456789abcdef/healthz"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = http(&run.address, &request);
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
    }
    run.end();
}

#[test]
fn an_unusable_proxy_is_told_without_its_password() {
    let lab = Lab::new();
    let mut command = lab.command();
    command.env("HTTPS_PROXY", "socks5://me:secret@h:1").args(["with", "true"]);
    let ran: Ran = command.output().unwrap().into();
    let ran = ran.exits(3).says("HTTPS_PROXY").says("http:// and https://");
    assert!(!ran.stderr.contains("secret"));
}

#[test]
fn other_paths_of_the_host_reach_the_real_one() {
    let lab = Lab::new();
    let (port, trusted) = fake_host("graph.facebook.com", "the real host");
    let (proxy, _) = tunnels_to(port);
    let certificates = lab.dir().join("trusted.pem");
    fs::write(&certificates, trusted).unwrap();
    let script = "import requests\n\
                  print(requests.get('https://graph.facebook.com/me?x=1').text)\n\
                  logs = '[{\"category\": \"c\", \"message\": \"m\"}]'\n\
                  r = requests.post('https://graph.facebook.com/v2.6/scribe_logs', data={'logs': logs})\n\
                  print(r.json()['response_codes'])\n";
    let mut command = lab.command();
    command
        .env("https_proxy", format!("http://127.0.0.1:{proxy}"))
        .env("SSL_CERT_FILE", &certificates)
        .args(["with", "--"])
        .arg(python())
        .args(["-c", script]);
    let ran: Ran = command.output().unwrap().into();
    ran.ok().prints("the real host\n{'0': 'OK'}\n");
    assert_eq!(lab.messages("c"), ["m"]);
}

#[test]
fn the_environment_is_complete_and_keeps_what_was_there() {
    let lab = Lab::new();
    let mut command = lab.command();
    command
        .env("SCRIBE_GRAPHQL_ACCESS_TOKEN", "kept")
        .env("NO_PROXY", "corp.example,.facebook.com")
        .args(["with", "env"]);
    let ran: Ran = command.output().unwrap().into();
    let ran = ran.ok();
    let value = |name: &str| {
        let found = ran.stdout.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        found.unwrap_or_else(|| panic!("no {name} in:\n{}", ran.stdout)).to_owned()
    };
    assert_eq!(value("SCRIBE_GRAPHQL_ACCESS_TOKEN"), "kept");
    assert_eq!(value("NO_PROXY"), "localhost,127.0.0.1,::1,corp.example");
    assert_eq!(value("no_proxy"), value("NO_PROXY"));
    assert_eq!(value("https_proxy"), value("HTTPS_PROXY"));
    let endpoint = format!("{}/scribe_logs", value("PERFLAB_SERVER"));
    assert_eq!(value("SCRIBE_GRAPHQL_ENDPOINT"), endpoint);
    assert_eq!(value("REQUESTS_CA_BUNDLE"), value("SSL_CERT_FILE"));
    assert_eq!(value("CURL_CA_BUNDLE"), value("SSL_CERT_FILE"));
    assert!(value("PATH").contains("perflab-with-"));
}
