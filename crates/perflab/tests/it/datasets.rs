use crate::support::Lab;

#[test]
fn there_are_none_at_first() {
    Lab::new().run(["datasets"]).ok().prints("").says("no datasets yet");
}

#[test]
fn each_is_counted_under_the_name_it_is_asked_by() {
    let lab = Lab::new();
    lab.run(["log", "perfpipe_builds", r#"{"normal":{"job":"a"}}"#]).ok();
    lab.run(["log", "builds", r#"{"normal":{"job":"b"}}"#]).ok();
    let document = lab.run(["datasets", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.datasets/1");
    assert_eq!(document["datasets"][0]["dataset"], "builds");
    assert_eq!(document["datasets"][0]["rows"], 2);
    assert_eq!(document["datasets"].as_array().unwrap().len(), 1);
}
