//! Trees as files of other tools, read back as those tools would.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use perflab_query::export::{
    ExportError, TreeFormat, export, firefox, folded, pprof, speedscope, svg,
};
use perflab_query::views::{Fold, NODES_MAX, Tree, tree};
use perflab_query::{Limits, Selection};
use perflab_store::segment::Snapshot;

use crate::views::{question, stack_row};
use perflab_query::testing::segment_of;

fn example(is_diff: bool) -> Tree {
    let rows = [
        stack_row(0, 2.0, &["main", "read;write", "poll"]),
        stack_row(1, 3.0, &["main", "<init>"]),
        stack_row(2, 3.5, &["main", "read;write"]),
        stack_row(3, 1.0, &[]),
        stack_row(4, 5.0, &["main", "poll"]),
    ];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let a = Selection { range: Some((0, 4)), any_of: Vec::new() };
    let b = Selection { range: Some((2, 5)), any_of: Vec::new() };
    tree(
        &question(Fold::FromRoot, NODES_MAX),
        &a,
        is_diff.then_some(&b),
        &snapshot,
        &Limits::default(),
    )
    .unwrap()
}

/// The stacks of the example by their weight in A.
fn stacks() -> BTreeMap<Vec<String>, f64> {
    let stack = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect();
    BTreeMap::from([
        (stack(&["main", "<init>"]), 3.0),
        (stack(&["main", "read;write"]), 3.5),
        (stack(&["main", "read;write", "poll"]), 2.0),
    ])
}

#[test]
fn folded_stacks() {
    let text = "main;<init> 3\nmain;read:write 3.5\nmain;read:write;poll 2\n";
    assert_eq!(folded(&example(false)), text);
    let text =
        "main;<init> 0 3\nmain;poll 5 0\nmain;read:write 3.5 3.5\nmain;read:write;poll 0 2\n";
    assert_eq!(folded(&example(true)), text);
}

#[test]
fn speedscope_has_every_stack_with_its_weight() {
    let file = speedscope(&example(true), "example");
    let (frames, profile) = (&file["shared"]["frames"], &file["profiles"][0]);
    let name = |frame: &serde_json::Value| {
        let at = usize::try_from(frame.as_u64().unwrap()).unwrap();
        frames[at]["name"].as_str().unwrap().to_owned()
    };
    let samples = profile["samples"].as_array().unwrap().iter();
    let found: BTreeMap<Vec<String>, f64> = samples
        .zip(profile["weights"].as_array().unwrap())
        .map(|(stack, weight)| {
            (stack.as_array().unwrap().iter().map(name).collect(), weight.as_f64().unwrap())
        })
        .collect();
    assert_eq!(found, stacks());
    assert_eq!(profile["endValue"], 8.5);
}

#[test]
fn the_firefox_profile_has_every_stack_with_its_weight() {
    let file = firefox(&example(false), "example");
    let thread = &file["threads"][0];
    let at = |table: &str, column: &str, row: u64| {
        thread[table][column][usize::try_from(row).unwrap()].as_u64()
    };
    let frames = |stack: u64| {
        let mut frames = Vec::new();
        let mut next = Some(stack);
        while let Some(stack) = next {
            let function = at("frameTable", "func", at("stackTable", "frame", stack).unwrap());
            let name = at("funcTable", "name", function.unwrap()).unwrap();
            let name = &thread["stringArray"][usize::try_from(name).unwrap()];
            frames.insert(0, name.as_str().unwrap().to_owned());
            next = at("stackTable", "prefix", stack);
        }
        frames
    };
    let samples = &thread["samples"];
    let found: BTreeMap<Vec<String>, f64> = (0..samples["length"].as_u64().unwrap())
        .map(|n| {
            let weight = &samples["weight"][usize::try_from(n).unwrap()];
            (frames(at("samples", "stack", n).unwrap()), weight.as_f64().unwrap())
        })
        .collect();
    assert_eq!(found, stacks());
    for table in ["samples", "stackTable", "frameTable", "funcTable"] {
        let table = thread[table].as_object().unwrap();
        let length = table["length"].as_u64().unwrap();
        let columns = table.values().filter_map(|column| column.as_array());
        assert!(columns.into_iter().all(|column| column.len() as u64 == length));
    }
}

/// A field of a message: its number, and a number or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for place in 0.. {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7f) << (7 * place);
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = varint(&mut bytes);
        match key & 7 {
            0 => fields.push((key >> 3, number, Vec::new())),
            2 => {
                let (value, rest) = bytes.split_at(usize::try_from(number).unwrap());
                fields.push((key >> 3, 0, value.to_vec()));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0_u64, 0);
    for byte in bytes {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

#[test]
fn pprof_has_every_stack_with_its_samples_and_weight() {
    let mut profile = Vec::new();
    GzDecoder::new(&pprof(&example(false))[..]).read_to_end(&mut profile).unwrap();
    let profile = fields(&profile);
    let of = |field: u64| profile.iter().filter(move |(number, ..)| *number == field);
    let strings: Vec<String> =
        of(6).map(|(_, _, text)| String::from_utf8(text.clone()).unwrap()).collect();
    assert_eq!(strings[0], "");
    let number = |message: &[u8], field| {
        fields(message).into_iter().find(|(number, ..)| *number == field).unwrap().1
    };
    let names: BTreeMap<u64, String> = of(5)
        .map(|(_, _, function)| {
            let name = usize::try_from(number(function, 2)).unwrap();
            (number(function, 1), strings[name].clone())
        })
        .collect();
    let locations: BTreeMap<u64, String> = of(4)
        .map(|(_, _, location)| {
            let line = fields(location).into_iter().find(|(field, ..)| *field == 4).unwrap().2;
            (number(location, 1), names[&number(&line, 1)].clone())
        })
        .collect();
    let found: BTreeMap<Vec<String>, Vec<u64>> = of(2)
        .map(|(_, _, sample)| {
            let sample = fields(sample);
            let stack = packed(&sample[0].2);
            (stack.iter().rev().map(|id| locations[id].clone()).collect(), packed(&sample[1].2))
        })
        .collect();
    let expected = stacks().into_iter();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small weights")]
    let expected = expected.map(|(stack, weight)| (stack, vec![1, weight.round() as u64]));
    assert_eq!(found, expected.collect());
}

#[test]
fn the_picture_is_xml_and_shows_every_frame() {
    for is_diff in [false, true] {
        let picture = svg(&example(is_diff), "a & b");
        assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>\n"));
        assert!(picture.contains(">a &amp; b</text>"));
        assert!(picture.contains("&lt;init&gt;") && !picture.contains("<init>"));
        let nodes = example(is_diff).nodes.len();
        assert_eq!(picture.matches("<g>").count(), nodes);
        assert_eq!(picture.contains("A − B: +3"), is_diff);
        assert_eq!(picture, svg(&example(is_diff), "a & b"), "the same every time");
    }
}

#[test]
fn an_empty_tree_is_an_empty_file() {
    let empty = tree(
        &question(Fold::FromRoot, 9),
        &Selection::default(),
        None,
        &Snapshot::default(),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(folded(&empty), "");
    assert_eq!(speedscope(&empty, "")["profiles"][0]["endValue"], 0.0);
    assert_eq!(firefox(&empty, "")["threads"][0]["samples"]["length"], 0);
    assert!(svg(&empty, "nothing").ends_with("</svg>\n"));
    assert!(!pprof(&empty).is_empty());
}

#[test]
fn what_a_format_has_no_place_for_is_refused() {
    let (plain, diff) = (example(false), example(true));
    let all = [
        TreeFormat::Folded,
        TreeFormat::Speedscope,
        TreeFormat::Firefox,
        TreeFormat::Pprof,
        TreeFormat::Svg,
    ];
    for format in all {
        let of = |tree: &Tree, fold: Fold| export(tree, &fold, format, "t");
        assert!(!of(&plain, Fold::FromRoot).unwrap().is_empty());
        assert!(of(&plain, Fold::Callees("main".to_owned())).is_ok());
        let from_leaf = of(&plain, Fold::FromLeaf).err();
        let is_picture = format == TreeFormat::Svg;
        assert_eq!(from_leaf, (!is_picture).then_some(ExportError::NotFromRoot));
        let has_both = is_picture || format == TreeFormat::Folded;
        let compared = of(&diff, Fold::FromRoot).err();
        assert_eq!(compared, (!has_both).then_some(ExportError::NoPlaceForB));
    }
}
