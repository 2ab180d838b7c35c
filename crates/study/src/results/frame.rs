//! Columns in a Parquet file. Arrow is not used, because results need only a few types.

use std::fs::File;
use std::io::{self, BufWriter};
use std::iter::repeat_n;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as SchemaType};

use super::checksums::{Checksum, Hashing};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Int32,
    /// 64 bits without sign.
    Int64,
    /// Text that may be missing.
    Text,
    /// A number that may be missing.
    Double,
    /// The same in single precision.
    Float,
}

/// A column of a row group that is being filled.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Text(Sparse<ByteArray>),
    Double(Sparse<f64>),
    Float(Sparse<f32>),
}

/// What goes into a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Count(u64),
    Text(Option<&'a str>),
    Number(Option<f64>),
}

const ORDER: &str = "columns are made in the order in which cells are pushed";

impl Column {
    fn empty(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Int32 => Self::Int32(Vec::new()),
            ColumnType::Int64 => Self::Int64(Vec::new()),
            ColumnType::Text => Self::Text(Sparse::default()),
            ColumnType::Double => Self::Double(Sparse::default()),
            ColumnType::Float => Self::Float(Sparse::default()),
        }
    }

    /// Removes the rows; what they took stays for others.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Int32(values) => values.clear(),
            Self::Int64(values) => values.clear(),
            Self::Text(values) => values.clear(),
            Self::Double(values) => values.clear(),
            Self::Float(values) => values.clear(),
        }
    }

    /// Up to here, rows that were left out are missing.
    pub(crate) fn skip_to(&mut self, row: usize) {
        match self {
            Self::Int32(_) | Self::Int64(_) => {}
            Self::Text(values) => values.skip_to(row),
            Self::Double(values) => values.skip_to(row),
            Self::Float(values) => values.skip_to(row),
        }
    }

    pub(crate) fn push(&mut self, cell: Cell<'_>) -> usize {
        self.fill(cell, 1)
    }

    /// The same cell in several rows. Returns, as the others do, how many cells are there that were not.
    pub(crate) fn fill(&mut self, cell: Cell<'_>, rows: usize) -> usize {
        match (self, cell) {
            (Self::Int32(values), Cell::Count(count)) => {
                values.extend(repeat_n(count as i32, rows));
            }
            (Self::Int64(values), Cell::Count(count)) => {
                values.extend(repeat_n(count as i64, rows));
            }
            (Self::Text(values), Cell::Text(Some(text))) => {
                // Of a text that repeats there is one copy.
                let same = values.there.last().filter(|last| last.data() == text.as_bytes());
                let text = same.map_or_else(|| ByteArray::from(text), ByteArray::clone);
                values.fill(Some(text), rows);
            }
            (Self::Text(values), Cell::Text(None)) => values.fill(None, rows),
            (Self::Double(values), Cell::Number(number)) => values.fill(number, rows),
            (Self::Float(values), Cell::Number(number)) => {
                values.fill(number.map(|number| number as f32), rows);
            }
            _ => unreachable!("{ORDER}"),
        }
        match cell {
            Cell::Text(None) | Cell::Number(None) => 0,
            _ => rows,
        }
    }

    /// A count for each of several rows.
    pub(crate) fn extend_counts(&mut self, counts: impl ExactSizeIterator<Item = u64>) -> usize {
        let rows = counts.len();
        match self {
            Self::Int32(values) => values.extend(counts.map(|count| count as i32)),
            Self::Int64(values) => values.extend(counts.map(|count| count as i64)),
            _ => unreachable!("{ORDER}"),
        }
        rows
    }

    /// A number for each of several rows.
    pub(crate) fn extend_numbers(&mut self, numbers: impl Iterator<Item = Option<f64>>) -> usize {
        match self {
            Self::Double(values) => values.extend(numbers),
            Self::Float(values) => {
                values.extend(numbers.map(|number| number.map(|number| number as f32)))
            }
            _ => unreachable!("{ORDER}"),
        }
    }
}

/// The values that are there, and which rows have one.
#[derive(Clone, Debug)]
pub(crate) struct Sparse<T> {
    rows: usize,
    there: Vec<T>,
    /// For each row 1 if it has a value, otherwise 0: Parquet's definition levels. Empty as long as all rows
    /// have one or none has.
    levels: Vec<i16>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self { rows: 0, there: Vec::new(), levels: Vec::new() }
    }
}

impl<T: Clone> Sparse<T> {
    fn clear(&mut self) {
        self.rows = 0;
        self.there.clear();
        self.levels.clear();
    }

    fn skip_to(&mut self, row: usize) {
        if self.rows < row {
            self.fill(None, row - self.rows);
        }
    }

    fn fill(&mut self, value: Option<T>, rows: usize) {
        let level = i16::from(value.is_some());
        if self.levels.is_empty() && self.rows > 0 {
            let before = i16::from(!self.there.is_empty());
            if before != level {
                self.levels.resize(self.rows, before);
            }
        }
        self.rows += rows;
        if !self.levels.is_empty() {
            self.levels.resize(self.rows, level);
        }
        if let Some(value) = value {
            self.there.resize(self.there.len() + rows, value);
        }
    }

    fn extend(&mut self, values: impl Iterator<Item = Option<T>>) -> usize {
        let before = self.there.len();
        for value in values {
            match value {
                Some(value) if self.levels.is_empty() && self.there.len() == self.rows => {
                    self.rows += 1;
                    self.there.push(value);
                }
                value if !self.levels.is_empty() => {
                    self.rows += 1;
                    self.levels.push(i16::from(value.is_some()));
                    self.there.extend(value);
                }
                value => self.fill(value, 1),
            }
        }
        self.there.len() - before
    }

    /// The levels of all rows, for which `same` has room: levels that are all alike.
    fn levels<'l>(&'l self, same: &'l mut Vec<i16>) -> &'l [i16] {
        if !self.levels.is_empty() {
            return &self.levels;
        }
        same.clear();
        same.resize(self.rows, i16::from(!self.there.is_empty()));
        same
    }
}

/// Writes a Parquet file, a row group at a time. The same cells give the same bytes.
pub(crate) struct FrameWriter {
    writer: SerializedFileWriter<BufWriter<Hashing<File>>>,
    types: Vec<ColumnType>,
}

impl FrameWriter {
    pub(crate) fn create(path: &Path, columns: &[(String, ColumnType)]) -> io::Result<Self> {
        let fields = columns
            .iter()
            .map(|(name, kind)| field(name, *kind).map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(to_io)?;
        let schema =
            SchemaType::group_type_builder("sojourn").with_fields(fields).build().map_err(to_io)?;
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(concat!("sojourn ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None);
        for (name, kind) in columns {
            let path = ColumnPath::new(vec![name.clone()]);
            properties = match kind {
                // Readers look for the row groups of a run by its number.
                ColumnType::Int32 | ColumnType::Int64 => {
                    properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk)
                }
                ColumnType::Text => properties,
                // Measured values hardly repeat, so a dictionary would not help.
                ColumnType::Double | ColumnType::Float => properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::PLAIN),
            };
        }
        let file = BufWriter::new(Hashing::new(File::create(path)?));
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
                .map_err(to_io)?;
        Ok(Self { writer, types: columns.iter().map(|(_, kind)| *kind).collect() })
    }

    /// The columns of the file without rows.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.types.iter().map(|kind| Column::empty(*kind)).collect()
    }

    /// Adds a row group; the columns are in the order of the file.
    pub(crate) fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        let write = |writer: &mut SerializedFileWriter<_>| -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            let mut same = Vec::new();
            for data in columns {
                let Some(mut column) = group.next_column()? else { break };
                match data {
                    Column::Int32(values) => {
                        column.typed::<Int32Type>().write_batch(values, None, None)?
                    }
                    Column::Int64(values) => {
                        column.typed::<Int64Type>().write_batch(values, None, None)?
                    }
                    Column::Text(values) => {
                        let levels = Some(values.levels(&mut same));
                        column.typed::<ByteArrayType>().write_batch(&values.there, levels, None)?
                    }
                    Column::Double(values) => {
                        let levels = Some(values.levels(&mut same));
                        column.typed::<DoubleType>().write_batch(&values.there, levels, None)?
                    }
                    Column::Float(values) => {
                        let levels = Some(values.levels(&mut same));
                        column.typed::<FloatType>().write_batch(&values.there, levels, None)?
                    }
                };
                column.close()?;
            }
            group.close()?;
            Ok(())
        };
        write(&mut self.writer).map_err(to_io)
    }

    /// Completes the file and flushes it to the disk.
    pub(crate) fn finish(self) -> io::Result<Checksum> {
        let buffer = self.writer.into_inner().map_err(to_io)?;
        let hashing = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        let (file, checksum) = hashing.finish();
        file.sync_all()?;
        Ok(checksum)
    }
}

fn field(name: &str, kind: ColumnType) -> Result<SchemaType, ParquetError> {
    let (physical, repetition) = match kind {
        ColumnType::Int32 => (Type::INT32, Repetition::REQUIRED),
        ColumnType::Int64 => (Type::INT64, Repetition::REQUIRED),
        ColumnType::Text => (Type::BYTE_ARRAY, Repetition::OPTIONAL),
        ColumnType::Double => (Type::DOUBLE, Repetition::OPTIONAL),
        ColumnType::Float => (Type::FLOAT, Repetition::OPTIONAL),
    };
    let builder = SchemaType::primitive_type_builder(name, physical).with_repetition(repetition);
    match kind {
        ColumnType::Text => builder
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String)),
        ColumnType::Int64 => builder.with_converted_type(ConvertedType::UINT_64),
        ColumnType::Int32 => builder.with_converted_type(ConvertedType::UINT_32),
        ColumnType::Double | ColumnType::Float => builder,
    }
    .build()
}

/// A column that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Int32(Vec<u32>),
    Int64(Vec<u64>),
    Text(Vec<Option<String>>),
    Double(Vec<Option<f64>>),
    Float(Vec<Option<f64>>),
}

/// Reads a Parquet file that [`FrameWriter`] wrote.
pub(crate) struct FrameReader {
    reader: SerializedFileReader<File>,
    columns: Vec<String>,
}

impl FrameReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let reader = SerializedFileReader::new(File::open(path)?).map_err(to_io)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        Ok(Self { reader, columns })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Least and largest value of an `Int32` column in a row group.
    pub(crate) fn range(&self, group: usize, column: &str) -> Option<(u32, u32)> {
        let index = self.position(column)?;
        match self.reader.metadata().row_group(group).column(index).statistics()? {
            Statistics::Int32(statistics) => {
                Some((*statistics.min_opt()? as u32, *statistics.max_opt()? as u32))
            }
            _ => None,
        }
    }

    fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    pub(crate) fn read(&self, group: usize, column: &str) -> io::Result<Data> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("no column {column}"));
        let index = self.position(column).ok_or_else(missing)?;
        let read = || -> Result<Data, ParquetError> {
            let group = self.reader.get_row_group(group)?;
            let rows = group.metadata().num_rows() as usize;
            Ok(match group.get_column_reader(index)? {
                ColumnReader::Int32ColumnReader(column) => Data::Int32(
                    column_values(column, rows)?.into_iter().flatten().map(|v| v as u32).collect(),
                ),
                ColumnReader::Int64ColumnReader(column) => Data::Int64(
                    column_values(column, rows)?.into_iter().flatten().map(|v| v as u64).collect(),
                ),
                ColumnReader::DoubleColumnReader(column) => {
                    Data::Double(column_values(column, rows)?)
                }
                ColumnReader::FloatColumnReader(column) => Data::Float(
                    column_values(column, rows)?
                        .into_iter()
                        .map(|value| value.map(f64::from))
                        .collect(),
                ),
                ColumnReader::ByteArrayColumnReader(column) => Data::Text(
                    column_values(column, rows)?
                        .into_iter()
                        .map(|value| {
                            value.map(|bytes| String::from_utf8_lossy(bytes.data()).into_owned())
                        })
                        .collect(),
                ),
                _ => return Err(ParquetError::General("a column of a foreign type".into())),
            })
        };
        read().map_err(to_io)
    }

    pub(crate) fn numbers(&self, group: usize, column: &str) -> io::Result<Vec<Option<f64>>> {
        match self.read(group, column)? {
            Data::Double(values) | Data::Float(values) => Ok(values),
            _ => Err(wrong_type(column)),
        }
    }

    pub(crate) fn texts(&self, group: usize, column: &str) -> io::Result<Vec<Option<String>>> {
        match self.read(group, column)? {
            Data::Text(values) => Ok(values),
            _ => Err(wrong_type(column)),
        }
    }

    pub(crate) fn counts(&self, group: usize, column: &str) -> io::Result<Vec<u64>> {
        match self.read(group, column)? {
            Data::Int32(values) => Ok(values.into_iter().map(u64::from).collect()),
            Data::Int64(values) => Ok(values),
            _ => Err(wrong_type(column)),
        }
    }
}

fn wrong_type(column: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("column {column} is of another type"))
}

fn column_values<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let mut values = Vec::new();
    let mut levels = Vec::new();
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            column.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    if levels.is_empty() {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.iter().map(|level| if *level == 1 { values.next() } else { None }).collect())
}

fn to_io(error: ParquetError) -> io::Error {
    match error {
        // A full disk must be reported as one.
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            // Compressed bytes that do not decode.
            Err(source) => io::Error::new(io::ErrorKind::InvalidData, source),
        },
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Scratch;

    proptest! {
        /// Cells come one by one, many alike, or several at once, and missing ones may be left out.
        #[test]
        fn what_is_put_into_a_column_is_read_from_it(
            parts in prop::collection::vec((0usize..4, prop::option::of(-1e9..1e9f64), 1usize..5), 1..40),
            cut in 0usize..40,
        ) {
            let scratch = Scratch::new("frame");
            let path = scratch.path("numbers.parquet");
            let kinds = [("row".to_owned(), ColumnType::Int32), ("x".to_owned(), ColumnType::Double)];
            let mut writer = FrameWriter::create(&path, &kinds).unwrap();
            let mut columns = writer.columns();
            let (first, second) = parts.split_at(cut.min(parts.len()));
            let mut groups = Vec::new();
            for parts in [first, second].into_iter().filter(|parts| !parts.is_empty()) {
                let (mut expected, mut cells) = (Vec::new(), 0);
                for (how, value, rows) in parts {
                    let [row, x] = &mut columns[..] else { unreachable!("there are two columns") };
                    row.fill(Cell::Count(7), *rows);
                    x.skip_to(expected.len());
                    cells += match (how, value) {
                        (0, None) => 0,
                        (1, _) => x.extend_numbers(std::iter::repeat_n(*value, *rows)),
                        (2, _) => (0..*rows).map(|_| x.push(Cell::Number(*value))).sum(),
                        _ => x.fill(Cell::Number(*value), *rows),
                    };
                    expected.extend(std::iter::repeat_n(*value, *rows));
                }
                columns[1].skip_to(expected.len());
                prop_assert_eq!(cells, expected.iter().flatten().count());
                writer.write(&columns).unwrap();
                columns.iter_mut().for_each(Column::clear);
                groups.push(expected);
            }
            writer.finish().unwrap();
            let reader = FrameReader::open(&path).unwrap();
            prop_assert_eq!(reader.groups(), groups.len());
            for (group, expected) in groups.iter().enumerate() {
                prop_assert_eq!(&reader.numbers(group, "x").unwrap(), expected);
                prop_assert_eq!(reader.counts(group, "row").unwrap(), vec![7; expected.len()]);
            }
        }
    }
}
