//! A server that runs as a child process for as long as it is measured.

use crate::http1::Reader;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running server.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    address: SocketAddr,
    /// Held open: a server that talks to a closed pipe may end.
    _stdout: BufReader<ChildStdout>,
}

/// What `GET /api/categories` says, reduced to what is compared.
#[derive(Debug, Deserialize)]
struct Categories {
    categories: Vec<Category>,
}

#[derive(Debug, Deserialize)]
struct Category {
    category: String,
    records: u64,
}

impl ServerProcess {
    /// `perflab serve` on a free port, with its data in `home`.
    pub(crate) fn start_perflab(perflab: &Path, home: &Path) -> Result<Self> {
        let mut command = Command::new(perflab);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("PERFLAB_HOME", home)
            .env("PERFLAB_LOG", "error")
            .env_remove("PERFLAB_SERVER")
            .env_remove("PERFLAB_TOKEN");
        Self::start(&mut command)
    }

    /// Starts a server that writes its address on its first line.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        match read_address(&mut child) {
            Ok((address, stdout)) => Ok(Self { child, address, _stdout: stdout }),
            Err(error) => {
                // It may be gone already; either way it must not stay.
                drop(child.kill());
                let status = child.wait()?;
                Err(error.context(format!("{} said no address ({status})", program.display())))
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How many records the server says that a category has.
    pub(crate) fn records(&self, category: &str) -> Result<u64> {
        let mut stream = TcpStream::connect(self.address)?;
        let address = self.address;
        write!(stream, "GET /api/categories HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        let mut answers = Reader::new(&stream);
        let answer = answers.next()?.context("the server closed a connection")?;
        let listed: Categories = serde_json::from_slice(answer.body)
            .with_context(|| format!("unexpected categories: {}", answer.head))?;
        let found = listed.categories.iter().find(|listed| listed.category == category);
        Ok(found.map_or(0, |found| found.records))
    }

    /// Fails unless the category has exactly the acknowledged records.
    pub(crate) fn check_records(&self, category: &str, acknowledged: u64) -> Result<()> {
        let records = self.records(category)?;
        if records != acknowledged {
            bail!("{acknowledged} rows were acknowledged, the server has {records}");
        }
        Ok(())
    }

    /// Asks the server to end, and waits for it.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // After `stop` there is nothing left to end, and that is no error.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_address(child: &mut Child) -> Result<(SocketAddr, BufReader<ChildStdout>)> {
    let stdout = child.stdout.take().context("it has no stdout")?;
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    Ok((parse_address(&line)?, stdout))
}

fn parse_address(line: &str) -> Result<SocketAddr> {
    let (_, after_scheme) =
        line.split_once("http://").with_context(|| format!("no address in {line:?}"))?;
    let address =
        after_scheme.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    address.parse().with_context(|| format!("{address:?} is no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_what_a_server_says() {
        for line in ["http://127.0.0.1:7117\n", "perflab serves on http://127.0.0.1:7117/ (home x)"]
        {
            assert_eq!(parse_address(line).unwrap().port(), 7117);
        }
        assert!(parse_address("").is_err());
        assert!(parse_address("http://somewhere").is_err());
    }

    #[test]
    fn a_program_that_ends_at_once_is_reported() {
        let error = ServerProcess::start(&mut Command::new("/bin/true")).unwrap_err();
        assert!(format!("{error:#}").contains("said no address"), "{error:#}");
    }
}
