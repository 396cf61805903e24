//! The fuzz target's function, over its seed corpus and over garbage.

#[path = "../../../../fuzz/src/request_body.rs"]
mod request_body;

use proptest::prelude::*;
use request_body::check;
use std::fs;
use std::path::Path;

const CORPUS: &str = "../../fuzz/seeds/request_body";

fn corpus() -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(Path::new(CORPUS)).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

#[test]
fn the_seed_corpus_holds_the_invariants() {
    let corpus = corpus();
    assert!(corpus.len() >= 5, "every form has a seed");
    for (path, bytes) in corpus {
        let rows = check(&bytes);
        assert!(rows > 0, "{path} is no example of anything");
    }
}

proptest! {
    #[test]
    fn garbage_holds_the_invariants(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    /// Seeds with a few bytes changed get further than garbage does.
    #[test]
    fn damaged_seeds_hold_the_invariants(
        seed in any::<prop::sample::Index>(),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let corpus = corpus();
        let mut bytes = corpus[seed.index(corpus.len())].1.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&bytes);
    }
}
