use crate::pairs::command_names;
use crate::support::Lab;

#[test]
fn every_command_is_completed_in_every_shell() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = lab.run(["completions", shell]).ok().stdout;
        for command in command_names() {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
    }
    lab.run(["completions", "tcsh"]).exits(2).says("possible values");
}

#[test]
fn no_home_is_needed() {
    let lab = Lab::new();
    let mut command = lab.command();
    let ran = command.env_clear().args(["completions", "bash"]).output().unwrap();
    assert!(ran.status.success());
    let mut command = lab.command();
    let ran: crate::support::Ran = command.env_clear().arg("categories").output().unwrap().into();
    ran.exits(2).says("PERFLAB_HOME");
}
