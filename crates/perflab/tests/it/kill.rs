//! The server is killed fifty times under load. What it acknowledged is there; what carried a
//! key is there once.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::wait_until;

const KILLS: u32 = 50;
const BATCH: u64 = 20;
/// Clients that number their entries, and clients that do not.
const KEYED: u64 = 3;
const PLAIN: u64 = 2;

/// Where the server is now; `None` while it is being restarted.
type Address = Arc<Mutex<Option<String>>>;

fn start(home: &Path) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_perflab"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env_clear()
        .env("PERFLAB_HOME", home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").expect("the server says its address");
    (server, address.to_owned())
}

/// One client: sends batch after batch, each again until it is acknowledged.
struct Client {
    name: String,
    keyed: bool,
    address: Address,
    stop: Arc<AtomicBool>,
    /// Batches that were acknowledged to any client.
    batches: Arc<AtomicU64>,
}

impl Client {
    /// Returns how many messages were acknowledged: numbers below that.
    fn run(&self) -> u64 {
        let mut next = 0;
        while !self.stop.load(Ordering::Relaxed) {
            if self.send(next) {
                next += BATCH;
                self.batches.fetch_add(1, Ordering::Relaxed);
            }
        }
        next
    }

    fn send(&self, first: u64) -> bool {
        let Some(address) = self.address.lock().unwrap().clone() else {
            thread::yield_now();
            return false;
        };
        self.post(&address, first).is_some_and(|answer| {
            // A batch that was cut short by the kill was not acknowledged.
            answer.starts_with("HTTP/1.1 200") && !answer.contains("TRY_LATER")
        })
    }

    fn post(&self, address: &str, first: u64) -> Option<String> {
        let body: String = (first..first + BATCH)
            .map(|n| {
                format!("{{\"int\":{{\"n\":{n}}},\"normal\":{{\"client\":\"{}\"}}}}\n", self.name)
            })
            .collect();
        let keys = if self.keyed {
            format!("X-Perflab-Producer: {}\r\nX-Perflab-Sequence: {first}\r\n", self.name)
        } else {
            String::new()
        };
        let head = format!(
            "POST /api/log?category=load HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{keys}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        // Whole, or it does not count: the last byte of the JSON answer has arrived.
        answer.trim_end().ends_with('}').then_some(answer)
    }
}

/// How often each (client, n) is in the log.
fn stored(home: &Path) -> HashMap<(String, u64), u32> {
    let output = Command::new(env!("CARGO_BIN_EXE_perflab"))
        .args(["tail", "load", "--format", "json"])
        .env_clear()
        .env("PERFLAB_HOME", home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts = HashMap::new();
    for line in output.stdout.lines() {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(line.get("damage").is_none(), "{line}");
        let Some(row) = line.get("row") else { continue };
        let client = row["client"].as_str().unwrap().to_owned();
        *counts.entry((client, row["n"].as_u64().unwrap())).or_default() += 1;
    }
    counts
}

#[test]
fn fifty_kills_lose_nothing_acknowledged_and_double_nothing_with_a_key() {
    let home = tempfile::tempdir().unwrap();
    let address = Address::default();
    let stop = Arc::new(AtomicBool::new(false));
    let batches = Arc::new(AtomicU64::new(0));
    let clients: Vec<Client> = (0..KEYED + PLAIN)
        .map(|n| Client {
            name: format!("client-{n}"),
            keyed: n < KEYED,
            address: Arc::clone(&address),
            stop: Arc::clone(&stop),
            batches: Arc::clone(&batches),
        })
        .collect();
    // Different moments in every run.
    let seed = u64::from(std::process::id());
    let mut moment = seed;
    let mut loaded = 0;
    let acknowledged: Vec<u64> = thread::scope(|scope| {
        let running: Vec<_> = clients.iter().map(|client| scope.spawn(|| client.run())).collect();
        for round in 0..KILLS {
            let (mut server, now_at) = start(home.path());
            let before = batches.load(Ordering::Relaxed);
            *address.lock().unwrap() = Some(now_at);
            // Some are killed at once, most of them at work, however slow this machine is.
            if round % 4 != 0 {
                wait_until("a batch is acknowledged", || batches.load(Ordering::Relaxed) > before);
            }
            moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            thread::sleep(Duration::from_micros(5_000 + (moment >> 33) % 150_000));
            server.kill().unwrap();
            server.wait().unwrap();
            *address.lock().unwrap() = None;
            loaded += u32::from(batches.load(Ordering::Relaxed) > before);
        }
        // Once more, so that everyone's last batch gets through.
        let (mut server, now_at) = start(home.path());
        *address.lock().unwrap() = Some(now_at);
        thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        let acknowledged = running.into_iter().map(|client| client.join().unwrap()).collect();
        server.kill().unwrap();
        server.wait().unwrap();
        acknowledged
    });
    assert!(loaded > KILLS / 2, "only {loaded} of {KILLS} kills were under load; seed {seed}");
    let stored = stored(home.path());
    for (client, acknowledged) in clients.iter().zip(acknowledged) {
        assert!(acknowledged > 0, "{} got nothing through; seed {seed}", client.name);
        for n in 0..acknowledged {
            let times = stored.get(&(client.name.clone(), n)).copied().unwrap_or(0);
            let right = if client.keyed { times == 1 } else { times >= 1 };
            assert!(right, "message {n} of {} is there {times} times; seed {seed}", client.name);
        }
    }
    let doubled = stored.iter().filter(|((name, _), times)| {
        **times > 1 && clients.iter().any(|client| client.keyed && client.name == *name)
    });
    assert_eq!(doubled.count(), 0, "seed {seed}");
}
