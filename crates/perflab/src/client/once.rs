//! One request to the home's server and its answer, without a runtime.
//!
//! For `scribe_cat`, which is started once per message: a runtime and a general HTTP client would
//! be a good part of all the memory that it touches, and so of the time it takes.

use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;
use http::StatusCode;

use super::connect::{self, ConnectError};
use super::{ANSWER_BYTES_MAX, Call, ClientError};

/// More headers than the server ever sends.
const HEADERS_MAX: usize = 32;

/// Sends a request on a connection of its own and reads the whole answer.
pub(crate) fn exchange(home: &Path, call: &Call) -> Result<(StatusCode, Bytes), ClientError> {
    let target = || format!("`{}`", home.display());
    let mut stream = connect::to_home_blocking(home).map_err(|error| ClientError::NoServer {
        target: target(),
        error: ConnectError::Io(error),
    })?;
    let answered = send(&mut stream, call).map_err(|error| {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            ClientError::Timeout { target: target(), after: call.answer_timeout }
        } else {
            ClientError::Lost { target: target(), error: error.into() }
        }
    })?;
    if answered.len() > ANSWER_BYTES_MAX {
        return Err(ClientError::TooLarge { target: target() });
    }
    read(&answered).ok_or_else(|| ClientError::Lost {
        target: target(),
        error: "the answer is not whole".into(),
    })
}

fn send(stream: &mut std::os::unix::net::UnixStream, call: &Call) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(call.answer_timeout))?;
    stream.set_write_timeout(Some(call.answer_timeout))?;
    let mut request = format!(
        "{} {} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n",
        call.method,
        call.path,
        call.body.len()
    )
    .into_bytes();
    for (name, value) in &call.headers {
        write!(request, "{name}: {value}\r\n")?;
    }
    request.extend_from_slice(b"\r\n");
    // In one piece, so that the server wakes up once.
    request.extend_from_slice(&call.body);
    stream.write_all(&request)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut answer)?;
    Ok(answer)
}

/// `None` unless it is a whole answer with a length.
fn read(answer: &[u8]) -> Option<(StatusCode, Bytes)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(answer).ok()? else { return None };
    let body = &answer[head..];
    let length = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"))?;
    let length: usize = std::str::from_utf8(length.value).ok()?.parse().ok()?;
    let status = StatusCode::from_u16(response.code?).ok()?;
    (body.len() == length).then(|| (status, Bytes::copy_from_slice(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_counts() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        let (status, body) = read(whole).unwrap();
        assert_eq!((status, &body[..]), (StatusCode::OK, &b"{}"[..]));
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_none(), "{cut}");
        }
        assert!(read(b"HTTP/1.1 200 OK\r\n\r\n{}").is_none(), "no length");
        assert!(read(b"SSH-2.0-x\r\n\r\n").is_none());
    }
}
