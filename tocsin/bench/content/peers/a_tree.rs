//! The a-tree crate as a contestant of `tocsin bench content`.
//!
//! What it is started with, told and answers is described in `tocsin/bench/content/contestant.py`, the format of the
//! files in `tocsin/bench/content/workload.py`.

use a_tree::{ATree, AttributeDefinition, Event};
use std::error::Error;
use std::fs::{File, read_to_string};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write, stdin, stdout};

const BATCH: usize = 1000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [subscriptions, publications, count, limit] = arguments.as_slice() else {
        return Err("usage: SUBSCRIPTIONS PUBLICATIONS COUNT LIMIT".into());
    };
    let published = read_to_string(publications)?;
    let published: Vec<Vec<&str>> = published.lines().map(|line| line.split('\t').collect()).collect();
    let definitions = define(&published);
    let mut tree = ATree::new(&definitions).map_err(|error| error.to_string())?;
    let before = resident()?;
    let (inserted, seconds) = insert(&mut tree, subscriptions, count.parse()?, limit.parse()?)?;
    println!("{inserted} {seconds} {}", resident()?.saturating_sub(before));
    let events: Result<Vec<Event>> = published.iter().map(|fields| event(&tree, fields)).collect();
    serve(&tree, &events?)
}

/// The attributes of all publications, with the kinds of their values.
fn define(published: &[Vec<&str>]) -> Vec<AttributeDefinition> {
    let mut names: Vec<(&str, &str)> =
        published.iter().flat_map(|fields| fields.chunks(3).map(|field| (field[0], field[1]))).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|(name, kind)| match kind {
            "s" => AttributeDefinition::string(name),
            _ => AttributeDefinition::float(name),
        })
        .collect()
}

/// Inserts subscriptions until there are enough, or the time is up. Making their texts does not count.
fn insert(tree: &mut ATree<u64>, path: &str, count: usize, limit: f64) -> Result<(usize, f64)> {
    let mut lines = BufReader::new(File::open(path)?).lines().take(count);
    let (mut inserted, mut seconds) = (0, 0.0);
    while seconds < limit {
        let batch: Vec<String> =
            lines.by_ref().take(BATCH).map(|line| Ok(expression(&line?))).collect::<Result<_>>()?;
        if batch.is_empty() {
            break;
        }
        let began = processor_time();
        for (at, text) in batch.iter().enumerate() {
            let number = (inserted + at) as u64;
            tree.insert(&number, text).map_err(|error| format!("{text}: {error}"))?;
        }
        seconds += processor_time() - began;
        inserted += batch.len();
    }
    Ok((inserted, seconds))
}

/// A subscription as a-tree reads it.
fn expression(line: &str) -> String {
    let fields: Vec<&str> = line.split('\t').collect();
    let conditions: Vec<String> = fields
        .chunks(4)
        .map(|condition| match condition[2] {
            "s" => format!("{} {} '{}'", condition[0], condition[1], condition[3]),
            _ if condition[3].contains('.') => format!("{} {} {}", condition[0], condition[1], condition[3]),
            _ => format!("{} {} {}.0", condition[0], condition[1], condition[3]),
        })
        .collect();
    conditions.join(" and ")
}

/// A publication as a-tree searches for it.
fn event(tree: &ATree<u64>, fields: &[&str]) -> Result<Event> {
    let mut builder = tree.make_event();
    for field in fields.chunks(3) {
        if field[1] == "s" {
            builder.with_string(field[0], field[2])?;
        } else {
            let (whole, part) = field[2].split_once('.').unwrap_or((field[2], ""));
            builder.with_float(field[0], format!("{whole}{part}").parse()?, part.len() as u32)?;
        }
    }
    Ok(builder.build()?)
}

/// Does what it is told until there is nothing more.
fn serve(tree: &ATree<u64>, events: &[Event]) -> Result<()> {
    let mut next = 0;
    for line in stdin().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["match", at] => println!("{}", found(tree, &events[at.parse::<usize>()?])?),
            ["turn", limit] => {
                let (matched, seconds) = turn(tree, events, &mut next, limit.parse()?)?;
                println!("{matched} {seconds}");
            }
            _ => return Err(format!("unknown command: {line}").into()),
        }
        stdout().flush()?;
    }
    Ok(())
}

fn found(tree: &ATree<u64>, event: &Event) -> Result<String> {
    let report = tree.search(event).map_err(|error| error.to_string())?;
    Ok(report.matches().iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" "))
}

fn turn(tree: &ATree<u64>, events: &[Event], next: &mut usize, limit: f64) -> Result<(u64, f64)> {
    let (began, mut matched, mut seconds) = (processor_time(), 0, 0.0);
    while matched == 0 || seconds < limit {
        black_box(tree.search(&events[*next]).map_err(|error| error.to_string())?);
        *next = (*next + 1) % events.len();
        matched += 1;
        seconds = processor_time() - began;
    }
    Ok((matched, seconds))
}

/// Seconds that this process has had of a processor.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes to a structure of the type that it asks for.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes of this process that are in memory.
fn resident() -> Result<usize> {
    let pages: usize = read_to_string("/proc/self/statm")?.split(' ').nth(1).ok_or("no size")?.parse()?;
    // SAFETY: it takes a number and gives one.
    Ok(pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize)
}
