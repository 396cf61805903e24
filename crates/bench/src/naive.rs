//! What durable ingest costs without group commit: a server that decodes with perflab's code,
//! then writes and syncs its one file for every request by itself. The file is allocated and written
//! before, as perflab's are, so that the difference is the group commit and not the file system's.

use crate::decoding::Decoder;
use crate::disk::Preallocated;
use crate::http1::{Message, Reader};
use crate::requests::{Door, NDJSON_PATH};
use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use std::fmt::Write as _;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The most connections at once, each of which has a thread.
const CONNECTIONS_MAX: usize = 256;

/// How large its file is, which is written over again from the start: as large as perflab's.
const FILE_MIB: u64 = 64;

/// The hidden command that serves until it is ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// The folder for its file
    #[arg(long)]
    dir: PathBuf,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = Server::create(&settings.dir)?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "http://{address}")?;
    server.serve(&listener)
}

/// The server and its file.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    decoder: Arc<Decoder>,
    file: Arc<Mutex<Preallocated>>,
    rows: Arc<AtomicU64>,
}

impl Server {
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let file = Preallocated::create(&folder.join("naive.log"), FILE_MIB)?;
        Ok(Self {
            decoder: Arc::new(Decoder::new()?),
            file: Arc::new(Mutex::new(file)),
            rows: Arc::default(),
        })
    }

    /// How many rows are on disk; stays true while it serves.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.rows)
    }

    pub(crate) fn serve(&self, listener: &TcpListener) -> Result<()> {
        for stream in listener.incoming().take(CONNECTIONS_MAX) {
            let (server, stream) = (self.clone(), stream?);
            thread::spawn(move || {
                // A connection that fails is closed, which its client sees and reports.
                drop(server.answer_all(&stream));
            });
        }
        bail!("more than {CONNECTIONS_MAX} connections were made")
    }

    fn answer_all(&self, mut stream: &TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut requests = Reader::new(stream);
        while let Some(request) = requests.next()? {
            let rows = self.store(&request)?;
            stream.write_all(answer(rows).as_bytes())?;
        }
        Ok(())
    }

    /// Decodes a request and has it on disk before it returns the number of its rows.
    fn store(&self, request: &Message<'_>) -> Result<usize> {
        let door = match request.head.split(' ').nth(1) {
            Some("/scribe_logs") => Door::Form,
            Some(NDJSON_PATH) => Door::Ndjson,
            other => bail!("there is nothing at {other:?}"),
        };
        let body = Bytes::copy_from_slice(request.body);
        let rows = self.decoder.decode(door, body)?.len();
        let mut file = self
            .file
            .lock()
            .map_err(|_poisoned| anyhow!("another request failed inside a write"))?;
        file.write_durably(request.body)?;
        drop(file);
        self.rows.fetch_add(rows as u64, Ordering::SeqCst);
        Ok(rows)
    }
}

fn answer(rows: usize) -> String {
    let mut body = format!("{{\"count\":{rows},\"response_codes\":{{");
    for row in 0..rows {
        let comma = if row == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(body, "{comma}\"{row}\":\"OK\"");
    }
    body.push_str("}}");
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::requests::Requests;

    #[test]
    fn its_file_does_not_grow() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::create(folder.path()).unwrap();
        let length = || folder.path().join("naive.log").metadata().unwrap().len();
        assert_eq!(length(), FILE_MIB << 20);
        let messages = messages::generate(10);
        let body = Requests::new(Door::Ndjson, &messages, 10).body(0).concat();
        let head = format!("POST {NDJSON_PATH} HTTP/1.1");
        assert_eq!(server.store(&Message { head: &head, body: &body }).unwrap(), 10);
        assert_eq!(length(), FILE_MIB << 20);
    }
}
