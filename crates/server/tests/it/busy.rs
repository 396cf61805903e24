//! Too much, or no space: the answer comes at once, and it passes.

use std::io::Write;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use perflab_log::{Group, Spool};
use serde_json::json;

use crate::client::{Call, Connection};
use crate::disk::MoodyDisk;
use crate::rig::{NOW, Plan, Rig, entry};

fn plan_on(disk: &MoodyDisk) -> Plan {
    let mut plan = Plan::default();
    plan.home.disk = Arc::new(disk.clone());
    plan
}

#[test]
fn a_full_queue_says_try_later_at_once() {
    let disk = MoodyDisk::default();
    let mut plan = plan_on(&disk);
    plan.home.log.queue_bytes_max = 1;
    let rig = Rig::start_with(plan);
    rig.log("c", "first");
    disk.hold_syncs(true);
    let post = |line: &str| {
        let call = Call::post("/api/log?category=c", line);
        let mut connection = Connection::open(rig.address);
        thread::spawn(move || connection.call(&call))
    };
    let syncing = post("syncing");
    disk.wait_for_held_sync();
    let queued = post("queued");
    while rig.home.log().stats().queue_bytes == 0 {
        thread::yield_now();
    }
    let refused = rig.call(&Call::post("/api/log?category=c", "refused"));
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.codes(), ["TRY_LATER"]);
    assert!(refused.reason(0).contains("queue is full"), "{}", refused.reason(0));
    disk.hold_syncs(false);
    assert_eq!(syncing.join().unwrap().codes(), ["OK"]);
    assert_eq!(queued.join().unwrap().codes(), ["OK"]);
    assert_eq!(rig.messages("c"), ["first", "syncing", "queued"]);
    assert_eq!(rig.home.log().categories().len(), 1, "try later is not kept as rejected");
}

#[test]
fn a_full_disk_is_told_and_passes_by_itself() {
    let disk = MoodyDisk::default();
    disk.set_full(true);
    let rig = Rig::start_with(plan_on(&disk));
    for _ in 0..2 {
        let reply = rig.call(&Call::post("/api/log?category=c", "x"));
        assert_eq!(reply.status, 503);
        assert!(reply.header("retry-after").is_some());
        assert_eq!(reply.codes(), ["TRY_LATER"]);
    }
    let health = rig.call(&Call::get("/healthz"));
    assert_eq!(health.status, 503);
    assert_eq!(health.json()["reasons"], json!(["disk full"]));
    assert_eq!(rig.call(&Call::get("/api/tail?category=c")).status, 200, "reading goes on");
    let metrics = rig.call(&Call::get("/metrics"));
    assert!(String::from_utf8_lossy(&metrics.body).contains("perflab_disk_full 1"));

    disk.set_full(false);
    while rig.call(&Call::get("/healthz")).status != 200 {
        thread::yield_now();
    }
    rig.log("c", "x");
}

#[test]
fn bodies_past_the_budget_are_refused_at_once() {
    let mut plan = Plan::default();
    plan.server.limits.in_flight_bytes_max = 1000;
    let rig = Rig::start_with(plan);
    let mut first = rig.connect();
    let call = Call::post("/api/log?category=c", "x".repeat(900));
    let bytes = call.encode("localhost");
    first.send(&bytes[..bytes.len() - 1]);
    loop {
        let metrics = rig.call(&Call::get("/metrics"));
        if String::from_utf8_lossy(&metrics.body).contains("perflab_in_flight_bytes 900") {
            break;
        }
    }
    let second = rig.call(&call);
    assert_eq!(second.status, 429);
    assert_eq!(second.header("retry-after"), Some("1"));
    first.send(&bytes[bytes.len() - 1..]);
    assert_eq!(first.reply().codes(), ["OK"]);
    assert_eq!(rig.call(&call).codes(), ["OK"]);
}

fn in_flight(rig: &Rig) -> usize {
    let metrics = String::from_utf8(rig.call(&Call::get("/metrics")).body).unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix("perflab_in_flight_bytes "));
    line.unwrap().parse().unwrap()
}

#[test]
fn whoever_only_says_that_much_will_come_holds_little() {
    let rig = Rig::start();
    let head = Call::post("/api/log?category=c", "").header("Content-Length", "134217728");
    let mut idle = [rig.connect(), rig.connect()];
    idle.iter_mut().for_each(|connection| connection.send(&head.encode("localhost")));
    while in_flight(&rig) < 2 << 20 {
        thread::yield_now();
    }
    rig.log("c", &"x".repeat(1000));
    assert_eq!(in_flight(&rig), 2 << 20);
}

#[test]
fn what_is_compressed_inside_a_body_counts() {
    let mut plan = Plan::default();
    plan.server.limits.in_flight_bytes_max = 300_000;
    let rig = Rig::start_with(plan);
    let entries = vec![entry("c", &json!({"text": "x".repeat(1000)})); 200];
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(json!(entries).to_string().as_bytes()).unwrap();
    let logs = STANDARD.encode(encoder.finish().unwrap());
    assert!(logs.len() < 10_000);
    let compressed = Call::json("/scribe_logs", &json!({"base64_bz2_logs": logs}));
    assert_eq!(rig.call(&compressed).codes(), vec!["OK"; 200]);

    let mut other = rig.connect();
    let call = Call::post("/api/log?category=c", "x".repeat(200_000));
    let bytes = call.encode("localhost");
    other.send(&bytes[..bytes.len() - 1]);
    while in_flight(&rig) < 200_000 {
        thread::yield_now();
    }
    assert_eq!(rig.call(&compressed).status, 429);
    other.send(&bytes[bytes.len() - 1..]);
    assert_eq!(other.reply().codes(), ["OK"]);
}

/// Short entries that are refused become long rows, which wait for room in the queue.
#[test]
fn small_bodies_with_much_to_refuse_hold_nobody_up() {
    let disk = MoodyDisk::default();
    let mut plan = plan_on(&disk);
    plan.home.log.queue_bytes_max = 2 << 20;
    let rig = Rig::start_with(plan);
    rig.log("c", "first");
    disk.hold_syncs(true);
    let body = format!("logs=[{}1]", "1,".repeat(29_999));
    let refused: Vec<_> = (0..4)
        .map(|_| {
            let call = Call::form("/scribe_logs", body.clone());
            let mut connection = Connection::open(rig.address);
            thread::spawn(move || connection.call(&call))
        })
        .collect();
    while rig.home.log().stats().queue_bytes < 1 << 20 {
        thread::yield_now();
    }
    let (tell, told) = mpsc::channel();
    let mut other = Connection::open(rig.address);
    thread::spawn(move || tell.send(other.call(&Call::get("/healthz")).status));
    let status = told.recv_timeout(Duration::from_secs(10));
    // First of all: the server can't end while syncs are held.
    disk.hold_syncs(false);
    assert_eq!(status, Ok(200));
    for call in refused {
        let reply = call.join().unwrap();
        assert_eq!(reply.status, 400, "a form of which nothing is good");
        assert_eq!(reply.codes(), vec!["ERROR"; 30_000]);
    }
}

#[test]
fn a_body_larger_than_the_queue_waits_for_itself() {
    let mut plan = Plan::default();
    plan.home.log.queue_bytes_max = 2 << 20;
    let rig = Rig::start_with(plan);
    let line = format!("{}\n", "x".repeat(10_000));
    let reply = rig.call(&Call::post("/api/log?category=c", line.repeat(2000)));
    assert_eq!(reply.status, 200);
    assert!(reply.codes().iter().all(|code| code == "OK"), "20 MB through a queue of 2");
}

#[test]
fn a_fast_category_says_that_it_is() {
    let disk = MoodyDisk::default();
    let rig = Rig::start_with(plan_on(&disk));
    let put = Call::new("PUT", "/api/categories?category=quick").body("{\"guarantee\":\"fast\"}");
    assert_eq!(rig.call(&put).json()["guarantee"], "fast");
    rig.log("slow", "first");
    disk.hold_syncs(true);
    let reply = rig.call(&Call::post("/api/log?category=quick", "x"));
    assert_eq!(reply.json()["guarantee"], json!({"quick": "fast"}));
    assert_eq!(reply.codes(), ["OK"], "although nothing can be synced");
    disk.hold_syncs(false);
    rig.log("slow", "second");
    assert_eq!(rig.messages("quick"), ["x"]);

    let logs = json!([entry("quick", &json!({"a": 1})), entry("slow", &json!({"a": 1}))]);
    let reply = rig.call(&Call::json("/scribe_logs", &json!({"logs": logs})));
    assert_eq!(reply.json()["guarantee"], json!({"quick": "fast"}), "only the fast one");
}

#[test]
fn a_full_disk_leaves_the_spool_as_it_is_and_drains_it_once() {
    let disk = MoodyDisk::default();
    disk.set_full(true);
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(dir.path().join("spool"), 1 << 20);
    let mut group = Group::new("c", NOW.as_i64()).unwrap();
    group.push(0, &[&[1], b"spooled"]).unwrap();
    spool.append(&group).unwrap();
    let rig = Rig::start_in(dir, plan_on(&disk));
    while rig.call(&Call::get("/healthz")).status == 200 {
        thread::yield_now();
    }
    assert!(!spool.is_empty().unwrap());
    disk.set_full(false);
    let mut follower = rig.connect();
    follower.start(&Call::get("/api/tail?category=c&follow=true&limit=1"));
    assert!(String::from_utf8(follower.chunk()).unwrap().contains("spooled"));
    while !spool.is_empty().unwrap() {
        thread::yield_now();
    }
    assert_eq!(rig.messages("c"), ["spooled"]);
}
