//! A server on a home of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use perflab_model::{Clock, ManualClock, Nanos};
use perflab_server::{Bound, ServeError, ServerSettings, serve};
use perflab_store::{Home, HomeSettings};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::client::{Call, Connection, Reply};

/// When the tests take place: 2023-11-14T22:13:20Z.
pub(crate) const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

/// What a test wants to be different.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) home: HomeSettings,
    pub(crate) server: ServerSettings,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Plan {
    fn default() -> Self {
        let mut server = ServerSettings::default();
        server.listen.set_port(0);
        let clock = Arc::new(ManualClock::new(NOW));
        Self { home: HomeSettings::default(), server, clock }
    }
}

#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) bound: Bound,
    pub(crate) home: Arc<Home>,
    dir: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Rig {
    pub(crate) fn start() -> Self {
        Self::start_with(Plan::default())
    }

    pub(crate) fn start_with(plan: Plan) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), plan)
    }

    pub(crate) fn start_in(dir: TempDir, plan: Plan) -> Self {
        let home = Home::open(dir.path(), plan.home, plan.clock).unwrap();
        let (stop, stopped) = oneshot::channel();
        let (tell, bound) = std::sync::mpsc::channel();
        let served = Arc::clone(&home);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve(
                served,
                plan.server,
                move |bound| tell.send(bound.clone()).unwrap(),
                async move { drop(stopped.await) },
            ))
        });
        let bound = bound.recv().unwrap();
        let (stop, thread) = (Some(stop), Some(thread));
        Self { address: bound.address, bound, home, dir, stop, thread }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    pub(crate) fn call(&self, call: &Call) -> Reply {
        self.connect().call(call)
    }

    /// Sends lines to a category; they must be taken.
    pub(crate) fn log(&self, category: &str, lines: &str) {
        let reply = self.call(&Call::post(format!("/api/log?category={category}"), lines));
        assert!(reply.codes().iter().all(|code| code == "OK"), "{:?}", reply.json());
    }

    /// What is in a category, without the closing line.
    pub(crate) fn tail(&self, category: &str) -> Vec<Value> {
        let reply = self.call(&Call::get(format!("/api/tail?category={category}")));
        assert_eq!(reply.status, 200, "{:?}", String::from_utf8_lossy(&reply.body));
        let mut lines = reply.lines();
        let end = lines.pop().unwrap();
        assert_eq!(end["end"]["complete"], true, "{end}");
        lines
    }

    pub(crate) fn messages(&self, category: &str) -> Vec<String> {
        let lines = self.tail(category);
        lines.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn rows(&self, category: &str) -> Vec<Value> {
        self.tail(category).into_iter().map(|line| line["row"].clone()).collect()
    }

    pub(crate) fn rejected(&self) -> Vec<Value> {
        self.rows("perflab/rejected")
    }

    /// Changes a byte of the one file of segments that holds these bytes.
    pub(crate) fn damage_segment(&self, holding: &[u8]) {
        let segments = self.dir().join("segments");
        let folder = fs::read_dir(segments).unwrap().next().unwrap().unwrap().path();
        let damaged = fs::read_dir(folder).unwrap().filter(|file| {
            let path = file.as_ref().unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            let places = bytes.windows(holding.len()).position(|window| window == holding);
            let Some(at) = places else { return false };
            bytes[at] ^= 1;
            // Into the same file, which is mapped.
            fs::write(&path, &bytes).unwrap();
            true
        });
        assert_eq!(damaged.count(), 1);
    }

    /// Asks the server to end, without waiting for it.
    pub(crate) fn ask_to_stop(&mut self) {
        // It may have ended already.
        self.stop.take().map(|stop| stop.send(())).unwrap_or(Ok(())).unwrap_or_default();
    }

    /// Ends the server; the home stays.
    pub(crate) fn stop(mut self) -> TempDir {
        self.ask_to_stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
        std::mem::replace(&mut self.dir, TempDir::new().unwrap())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The body of a form with these logs.
pub(crate) fn form_of(token: &str, logs: &Value) -> String {
    form_urlencoded::Serializer::new(String::new())
        .append_pair("access_token", token)
        .append_pair("logs", &logs.to_string())
        .finish()
}

/// An entry as the uploaders write it.
pub(crate) fn entry(category: &str, message: &Value) -> Value {
    serde_json::json!({
        "category": category,
        "message": message.to_string(),
        "line_escape": false,
    })
}
