//! A merged tree as a file that other tools read.
//!
//! All of these take a tree that was merged from the root. Folded stacks and SVG show both sides
//! of a diff; the other formats have no place for a second side and show A.

mod firefox;
mod folded;
mod paths;
mod pprof;
mod speedscope;
mod svg;

pub use firefox::firefox;
pub use folded::folded;
pub use pprof::pprof;
pub use speedscope::speedscope;
pub use svg::svg;
