//! The requests that the load generator sends, encoded before the clock starts.

use crate::joined::Joined;
use std::fmt;

/// The category that the benchmark writes to.
pub(crate) const CATEGORY: &str = "perfpipe_bench";

/// Which way rows come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// `POST /scribe_logs`, as `requests.post(url, data={…})` writes it.
    Form,
    /// `POST /api/log`, one message per line.
    Ndjson,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "form",
            Self::Ndjson => "NDJSON",
        })
    }
}

/// What separates, opens and closes the entries of a form's `logs` array once it is encoded.
const FORM_SEPARATOR: &str = "%2C+";
const FORM_START: &[u8] = b"access_token=bench&logs=%5B";
const FORM_END: &[u8] = b"%5D";

/// [`CATEGORY`] through the door for lines.
pub(crate) const NDJSON_PATH: &str = "/api/log?category=perfpipe_bench";

/// The messages as entries of a form's array.
pub(crate) fn form_entries(messages: &Joined) -> Joined {
    let mut entries = Joined::new(FORM_SEPARATOR);
    for message in messages.iter() {
        let message = serde_json::Value::String(String::from_utf8_lossy(message).into_owned());
        let entry =
            format!(r#"{{"category": "{CATEGORY}", "message": {message}, "line_escape": false}}"#);
        entries.push_with(|out| {
            for part in form_urlencoded::byte_serialize(entry.as_bytes()) {
                out.extend_from_slice(part.as_bytes());
            }
        });
    }
    entries
}

/// Requests with the same number of rows each, over all entries in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requests<'e> {
    door: Door,
    entries: &'e Joined,
    rows: usize,
    producer: Option<&'e str>,
}

impl<'e> Requests<'e> {
    /// `entries` are messages for [`Door::Ndjson`], [`form_entries`] for [`Door::Form`].
    pub(crate) fn new(door: Door, entries: &'e Joined, rows: usize) -> Self {
        assert!(0 < rows && rows <= entries.len(), "a request has rows");
        Self { door, entries, rows, producer: None }
    }

    /// The same with a key for each row: the producer, and the row's place among all that are sent.
    pub(crate) fn with_producer(self, producer: &'e str) -> Self {
        Self { producer: Some(producer), ..self }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How many requests go once over all entries.
    pub(crate) fn cycle(&self) -> usize {
        self.entries.len() / self.rows
    }

    /// The body of the `index`-th request, in the parts that it is made of.
    pub(crate) fn body(&self, index: usize) -> [&'e [u8]; 3] {
        let first = index % self.cycle() * self.rows;
        let entries = self.entries.run(first, self.rows);
        match self.door {
            Door::Form => [FORM_START, entries, FORM_END],
            Door::Ndjson => [b"", entries, b"\n"],
        }
    }

    /// Writes the whole `index`-th request over what `out` holds.
    pub(crate) fn write(&self, index: usize, out: &mut Vec<u8>) {
        let parts = self.body(index);
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let (path, content_type) = match self.door {
            Door::Form => ("/scribe_logs", "application/x-www-form-urlencoded"),
            Door::Ndjson => (NDJSON_PATH, "application/x-ndjson"),
        };
        let keys = match self.producer {
            None => String::new(),
            Some(producer) => format!(
                "X-Perflab-Producer: {producer}\r\nX-Perflab-Sequence: {}\r\n",
                index * self.rows
            ),
        };
        out.clear();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n\
             {keys}Content-Length: {length}\r\n\r\n"
        );
        out.extend_from_slice(head.as_bytes());
        for part in parts {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn a_form_body_holds_the_messages_as_the_uploaders_send_them() {
        let messages = messages::generate(5);
        let entries = form_entries(&messages);
        let body = Requests::new(Door::Form, &entries, 2).body(1).concat();
        let fields: Vec<_> = form_urlencoded::parse(&body).collect();
        assert_eq!(fields[0], ("access_token".into(), "bench".into()));
        assert_eq!(fields[1].0, "logs");
        let logs: Vec<serde_json::Value> = serde_json::from_str(&fields[1].1).unwrap();
        assert_eq!(logs.len(), 2);
        assert_eq!(logs[1]["category"], CATEGORY);
        assert_eq!(logs[1]["line_escape"], false);
        assert_eq!(logs[1]["message"].as_str().unwrap().as_bytes(), messages.run(3, 1));
    }

    #[test]
    fn requests_go_round_and_say_their_length() {
        let messages = messages::generate(5);
        let requests = Requests::new(Door::Ndjson, &messages, 2);
        assert_eq!(requests.cycle(), 2);
        assert_eq!(requests.body(0), requests.body(2));
        let mut request = Vec::new();
        requests.write(1, &mut request);
        let request = String::from_utf8(request).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("POST {NDJSON_PATH} HTTP/1.1\r\n")));
        assert!(NDJSON_PATH.ends_with(CATEGORY));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        assert_eq!(body.lines().count(), 2);
        assert!(!head.contains("X-Perflab"));
    }

    #[test]
    fn every_row_has_a_key_of_its_own() {
        let messages = messages::generate(5);
        let requests = Requests::new(Door::Ndjson, &messages, 2).with_producer("filler");
        let mut request = Vec::new();
        for (index, sequence) in [(0, 0), (1, 2), (2, 4)] {
            requests.write(index, &mut request);
            let request = String::from_utf8_lossy(&request);
            let keys = format!("X-Perflab-Producer: filler\r\nX-Perflab-Sequence: {sequence}\r\n");
            assert!(request.contains(&keys), "{request}");
        }
    }
}
