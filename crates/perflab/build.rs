//! Links the program at a fixed address.
//!
//! A position-independent program of this size has tens of thousands of pointers to relocate at
//! every start, each page of them copied: a millisecond that `scribe_cat`, which is started once
//! per message, would pay every time.

fn main() {
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rerun-if-changed=build.rs");
}
