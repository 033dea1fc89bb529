//! The packets in `tests/corpus`.

/// A packet of the corpus.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub name: String,
    /// Made by hand; else by Linux.
    pub made: bool,
    /// Why it is refused, if it is.
    pub error: Option<String>,
    pub bytes: Vec<u8>,
}

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    let files =
        [(include_str!("../corpus/linux.hex"), false), (include_str!("../corpus/made.hex"), true)];
    let lines = files.iter().flat_map(|(text, made)| text.lines().map(|line| (line.trim(), *made)));
    let mut cases = Vec::<Case>::new();
    for (line, made) in lines {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            cases.push(Case { name: name.to_owned(), made, ..Case::default() });
        } else if let (false, Some(case)) = (line.starts_with('#'), cases.last_mut()) {
            match line.strip_prefix("! ") {
                Some(error) => case.error = Some(error.to_owned()),
                None => case.bytes.extend(hex(line)),
            }
        }
    }
    cases
}

fn hex(line: &str) -> impl Iterator<Item = u8> {
    line.as_bytes().chunks(2).map(|digits| {
        let digits = std::str::from_utf8(digits).expect("ASCII");
        u8::from_str_radix(digits, 16).expect("two hexadecimal digits")
    })
}
