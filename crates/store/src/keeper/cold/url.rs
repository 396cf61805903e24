//! Where cold segments are kept, as people say it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use object_store::path::Path;
use url::Url;

/// `s3://bucket/prefix` or `file:///folder`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColdUrl {
    /// Without a slash at its end, so that one place has one name.
    text: String,
    pub(super) kind: UrlKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UrlKind {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: Path },
}

/// Why a text does not say where cold segments are kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColdUrlError {
    #[error("`{text}` is no place for cold rows: give s3://BUCKET/PREFIX or file:///FOLDER")]
    Malformed { text: String },
    // What was given is not repeated: it may be a secret.
    #[error(
        "the URL for cold rows has more in it than a place: say who you are by \
         AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, all else by other AWS_ variables"
    )]
    MoreThanPlace,
}

impl FromStr for ColdUrl {
    type Err = ColdUrlError;

    fn from_str(text: &str) -> Result<Self, ColdUrlError> {
        let malformed = || ColdUrlError::Malformed { text: text.to_owned() };
        let url = Url::parse(text).map_err(|_no_url| malformed())?;
        let is_bare = url.username().is_empty()
            && url.password().is_none()
            && url.port().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_bare {
            return Err(ColdUrlError::MoreThanPlace);
        }
        let kind = match (url.scheme(), url.host_str()) {
            ("s3", Some(bucket)) => {
                let prefix = Path::from_url_path(url.path()).map_err(|_no_path| malformed())?;
                UrlKind::Bucket { bucket: bucket.to_owned(), prefix }
            }
            ("file", None) => UrlKind::Folder(url.to_file_path().map_err(|()| malformed())?),
            _ => return Err(malformed()),
        };
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), kind })
    }
}

impl fmt::Display for ColdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_buckets_and_folders() {
        let url: ColdUrl = "s3://bucket/some/prefix/".parse().unwrap();
        assert_eq!(url.to_string(), "s3://bucket/some/prefix");
        let UrlKind::Bucket { bucket, prefix } = url.kind else { panic!("a bucket") };
        assert_eq!((bucket.as_str(), prefix.as_ref()), ("bucket", "some/prefix"));
        assert_eq!("s3://bucket".parse::<ColdUrl>(), "s3://bucket/".parse());
        let url: ColdUrl = "file:///a%20b/c".parse().unwrap();
        assert_eq!(url.kind, UrlKind::Folder("/a b/c".into()));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "cold", "/cold", "gs://b/p", "https://b/p", "s3:///p", "file://host/f"] {
            let error = text.parse::<ColdUrl>().unwrap_err();
            assert_eq!(error, ColdUrlError::Malformed { text: text.to_owned() });
        }
        for text in ["s3://key:secret@bucket/p", "s3://bucket/p?secret=1", "s3://bucket/p#secret"] {
            let error = text.parse::<ColdUrl>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
