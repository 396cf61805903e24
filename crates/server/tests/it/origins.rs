//! No web page can use an open server.

use crate::client::Call;
use crate::rig::{Plan, Rig};

#[test]
fn a_server_on_loopback_answers_to_its_names_only() {
    let mut plan = Plan::default();
    plan.server.host_name = Some("lab".to_owned());
    let rig = Rig::start_with(plan);
    let status =
        |host: &str| rig.call(&Call::post("/api/log?category=c", "x").header("Host", host)).status;
    assert_eq!(status("localhost:7117"), 200);
    assert_eq!(status("127.0.0.2"), 200);
    assert_eq!(status("[::1]:7117"), 200);
    assert_eq!(status("lab:80"), 200);
    assert_eq!(status("rebound.example"), 403);
    assert_eq!(rig.rows("c").len(), 4);
}

#[test]
fn an_open_server_on_any_address_answers_to_addresses_and_its_names() {
    let mut plan = Plan::default();
    plan.server.listen.set_ip(std::net::Ipv4Addr::UNSPECIFIED.into());
    plan.server.insecure = true;
    plan.server.host_name = Some("lab".to_owned());
    let rig = Rig::start_with(plan);
    let call = |host: &str| rig.call(&Call::post("/api/log?category=c", "x").header("Host", host));
    for host in ["10.1.2.3:7117", "[fd00::1]:7117", "localhost", "lab"] {
        assert_eq!(call(host).status, 200, "{host}");
    }
    let refused = call("rebound.example");
    assert_eq!(refused.status, 403);
    let hint = refused.json()["error"]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("IP address") && hint.contains("token"), "{hint}");

    let wanted = serde_json::json!({"name": "t", "write": ["*"]});
    let made = rig.call(&Call::json("/api/tokens", &wanted)).json();
    let token = made["token"].as_str().unwrap();
    let post = Call::post("/api/log?category=c", "x").header("Host", "any.example").token(token);
    assert_eq!(rig.call(&post).status, 200, "whoever has a token is no page of another site");
}

#[test]
fn a_page_of_another_site_is_kept_out() {
    let rig = Rig::start();
    let host = rig.address.to_string();
    let call = |origin: &str| {
        rig.call(&Call::form("/scribe_logs", "logs=[]").header("Origin", origin)).status
    };
    assert_eq!(call(&format!("http://{host}")), 200);
    assert_eq!(call("http://evil.example"), 403);
    assert_eq!(call("null"), 403);
    assert_eq!(call(&format!("https://{host}")), 403);
    let reply = rig.call(&Call::get("/").header("Origin", "http://evil.example"));
    assert!(reply.error().contains("evil.example"), "{}", reply.error());
}
