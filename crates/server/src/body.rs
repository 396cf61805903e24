//! Reads a body without ever holding more than it may.

use std::io::{self, Read};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout, timeout_at};

use crate::budget::Hold;
use crate::error::ApiError;
use crate::settings::ServerLimits;
use crate::state::Server;

/// A body's buffer starts no larger than this, whatever its length is said to be.
const BUFFER_BYTES: usize = 1 << 20;
/// A decompressed body is accounted for in steps of this size.
const DECOMPRESS_STEP_BYTES: usize = 256 << 10;
/// The most memory that a zstd frame may ask for: 16 MiB, what `zstd -19` uses twice over.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;

/// A body, and its share of the budget.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) hold: Hold,
}

impl Server {
    /// Reads a whole body of at most `bytes_max` bytes.
    pub(crate) async fn receive(&self, body: Body, bytes_max: usize) -> Result<Received, ApiError> {
        let declared = body.size_hint().exact();
        let too_large = declared.is_some_and(|bytes| bytes > bytes_max as u64);
        if too_large {
            return Err(ApiError::too_large(bytes_max));
        }
        let expected = declared.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        // No more than the buffer starts with: who only says that much will come holds nothing.
        let Ok(hold) = self.budget.hold(expected.min(BUFFER_BYTES)) else {
            return Err(ApiError::over_budget());
        };
        let deadline = Instant::now() + self.settings.limits.body_timeout;
        let reading = Reading { body, hold, expected, bytes_max };
        match timeout_at(deadline, reading.read(&self.settings.limits)).await {
            Ok(received) => received,
            Err(_elapsed) => Err(too_slow()),
        }
    }
}

struct Reading {
    body: Body,
    hold: Hold,
    expected: usize,
    bytes_max: usize,
}

impl Reading {
    async fn read(mut self, limits: &ServerLimits) -> Result<Received, ApiError> {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.next_chunk(limits).await? {
            let after = bytes.len() + chunk.len();
            if after > self.bytes_max {
                return Err(ApiError::too_large(self.bytes_max));
            }
            if self.hold.grow(after.saturating_sub(self.hold.bytes())).is_err() {
                return Err(ApiError::over_budget());
            }
            if bytes.is_empty() && chunk.len() == self.expected {
                return Ok(Received { bytes: chunk, hold: self.hold });
            }
            if bytes.is_empty() {
                bytes.reserve(self.expected.clamp(chunk.len(), BUFFER_BYTES.max(chunk.len())));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Received { bytes: bytes.freeze(), hold: self.hold })
    }

    async fn next_chunk(&mut self, limits: &ServerLimits) -> Result<Option<Bytes>, ApiError> {
        loop {
            let next = timeout(limits.body_pause_timeout, self.body.frame()).await;
            match next.map_err(|_elapsed| too_slow())? {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(chunk) = frame.into_data() {
                        return Ok(Some(chunk));
                    }
                }
                Some(Err(error)) => {
                    let message = format!("the body ended before all of it was there: {error}");
                    return Err(ApiError::bad_request(message));
                }
            }
        }
    }
}

fn too_slow() -> ApiError {
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "the body was sent too slowly")
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        match value.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            other => {
                let message = format!(
                    "content encoding `{}` is not known; known are gzip, zstd and identity",
                    other.escape_debug()
                );
                Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
            }
        }
    }
}

impl Received {
    /// The body as it was before it was compressed, at most `bytes_max` bytes of it.
    pub(crate) fn decompress(self, encoding: Encoding, bytes_max: usize) -> Result<Self, ApiError> {
        let compressed = &self.bytes[..];
        match encoding {
            Encoding::Identity => Ok(self),
            Encoding::Gzip => {
                inflate(flate2::read::MultiGzDecoder::new(compressed), self.hold, bytes_max)
            }
            Encoding::Zstd => {
                let decoder = zstd::Decoder::new(compressed).and_then(|mut decoder| {
                    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                    Ok(decoder)
                });
                inflate(decoder.map_err(|error| not_compressed(&error))?, self.hold, bytes_max)
            }
        }
    }
}

fn inflate(mut source: impl Read, mut hold: Hold, bytes_max: usize) -> Result<Received, ApiError> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let step = (&mut source).take(DECOMPRESS_STEP_BYTES as u64).read_to_end(&mut bytes);
        step.map_err(|error| not_compressed(&error))?;
        if bytes.len() > bytes_max {
            return Err(ApiError::too_large(bytes_max));
        }
        let read = bytes.len() - before;
        if hold.grow(read).is_err() {
            return Err(ApiError::over_budget());
        }
        if read < DECOMPRESS_STEP_BYTES {
            return Ok(Received { bytes: bytes.into(), hold });
        }
    }
}

fn not_compressed(error: &io::Error) -> ApiError {
    ApiError::bad_request(format!("the body can't be decompressed: {error}"))
}
