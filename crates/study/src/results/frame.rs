//! Columns in a Parquet file. Arrow is not used, because results need only a few types.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type as SchemaType};

use super::checksums::{Checksum, Hashing};
use super::chunk::{self, Encoded};
use super::column::{Column, ColumnType};
use super::step_values::StepValues;

/// Writes a Parquet file, a row group at a time. The same cells give the same bytes.
pub(crate) struct FrameWriter {
    writer: SerializedFileWriter<BufWriter<Hashing<File>>>,
    schema: SchemaDescPtr,
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
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(concat!("sojourn ", env!("CARGO_PKG_VERSION")).to_owned());
        let file = BufWriter::new(Hashing::new(File::create(path)?));
        let schema = Arc::new(schema);
        let writer =
            SerializedFileWriter::new(file, Arc::clone(&schema), Arc::new(properties.build()))
                .map_err(to_io)?;
        let schema = Arc::new(SchemaDescriptor::new(schema));
        Ok(Self { writer, schema })
    }

    pub(crate) fn schema(&self) -> &SchemaDescPtr {
        &self.schema
    }

    /// Adds a row group of this file.
    pub(crate) fn write(&mut self, group: Encoded) -> io::Result<()> {
        let write = || -> Result<(), ParquetError> {
            let mut writer = self.writer.next_row_group()?;
            for chunk in group.chunks {
                writer.append_column(&group.bytes, chunk)?;
            }
            writer.close()?;
            Ok(())
        };
        write().map_err(to_io)
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

/// Encodes a row group of a file with this schema. Whoever writes the file need not wait for it.
pub(super) fn encode(
    columns: impl Iterator<Item = Column>,
    schema: &SchemaDescPtr,
) -> io::Result<Encoded> {
    chunk::encode(columns, schema.columns()).map_err(to_io)
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
    /// Equal neighbours share their text.
    Text(Vec<Option<Arc<str>>>),
    Double(Vec<Option<f64>>),
    Float(StepValues),
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
                ColumnReader::FloatColumnReader(column) => {
                    Data::Float(column_of(column, rows, |value| value, f32::NAN)?.into())
                }
                ColumnReader::ByteArrayColumnReader(column) => {
                    let mut last: Option<Arc<str>> = None;
                    let mut shared = |bytes: &[u8]| match &last {
                        Some(text) if text.as_bytes() == bytes => Arc::clone(text),
                        _ => Arc::clone(last.insert(String::from_utf8_lossy(bytes).into())),
                    };
                    let values = column_values(column, rows)?;
                    Data::Text(
                        values.iter().map(|value| Some(shared(value.as_ref()?.data()))).collect(),
                    )
                }
                _ => return Err(ParquetError::General("a column of a foreign type".into())),
            })
        };
        read().map_err(to_io)
    }

    pub(crate) fn numbers(&self, group: usize, column: &str) -> io::Result<Vec<Option<f64>>> {
        match self.read(group, column)? {
            Data::Double(values) => Ok(values),
            _ => Err(wrong_type(column)),
        }
    }

    pub(crate) fn step_values(&self, group: usize, column: &str) -> io::Result<StepValues> {
        match self.read(group, column)? {
            Data::Float(values) => Ok(values),
            Data::Double(values) => Ok(values.into_iter().collect()),
            _ => Err(wrong_type(column)),
        }
    }

    pub(crate) fn texts(&self, group: usize, column: &str) -> io::Result<Vec<Option<Arc<str>>>> {
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
    column: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    column_of(column, rows, Some, None)
}

/// A cell for each row: what `there` makes of a value, or `missing`.
fn column_of<T: DataType, C: Clone>(
    mut column: ColumnReaderImpl<T>,
    rows: usize,
    there: impl Fn(T::T) -> C,
    missing: C,
) -> Result<Vec<C>, ParquetError> {
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
        return Ok(values.into_iter().map(there).collect());
    }
    let mut values = values.into_iter().map(there);
    let mut cell = |is_there: bool| is_there.then(|| values.next()).flatten();
    Ok(levels.iter().map(|level| cell(*level == 1).unwrap_or_else(|| missing.clone())).collect())
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

    use super::super::column::{Presence, Texts};
    use super::*;
    use crate::testing::Scratch;

    /// A column of texts, each in so many rows.
    fn texts<'a>(cells: impl IntoIterator<Item = (Option<&'a str>, usize)>) -> Column {
        let (mut presence, mut texts) = (Presence::default(), Texts::default());
        for (text, rows) in cells {
            presence.extend(text.is_some(), rows);
            if let Some(text) = text {
                texts.fill(text, rows);
            }
        }
        Column::Text(presence, texts)
    }

    proptest! {
        /// Missing ones and others, alone and many one after the other, in every way in which a column says which are there.
        #[test]
        fn what_is_put_into_a_column_is_read_from_it(
            parts in prop::collection::vec((prop::option::of(-1e9..1e9f32), prop_oneof![1usize..5, 1usize..300]), 1..40),
            cut in 0usize..40,
        ) {
            let scratch = Scratch::new("frame");
            let path = scratch.path("numbers.parquet");
            let kinds = [
                ("row".to_owned(), ColumnType::Int32),
                ("x".to_owned(), ColumnType::Double),
                ("y".to_owned(), ColumnType::Double),
                ("z".to_owned(), ColumnType::Float),
            ];
            let mut writer = FrameWriter::create(&path, &kinds).unwrap();
            let (first, second) = parts.split_at(cut.min(parts.len()));
            let mut groups = Vec::new();
            for parts in [first, second].into_iter().filter(|parts| !parts.is_empty()) {
                let alike = parts.iter().map(|(value, rows)| std::iter::repeat_n(*value, *rows));
                let expected: Vec<Option<f32>> = alike.flatten().collect();
                let mut by_parts = Presence::default();
                parts.iter().for_each(|(value, rows)| by_parts.extend(value.is_some(), *rows));
                let mut by_rows = Presence::missing(expected.len());
                for (row, value) in expected.iter().enumerate() {
                    if value.is_some() {
                        by_rows.set(row);
                    }
                    prop_assert_eq!(by_parts.has(row), value.is_some());
                }
                let (mut by_values, mut values) = (Presence::default(), Vec::new());
                for part in expected.chunks(70) {
                    let part: Vec<f32> = part.iter().map(|value| value.unwrap_or(f32::NAN)).collect();
                    by_values.extend_with(&part, &mut values);
                }
                let known: Vec<f64> = expected.iter().flatten().map(|value| f64::from(*value)).collect();
                let columns = [
                    Column::Int32(vec![7; expected.len()]),
                    Column::Double(by_parts, known.clone()),
                    Column::Double(by_rows, known),
                    Column::Float(by_values, values),
                ];
                writer.write(encode(columns.into_iter(), writer.schema()).unwrap()).unwrap();
                groups.push(expected);
            }
            writer.finish().unwrap();
            let reader = FrameReader::open(&path).unwrap();
            prop_assert_eq!(reader.groups(), groups.len());
            for (group, expected) in groups.iter().enumerate() {
                let expected: Vec<Option<f64>> = expected.iter().map(|value| value.map(f64::from)).collect();
                for column in ["x", "y"] {
                    prop_assert_eq!(&reader.numbers(group, column).unwrap(), &expected, "{}", column);
                }
                for column in ["x", "z"] {
                    let values = reader.step_values(group, column).unwrap();
                    prop_assert!(values.iter().eq(expected.iter().copied()), "{}", column);
                }
                prop_assert_eq!(reader.counts(group, "row").unwrap(), vec![7; expected.len()]);
            }
        }

        /// Texts and counts that repeat and such that don't, some in a row, so that there are dictionaries of every size and none.
        #[test]
        fn texts_and_counts_are_read_as_they_were_put(
            parts in prop::collection::vec((any::<bool>(), 0u64..2000, 1usize..30), 1..200),
            different in prop::sample::select(vec![1, 2, 3, 17, 300, 2000]),
            length in prop::sample::select(vec![0usize, 1, 9, 30]),
        ) {
            let scratch = Scratch::new("frame");
            let path = scratch.path("texts.parquet");
            let kinds = [
                ("short".to_owned(), ColumnType::Int32),
                ("long".to_owned(), ColumnType::Int64),
                ("text".to_owned(), ColumnType::Text),
            ];
            let mut writer = FrameWriter::create(&path, &kinds).unwrap();
            let (mut counts, mut cells) = (Vec::new(), Vec::new());
            for (is_there, number, rows) in parts {
                let count = number % different;
                counts.extend(std::iter::repeat_n(count, rows));
                cells.push((is_there.then(|| format!("{count:0length$}")), rows));
            }
            let long: Vec<u64> = counts.iter().map(|count| u64::MAX - count).collect();
            let columns = [
                Column::Int32(counts.iter().map(|count| *count as u32).collect()),
                Column::Int64(long.clone()),
                texts(cells.iter().map(|(text, rows)| (text.as_deref(), *rows))),
            ];
            writer.write(encode(columns.into_iter(), writer.schema()).unwrap()).unwrap();
            writer.finish().unwrap();
            let reader = FrameReader::open(&path).unwrap();
            let range = (*counts.iter().min().unwrap() as u32, *counts.iter().max().unwrap() as u32);
            prop_assert_eq!(reader.range(0, "short"), Some(range));
            let alike = cells.into_iter().map(|(text, rows)| std::iter::repeat_n(text, rows));
            let expected: Vec<Option<Arc<str>>> =
                alike.flatten().map(|text| text.map(Into::into)).collect();
            prop_assert_eq!(reader.texts(0, "text").unwrap(), expected);
            prop_assert_eq!(&reader.counts(0, "short").unwrap(), &counts);
            prop_assert_eq!(reader.counts(0, "long").unwrap(), long);
        }
    }

    #[test]
    fn long_texts_are_in_several_pages() {
        let scratch = Scratch::new("frame");
        let path = scratch.path("texts.parquet");
        let mut writer =
            FrameWriter::create(&path, &[("text".to_owned(), ColumnType::Text)]).unwrap();
        let expected: Vec<Option<Arc<str>>> =
            (0..1000).map(|at| (at % 3 > 0).then(|| format!("{at:04000}").into())).collect();
        let columns = [texts(expected.iter().map(|text| (text.as_deref(), 1)))];
        writer.write(encode(columns.into_iter(), writer.schema()).unwrap()).unwrap();
        writer.finish().unwrap();
        assert_eq!(FrameReader::open(&path).unwrap().texts(0, "text").unwrap(), expected);
    }
}
