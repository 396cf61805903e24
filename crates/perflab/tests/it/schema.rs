use crate::support::Lab;

#[test]
fn columns_say_what_they_hold() {
    let lab = Lab::new();
    let row = r#"{"int":{"n":1},"normal":{"job":"a"},"tags":{"labels":["x"]}}"#;
    lab.run(["log", "deep/builds", row]).ok();
    let csv = lab.run(["schema", "deep/builds", "--format", "csv"]).ok().stdout;
    assert_eq!(csv, "column,kind\njob,string\nlabels,set\nn,int\n");
    lab.run(["schema", "deep/bulids"]).exits(1).says("did you mean `deep/builds`?");
}
