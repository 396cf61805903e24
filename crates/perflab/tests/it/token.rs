use crate::support::Lab;

#[test]
fn the_token_is_all_that_stdout_holds() {
    let lab = Lab::new();
    let ran = lab
        .run(["token", "add", "--name", "ci", "--write", "perfpipe_*", "--expires", "90d"])
        .ok()
        .says("token `ci`: may write perfpipe_*, ends in 90d");
    assert!(ran.stdout.starts_with("plt_") && ran.stdout.lines().count() == 1);
    assert!(!ran.stderr.contains("plt_"));
}

#[test]
fn tokens_are_listed_without_their_secret_and_removed() {
    let lab = Lab::new();
    lab.run(["token", "list"]).ok().prints("").says("no tokens");
    let secret = lab.run(["token", "add", "--name", "ci", "--read", "*", "--admin"]).ok().stdout;
    for format in ["table", "json", "csv"] {
        let listed = lab.run(["token", "list", "--format", format]).ok();
        assert!(listed.stdout.contains("ci") && !listed.stdout.contains(secret.trim()));
    }
    let document = lab.run(["token", "list", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.tokens/1");
    assert_eq!(document["tokens"][0]["admin"], true);
    lab.run(["token", "remove", "ci"]).ok().says("token `ci` removed");
    lab.run(["token", "remove", "ci"]).exits(1).says("no token named `ci`");
}

#[test]
fn an_admin_token_works_from_elsewhere() {
    let lab = Lab::new();
    let server = lab.serve();
    let token = lab.run(["token", "add", "--name", "me", "--admin"]).ok().stdout;
    let elsewhere = Lab::new();
    elsewhere.run(["--server", &server.url, "token", "list"]).exits(1).says("PERFLAB_TOKEN");
    let mut command = elsewhere.command();
    command.env("PERFLAB_TOKEN", token.trim()).args(["--server", &server.url, "token", "list"]);
    let listed: crate::support::Ran = command.output().unwrap().into();
    assert!(listed.ok().stdout.contains("me"));
}

#[test]
fn wrong_usage_is_told() {
    let lab = Lab::new();
    lab.run(["token", "add", "--name", "ci"]).exits(2).says("--write GLOB");
    lab.run(["token", "add", "--write", "*"]).exits(2).says("--name");
    lab.run(["token", "add", "--name", "x", "--write", "*", "--expires", "soon"])
        .exits(2)
        .says("whole number");
    lab.run(["token", "add", "--name", "x", "--write", "*"]).ok();
    lab.run(["token", "add", "--name", "x", "--write", "*"]).exits(1).says("x");
}
