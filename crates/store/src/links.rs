//! Short links. The name of a link comes from where it leads, so that the same link made twice is
//! one.

use sha2::{Digest as _, Sha256};

use crate::catalog::CatalogError;
use crate::home::Home;

/// The longest target of a link.
pub const LINK_BYTES_MAX: usize = 64 << 10;
/// The most links there can be.
pub const LINKS_MAX: i64 = 1_000_000;

/// Letters and digits that can't be taken for each other when they are read aloud or typed.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How many letters of its digest name a link: 50 bits, and more where two would share a name.
const ID_LETTERS: usize = 10;

/// Why a link can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the link leads to {bytes} bytes, the limit is {LINK_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("there are {LINKS_MAX} links, which is the limit")]
    TooMany,
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl Home {
    /// Keeps a link and returns its name.
    pub fn add_link(&self, target: &str) -> Result<String, LinkError> {
        if target.len() > LINK_BYTES_MAX {
            return Err(LinkError::TooLong { bytes: target.len() });
        }
        let whole = letters(target);
        let mut id = &whole[..ID_LETTERS];
        while let Some(known) = self.catalog().link(id)? {
            if known == target || id.len() == whole.len() {
                return Ok(id.to_owned());
            }
            id = &whole[..id.len() + 1];
        }
        if self.catalog().links_count()? >= LINKS_MAX {
            return Err(LinkError::TooMany);
        }
        self.catalog().add_link(id, target, self.now())?;
        Ok(id.to_owned())
    }

    /// Where a link leads.
    pub fn link(&self, id: &str) -> Result<Option<String>, CatalogError> {
        self.catalog().link(id)
    }
}

/// The digest of a target, five bits of each byte.
fn letters(target: &str) -> String {
    let digest = Sha256::digest(target.as_bytes());
    digest.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}
