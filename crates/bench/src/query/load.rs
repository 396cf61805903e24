//! Bringing the rows where they are asked about: to perflab over HTTP, and to files for the peers.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{Array, AsArray, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::datatypes::{Field, Schema, TimestampNanosecondType};
use arrow::ipc::writer::StreamWriter;

use super::rows::Names;
use super::stacks::Stacks;
use crate::http1::Reader;

/// How many batches one file for the peers holds.
const BATCHES_PER_FILE: usize = 64;

/// Where a table's batches come from.
pub(crate) type Batches<'b> = &'b (dyn Fn(usize) -> Result<RecordBatch> + Sync);

/// Sends each batch as a request of its own, and returns when all are durable.
pub(crate) fn send(
    address: SocketAddr,
    category: &str,
    count: usize,
    batches: Batches<'_>,
) -> Result<()> {
    let connections = 2;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|first| {
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(address)?;
                    // Nearly in order, as time goes on.
                    for number in (first..count).step_by(connections) {
                        post(&mut stream, category, &encode(&batches(number)?)?)?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(sent) => sent,
            Err(_) => bail!("a thread that sends ended by a panic"),
        })
    })
}

fn post(stream: &mut TcpStream, category: &str, body: &[u8]) -> Result<()> {
    let length = body.len();
    write!(
        stream,
        "POST /api/log?category={category} HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/vnd.apache.arrow.stream\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(body)?;
    let mut answers = Reader::new(stream);
    let answer = answers.next()?.context("the server closed a connection")?;
    let body = String::from_utf8_lossy(answer.body);
    if !answer.head.starts_with("HTTP/1.1 200") || body.contains("ERROR") {
        bail!("the server answered {}{body}", answer.head);
    }
    Ok(())
}

/// Has all rows of a dataset stay as they are, however old.
pub(crate) fn keep_hot(address: SocketAddr, dataset: &str) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let body = r#"{"hot_seconds":null}"#;
    let length = body.len();
    write!(
        stream,
        "PUT /api/datasets/{dataset} HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answers = Reader::new(stream);
    let answer = answers.next()?.context("the server closed a connection")?;
    if !answer.head.starts_with("HTTP/1.1 200") {
        bail!("the server answered {}", answer.head);
    }
    Ok(())
}

fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner()?)
}

/// Writes the tables of the peers: `rows`, `samples` and `stacks`.
pub(crate) fn write_streams(
    folder: &Path,
    (names, batches): (&Names, usize),
    (stacks, stack_batches): (&Stacks, usize),
) -> Result<()> {
    write(folder, "rows", batches, &|number| in_microseconds(&names.batch(number, batches)?))?;
    let samples = |number| in_microseconds(&stacks.numbered_batch(number, stack_batches)?);
    write(folder, "samples", stack_batches, &samples)?;
    write(folder, "stacks", 1, &|_| {
        let lists = stacks.lists()?;
        let ids = UInt32Array::from_iter_values((0..).take(lists.len()));
        Ok(RecordBatch::try_from_iter([("stack_id", Arc::new(ids) as _), ("frames", lists)])?)
    })
}

/// With times as the peers have them: DuckDB reads no nanoseconds of a time zone.
fn in_microseconds(batch: &RecordBatch) -> Result<RecordBatch> {
    let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let times: TimestampMicrosecondArray = times.unary(|time| time / 1000);
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    fields[0] = Arc::new(Field::new("time", times.data_type().clone(), true));
    let mut columns = batch.columns().to_vec();
    columns[0] = Arc::new(times);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn write(folder: &Path, table: &str, count: usize, batches: Batches<'_>) -> Result<()> {
    for first in (0..count).step_by(BATCHES_PER_FILE) {
        let file = File::create(folder.join(format!("{table}-{first:06}.arrows")))?;
        let mut writer = None;
        for number in first..count.min(first + BATCHES_PER_FILE) {
            let batch = batches(number)?;
            if writer.is_none() {
                let file = BufWriter::new(file.try_clone()?);
                writer = Some(StreamWriter::try_new(file, &batch.schema())?);
            }
            if let Some(writer) = &mut writer {
                writer.write(&batch)?;
            }
        }
        if let Some(mut writer) = writer {
            writer.finish()?;
            writer.into_inner()?.flush()?;
        }
    }
    Ok(())
}
