//! A lab: a home of its own, a cleared environment, the binary, and servers on free ports.

mod fake;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use rustix::process::Signal;

pub(crate) use fake::{
    FakeServer, Issued, Relay, Relaying, fake_home_server, fake_host, issue, tunnels_to,
};

/// What takes longer than this will not happen any more.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Lab {
    dir: TempDir,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "no {part:?} in stderr:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, stdout: &str) -> Self {
        assert_eq!(self.stdout, stdout, "stderr:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("stdout is a JSON document")
    }

    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines.map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The binary with nothing in its environment that could change what it does.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perflab"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir())
            .env("PERFLAB_HOME", self.home())
            .current_dir(self.dir())
            .stdin(Stdio::null());
        command
    }

    /// The same, called by one of its other names.
    pub(crate) fn drop_in(&self, name: &str) -> Command {
        let mut command = self.command();
        command.arg0(name);
        command
    }

    pub(crate) fn scribe_cat(&self) -> Command {
        self.drop_in("scribe_cat")
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.command().args(arguments).output().unwrap().into()
    }

    /// The messages of a category, in order.
    #[track_caller]
    pub(crate) fn messages(&self, category: &str) -> Vec<String> {
        let lines = self.run(["tail", category, "--format", "json"]).ok().json_lines();
        lines.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    }

    /// The decoded rows of a category, in order.
    #[track_caller]
    pub(crate) fn rows(&self, category: &str) -> Vec<Value> {
        let lines = self.run(["tail", category, "--format", "json"]).ok().json_lines();
        lines.iter().map(|line| line["row"].clone()).collect()
    }

    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&["--listen", "127.0.0.1:0"])
    }

    #[track_caller]
    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Server {
        Server::start(self.command().arg("serve").args(arguments))
    }
}

/// Runs a program with an input.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = spawn_piped(command);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that ends early closes its input; that is for the test to find.
    let writer = thread::spawn(move || stdin.write_all(&input).ok());
    let ran = child.wait_with_output().unwrap().into();
    writer.join().unwrap();
    ran
}

pub(crate) fn spawn_piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / POLL.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(POLL);
    }
    panic!("waited {} s in vain until {what}", PATIENCE.as_secs());
}

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) url: String,
}

impl Server {
    /// Runs a command that is a server, and waits for its address.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        if url.is_empty() {
            let ran: Ran = child.wait_with_output().unwrap().into();
            panic!("the server did not start:\n{}", ran.stderr);
        }
        Self { child: Some(child), url }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// As if the machine had taken it.
    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks it to end; returns what it said.
    pub(crate) fn end(self) -> Ran {
        send_signal(self.pid(), Signal::TERM);
        self.wait()
    }

    /// Waits for its end, which something else brings about.
    pub(crate) fn wait(mut self) -> Ran {
        self.child.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

pub(crate) fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The interpreter with the clients that perflab must serve.
#[track_caller]
pub(crate) fn python() -> PathBuf {
    let python = workspace().join(".venv/bin/python");
    assert!(python.exists(), "`{}` is missing: run `make setup`", python.display());
    python
}

pub(crate) fn workspace() -> PathBuf {
    // Tests run in their crate's folder.
    Path::new("../..").canonicalize().unwrap()
}

/// One answer to a plain HTTP request.
pub(crate) fn http(address: &str, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Writes a line to a program, now.
pub(crate) fn write_line(stdin: &mut ChildStdin, line: &str) {
    stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    stdin.flush().unwrap();
}
