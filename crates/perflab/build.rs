//! Links the program so that it starts fast: `scribe_cat` is started once per message and must not
//! pay for what the rest of the program carries.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // At a fixed address: a position-independent program writes every pointer of its constant data
    // at each start, and each page of them is a fault and a copy. The stack, the heap and the
    // libraries keep their random addresses.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // The unwinder inside the program: `libgcc_s` is one library less to find, map and relocate.
    if let Some(directory) = directory_of("libgcc_eh.a") {
        println!("cargo:rustc-link-search=native={directory}");
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
        println!("cargo:rustc-link-arg-bins=-Wl,--as-needed");
    }
}

/// Where the C compiler has a library, if it has it.
fn directory_of(library: &str) -> Option<String> {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let answer = Command::new(compiler).arg(format!("-print-file-name={library}")).output().ok()?;
    let path = String::from_utf8(answer.stdout).ok()?;
    // Without a folder when it has none of that name.
    let directory = Path::new(path.trim()).parent()?.to_str()?;
    (!directory.is_empty()).then(|| directory.to_owned())
}
