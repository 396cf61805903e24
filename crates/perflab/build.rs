//! Links the program at a fixed address.
//!
//! A position-independent program writes every pointer of its constant data at each start, and
//! each page of them is a fault and a copy. `scribe_cat` is started once per message and must not
//! pay for what the rest of the program carries. The stack, the heap and the libraries keep their
//! random addresses.

fn main() {
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rerun-if-changed=build.rs");
}
