//! Archives that programs read differently from each other.

use super::CHART;
use tiphys_render::{
    helm::{
        Limits,
        chart::{Chart, File},
    },
    tar::{Allowance, Tar, TarFault},
};
use tiphys_testkit::archive::gzip;

/// An entry of an archive, with a header that no good program writes.
fn entry(name: &str, flag: u8, mode: u32, size: u64, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).expect("a name");
    header.set_entry_type(tar::EntryType::new(flag));
    header.set_mode(mode);
    header.set_size(size);
    header.set_cksum();
    let mut bytes = [&header.as_bytes()[..], data].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, data: &[u8]) -> Vec<u8> {
    entry(name, b'0', 0o644, data.len() as u64, data)
}

/// PAX records for the next entry.
fn pax(records: &str) -> Vec<u8> {
    entry("pax", b'x', 0o644, records.len() as u64, records.as_bytes())
}

/// `LENGTH KEY=VALUE`, where the length counts itself.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let with = |length: usize| length.to_string().len() + rest.len();
    let mut length = rest.len();
    while with(length) != length {
        length = with(length);
    }
    format!("{length}{rest}")
}

fn ended(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

/// A chart's archive with these entries.
fn chart(entries: &[Vec<u8>]) -> Vec<u8> {
    let about = file("a/Chart.yaml", CHART.as_bytes());
    gzip(&ended(&[std::slice::from_ref(&about), entries].concat()))
}

/// The files of a chart's archive besides `Chart.yaml`, with their lengths.
fn loaded(packed: &[u8]) -> Result<String, String> {
    let loaded = Chart::from_archive(packed, &Limits::default()).map_err(|e| e.to_string())?;
    let shown = |file: &File| format!("{}:{}", file.name, file.data.len());
    let files = loaded.chart.templates.iter().chain(&loaded.chart.files);
    Ok(files.map(shown).collect::<Vec<_>>().join(" "))
}

/// What becomes of archives, each with what is in it.
fn check(number: u32, cases: &[(&str, Vec<u8>, Result<&str, &str>)]) {
    for (what, packed, want) in cases {
        let found = loaded(packed);
        let found = found.as_deref().map_err(String::as_str);
        assert_eq!(found, *want, "{number}: {what}");
    }
}

const BROKEN: Result<&str, &str> = Err("archive/tar: invalid tar header");
const LARGE: Result<&str, &str> =
    Err("decompressed chart is larger than the maximum size 104857600");

#[test]
fn case_34_a_size_in_two_places() {
    let sized = |size: &str, data: &[u8]| {
        let data = entry("a/data", b'0', 0o644, 0, data);
        chart(&[pax(&record("size", size)), data])
    };
    // Its header says that it is empty: whoever believes that reads what is in it as entries.
    let inner = file("a/templates/evil.yaml", b"a: 1\n");
    let cases = [
        ("an archive as data", sized("1024", &inner), Ok("data:1024")),
        ("less than nothing", sized("-1", b""), BROKEN),
        ("no end", sized("18446744073709551615", b""), LARGE),
        ("a long record", chart(&[pax("9999 size=1\n")]), BROKEN),
        (
            "a record without a length",
            chart(&[pax("size=1\n")]),
            BROKEN,
        ),
    ];
    check(34, &cases);
}

#[test]
fn case_35_sparse_files() {
    let of_gnu = entry("a/big", b'S', 0o644, 512, &[0; 512]);
    let records = [
        record("GNU.sparse.major", "1"),
        record("GNU.sparse.minor", "0"),
        record("GNU.sparse.realsize", "1099511627776"),
    ];
    let of_pax = [pax(&records.concat()), file("a/big", &[0; 512])];
    let link = Err("chart contains \"a/big\", which is a link or no regular file");
    let huge = entry("a/big", b'0', 0o644, 1 << 40, b"");
    let cases = [
        ("of GNU tar", chart(&[of_gnu]), link),
        // Its holes are not filled: what is stored is all that there is.
        ("of PAX", chart(&of_pax), Ok("big:512")),
        ("1 TiB that are not there", chart(&[huge]), LARGE),
    ];
    check(35, &cases);
}

#[test]
fn case_38_several_members() {
    let inner = file("a/templates/evil.yaml", b"a: 1\n");
    let whole = ended(&[file("a/Chart.yaml", CHART.as_bytes()), inner.clone()]);
    let (first, second) = whole.split_at(700);
    let cases = [
        // As Helm: whoever looks at the first archive has seen all of the chart.
        (
            "one behind the end",
            [chart(&[]), chart(&[inner])].concat(),
            Ok(""),
        ),
        (
            "one archive in two",
            [gzip(first), gzip(second)].concat(),
            Ok("templates/evil.yaml:5"),
        ),
    ];
    check(38, &cases);
}

/// Reads everything.
struct Unbounded;

impl Allowance for Unbounded {
    type Error = TarFault;

    fn entry(&mut self) -> Result<(), TarFault> {
        Ok(())
    }

    fn bytes(&mut self, _: u64) -> Result<(), TarFault> {
        Ok(())
    }
}

/// Whoever unpacks files with their modes does not get these bits.
#[test]
fn case_37_rights_of_others() {
    for mode in [0o4755, 0o2755, 0o1755, 0o7755] {
        let archive = entry("a/run.sh", b'0', mode, 0, b"");
        let found = Tar::new(&archive[..], Unbounded).next();
        let found = found.expect("an archive").expect("an entry");
        assert_eq!(found.mode, 0o755, "{mode:o}");
    }
    let program = entry("a/run.sh", b'0', 0o6755, 2, b"hi");
    let cases = [("a program", chart(&[program]), Ok("run.sh:2"))];
    check(37, &cases);
}
