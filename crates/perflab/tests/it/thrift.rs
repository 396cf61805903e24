use std::fs;

use crate::support::Lab;

const IDL: &str =
    "struct BuildLogEntry {\n  1: optional i64 time,\n  2: optional string host,\n}\n";

#[test]
fn a_definition_is_registered_and_listed() {
    let lab = Lab::new();
    lab.run(["thrift", "list"]).ok().prints("").says("no IDLs");
    let file = lab.dir().join("build.thrift");
    fs::write(&file, IDL).unwrap();
    let file = file.to_str().unwrap();
    lab.run(["thrift", "register", file]).ok().prints("").says("registered: Build");
    let document = lab.run(["thrift", "list", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.thrift/1");
    assert_eq!(document["idls"][0]["name"], "build.thrift");
    let csv = lab.run(["thrift", "list", "--format", "csv"]).ok().stdout;
    assert!(csv.lines().nth(1).unwrap().starts_with("build.thrift,Build"), "{csv}");
}

#[test]
fn what_is_wrong_is_told() {
    let lab = Lab::new();
    lab.run(["thrift", "register", "no.thrift"]).exits(3).says("no.thrift");
    let file = lab.dir().join("bad.thrift");
    fs::write(&file, "struct {").unwrap();
    let file = file.to_str().unwrap();
    lab.run(["thrift", "register", file]).exits(1).says("failed to register");
}
