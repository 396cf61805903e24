//! A merged tree as a file that other tools read.
//!
//! Folded stacks and SVG show both sides of a diff; the other formats have no place for a second
//! side. Only SVG, which is a picture of the tree itself, takes one that was merged from the leaves
//! or from what leads to a frame: to the others, the first frame of a stack is where it began.

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

use crate::views::{Fold, Tree};

/// What a tree can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeFormat {
    Folded,
    Speedscope,
    Firefox,
    Pprof,
    Svg,
}

/// Why a tree can't be written so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error(
        "stacks of this format begin at the root, and this tree does not: leave out `fold`, ask \
         for `callees`, or ask for an SVG"
    )]
    NotFromRoot,
    #[error(
        "this format has no place for what is compared with: leave out the comparison, or ask for \
         folded stacks or an SVG"
    )]
    NoPlaceForB,
}

/// Writes a tree, which was merged this way, under a title.
pub fn export(
    tree: &Tree,
    fold: &Fold,
    format: TreeFormat,
    title: &str,
) -> Result<Vec<u8>, ExportError> {
    let is_from_root = match fold {
        Fold::FromRoot | Fold::Callees(_) => true,
        Fold::FromLeaf | Fold::Callers(_) => false,
    };
    let has_both_sides = matches!(format, TreeFormat::Folded | TreeFormat::Svg);
    if !is_from_root && format != TreeFormat::Svg {
        return Err(ExportError::NotFromRoot);
    }
    if tree.is_diff && !has_both_sides {
        return Err(ExportError::NoPlaceForB);
    }
    Ok(match format {
        TreeFormat::Folded => folded(tree).into_bytes(),
        TreeFormat::Speedscope => speedscope(tree, title).to_string().into_bytes(),
        TreeFormat::Firefox => firefox(tree, title).to_string().into_bytes(),
        TreeFormat::Pprof => pprof(tree),
        TreeFormat::Svg => svg(tree, title).into_bytes(),
    })
}
