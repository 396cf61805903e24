//! A server in this process: for one command, or for the time of a run.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use perflab_model::SystemClock;
use perflab_server::{Bound, Peer, ServeError, ServerSettings, router, serve};
use perflab_store::{DrainReport, Home, HomeError, HomeSettings};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::Client;
use crate::failure::{Explain, Failure, in_words};
use crate::output::note;
use crate::trace;

/// Another command, or a server that is starting or ending, holds the home no longer than this.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Who has the home.
#[derive(Debug)]
pub(crate) enum Owner {
    ThisProcess(Arc<Home>),
    /// A server, which answers.
    Server {
        client: Box<Client>,
        held: HomeError,
    },
}

/// Takes the home, or finds the server that has it. A holder that does not answer is given a
/// moment to finish.
pub(crate) async fn own(dir: &Path, settings: &HomeSettings) -> Result<Owner, Failure> {
    let give_up = tokio::time::Instant::now() + LOCK_WAIT;
    loop {
        let (path, settings) = (dir.to_owned(), settings.clone());
        let opening =
            tokio::task::spawn_blocking(move || Home::open(&path, settings, Arc::new(SystemClock)));
        let held = match opening.await? {
            Ok(home) => return Ok(Owner::ThisProcess(home)),
            Err(held @ HomeError::Held { .. }) => held,
            Err(error) => return Err(error.into()),
        };
        let mut client = Client::of_home(dir.to_owned());
        if client.is_answered().await {
            return Ok(Owner::Server { client: Box::new(client), held });
        }
        if tokio::time::Instant::now() >= give_up {
            return Err(held).hint("it does not answer; wait for it to end, or end it");
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
}

/// A home that this process owns, and the server's answers about it.
pub(crate) struct LocalServer {
    pub(super) dir: PathBuf,
    /// What came in from the spool at the start.
    pub(super) drained: DrainReport,
    home: Arc<Home>,
    router: Router,
}

impl fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalServer").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl LocalServer {
    /// Brings in what writers spooled, so that it can be read.
    pub(super) async fn start(home: Arc<Home>) -> Result<Self, Failure> {
        let draining = Arc::clone(&home);
        let drained = tokio::task::spawn_blocking(move || draining.drain_spool()).await?;
        let drained = drained.unwrap_or_else(|error| {
            note(&format!("warning: what waits in the spool is left out: {}", in_words(&error)));
            DrainReport::default()
        });
        let router = router(Arc::clone(&home), ServerSettings::default());
        Ok(Self { dir: home.dir().to_owned(), drained, home, router })
    }

    pub(super) async fn answer(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer::Owner);
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    pub(super) async fn close(self) {
        // A panic in there has been told already.
        tokio::task::spawn_blocking(move || self.home.close()).await.ok();
    }
}

/// A server that runs beside something else in this process.
#[derive(Debug)]
pub(crate) struct ServedHome {
    end: CancellationToken,
    server: JoinHandle<Result<(), ServeError>>,
}

/// Serves the home on a free loopback port, unless a server has it already.
pub(crate) async fn serve_home(dir: &Path) -> Result<Option<ServedHome>, Failure> {
    trace::start_quietly();
    let home = match own(dir, &HomeSettings::default()).await? {
        Owner::ThisProcess(home) => home,
        Owner::Server { .. } => return Ok(None),
    };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let settings = ServerSettings { listen, ..ServerSettings::default() };
    let end = CancellationToken::new();
    let (bound, is_bound) = oneshot::channel();
    let shutdown = end.clone().cancelled_owned();
    let tell = |_: &Bound| {
        // Whoever waits for it is below.
        bound.send(()).ok();
    };
    let server = tokio::spawn(serve(home, settings, tell, shutdown));
    let served = ServedHome { end, server };
    match is_bound.await {
        Ok(()) => Ok(Some(served)),
        Err(_ended) => served.close().await.map(|()| None),
    }
}

impl ServedHome {
    /// Finishes what was accepted and gives the home back.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.end.cancel();
        Ok(self.server.await??)
    }
}
