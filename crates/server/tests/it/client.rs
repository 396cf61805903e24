//! A small HTTP/1.1 client that sends exactly what it is told.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// No answer of a test takes this long.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The codes in order.
    pub(crate) fn codes(&self) -> Vec<String> {
        let document = self.json();
        let codes = document["response_codes"].as_object().unwrap();
        assert_eq!(document["count"], codes.len(), "{document}");
        let code = |index: usize| codes[&index.to_string()].as_str().unwrap().to_owned();
        (0..codes.len()).map(code).collect()
    }

    pub(crate) fn reason(&self, index: usize) -> String {
        self.json()["errors"][index.to_string()].as_str().unwrap_or_default().to_owned()
    }
}

/// One request, to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Call {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST", path) }
    }

    /// A form, as `requests` sends it.
    pub(crate) fn form(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self::post(path, body).header("Content-Type", "application/x-www-form-urlencoded")
    }

    pub(crate) fn json(path: impl Into<String>, body: &Value) -> Self {
        Self::post(path, body.to_string()).header("Content-Type", "application/json")
    }

    pub(crate) fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// The request with its body's length.
    pub(crate) fn encode(&self, host: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        write!(bytes, "{} {} HTTP/1.1\r\n", self.method, self.path).unwrap();
        let has = |name: &str| self.headers.iter().any(|(known, _)| known == name);
        if !has("Host") {
            write!(bytes, "Host: {host}\r\n").unwrap();
        }
        if !has("Content-Length") && !has("Transfer-Encoding") && self.method != "GET" {
            write!(bytes, "Content-Length: {}\r\n", self.body.len()).unwrap();
        }
        for (name, value) in &self.headers {
            write!(bytes, "{name}: {value}\r\n").unwrap();
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// A connection that is kept alive.
#[derive(Debug)]
pub(crate) struct Connection<S = TcpStream> {
    reader: BufReader<S>,
    host: String,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self::over(stream, address.to_string())
    }

    /// Whether nothing has come so far.
    pub(crate) fn is_silent(&self) -> bool {
        let stream = self.reader.get_ref();
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn over(stream: S, host: String) -> Self {
        Self { reader: BufReader::new(stream), host }
    }

    pub(crate) fn call(&mut self, call: &Call) -> Reply {
        let bytes = call.encode(&self.host);
        self.send(&bytes);
        self.reply()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends as much as the server takes.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.reader.get_mut().write_all(bytes).is_ok()
    }

    /// Sends a request whose answer is read line by line.
    pub(crate) fn start(&mut self, call: &Call) -> u16 {
        let bytes = call.encode(&self.host);
        self.send(&bytes);
        let (status, headers) = self.head();
        assert!(is_chunked(&headers), "{headers:?}");
        status
    }

    /// The next chunk of an answer that has begun; empty at its end.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let bytes = usize::from_str_radix(&self.line(), 16).unwrap();
        let mut chunk = vec![0; bytes + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        chunk.truncate(bytes);
        chunk
    }

    pub(crate) fn reply(&mut self) -> Reply {
        let (status, headers) = self.head();
        let mut body = Vec::new();
        if is_chunked(&headers) {
            loop {
                let chunk = self.chunk();
                if chunk.is_empty() {
                    break;
                }
                body.extend(chunk);
            }
        } else {
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length = length.map_or(0, |(_, value)| value.parse().unwrap());
            body.resize(length, 0);
            self.reader.read_exact(&mut body).unwrap();
        }
        Reply { status, headers, body }
    }

    /// Whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).is_ok_and(|_| rest.is_empty())
    }

    fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status = self.line();
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        (status, headers)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

fn is_chunked(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked")
}
