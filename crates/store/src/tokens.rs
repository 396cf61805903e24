//! The tokens in use: made here, found by their hash, never shown twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use perflab_model::{CategoryName, Nanos};
use perflab_wire::Secret;
use sha2::{Digest as _, Sha256};

use crate::catalog::{Catalog, CatalogError, Digest, Token};
use crate::glob::Glob;

/// What every token starts with, so that people and scanners recognise one that leaked.
const TOKEN_PREFIX: &str = "plt_";
/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;
/// The most tokens there can be.
pub const TOKENS_MAX: usize = 10_000;
/// The longest name of a token.
pub const TOKEN_NAME_BYTES_MAX: usize = 255;

/// What a new token shall allow.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: String,
    pub write: Vec<Glob>,
    pub read: Vec<Glob>,
    pub admin: bool,
    pub expires_in: Option<Duration>,
}

/// Why a token could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("a token's name has 1 to {TOKEN_NAME_BYTES_MAX} bytes, this one has {bytes}")]
    Name { bytes: usize },
    #[error("the pattern {pattern:?} has a line break, which no category's name has")]
    Pattern { pattern: String },
    #[error("there are {TOKENS_MAX} tokens already, which is the limit")]
    TooMany,
    #[error("failed to draw a random token")]
    Random(#[source] getrandom::Error),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// What someone may do.
#[derive(Debug, Clone)]
pub enum Access {
    /// The owner of the home, or anyone while there are no tokens.
    Everything,
    Token(Arc<Token>),
}

impl Access {
    pub fn may_write(&self, category: &CategoryName) -> bool {
        self.may(category.as_str(), |token| &token.write)
    }

    pub fn may_read(&self, category: &str) -> bool {
        self.may(category, |token| &token.read)
    }

    /// Whether settings, tokens and definitions may be changed.
    pub fn may_administer(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Token(token) => token.admin,
        }
    }

    fn may(&self, category: &str, globs: impl Fn(&Token) -> &[Glob]) -> bool {
        match self {
            Self::Everything => true,
            Self::Token(token) => globs(token).iter().any(|glob| glob.matches(category)),
        }
    }
}

/// All tokens, ready to be looked up.
#[derive(Debug)]
pub struct Tokens {
    /// Looked up by SHA-256 digest. A lookup's timing could only tell about the digest of what
    /// the client sent, which the client knows; it can't be steered towards a stored digest
    /// without inverting the hash, so no comparison here needs to take constant time.
    by_digest: RwLock<HashMap<Digest, Arc<Token>>>,
    /// See [`Catalog::has_lost_tokens`].
    some_lost: AtomicBool,
}

impl Tokens {
    pub(crate) fn load(catalog: &Catalog) -> Result<Self, CatalogError> {
        let tokens = Self { by_digest: RwLock::default(), some_lost: AtomicBool::new(true) };
        tokens.reload(catalog)?;
        Ok(tokens)
    }

    fn reload(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        // Before the catalog is read: of two changes at once, the one that read it first must not
        // be the last to store what it read.
        let mut by_digest = self.by_digest.write().unwrap_or_else(PoisonError::into_inner);
        let loaded = catalog.tokens()?;
        self.some_lost.store(catalog.has_lost_tokens()?, Ordering::Release);
        *by_digest = loaded.into_iter().map(|(digest, token)| (digest, Arc::new(token))).collect();
        Ok(())
    }

    /// Whether nobody needs a token: there are none, and none may have been lost with a damaged
    /// catalog.
    pub fn nobody_needs_one(&self) -> bool {
        self.is_empty() && !self.some_lost.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Expired ones count too.
    pub fn len(&self) -> usize {
        self.by_digest.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Sorted by name.
    pub fn list(&self) -> Vec<Arc<Token>> {
        let by_digest = self.by_digest.read().unwrap_or_else(PoisonError::into_inner);
        let mut tokens: Vec<_> = by_digest.values().cloned().collect();
        drop(by_digest);
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        tokens
    }

    /// What a secret allows; `None` when it is unknown or has expired.
    pub fn find(&self, secret: &Secret, now: Nanos) -> Option<Arc<Token>> {
        let digest = digest_of(secret);
        let by_digest = self.by_digest.read().unwrap_or_else(PoisonError::into_inner);
        let token = by_digest.get(&digest)?;
        (!token.is_expired(now)).then(|| Arc::clone(token))
    }

    /// Makes a token. The secret is returned this once and kept nowhere.
    pub(crate) fn add(
        &self,
        catalog: &Catalog,
        new: NewToken,
        now: Nanos,
    ) -> Result<Secret, TokenError> {
        let NewToken { name, write, read, admin, expires_in } = new;
        if !(1..=TOKEN_NAME_BYTES_MAX).contains(&name.len()) {
            return Err(TokenError::Name { bytes: name.len() });
        }
        if let Some(glob) = write.iter().chain(&read).find(|glob| glob.has_line_break()) {
            return Err(TokenError::Pattern { pattern: glob.to_string() });
        }
        if self.len() >= TOKENS_MAX {
            return Err(TokenError::TooMany);
        }
        let expires = expires_in.map(|after| now.saturating_add(after));
        let token = Token { name, write, read, admin, created: now, expires };
        let secret = random_secret()?;
        catalog.add_token(&digest_of(&secret), &token)?;
        self.reload(catalog)?;
        Ok(secret)
    }

    /// Whether there was such a token.
    pub(crate) fn remove(&self, catalog: &Catalog, name: &str) -> Result<bool, CatalogError> {
        let was_there = catalog.remove_token(name)?;
        self.reload(catalog)?;
        Ok(was_there)
    }
}

fn digest_of(secret: &Secret) -> Digest {
    Sha256::digest(secret.expose().as_bytes()).into()
}

fn random_secret() -> Result<Secret, TokenError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    Ok(Secret::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
}
