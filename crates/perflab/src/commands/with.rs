//! `perflab with`: runs a command with everything in place.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use perflab_model::{Clock, SystemClock};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::cli::Globals;
use crate::client::{Client, ServedHome, serve_home};
use crate::commands::{run_on, runtime, shims};
use crate::failure::{Exit, Explain, Failure};
use crate::gateway::environment::Prepared;
use crate::gateway::{Authority, Bundle, Destination, Gateway, Upstream};
use crate::output::note;
use crate::settings::Settings;

/// Run a command whose Scribe messages all come to perflab
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Run a command whose Scribe messages all come to perflab.\n\n\
        The command finds scribe_cat on its PATH, the server in PERFLAB_SERVER and \
        SCRIBE_GRAPHQL_ENDPOINT, and a proxy in HTTPS_PROXY that takes what is sent to the \
        address that Scribe clients have built in; other connections pass through untouched. \
        Without a server, one runs for as long as the command does.\n\n\
        The exit status is that of the command, or 128 and the number of the signal that ended \
        it; 126 or 127 when it could not be started.",
    after_help = "\
Examples:
  perflab with -- python upload_scribe.py --pytest-bench-json bench.json
  perflab with -- make test
  perflab with sh"
)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let settings = globals.settings()?;
    // Connections through the gateway end with the run.
    run_on(runtime()?, run_with(&args.command, settings))
}

async fn run_with(command: &[OsString], mut settings: Settings) -> Result<Exit, Failure> {
    settings.home = std::path::absolute(&settings.home)?;
    let served = serve_if_nobody_does(&settings).await?;
    let ended = prepare_and_run(command, &settings).await;
    if let Some(served) = served
        && let Err(failure) = served.close().await
    {
        // The command has ended, and its exit status is what was asked for.
        let reason = failure.root_cause();
        note(&format!("warning: the server of this run did not end well: {reason}"));
    }
    ended
}

/// The server for the time of the run, if none runs already.
async fn serve_if_nobody_does(settings: &Settings) -> Result<Option<ServedHome>, Failure> {
    if settings.server.is_some() {
        return Ok(None);
    }
    let mut client = Client::of_home(settings.home.clone());
    if client.is_answered().await {
        return Ok(None);
    }
    serve_home(&settings.home).await
}

async fn prepare_and_run(command: &[OsString], settings: &Settings) -> Result<Exit, Failure> {
    let folder = tempfile::Builder::new().prefix("perflab-with-").tempdir()?;
    let shims = shims::create(&folder.path().join("bin"))?;
    let authority = Authority::of_home(&settings.home, SystemClock.now())?;
    let bundle = Bundle::write(folder.path(), authority.certificate())?;
    if bundle.others == 0 {
        note("warning: this machine has no trusted certificates: other TLS servers are refused");
    }
    let upstream = Upstream::from_variables(|var| env::var_os(var))
        .hint("only http:// and https:// proxies can be used; unset it to go without")?;
    let destination = match &settings.server {
        Some(url) => {
            let token = settings.token_for(url).cloned();
            Destination::Server { url: url.clone(), token }
        }
        None => Destination::Home(settings.home.clone()),
    };
    let gateway = Gateway::start(destination.clone(), upstream.clone(), &authority).await?;
    let prepared = Prepared {
        gateway: &gateway,
        destination: &destination,
        upstream: &upstream,
        home: &settings.home,
        bundle: &bundle,
        shims: &shims,
        token: settings.token(),
    };
    run_child(command, prepared.variables(|var| env::var_os(var))).await
}

async fn run_child(
    command: &[OsString],
    variables: Vec<(&'static str, OsString)>,
) -> Result<Exit, Failure> {
    let [program, arguments @ ..] = command else {
        return Err(Failure::new(Exit::Usage, "no command"));
    };
    // Before the start: a signal that comes in between must reach the child, not end us.
    let forwarding = Forwarding::prepare()?;
    let mut child = match Command::new(program).args(arguments).envs(variables).spawn() {
        Ok(child) => child,
        Err(error) => return Err(not_started(program, error)),
    };
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let forwarding = pid.map(|pid| forwarding.start(pid));
    let status = child.wait().await.context("failed to wait for the command")?;
    // From here on the process id may be another program's.
    drop(forwarding);
    Ok(Exit::Child(code_of(status)))
}

/// As shells have it: 127 not found, 126 found but not to be run.
fn not_started(program: &OsString, error: io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    let shown = Path::new(program).display();
    Failure::from(error).context(format!("failed to start `{shown}`")).with_exit(Exit::Child(code))
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// Signals that are meant for the command.
struct Forwarding(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Forwarding {
    fn prepare() -> io::Result<Self> {
        let kinds = [
            (Signal::INT, SignalKind::interrupt()),
            (Signal::TERM, SignalKind::terminate()),
            (Signal::HUP, SignalKind::hangup()),
        ];
        let listening = kinds.map(|(name, kind)| Ok((name, signal(kind)?)));
        Ok(Self(listening.into_iter().collect::<io::Result<_>>()?))
    }

    /// Passes signals on for as long as what it returns is held.
    fn start(self, child: Pid) -> JoinSet<()> {
        let mut forwarding = JoinSet::new();
        for (name, mut coming) in self.0 {
            forwarding.spawn(async move {
                while coming.recv().await.is_some() {
                    if !(name == Signal::INT && terminal_sends_to_all()) {
                        // It may have ended just now.
                        kill_process(child, name).ok();
                    }
                }
            });
        }
        forwarding
    }
}

/// Whether Ctrl-C reaches the command anyway: the terminal sends it to every process of its
/// foreground group, and twice is once too often.
///
/// It is the terminal that counts, not the input, which may come from a file. A SIGINT to us alone
/// can't be told from it, and is left alone too while we are in that group.
fn terminal_sends_to_all() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    tcgetpgrp(terminal).is_ok_and(|foreground| foreground == getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_child_is_passed_on() {
        assert_eq!(code_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code_of(ExitStatus::from_raw(255 << 8)), 255);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
