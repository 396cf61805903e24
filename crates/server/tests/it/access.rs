//! Who may do what.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use perflab_model::ManualClock;
use serde_json::{Value, json};

use crate::client::{Call, Connection};
use crate::rig::{NOW, Plan, Rig, entry, form_of};

/// Makes a token over the owner's socket.
pub(crate) fn add_token(rig: &Rig, wanted: &Value) -> String {
    let reply = owner(rig).call(&Call::json("/api/tokens", wanted));
    assert_eq!(reply.status, 201, "{:?}", reply.json());
    reply.json()["token"].as_str().unwrap().to_owned()
}

fn owner(rig: &Rig) -> Connection<UnixStream> {
    let stream = UnixStream::connect(rig.dir().join("server.sock")).unwrap();
    Connection::over(stream, "anything".to_owned())
}

fn ci() -> Value {
    json!({"name": "ci", "write": ["perfpipe_*"], "read": ["perfpipe_a*"]})
}

#[test]
fn without_tokens_loopback_is_open() {
    let rig = Rig::start();
    assert!(rig.bound.is_open);
    rig.log("c", "x");
    assert_eq!(rig.call(&Call::get("/api/tokens")).json(), json!({"tokens": []}));
}

#[test]
fn a_token_may_come_in_four_places() {
    let rig = Rig::start();
    let token = add_token(&rig, &ci());
    let logs = json!([entry("perfpipe_a", &json!({"n": 1}))]);
    let query = format!("/scribe_logs?access_token={token}");
    let calls = [
        Call::form("/scribe_logs", form_of(&token, &logs)),
        Call::json("/scribe_logs", &json!({"access_token": token, "logs": logs.to_string()})),
        Call::json(query, &json!({"logs": logs})),
        Call::json("/scribe_logs", &json!({"logs": logs})).token(&token),
    ];
    for call in &calls {
        let reply = rig.call(call);
        assert_eq!((reply.status, reply.codes()), (200, vec!["OK".to_owned()]), "{call:?}");
    }
}

#[test]
fn a_bad_token_gets_the_answer_that_graph_clients_know() {
    let rig = Rig::start();
    add_token(&rig, &ci());
    let logs = json!([entry("perfpipe_a", &json!({"n": 1}))]);
    let calls = [
        Call::form("/scribe_logs", form_of("wrong", &logs)),
        Call::json("/scribe_logs", &json!({"logs": logs})),
        Call::post("/api/log?category=perfpipe_a", "x"),
        Call::post("/api/log?category=perfpipe_a", "x").token("plt_wrong"),
        Call::get("/api/tail?category=perfpipe_a"),
        Call::get("/api/categories"),
        Call::get("/metrics"),
    ];
    for call in &calls {
        let reply = rig.call(call);
        assert_eq!(reply.status, 401, "{call:?}");
        let error = &reply.json()["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!("OAuthException"), &json!(190)));
        assert!(!error["message"].as_str().unwrap().contains("wrong"), "{error}");
    }
    assert_eq!(rig.call(&Call::get("/healthz")).status, 200);
    assert_eq!(rig.home.log().end(), 0, "nothing was taken, and nothing kept as rejected");
}

#[test]
fn a_token_writes_and_reads_what_it_may() {
    let rig = Rig::start();
    let token = add_token(&rig, &ci());
    let logs = json!([entry("perfpipe_a", &json!({"n": 1})), entry("other", &json!({"n": 1}))]);
    let reply = rig.call(&Call::form("/scribe_logs", form_of(&token, &logs)));
    assert_eq!(reply.codes(), ["OK", "DENIED"]);
    assert_eq!(reply.reason(1), "token `ci` may not write to category `other`");
    rig.call(&Call::post("/api/log?category=perfpipe_b", "x").token(&token));

    let listed = rig.call(&Call::get("/api/categories").token(&token)).json();
    let names: Vec<_> = listed["categories"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{listed}");
    assert_eq!(names[0]["category"], "perfpipe_a");
    let tail = |category| {
        rig.call(&Call::get(format!("/api/tail?category={category}")).token(&token)).status
    };
    assert_eq!((tail("perfpipe_a"), tail("a"), tail("perfpipe_b")), (200, 200, 403));
}

#[test]
fn only_administrators_administer() {
    let rig = Rig::start();
    let token = add_token(&rig, &ci());
    let admin = add_token(&rig, &json!({"name": "root", "admin": true}));
    let calls = [
        Call::get("/api/tokens"),
        Call::json("/api/tokens", &json!({"name": "more"})),
        Call::new("DELETE", "/api/tokens?name=nobody"),
        Call::post("/api/check", ""),
        Call::post("/api/thrift?name=x", "struct ALogEntry {}"),
        Call::new("PUT", "/api/categories?category=c").body("{}"),
    ];
    for call in &calls {
        assert_eq!(rig.call(call).status, 401, "{call:?}");
        assert_eq!(rig.call(&call.clone().token(&token)).status, 403, "{call:?}");
        let status = rig.call(&call.clone().token(&admin)).status;
        assert!(matches!(status, 200 | 201 | 404), "{call:?} {status}");
    }
}

#[test]
fn tokens_expire_and_can_be_removed() {
    let clock = Arc::new(ManualClock::new(NOW));
    let plan = Plan { clock: Arc::<ManualClock>::clone(&clock), ..Plan::default() };
    let rig = Rig::start_with(plan);
    let token = add_token(&rig, &json!({"name": "a", "write": ["*"], "expires_seconds": 60}));
    let call = Call::post("/api/log?category=c", "x").token(&token);
    assert_eq!(rig.call(&call).status, 200);
    clock.advance(Duration::from_secs(61));
    assert_eq!(rig.call(&call).status, 401);
    assert_eq!(rig.call(&Call::get("/api/categories")).status, 401, "expired is not absent");

    let listed = owner(&rig).call(&Call::get("/api/tokens"));
    assert_eq!(listed.json()["tokens"][0]["expired"], true);
    assert!(!String::from_utf8_lossy(&listed.body).contains(&token), "shown only once");
    assert_eq!(owner(&rig).call(&Call::new("DELETE", "/api/tokens?name=a")).status, 204);
    assert_eq!(rig.call(&Call::get("/api/categories")).status, 200);
}

#[test]
fn token_names_are_taken_once() {
    let rig = Rig::start();
    add_token(&rig, &ci());
    let again = owner(&rig).call(&Call::json("/api/tokens", &ci()));
    assert_eq!(again.status, 409);
    assert_eq!(again.error(), "there is a token named `ci` already");
    let nameless = owner(&rig).call(&Call::json("/api/tokens", &json!({"name": ""})));
    assert_eq!(nameless.status, 400);
}

#[test]
fn tokens_outlive_a_restart_and_are_kept_only_as_a_hash() {
    let rig = Rig::start();
    let token = add_token(&rig, &ci());
    let dir = rig.stop();
    for file in ["catalog.sqlite", "catalog.sqlite-wal"] {
        let bytes = std::fs::read(dir.path().join(file)).unwrap_or_default();
        let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert!(!found, "{file} holds the token");
    }
    let rig = Rig::start_in(dir, Plan::default());
    assert!(!rig.bound.is_open);
    let call = Call::post("/api/log?category=perfpipe_a", "x").token(&token);
    assert_eq!(rig.call(&call).codes(), ["OK"]);
}

#[test]
fn a_lost_catalog_does_not_open_the_door() {
    let rig = Rig::start();
    add_token(&rig, &ci());
    let dir = rig.stop();
    std::fs::write(dir.path().join("catalog.sqlite"), "this is no database, alas").unwrap();
    let rig = Rig::start_in(dir, Plan::default());
    assert!(rig.home.report().catalog_set_aside.is_some());
    assert_eq!(rig.call(&Call::post("/api/log?category=c", "x")).status, 401);
    let dir = rig.stop();
    let rig = Rig::start_in(dir, Plan::default());
    assert_eq!(rig.call(&Call::post("/api/log?category=c", "x")).status, 401, "still");
    let token = add_token(&rig, &json!({"name": "new", "write": ["*"]}));
    assert_eq!(rig.call(&Call::post("/api/log?category=c", "x").token(&token)).status, 200);
}

#[test]
fn the_owners_socket_is_nobody_elses() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::start();
    let mode = |file: &str| std::fs::metadata(rig.dir().join(file)).unwrap().permissions().mode();
    assert_eq!(mode("server.sock") & 0o777, 0o600);
    assert_eq!(mode("lock") & 0o777, 0o600);
}
