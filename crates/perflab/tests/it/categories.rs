use crate::support::Lab;

#[test]
fn there_are_none_at_first() {
    let lab = Lab::new();
    lab.run(["categories"]).ok().prints("").says("no categories yet");
    let document = lab.run(["categories", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.categories/1");
    assert_eq!(document["categories"].as_array().unwrap().len(), 0);
}

#[test]
fn each_is_counted_in_every_format() {
    let lab = Lab::new();
    let _server = lab.serve();
    lab.run(["log", "perfpipe_b", "1"]).ok();
    lab.run(["log", "perfpipe_b", "2"]).ok();
    let table = lab.run(["categories"]).ok().stdout;
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("CATEGORY    DATASET  RECORDS"), "{table}");
    let cells: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(&cells[..3], ["perfpipe_b", "b", "2"]);
    assert_eq!(&cells[7..], ["durable", "forever", "unlimited"]);
    let category = &lab.run(["categories", "--format", "json"]).ok().json()["categories"][0];
    assert_eq!(category["records"], 2);
    assert_eq!(category["dataset"], "b");
    let csv = lab.run(["categories", "--format", "csv"]).ok().stdout;
    assert!(csv.lines().nth(1).unwrap().starts_with("perfpipe_b,b,2,"), "{csv}");
}
