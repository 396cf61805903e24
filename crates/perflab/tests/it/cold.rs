//! Cold rows elsewhere than in the home: in a bucket of an S3 server (moto), and in a folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::support::{Lab, Relay, Relaying, Server, http, python, run_with_input, wait_until};

const BUCKET: &str = "cold-rows";
/// What makes a segment at once, and one that is large enough to become cold.
const ROWS: usize = 128 << 10;

/// An S3 server with one bucket, in memory; killed when it is dropped.
struct Bucket {
    child: Child,
    port: u16,
}

impl Bucket {
    /// On a free port where `port` is 0.
    fn start(port: u16) -> Self {
        let mut child = Command::new(python())
            .args(["-m", "moto.server", "--host", "127.0.0.1", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let found = lines.find_map(|line| {
            line.split_once("Running on http://127.0.0.1:").map(|(_, port)| port.trim().parse())
        });
        let port = found.unwrap().unwrap();
        // What it says about requests is not to fill its pipe.
        thread::spawn(move || lines.for_each(drop));
        let bucket = Self { child, port };
        assert!(bucket.ask("PUT", "").starts_with("HTTP/1.1 200"));
        bucket
    }

    fn ask(&self, method: &str, path: &str) -> String {
        let request = format!(
            "{method} /{BUCKET}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        http(&format!("127.0.0.1:{}", self.port), &request)
    }

    /// The names of all objects that are rows of segments, or lists.
    fn objects(&self) -> Vec<String> {
        let listed = self.ask("GET", "?list-type=2");
        let keys = listed.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap());
        keys.filter(|key| key.ends_with(".parquet")).map(str::to_owned).collect()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The binary, with what it needs to know to use a bucket at `endpoint`.
fn command(lab: &Lab, endpoint: &str) -> Command {
    let mut command = lab.command();
    command.envs([
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "a-key"),
        ("AWS_SECRET_ACCESS_KEY", "a-secret"),
    ]);
    command
}

fn serve(lab: &Lab, endpoint: &str, arguments: &[&str]) -> Server {
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    Server::start(command(lab, endpoint).args(listen).args(arguments))
}

/// Old rows, wide enough for their segment not to wait for more.
fn log_old_rows(lab: &Lab) {
    let line = |n: usize| {
        let floats =
            (0..9).map(|column| format!(",\"f{column}\":{}", (n * (column + 7)) as f64 / 3.0));
        format!("{{\"time\":1700000000,\"n\":{n}{}}}\n", floats.collect::<String>())
    };
    let lines: String = (0..ROWS).map(line).collect();
    run_with_input(lab.command().args(["log", "d"]), lines.as_bytes()).ok();
}

/// How many files of segments are below a folder.
fn segments_below(dir: &Path) -> usize {
    let mut found = 0;
    for path in fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        let kind = path.extension().unwrap_or_default();
        found += if path.is_dir() { segments_below(&path) } else { 0 };
        found += usize::from(kind == "arrow" || kind == "parquet");
    }
    found
}

fn is_all_cold(lab: &Lab) -> bool {
    segments_below(&lab.home().join("segments")) == 0
}

/// How many rows a question about all of them finds, and what its answer says about itself.
fn asked(lab: &Lab) -> (f64, Value) {
    let question = ["query", "d", "--since", "2023-01-01", "--agg", "count", "--format", "json"];
    let document = lab.run(question).ok().json();
    let count = document["rows"]
        .as_array()
        .unwrap()
        .first()
        .map_or(0.0, |row| row["count"].as_f64().unwrap());
    (count, document["stats"].clone())
}

#[track_caller]
fn assert_all_there(lab: &Lab) {
    let (count, stats) = asked(lab);
    assert_eq!((count, &stats["complete"]), (ROWS as f64, &Value::Bool(true)), "{stats}");
}

/// What is missing, as an answer says it.
#[track_caller]
fn assert_missing(lab: &Lab, why: &str) {
    let (count, stats) = asked(lab);
    assert_eq!((count, &stats["complete"]), (0.0, &Value::Bool(false)), "{stats}");
    let missing = stats["missing"][0].as_str().unwrap();
    assert!(missing.starts_with(&format!("{ROWS} cold rows are missing")), "{missing}");
    assert!(missing.contains("s3://cold-rows/some/prefix"), "{missing}");
    assert!(missing.contains(why) && !missing.contains("a-secret"), "{missing}");
}

#[test]
fn a_bucket_holds_them_until_retention_removes_them() {
    let (lab, bucket) = (Lab::new(), Bucket::start(0));
    let relay = Relay::to(bucket.port);
    let url = "s3://cold-rows/some/prefix";
    // Not there yet: rows stay hot, and nothing else is missing.
    let server = serve(&lab, &relay.url, &["--cold", url]);
    log_old_rows(&lab);
    assert_all_there(&lab);
    relay.set(Relaying::Everything);
    wait_until("they are cold", || bucket.objects().len() == 1 && is_all_cold(&lab));
    assert!(!lab.home().join("cold").exists());
    assert!(bucket.objects()[0].starts_with("some/prefix/"));
    assert_all_there(&lab);
    server.end().ok();

    // The place is remembered.
    let server = serve(&lab, &relay.url, &[]);
    assert_all_there(&lab);
    lab.run(["check"]).ok().says("1 segment").says("no damage");
    server.end().ok();

    relay.set(Relaying::Nothing);
    let server = serve(&lab, &relay.url, &[]);
    assert_missing(&lab, "error sending request");
    lab.run(["check"]).exits(1).says("131072 cold rows could not be read");
    let metrics = http(
        &format!("127.0.0.1:{}", server.port()),
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(metrics.contains("perflab_cold_failing 1"), "{metrics}");
    assert!(!lab.home().join("quarantine").exists(), "nothing is damaged");
    relay.set(Relaying::Everything);
    wait_until("they are back", || asked(&lab).1["complete"] == true);
    assert_all_there(&lab);
    assert_eq!(bucket.objects().len(), 1);

    // Removed once it can be. A new server has no connection from before.
    server.end().ok();
    relay.set(Relaying::Nothing);
    let server = serve(&lab, &relay.url, &[]);
    lab.run(["dataset", "set", "d", "--retain", "1d"]).ok();
    // Complete although nothing can be reached: there are no cold rows any more.
    wait_until("nothing is kept", || asked(&lab).1["complete"] == true);
    assert_eq!(asked(&lab).0.to_string(), "0");
    assert_eq!(bucket.objects().len(), 1);
    relay.set(Relaying::Everything);
    wait_until("it is removed", || bucket.objects().is_empty());
    server.end().ok();
}

#[test]
fn a_bucket_that_was_made_anew_is_not_taken_for_damage() {
    let (lab, bucket) = (Lab::new(), Bucket::start(0));
    let endpoint = format!("http://127.0.0.1:{}", bucket.port);
    let server = serve(&lab, &endpoint, &["--cold", "s3://cold-rows/some/prefix"]);
    log_old_rows(&lab);
    wait_until("they are cold", || bucket.objects().len() == 1 && is_all_cold(&lab));
    server.end().ok();
    let port = bucket.port;
    drop(bucket);
    let _empty = Bucket::start(port);
    let _server = serve(&lab, &endpoint, &[]);
    assert_missing(&lab, "it is not what it was");
    assert!(!lab.home().join("quarantine").exists());
}

#[test]
fn pyarrow_reads_them_from_the_bucket() {
    let (lab, bucket) = (Lab::new(), Bucket::start(0));
    let endpoint = format!("http://127.0.0.1:{}", bucket.port);
    let _server = serve(&lab, &endpoint, &["--cold", "s3://cold-rows"]);
    log_old_rows(&lab);
    wait_until("they are cold", || bucket.objects().len() == 1 && is_all_cold(&lab));
    let script = "import sys, pyarrow.fs, pyarrow.parquet\n\
                  files = pyarrow.fs.S3FileSystem(access_key='k', secret_key='s', scheme='http',\n\
                      region='us-east-1', endpoint_override=sys.argv[1])\n\
                  table = pyarrow.parquet.read_table(sys.argv[2], filesystem=files)\n\
                  print(table.num_rows, sum(table['n'].to_pylist()))";
    let object = format!("{BUCKET}/{}", bucket.objects()[0]);
    let read = Command::new(python())
        .args(["-c", script, &format!("127.0.0.1:{}", bucket.port), &object])
        .output()
        .unwrap();
    let (said, printed) =
        (String::from_utf8_lossy(&read.stderr), String::from_utf8_lossy(&read.stdout));
    assert_eq!(printed.trim(), format!("{ROWS} {}", ROWS * (ROWS - 1) / 2), "{said}");
}

#[test]
fn the_place_is_checked_at_the_start() {
    let lab = Lab::new();
    let serve = |url: &str| lab.run(["serve", "--listen", "127.0.0.1:0", "--cold", url]);
    serve("cold").exits(2).says("give s3://BUCKET/PREFIX or file:///FOLDER");
    let said = serve("s3://key:secret@bucket").exits(2).stderr;
    assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
    let folder = lab.dir().join("elsewhere");
    let url = format!("file://{}", folder.display());
    let server = lab.serve_with(&["--listen", "127.0.0.1:0", "--cold", &url]);
    log_old_rows(&lab);
    wait_until("they are cold", || segments_below(&folder) == 1 && is_all_cold(&lab));
    assert!(!lab.home().join("cold").exists());
    assert_all_there(&lab);
    server.end().ok();
    serve("s3://bucket").exits(3).says(&format!("cold rows in `{url}`")).says("`s3://bucket`");
    assert_all_there(&lab);
}
