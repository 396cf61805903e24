//! A place for cold segments, ready to be used.

use std::error::Error;
use std::path;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use perflab_log::{Disk, create_dir};

use super::local::LocalFolder;
use super::url::{ColdUrl, UrlKind};
use crate::keeper::files::{COLD_FOLDER, QUARANTINE};

const SIGN: &str = "perflab";

/// How long a connection may take to come about.
const CONNECT_TIME: &str = "5s";
/// Longer than any call may take: [`Calls`](super::calls::Calls) ends those.
const REQUEST_TIME: &str = "1h";
/// So often a request is repeated that failed,
const RETRIES_MAX: usize = 2;
/// unless it has taken this long by then.
const RETRY_TIME: Duration = Duration::from_secs(20);

/// Why a place can't be used.
#[derive(Debug, thiserror::Error)]
#[error("cold rows can't be kept in `{place}`")]
pub struct PlaceError {
    place: String,
    #[source]
    error: Box<dyn Error + Send + Sync>,
}

impl PlaceError {
    fn new(place: &str, error: impl Error + Send + Sync + 'static) -> Self {
        Self { place: place.to_owned(), error: Box::new(error) }
    }
}

#[derive(Debug)]
pub(super) struct Place {
    /// As people are told.
    pub(super) name: String,
    pub(super) objects: Arc<dyn ObjectStore>,
    /// What the names of this home's cold segments begin with,
    pub(super) prefix: Path,
    /// and of those that are set aside.
    pub(super) quarantine: Path,
    /// An object that is there as long as the place is what it was: a bucket that was made anew and
    /// a disk that is not mounted look like places that have lost everything.
    pub(super) sign: Path,
    /// Not in the home, which is there or nothing is.
    pub(super) is_signed: bool,
    /// Where it is a folder of this machine.
    pub(super) local: Option<LocalFolder>,
}

impl Place {
    /// In the folder of the home that they are in unless someone says otherwise.
    pub(super) fn of_home(home: &path::Path, disk: Arc<dyn Disk>) -> Result<Self, PlaceError> {
        let name = home.join(COLD_FOLDER).display().to_string();
        Ok(Self {
            objects: folder(&name, home)?,
            prefix: COLD_FOLDER.into(),
            quarantine: QUARANTINE.into(),
            sign: Path::from(COLD_FOLDER).join(SIGN),
            is_signed: false,
            local: Some(LocalFolder::new(home.to_owned(), disk)),
            name,
        })
    }

    /// Under a name of the home's own, so that many can share a place.
    pub(super) fn at(
        url: &ColdUrl,
        home_id: &str,
        disk: Arc<dyn Disk>,
    ) -> Result<Self, PlaceError> {
        let name = url.to_string();
        let (objects, prefix, local) = match &url.kind {
            UrlKind::Folder(dir) => {
                let local = LocalFolder::new(dir.clone(), disk);
                (made_folder(&name, dir)?, Path::default(), Some(local))
            }
            UrlKind::Bucket { bucket, prefix } => {
                (self::bucket(&name, bucket)?, prefix.clone(), None)
            }
        };
        let prefix = prefix.join(home_id);
        let (quarantine, sign) = (prefix.clone().join(QUARANTINE), prefix.clone().join(SIGN));
        Ok(Self { name, objects, prefix, quarantine, sign, is_signed: true, local })
    }
}

fn made_folder(name: &str, dir: &path::Path) -> Result<Arc<dyn ObjectStore>, PlaceError> {
    create_dir(dir, 0o700).map_err(|error| PlaceError::new(name, error))?;
    folder(name, dir)
}

fn folder(name: &str, dir: &path::Path) -> Result<Arc<dyn ObjectStore>, PlaceError> {
    let objects = LocalFileSystem::new_with_prefix(dir);
    Ok(Arc::new(objects.map_err(|error| PlaceError::new(name, error))?))
}

/// As the AWS_ variables of this process say, but with limits of ours.
fn bucket(name: &str, bucket: &str) -> Result<Arc<dyn ObjectStore>, PlaceError> {
    let retry = RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIME,
        ..RetryConfig::default()
    };
    let objects = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT_TIME)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), REQUEST_TIME)
        .with_retry(retry)
        .build();
    Ok(Arc::new(objects.map_err(|error| PlaceError::new(name, error))?))
}
