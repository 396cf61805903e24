//! `scripts/setup.sh` with a toolchain and a Python that only say what they were asked for.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Ran, workspace};

/// A `python3 -m venv` that makes what the script needs and notes how it was called.
const PYTHON: &str = r#"
case "$*" in
*" venv "*)
    echo "$*" >venv-calls
    mkdir -p .venv/bin
    printf '#!/bin/sh\n' | tee .venv/bin/python >.venv/bin/pip
    chmod +x .venv/bin/python .venv/bin/pip
    ;;
esac"#;

/// A copy of the script in a folder of its own, and programs that it finds before the machine's.
struct Setup {
    dir: TempDir,
}

impl Setup {
    fn new() -> Self {
        let setup = Self { dir: tempfile::tempdir().unwrap() };
        let dir = setup.dir.path();
        fs::create_dir(dir.join("scripts")).unwrap();
        fs::create_dir(dir.join("bin")).unwrap();
        for file in ["scripts/setup.sh", "requirements.txt", "Cargo.toml"] {
            fs::copy(workspace().join(file), dir.join(file)).unwrap();
        }
        setup.program("bin/cargo", "");
        setup.program("bin/cc", "");
        setup.program("bin/rustup", "exit 1");
        setup.program("bin/python3", PYTHON);
        setup
    }

    fn program(&self, path: &str, script: &str) {
        let path = self.dir.path().join(path);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self) -> Ran {
        let bin = self.dir.path().join("bin");
        let mut command = Command::new("bash");
        command.arg("scripts/setup.sh").current_dir(self.dir.path()).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command.output().unwrap().into()
    }

    fn has(&self, path: impl AsRef<Path>) -> bool {
        self.dir.path().join(path).exists()
    }
}

#[test]
fn a_toolchain_without_its_tools_is_completed_or_named() {
    let setup = Setup::new();
    setup.program("bin/cargo", "test \"$1\" != clippy");
    setup.run().exits(3).says("missing: clippy (rustup component add clippy");
    setup.program("bin/rustup", "echo \"$*\" >rustup-calls");
    setup.run().ok();
    let calls = fs::read_to_string(setup.dir.path().join("rustup-calls")).unwrap();
    assert_eq!(calls, "component add clippy\n");
}

#[test]
fn a_half_made_virtualenv_is_made_anew() {
    let setup = Setup::new();
    fs::create_dir_all(setup.dir.path().join(".venv/bin")).unwrap();
    setup.program(".venv/bin/python", "exit 1");
    setup.run().ok();
    let calls = fs::read_to_string(setup.dir.path().join("venv-calls")).unwrap();
    assert_eq!(calls, "-m venv --clear .venv\n");
    fs::remove_file(setup.dir.path().join("venv-calls")).unwrap();
    setup.run().ok();
    assert!(!setup.has("venv-calls"), "a whole one is left as it is");
}
