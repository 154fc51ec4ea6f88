//! Label a file of words and tags by the crate crfs: crfs_tag MODEL INPUT OUTPUT
//!
//! The attributes are those of `default_attributes` in attributes.py, for ASCII. Their strings are written over those of
//! the sentence before, so that few are allocated.

use crfs::{Attribute, Model};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write};

/// Attributes of one position, with room that is used again.
#[derive(Default)]
struct Item {
    attributes: Vec<Attribute>,
    used: usize,
}

impl Item {
    fn add(&mut self, text: std::fmt::Arguments) {
        if self.used == self.attributes.len() {
            self.attributes.push(Attribute::new("", 1.0));
        }
        let name = &mut self.attributes[self.used].name;
        name.clear();
        name.write_fmt(text).unwrap();
        self.used += 1;
    }
}

impl AsRef<[Attribute]> for Item {
    fn as_ref(&self) -> &[Attribute] {
        &self.attributes[..self.used]
    }
}

fn shape(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars() {
        let kind = match c {
            'A'..='Z' => 'X',
            'a'..='z' => 'x',
            '0'..='9' => 'd',
            _ => c,
        };
        if !out.ends_with(kind) {
            out.push(kind);
        }
    }
    out
}

/// The value at a position, or the symbol beyond an end.
fn at<'a>(values: &[&'a str], t: isize) -> Result<&'a str, &'static str> {
    let last = values.len() as isize - 1;
    match t {
        -2 => Err("_B-2"),
        -1 => Err("_B-1"),
        _ if t <= last => Ok(values[t as usize]),
        _ => Err(if t == last + 1 { "_B+1" } else { "_B+2" }),
    }
}

fn fill(item: &mut Item, words: &[&str], tags: &[&str], t: isize) {
    item.used = 0;
    for w in -2..=2 {
        let found = at(words, t + w);
        let word = found.unwrap_or_else(|symbol| symbol);
        item.add(format_args!("c0[{w}]={word}"));
        match found {
            Ok(word) if w.abs() < 2 => {
                item.add(format_args!("c0.lower[{w}]={}", word.to_ascii_lowercase()));
                item.add(format_args!("c0.shape[{w}]={}", shape(word)));
            }
            Err(symbol) if w.abs() < 2 => {
                item.add(format_args!("c0.lower[{w}]={symbol}"));
                item.add(format_args!("c0.shape[{w}]={symbol}"));
            }
            _ => {}
        }
    }
    let word = words[t as usize];
    for length in 1..=4 {
        let length_here = length.min(word.len());
        item.add(format_args!("c0.prefix{length}[0]={}", &word[..length_here]));
        item.add(format_args!("c0.suffix{length}[0]={}", &word[word.len() - length_here..]));
    }
    let tag: Vec<&str> = (-2..=2).map(|w| at(tags, t + w).unwrap_or_else(|symbol| symbol)).collect();
    for k in 0..5 {
        let w = k as isize - 2;
        item.add(format_args!("c1[{w}]={}", tag[k]));
        if k < 4 {
            item.add(format_args!("c1/c1[1][{w}]={}/{}", tag[k], tag[k + 1]));
        }
        if k < 3 {
            item.add(format_args!("c1/c1[1]/c1[2][{w}]={}/{}/{}", tag[k], tag[k + 1], tag[k + 2]));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let bytes = fs::read(&paths[0])?;
    let model = Model::new(&bytes)?;
    let tagger = model.tagger()?;
    let text = fs::read_to_string(&paths[1])?;
    let mut out = BufWriter::new(fs::File::create(&paths[2])?);
    let mut items: Vec<Item> = Vec::new();
    for sentence in text.split("\n\n").map(str::trim).filter(|sentence| !sentence.is_empty()) {
        let (words, tags): (Vec<&str>, Vec<&str>) =
            sentence.lines().map(|line| line.split_once(' ').expect("a word and a tag")).unzip();
        if items.len() < words.len() {
            items.resize_with(words.len(), Item::default);
        }
        for (t, item) in items[..words.len()].iter_mut().enumerate() {
            fill(item, &words, &tags, t as isize);
        }
        for (line, label) in sentence.lines().zip(tagger.tag(&items[..words.len()])?) {
            writeln!(out, "{line} {label}")?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}
