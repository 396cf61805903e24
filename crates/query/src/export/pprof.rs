//! pprof's format: <https://github.com/google/pprof/blob/main/proto/profile.proto>, gzipped.
//!
//! Protocol Buffers are written by hand: the format needs three kinds of fields and nothing is
//! ever read back, which is less than what a code generator would bring along.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::paths::{Names, leaves, path};
use crate::views::Tree;

/// The fields of `Profile` and of what is in it.
mod field {
    pub(super) const PROFILE_SAMPLE_TYPE: u64 = 1;
    pub(super) const PROFILE_SAMPLE: u64 = 2;
    pub(super) const PROFILE_LOCATION: u64 = 4;
    pub(super) const PROFILE_FUNCTION: u64 = 5;
    pub(super) const PROFILE_STRING: u64 = 6;
    pub(super) const TYPE_NAME: u64 = 1;
    pub(super) const TYPE_UNIT: u64 = 2;
    pub(super) const SAMPLE_LOCATION: u64 = 1;
    pub(super) const SAMPLE_VALUE: u64 = 2;
    pub(super) const LOCATION_ID: u64 = 1;
    pub(super) const LOCATION_LINE: u64 = 4;
    pub(super) const LINE_FUNCTION: u64 = 1;
    pub(super) const FUNCTION_ID: u64 = 1;
    pub(super) const FUNCTION_NAME: u64 = 2;
}

/// A tree as a gzipped pprof profile: one sample per stack, with its samples and its weight in A,
/// both rounded to whole numbers because pprof has no others.
pub fn pprof(tree: &Tree) -> Vec<u8> {
    let mut strings = Names::default();
    strings.place("");
    let mut profile = Message::default();
    for (name, unit) in [("samples", "count"), ("weight", "count")] {
        let mut kind = Message::default();
        kind.number(field::TYPE_NAME, strings.place(name) as u64);
        kind.number(field::TYPE_UNIT, strings.place(unit) as u64);
        profile.message(field::PROFILE_SAMPLE_TYPE, &kind);
    }
    let mut functions = Names::default();
    for (at, node) in leaves(tree) {
        // Locations from the leaf on; numbers start at 1.
        let frames = path(tree, at).into_iter().rev();
        let locations: Vec<u64> =
            frames.map(|at| functions.place(&tree.nodes[at].frame) as u64 + 1).collect();
        let mut sample = Message::default();
        sample.numbers(field::SAMPLE_LOCATION, &locations);
        let load = node.own.a;
        sample.numbers(field::SAMPLE_VALUE, &[whole(load.samples), whole(load.weight)]);
        profile.message(field::PROFILE_SAMPLE, &sample);
    }
    for (id, name) in (1_u64..).zip(functions.get()) {
        add_function(&mut profile, id, strings.place(name) as u64);
    }
    strings.get().iter().for_each(|text| profile.bytes(field::PROFILE_STRING, text.as_bytes()));
    gzipped(&profile.0)
}

/// A function and a location in it, which are the same thing where addresses are not known.
fn add_function(profile: &mut Message, id: u64, name: u64) {
    let (mut line, mut location) = (Message::default(), Message::default());
    line.number(field::LINE_FUNCTION, id);
    location.number(field::LOCATION_ID, id);
    location.message(field::LOCATION_LINE, &line);
    profile.message(field::PROFILE_LOCATION, &location);
    let mut function = Message::default();
    function.number(field::FUNCTION_ID, id);
    function.number(field::FUNCTION_NAME, name);
    profile.message(field::PROFILE_FUNCTION, &function);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "weights are not negative, and what is too large is the largest number"
)]
fn whole(number: f64) -> u64 {
    (number.round() as u64).min(i64::MAX.cast_unsigned())
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes")
}

/// A message of Protocol Buffers, as it is written.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

/// How a field is written: a number, or bytes with their length before them.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(number);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn numbers(&mut self, field: u64, numbers: &[u64]) {
        let mut packed = Self::default();
        numbers.iter().for_each(|&number| packed.varint(number));
        self.message(field, &packed);
    }
}
