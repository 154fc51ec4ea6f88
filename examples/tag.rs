// Labels one sequence, as tag.c does: rustc -O -L build -l static=kcrf_runtime -l m tag.rs

use std::ffi::{c_char, c_int, c_void, CStr, CString};

#[repr(C)]
struct Text {
    text: *const u8,
    size: usize,
}

#[repr(C)]
struct Error {
    status: c_int,
    text: [c_char; 240],
}

extern "C" {
    fn kcrf_open(path: *const c_char, error: *mut Error) -> *mut c_void;
    fn kcrf_column_count(model: *const c_void) -> usize;
    fn kcrf_label_name(model: *const c_void, label: usize) -> Text;
    fn kcrf_tagger_new(model: *const c_void) -> *mut c_void;
    fn kcrf_tagger_error(tagger: *const c_void) -> *const Error;
    fn kcrf_set_columns(tagger: *mut c_void, cells: *const Text, positions: usize) -> c_int;
    fn kcrf_labels(tagger: *mut c_void) -> *const i32;
}

unsafe fn message(error: *const Error) -> String {
    CStr::from_ptr((*error).text.as_ptr()).to_string_lossy().into_owned()
}

/// Return the labels of positions, each with a slash between its columns.
unsafe fn labels(path: &str, positions: &[String]) -> Result<Vec<String>, String> {
    let mut error = Error { status: 0, text: [0; 240] };
    let path = CString::new(path).map_err(|error| error.to_string())?;
    let model = kcrf_open(path.as_ptr(), &mut error);
    if model.is_null() {
        return Err(message(&error));
    }
    let tagger = kcrf_tagger_new(model); // one for each thread
    assert!(!tagger.is_null(), "out of memory");
    let columns = kcrf_column_count(model);
    let values = positions.iter().flat_map(|one| one.split('/').chain(std::iter::repeat("")).take(columns));
    let cells: Vec<Text> = values.map(|value| Text { text: value.as_ptr(), size: value.len() }).collect();
    let status = kcrf_set_columns(tagger, cells.as_ptr(), positions.len());
    let best = if status == 0 { kcrf_labels(tagger) } else { std::ptr::null() };
    if best.is_null() {
        return Err(message(kcrf_tagger_error(tagger)));
    }
    let name = |label: &i32| {
        let found = kcrf_label_name(model, *label as usize);
        String::from_utf8_lossy(std::slice::from_raw_parts(found.text, found.size)).into_owned()
    };
    Ok(std::slice::from_raw_parts(best, positions.len()).iter().map(name).collect())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match unsafe { labels(&arguments[1], &arguments[2..]) } {
        Ok(found) => println!("{}", found.join("\n")),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(3)
        }
    }
}
