use std::fs;

use crate::support::Lab;

#[test]
fn settings_stay_until_they_are_changed() {
    let lab = Lab::new();
    lab.run(["category", "set", "c", "--retain", "90d", "--max-size", "20G"])
        .ok()
        .prints("")
        .says("c: durable, kept for 90d, at most 20 GiB, any fields");
    lab.run(["category", "set", "c", "--guarantee", "fast", "--retain", "forever"])
        .ok()
        .says("c: fast, kept forever, at most 20 GiB, any fields");
}

#[test]
fn a_declared_schema_refuses_other_fields() {
    let lab = Lab::new();
    let _server = lab.serve();
    let schema = lab.dir().join("schema.json");
    fs::write(&schema, r#"{"int": ["time", "rounds"], "normal": ["name"]}"#).unwrap();
    let schema = schema.to_str().unwrap();
    lab.run(["category", "set", "c", "--schema", schema]).ok().says("declared fields only");
    lab.run(["log", "c", r#"{"int": {"rounds": 1}}"#]).ok();
    lab.run(["log", "c", r#"{"int": {"round": 1}}"#])
        .exits(1)
        .says("be intentional about adding new fields");
    lab.run(["category", "set", "c", "--schema", "none"]).ok().says("any fields");
    lab.run(["log", "c", r#"{"int": {"round": 1}}"#]).ok();
}

#[test]
fn what_is_wrong_is_told() {
    let lab = Lab::new();
    lab.run(["category", "set", "c"]).exits(2).says("--retain");
    lab.run(["category", "set", "c", "--retain", "90"]).exits(2).says("use s, m, h, d or w");
    lab.run(["category", "set", "c", "--max-size", "big"]).exits(2).says("whole number");
    lab.run(["category", "set", "c", "--schema", "no.json"]).exits(3).says("no.json");
    let file = lab.dir().join("bad.json");
    fs::write(&file, "{").unwrap();
    let file = file.to_str().unwrap();
    lab.run(["category", "set", "c", "--schema", file]).exits(1).says("is not JSON");
}
