//! The files that a segment consists of.

use arrow::buffer::Buffer;

/// One of the files of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentFile {
    Rows,
    Lists,
    Sparse,
}

impl SegmentFile {
    pub(crate) const ALL: [Self; 3] = [Self::Rows, Self::Lists, Self::Sparse];

    /// What its name ends in while the segment is hot.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Rows => "arrow",
            Self::Lists => "lists.arrow",
            Self::Sparse => "sparse.arrow",
        }
    }
}

/// Something for each file of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerFile<T> {
    pub rows: T,
    /// Where it has columns of lists.
    pub lists: Option<T>,
    /// Where it has columns of which few rows have a value.
    pub sparse: Option<T>,
}

impl<T> PerFile<T> {
    pub(crate) fn as_ref(&self) -> PerFile<&T> {
        PerFile { rows: &self.rows, lists: self.lists.as_ref(), sparse: self.sparse.as_ref() }
    }

    pub(crate) fn map<U>(self, mut make: impl FnMut(T) -> U) -> PerFile<U> {
        let (lists, sparse) = (self.lists.map(&mut make), self.sparse.map(&mut make));
        PerFile { rows: make(self.rows), lists, sparse }
    }

    /// Makes something of each, of the rows last: where they are, all is there.
    pub(crate) fn try_map<U, E>(
        self,
        mut make: impl FnMut(SegmentFile, T) -> Result<U, E>,
    ) -> Result<PerFile<U>, E> {
        let lists = self.lists.map(|lists| make(SegmentFile::Lists, lists)).transpose()?;
        let sparse = self.sparse.map(|sparse| make(SegmentFile::Sparse, sparse)).transpose()?;
        Ok(PerFile { rows: make(SegmentFile::Rows, self.rows)?, lists, sparse })
    }
}

/// The bytes of a segment's files.
pub type Built = PerFile<Buffer>;

impl Built {
    /// How many there are.
    pub(super) fn bytes(&self) -> usize {
        let others = [&self.lists, &self.sparse].into_iter().flatten();
        self.rows.len() + others.map(Buffer::len).sum::<usize>()
    }
}
