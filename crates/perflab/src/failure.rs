//! How a command ends when it does not end well: a chain of causes, a hint, an exit code.

use std::error::Error;
use std::fmt::{self, Display};

/// What the exit code of a command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The answer is no: something was refused, or a check found damage.
    No,
    /// The command line is wrong.
    Usage,
    /// It could not be done: our fault or the machine's.
    Failed,
    /// Scribe's "try later", which only `scribe_cat` says.
    TryLater,
    /// What a program that we started ended with.
    Child(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::TryLater => 84,
            Self::Child(code) => code,
        }
    }
}

/// The reader of our output has gone away, as `head` does, which is no error of ours.
///
/// A type of its own, because a server that goes away is a broken pipe too.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
pub(crate) struct OutputClosed;

/// An error on its way to the user.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    exit: Exit,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(
        exit: Exit,
        message: impl Display + fmt::Debug + Send + Sync + 'static,
    ) -> Self {
        Self { error: anyhow::Error::msg(message), exit, hint: None }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Says what was being done, above what went wrong.
    #[must_use]
    pub(crate) fn context(self, context: impl Display + Send + Sync + 'static) -> Self {
        Self { error: self.error.context(context), ..self }
    }

    /// What went wrong at the bottom of the chain.
    pub(crate) fn root_cause(&self) -> String {
        self.error.root_cause().to_string()
    }

    /// Whether it is only that nobody reads our output any more.
    pub(crate) fn is_output_closed(&self) -> bool {
        self.error.chain().any(|cause| cause.is::<OutputClosed>())
    }
}

/// A chain of causes in one line, for answers and logs.
pub(crate) fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words.push_str(": ");
        words.push_str(&cause.to_string());
        source = cause.source();
    }
    words
}

/// Everything without an exit code of its own could not be done.
impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), exit: Exit::Failed, hint: None }
    }
}

/// The one place where a chain is put into words.
impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, cause) in self.error.chain().enumerate() {
            let label = if depth == 0 { "error" } else { "caused by" };
            writeln!(f, "{label}: {cause}")?;
        }
        match &self.hint {
            Some(hint) => writeln!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Adds what the caller knows to whatever went wrong.
pub(crate) trait Explain<T> {
    fn context(self, context: impl Display + Send + Sync + 'static) -> Result<T, Failure>;
    fn hint(self, hint: impl Into<String>) -> Result<T, Failure>;
    fn exit(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Explain<T> for Result<T, E> {
    fn context(self, context: impl Display + Send + Sync + 'static) -> Result<T, Failure> {
        self.map_err(|error| error.into().context(context))
    }

    fn hint(self, hint: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| error.into().with_hint(hint))
    }

    fn exit(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| error.into().with_exit(exit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_chain_is_printed_once_from_the_top() {
        let found: Result<(), _> = Err(io::Error::other("disk is gone"));
        let failure = found
            .context("failed to read `x`")
            .context("failed to list the categories")
            .hint("plug it in")
            .unwrap_err();
        assert_eq!(
            failure.to_string(),
            "error: failed to list the categories\ncaused by: failed to read `x`\n\
             caused by: disk is gone\n\nhint: plug it in\n"
        );
        assert_eq!(failure.exit(), Exit::Failed);
    }

    #[test]
    fn only_our_own_output_may_break_in_silence() {
        let closed: Result<(), _> = Err(OutputClosed);
        assert!(closed.context("failed to print").unwrap_err().is_output_closed());
        // As when the connection to a server breaks.
        let pipe: Result<(), _> = Err(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(!pipe.context("failed to send").unwrap_err().is_output_closed());
        assert!(!Failure::new(Exit::No, "no").is_output_closed());
    }
}
