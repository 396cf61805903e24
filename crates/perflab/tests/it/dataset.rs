use crate::support::Lab;

#[test]
fn what_is_given_changes_and_the_rest_stays() {
    let lab = Lab::new();
    let set = |arguments: &[&str]| lab.run(["dataset", "set", "builds"].iter().chain(arguments));
    set(&["--retain", "90d", "--max-bytes", "20G"]).ok().says("kept for 90d, at most 20 GiB");
    set(&["--retain", "forever"]).ok().says("kept forever, at most 20 GiB, hot for 30d");
    set(&["--hot", "7d"]).ok().says("at most 20 GiB, hot for 7d, any fields");
    set(&["--hot", "forever"]).ok().says("at most 20 GiB, hot forever");
    set(&[]).exits(2).says("nothing to set");
    set(&["--max-bytes", "lots"]).exits(2);
}
