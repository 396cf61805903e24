//! Other stores answering the same questions, by the scripts in `bench/`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::peers::PeerSettings;

/// A store that is loaded and answers.
#[derive(Debug)]
pub(crate) struct QueryPeer {
    pub(crate) name: &'static str,
    pub(crate) loaded: Loaded,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What a script says once its tables are there.
#[derive(Debug, Deserialize)]
pub(crate) struct Loaded {
    pub(crate) version: String,
    /// Unless they were there already.
    pub(crate) load_s: Option<f64>,
    pub(crate) bytes: u64,
}

/// An answer and how long it took.
#[derive(Debug, Deserialize)]
pub(crate) struct PeerAnswer {
    pub(crate) ms: f64,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl PeerAnswer {
    /// The numbers of the last column, sorted.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut numbers: Vec<f64> =
            self.rows.iter().filter_map(|row| number(row.last()?)).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

impl QueryPeer {
    /// Loads the streams of a folder into another, unless that is there already.
    pub(crate) fn start(
        name: &'static str,
        script: &str,
        settings: &PeerSettings,
        streams: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let mut child = Command::new(&settings.python)
            .arg(settings.scripts.join(script))
            .args([streams, folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!("failed to run {} (`make setup-bench` makes it)", settings.python.display())
            })?;
        let questions = child.stdin.take().context("it has no stdin")?;
        let mut answers = BufReader::new(child.stdout.take().context("it has no stdout")?);
        let loaded = read(&mut answers).with_context(|| format!("{script} loaded nothing"))?;
        Ok(Self { name, loaded, child, questions, answers })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ask(&mut self, sql: &str) -> Result<PeerAnswer> {
        writeln!(self.questions, "{}", json!({ "sql": sql }))?;
        let answer: Value = read(&mut self.answers)?;
        if let Some(error) = answer.get("error") {
            bail!("{} can't answer `{sql}`: {error}", self.name);
        }
        Ok(serde_json::from_value(answer)?)
    }
}

impl Drop for QueryPeer {
    fn drop(&mut self) {
        // It may have ended already; either way it must not stay.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read<T: serde::de::DeserializeOwned>(answers: &mut impl BufRead) -> Result<T> {
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        bail!("it ended");
    }
    Ok(serde_json::from_str(&line)?)
}
